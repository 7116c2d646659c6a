"""Makes a Newsletter Digest: three to seven stories in one mail, each with headline, sentences and a link."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pipeline.engines.base import Check, Draft, Engine, claims_of, make_check, variant_schema
from pipeline.engines.checks import newsletters
from pipeline.engines.checks.allowed_contacts import is_allowed
from pipeline.engines.checks.persona_rules import missing_in
from pipeline.grounding import find_unsupported_number_texts
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

MIN_STORIES: Final = 3
MAX_STORIES: Final = 7
MIN_WORDS: Final = 40
MAX_WORDS: Final = 70
"""The words of a story's text that a model writes, at least and at most."""
MAX_EXCERPT_WORDS: Final = 90
"""The words of two verbatim sentences together; if they have more, only one is taken."""
_SENTENCES_PER_STORY: Final = 2
_MAX_TITLE_CHARACTERS: Final = 120
_SEPARATOR: Final = " \u00b7 "
_RULES: Final = f"""\
A Newsletter Digest is one mail about several stories, for readers who skim it and open what concerns them.
- Each fact names its `story`. Write one entry of `stories` for every story that the facts name, in that order, and \
name it there; {MIN_STORIES} to {MAX_STORIES} entries.
- An entry's `headline`: at most {newsletters.MAX_HEADLINE_CHARACTERS} characters, what happened. Its `text`: {MIN_WORDS} to \
{MAX_WORDS} words in one paragraph, fewer only where its facts hold no more: what happened, the figure or the name \
that matters, and why to read on. Only from the facts of its own story.
- `title`: what the whole mail is called, at most {newsletters.MAX_HEADLINE_CHARACTERS} characters, from its most important story.
- No greeting, no sign-off, no "in this issue", no transitions between stories.
{newsletters.SUBJECT_RULES}"""


class NewsletterDigest(Engine):
    """Makes a newsletter of several stories.

    Without a model each story is its title, one or two verbatim sentences and the link.
    """

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
        if stories < MIN_STORIES:
            return f"A digest needs {MIN_STORIES} stories or more; this has {stories}."
        return None

    def offline(self, brief: Brief, persona: PersonaCard, *, variants: int, seed: str) -> tuple[Draft, ...]:
        """Return excerpts: each story's best two sentences make the first, the next two the second.

        An excerpt that lacks a required structure is left out; too few stories, or no preheader, end the list.
        """
        del seed
        sentences_by_story = [
            (story, newsletters.rank_sentences(brief.facts_of(story), brief, persona))
            for story in brief.stories
        ]
        drafts: list[Draft] = []
        for variant in range(max(1, variants)):
            draft = _build_excerpt(sentences_by_story, variant, brief, persona)
            if draft is None:
                break
            if not missing_in(draft.body, persona):
                drafts.append(draft)
        if not drafts:
            message = f"Fewer than {MIN_STORIES} of the stories hold a sentence that could stand in a digest."
            raise Refused(message, code="too_few_stories")
        return tuple(drafts)

    def check(
        self, draft: Draft, brief: Brief, source: SourceText, persona: PersonaCard
    ) -> tuple[Check, ...]:
        return (
            newsletters.check_content(draft),
            newsletters.check_subject(draft),
            newsletters.check_preheader(draft),
            _check_count(draft),
            _check_length(draft, brief),
            _check_stories(draft, source),
            *newsletters.check_words(draft, brief, source, persona),
            *newsletters.check_banned(draft, persona),
        )

    def draft_schema(self) -> Mapping[str, Any]:
        """Return the schema of subject, preheader, title and one entry for each story."""
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
        """Build the draft. The stories' addresses are added here, as a model neither sees nor writes them.

        Raises `Refused` if an entry names an unknown story or one a second time, or a claim cites an unknown fact.
        """
        stories_by_name = {story_name(index): story for index, story in enumerate(brief.stories)}
        answered_names = [entry["story"] for entry in answer["stories"]]
        if len(set(answered_names)) < len(answered_names) or set(answered_names) - set(stories_by_name):
            message = f"Each entry names another one of the stories {', '.join(stories_by_name)}."
            raise Refused(message, code="unknown_story")
        sections = [
            NewsletterSection(
                collapse(entry["headline"]),
                escape_markdown(collapse(entry["text"])),
                ascii_url(stories_by_name[entry["story"]].url),
            )
            for entry in answer["stories"]
        ]
        return _build_draft(
            collapse(answer["title"]),
            newsletters.InboxLines(collapse(answer["subject"]), collapse(answer["preheader"])),
            sections,
            claims=claims_of(answer, brief),
            language=persona.language or brief.language,
            angle=angle,
        )


def story_name(index: int) -> str:
    """Return the name by which a model knows the story at this index."""
    return f"s{index + 1}"


def _build_draft(
    title: str,
    inbox: newsletters.InboxLines,
    sections: Sequence[NewsletterSection],
    *,
    claims: tuple[Claim, ...],
    language: str,
    angle: str = "",
) -> Draft:
    """Return the draft of a digest, whose body is made from title and sections."""
    return Draft(
        title=title,
        body=body_of(title, sections, language=language),
        body_format="markdown",
        content={**inbox._asdict(), "sections": as_content(sections)},
        claims=claims,
        language=language,
        angle=angle,
    )


def _build_excerpt(
    sentences_by_story: Sequence[tuple[Story, Sequence[tuple[str, Fact]]]],
    variant: int,
    brief: Brief,
    persona: PersonaCard,
) -> Draft | None:
    """Return the draft of each story's next two sentences, `variant` counting from 0.

    It is `None` if fewer than `MIN_STORIES` have a sentence left, or if no preheader reaches the minimum length.
    """
    sections: list[NewsletterSection] = []
    claims: list[Claim] = []
    for story, sentences in sentences_by_story:
        first = variant * _SENTENCES_PER_STORY
        chosen = _drop_second_if_long(sentences[first : first + _SENTENCES_PER_STORY])
        if not chosen or len(sections) == MAX_STORIES:
            continue
        ordered = sorted(chosen, key=lambda pair: pair[1].start)
        text = paragraph_of(sentence for sentence, _ in ordered)
        headline = _choose_headline(story, ordered[0][0], brief, persona)
        sections.append(NewsletterSection(headline, escape_markdown(text), ascii_url(story.url)))
        claims += [newsletters.claim_of(sentence, fact) for sentence, fact in ordered]
    if len(sections) < MIN_STORIES:
        return None
    headlines = [section.headline for section in sections]
    other_headlines = _SEPARATOR.join(headlines[1:])
    subject = newsletters.subject_of(headlines[0])
    preheader = first_words(other_headlines, newsletters.MAX_PREHEADER_CHARACTERS)
    if len(preheader) < newsletters.MIN_PREHEADER_CHARACTERS or newsletters.repeats_subject(
        preheader, subject
    ):
        all_sentences = [pair for _, sentences in sentences_by_story for pair in sentences]
        preheader, further_claims = newsletters.choose_preheader(all_sentences, subject)
        claims += [claim for claim in further_claims if claim not in claims]
    if len(preheader) < newsletters.MIN_PREHEADER_CHARACTERS:
        return None
    return _build_draft(
        first_words(_SEPARATOR.join(headlines[:2]), _MAX_TITLE_CHARACTERS),
        newsletters.InboxLines(subject, preheader),
        sections,
        claims=tuple(claims),
        language=brief.language,
    )


def _drop_second_if_long(sentences: Sequence[tuple[str, Fact]]) -> Sequence[tuple[str, Fact]]:
    """Return the sentences, or the first, which is the better one, if they have too many words together."""
    words = sum(count_words(sentence) for sentence, _ in sentences)
    return sentences if words <= MAX_EXCERPT_WORDS else sentences[:1]


def _choose_headline(story: Story, sentence: str, brief: Brief, persona: PersonaCard) -> str:
    """Return the story's title, or the sentence if the title is missing or leads elsewhere, cut to the maximum."""
    title = first_words(story.title, newsletters.MAX_HEADLINE_CHARACTERS)
    if title and is_allowed(title, brief, persona):
        return title
    return first_words(sentence, newsletters.MAX_HEADLINE_CHARACTERS)


def _check_count(draft: Draft) -> Check:
    stories = len(from_content(draft.content))
    fault = None
    if not MIN_STORIES <= stories <= MAX_STORIES:
        fault = f"The digest has {counted(stories, 'story', 'stories')}; it has to have {MIN_STORIES} to {MAX_STORIES}."
    return make_check("stories", f"The digest has {MIN_STORIES} to {MAX_STORIES} stories.", fault)


def _check_length(draft: Draft, brief: Brief) -> Check:
    """Check the headlines' characters, and the words of each story that isn't verbatim.

    A story whose facts hold fewer words than the minimum may be shorter, with a warning.
    """
    sections = from_content(draft.content)
    too_long = [
        section for section in sections if len(section.headline) > newsletters.MAX_HEADLINE_CHARACTERS
    ]
    if too_long:
        message = (
            f"A headline has {len(too_long[0].headline)} characters; the maximum is "
            f"{newsletters.MAX_HEADLINE_CHARACTERS}."
        )
        return Check("length", "failed", message)
    written_sections = [section for section in sections if not newsletters.is_verbatim(section, draft.claims)]
    if not written_sections:
        message = (
            f"Each story is a sentence or two of its source and nothing added, which may be fewer or more than the "
            f"{MIN_WORDS} to {MAX_WORDS} words of a written one."
        )
        return Check("length", "passed", message)
    off_limits = [
        (section, words)
        for section in written_sections
        if not MIN_WORDS <= (words := newsletters.count_section_words(section)) <= MAX_WORDS
    ]
    failed = [
        f"\u201c{section.headline}\u201d has {counted(words, 'word')}"
        for section, words in off_limits
        if words > MAX_WORDS or words < min(MIN_WORDS, _fact_words(section, brief))
    ]
    if failed:
        message = f"{'; '.join(failed)}. A story has {MIN_WORDS} to {MAX_WORDS}."
        return Check("length", "failed", message)
    if off_limits:
        message = f"{counted(len(off_limits), 'story has', 'stories have')} fewer than {MIN_WORDS} words: their facts hold no more."
        return Check("length", "warning", message)
    return Check("length", "passed", f"Each story has {MIN_WORDS} to {MAX_WORDS} words.")


def _fact_words(section: NewsletterSection, brief: Brief) -> int:
    """Return the number of words of the facts of a section's story, or `MIN_WORDS` if the story is unknown."""
    story = next(
        (
            candidate
            for candidate in brief.stories
            if section.link and ascii_url(candidate.url) == section.link
        ),
        None,
    )
    if story is None:
        return MIN_WORDS
    return sum(count_words(fact.quote) for fact in brief.facts_of(story))


def _check_stories(draft: Draft, source: SourceText) -> Check:
    """Check that each section's numbers are in its story: another story's would be as wrong as an invented one.

    A section whose link is no story's isn't checked here.
    """
    foreign_numbers = []
    for section in from_content(draft.content):
        stories = [story for story in source.stories if section.link and ascii_url(story.url) == section.link]
        if not stories:
            continue
        text = "\n".join(source.text[story.start : story.end] for story in stories)
        ungrounded = find_unsupported_number_texts(f"{section.headline}\n|\n{section.text}", text)
        foreign_numbers += [f"{number} (in \u201c{section.headline}\u201d)" for number in ungrounded]
    fault = (
        f"These numbers are those of another story: {', '.join(foreign_numbers)}."
        if foreign_numbers
        else None
    )
    return make_check("own_numbers", "Every number is in the source of its own story.", fault)


PLUGIN = NewsletterDigest()
