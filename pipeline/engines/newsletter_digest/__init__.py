"""Newsletter Digest: three to seven stories in one mail, each with a headline, a few sentences and a link."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pipeline.engines.base import Check, Draft, Engine, claims_of, variant_schema
from pipeline.engines.checks import newsletters as rules
from pipeline.engines.checks.allowed_contacts import is_allowed
from pipeline.engines.checks.persona_rules import missing_in
from pipeline.grounding import ungrounded_numbers
from pipeline.plugins import Refused
from pipeline.text.links import ascii_url
from pipeline.text.newsletter_sections import (
    NewsletterSection,
    as_content,
    body_of,
    escape_markdown,
    from_content,
)
from pipeline.text.prose.verbatim_edits import collapse, count_words, counted, first_words, paragraph_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.engines.base import Brief, Claim, Fact, PersonaCard, SourceText, Story

STORIES_LEAST: Final = 3
STORIES_MOST: Final = 7
WORDS_LEAST: Final = 40
WORDS_MOST: Final = 70
EXCERPT_MOST: Final = 90
"""Words of two sentences that are taken as they are."""
_SENTENCES: Final = 2
_TITLE_MOST: Final = 120
_BETWEEN: Final = " \u00b7 "
_RULES: Final = f"""\
A Newsletter Digest is one mail about several stories, for readers who skim it and open what concerns them.
- Each fact names its `story`. Write one entry of `stories` for every story that the facts name, in that order, and \
name it there; {STORIES_LEAST} to {STORIES_MOST} entries.
- An entry's `headline`: at most {rules.HEADLINE_MOST} characters, what happened. Its `text`: {WORDS_LEAST} to \
{WORDS_MOST} words in one paragraph, fewer only where its facts hold no more: what happened, the figure or the name \
that matters, and why to read on. Only from the facts of its own story.
- `title`: what the whole mail is called, at most {rules.HEADLINE_MOST} characters, from its most important story.
- No greeting, no sign-off, no "in this issue", no transitions between stories.
{rules.SUBJECT_RULES}"""


class NewsletterDigest(Engine):
    """Without a model: of each story its title, two sentences as they stand there, and the link."""

    kind = "newsletter_digest"
    name = "Newsletter Digest"
    bucket = "newsletter"
    version = 1
    credits = 5
    made_from = ("series",)
    draft_tokens = 8_000

    def why_not(self, source: SourceText) -> str | None:
        stories = len(source.stories)
        if not stories:
            return (
                "A digest is made from several items together: create a series under Calendar \u203a Recurring, or with "
                "POST /v1/series."
            )
        if stories < STORIES_LEAST:
            return f"A digest needs {STORIES_LEAST} stories or more; this has {stories}."
        return None

    def offline(self, brief: Brief, persona: PersonaCard, *, variants: int, seed: str) -> tuple[Draft, ...]:
        """The best two sentences of each story make the first variant, the next two the second."""
        del seed
        said = [
            (story, rules.rank_sentences(brief.facts_of(story), brief, persona)) for story in brief.stories
        ]
        made: list[Draft] = []
        for place in range(max(1, variants)):
            draft = _excerpts(said, place, brief, persona)
            if draft is None:
                break
            if not missing_in(draft.body, persona):
                made.append(draft)
        if not made:
            message = (
                f"Fewer than {STORIES_LEAST} of the stories hold a sentence that could stand in a digest."
            )
            raise Refused(message, code="too_few_stories")
        return tuple(made)

    def check(
        self, draft: Draft, brief: Brief, source: SourceText, persona: PersonaCard
    ) -> tuple[Check, ...]:
        return (
            rules.check_content(draft),
            rules.check_subject(draft),
            rules.check_preheader(draft),
            _check_count(draft),
            _check_length(draft, brief),
            _check_stories(draft, source),
            *rules.check_words(draft, brief, source, persona),
            *rules.check_banned(draft, persona),
        )

    def draft_schema(self) -> Mapping[str, Any]:
        entry = {
            "type": "object",
            "properties": {
                "story": {"type": "string", "description": "The story's name, as its facts give it."},
                "headline": {"type": "string"},
                "text": {"type": "string"},
            },
            "required": ["story", "headline", "text"],
            "additionalProperties": False,
        }
        return variant_schema(
            {
                "subject": {"type": "string", "description": "The subject of the mail."},
                "preheader": {"type": "string", "description": "What an inbox shows after the subject."},
                "title": {"type": "string", "description": "What the mail is called elsewhere."},
                "stories": {"type": "array", "items": entry},
            }
        )

    def rules(self) -> str:
        return _RULES

    def draft_from(self, answer: Mapping[str, Any], brief: Brief, persona: PersonaCard, angle: str) -> Draft:
        """The stories' addresses are added here: a model neither sees nor writes them."""
        known = {story_name(place): story for place, story in enumerate(brief.stories)}
        named = [entry["story"] for entry in answer["stories"]]
        if len(set(named)) < len(named) or set(named) - set(known):
            message = f"Each entry names another one of the stories {', '.join(known)}."
            raise Refused(message, code="unknown_story")
        sections = [
            NewsletterSection(
                collapse(entry["headline"]),
                escape_markdown(collapse(entry["text"])),
                ascii_url(known[entry["story"]].url),
            )
            for entry in answer["stories"]
        ]
        return _draft(
            collapse(answer["title"]),
            (collapse(answer["subject"]), collapse(answer["preheader"])),
            sections,
            claims=claims_of(answer, brief),
            language=persona.language or brief.language,
            angle=angle,
        )


def story_name(place: int) -> str:
    """What a model is told that the story at this place, from 0, is called."""
    return f"s{place + 1}"


def _draft(
    title: str,
    inbox: tuple[str, str],
    sections: Sequence[NewsletterSection],
    *,
    claims: tuple[Claim, ...],
    language: str,
    angle: str = "",
) -> Draft:
    return Draft(
        title=title,
        body=body_of(title, sections, language=language),
        body_format="markdown",
        content={"subject": inbox[0], "preheader": inbox[1], "sections": as_content(sections)},
        claims=claims,
        language=language,
        angle=angle,
    )


def _excerpts(
    said: Sequence[tuple[Story, Sequence[tuple[str, Fact]]]], place: int, brief: Brief, persona: PersonaCard
) -> Draft | None:
    """The draft of each story's sentences at that place; None for too few stories, or no words for a preheader."""
    sections: list[NewsletterSection] = []
    claims: list[Claim] = []
    for story, sentences in said:
        taken = _pair(sentences[place * _SENTENCES : (place + 1) * _SENTENCES])
        if not taken or len(sections) == STORIES_MOST:
            continue
        ordered = sorted(taken, key=lambda pair: pair[1].start)
        text = paragraph_of(sentence for sentence, _ in ordered)
        headline = _headline(story, ordered[0][0], brief, persona)
        sections.append(NewsletterSection(headline, escape_markdown(text), ascii_url(story.url)))
        claims += [rules.claim_of(sentence, fact) for sentence, fact in ordered]
    if len(sections) < STORIES_LEAST:
        return None
    headlines = [one.headline for one in sections]
    others = _BETWEEN.join(headlines[1:])
    subject = rules.subject_of(headlines[0])
    preheader = first_words(others, rules.PREHEADER_MOST)
    if len(preheader) < rules.PREHEADER_LEAST or rules.repeats_subject(preheader, subject):
        said_first = [pair for _, sentences in said for pair in sentences]
        preheader, more = rules.preheader_of(said_first, subject)
        claims += [claim for claim in more if claim not in claims]
    if len(preheader) < rules.PREHEADER_LEAST:
        return None
    return _draft(
        first_words(_BETWEEN.join(headlines[:2]), _TITLE_MOST),
        (subject, preheader),
        sections,
        claims=tuple(claims),
        language=brief.language,
    )


def _pair(sentences: Sequence[tuple[str, Fact]]) -> Sequence[tuple[str, Fact]]:
    """Both, or the better one where both are too long."""
    words = sum(count_words(sentence) for sentence, _ in sentences)
    return sentences if words <= EXCERPT_MOST else sentences[:1]


def _headline(story: Story, sentence: str, brief: Brief, persona: PersonaCard) -> str:
    title = first_words(story.title, rules.HEADLINE_MOST)
    if title and is_allowed(title, brief, persona):
        return title
    return first_words(sentence, rules.HEADLINE_MOST)


def _check_count(draft: Draft) -> Check:
    stories = len(from_content(draft.content))
    fault = None
    if not STORIES_LEAST <= stories <= STORIES_MOST:
        fault = f"The digest has {counted(stories, 'story', 'stories')}; it has to have {STORIES_LEAST} to {STORIES_MOST}."
    return rules.check_result("stories", f"The digest has {STORIES_LEAST} to {STORIES_MOST} stories.", fault)


def _check_length(draft: Draft, brief: Brief) -> Check:
    sections = from_content(draft.content)
    long = [one for one in sections if len(one.headline) > rules.HEADLINE_MOST]
    if long:
        message = f"A headline has {len(long[0].headline)} characters; {rules.HEADLINE_MOST} are the most."
        return Check("length", "failed", message)
    written = [one for one in sections if not rules.is_verbatim(one, draft.claims)]
    if not written:
        message = (
            f"Each story is a sentence or two of its source and nothing added, which may be fewer or more than the "
            f"{WORDS_LEAST} to {WORDS_MOST} words of a written one."
        )
        return Check("length", "passed", message)
    off = [(one, words) for one in written if not WORDS_LEAST <= (words := rules.words_in(one)) <= WORDS_MOST]
    failed = [
        f"\u201c{one.headline}\u201d has {counted(words, 'word')}"
        for one, words in off
        if words > WORDS_MOST or words < min(WORDS_LEAST, _held(one, brief))
    ]
    if failed:
        message = f"{'; '.join(failed)}. A story has {WORDS_LEAST} to {WORDS_MOST}."
        return Check("length", "failed", message)
    if off:
        message = f"{counted(len(off), 'story has', 'stories have')} fewer than {WORDS_LEAST} words: their facts hold no more."
        return Check("length", "warning", message)
    return Check("length", "passed", f"Each story has {WORDS_LEAST} to {WORDS_MOST} words.")


def _held(section: NewsletterSection, brief: Brief) -> int:
    """How many words the facts of a section's story have; many where it isn't known which one that is."""
    story = next((one for one in brief.stories if section.link and ascii_url(one.url) == section.link), None)
    if story is None:
        return WORDS_LEAST
    return sum(count_words(fact.quote) for fact in brief.facts_of(story))


def _check_stories(draft: Draft, source: SourceText) -> Check:
    """Each story's numbers are its own: a figure of another one would be as wrong as an invented one."""
    faults = []
    for section in from_content(draft.content):
        own = [one for one in source.stories if section.link and ascii_url(one.url) == section.link]
        if not own:
            continue
        text = "\n".join(source.text[one.start : one.end] for one in own)
        strange = ungrounded_numbers(f"{section.headline}\n|\n{section.text}", text)
        faults += [f"{number} (in \u201c{section.headline}\u201d)" for number in strange]
    fault = f"These numbers are those of another story: {', '.join(faults)}." if faults else None
    return rules.check_result("own_numbers", "Every number stands in the source of its own story.", fault)


PLUGIN = NewsletterDigest()
