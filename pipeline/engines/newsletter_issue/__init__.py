"""Makes a Newsletter Issue: one story as a mail, with subject, preheader and a link to the full story."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pipeline.engines.base import Check, Draft, Engine, claims_of, variant_schema
from pipeline.engines.checks import newsletters
from pipeline.engines.checks.allowed_contacts import title_of
from pipeline.engines.checks.persona_rules import missing_in
from pipeline.plugins import Refused
from pipeline.text.links import ascii_url
from pipeline.text.newsletter_sections import (
    NewsletterSection,
    as_content,
    body_of,
    escape_markdown,
    from_content,
)
from pipeline.text.prose.verbatim_edits import collapse, count_words, counted, paragraph_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.engines.base import Brief, Fact, PersonaCard, SourceText

MIN_WORDS: Final = 300
MAX_WORDS: Final = 500
MIN_SOURCE_WORDS: Final = 40
"""A shorter text is no story that anybody would open a mail for."""
_MAX_SENTENCES: Final = 8
_MAX_EXCERPT_WORDS: Final = 220
"""The words that an excerpt takes from one source, which more of them would copy."""
_SENTENCES_PER_PARAGRAPH: Final = 3
"""The maximum of an excerpt's paragraph."""
_MIN_FURTHER_WORDS: Final = 60
"""The minimum of a further excerpt: the rest of a short source makes no mail."""
_WORD: Final = re.compile(r"\w+")
_RULES: Final = f"""\
A Newsletter Issue is one mail about one story, for readers who subscribed and have a minute and a half.
- {MIN_WORDS} to {MAX_WORDS} words in `paragraphs`, each of 2 to 4 sentences; fewer only where the facts hold no more.
- `headline`: at most {newsletters.MAX_HEADLINE_CHARACTERS} characters, what happened; it may say more than the subject.
- The first paragraph says what happened and why it matters to the reader. Then the details by weight, one idea to a \
paragraph, and at the end what comes next or what isn't known yet.
- No greeting, no sign-off, no "in this issue", no call to share.
{newsletters.SUBJECT_RULES}"""


class NewsletterIssue(Engine):
    """Makes a newsletter of one story.

    Without a model the newsletter is an excerpt: the story's best sentences in the source's order, and a link.
    """

    kind = "newsletter_issue"
    name = "Newsletter Issue"
    bucket = "newsletter"
    version = 1
    credits = 3
    is_starting = True
    made_from = ("text", "topic")
    draft_tokens = 8_000
    least_lines = _SENTENCES_PER_PARAGRAPH

    def why_not(self, source: SourceText) -> str | None:
        words = count_words(source.text)
        if words >= MIN_SOURCE_WORDS:
            return None
        if not words:
            return "This item has no words beyond its title, and a newsletter needs a story."
        return f"A newsletter needs a story of {MIN_SOURCE_WORDS} words or more; this item has {words}."

    def offline(self, brief: Brief, persona: PersonaCard, *, variants: int, seed: str) -> tuple[Draft, ...]:
        """Return excerpts: the best sentences make the first, the remaining ones the next, whatever the seed.

        An excerpt is left out if it has no preheader or lacks a structure that the persona requires.
        """
        del seed
        remaining = newsletters.rank_sentences(brief.facts, brief, persona)
        drafts: list[Draft] = []
        while len(drafts) < max(1, variants):
            chosen = _choose_sentences(remaining)
            if not chosen or (
                drafts and sum(count_words(sentence) for sentence, _ in chosen) < _MIN_FURTHER_WORDS
            ):
                break
            draft = _build_excerpt(chosen, remaining, brief, persona)
            remaining = [pair for pair in remaining if pair not in chosen]
            if draft is not None and not missing_in(draft.body, persona):
                drafts.append(draft)
        if not drafts:
            message = "The source holds too few sentences that could stand in a newsletter."
            raise Refused(message, code="nothing_to_say")
        return tuple(drafts)

    def check(
        self, draft: Draft, brief: Brief, source: SourceText, persona: PersonaCard
    ) -> tuple[Check, ...]:
        return (
            newsletters.check_content(draft),
            newsletters.check_subject(draft),
            newsletters.check_preheader(draft),
            _check_length(draft, brief),
            *newsletters.check_words(draft, brief, source, persona),
            *newsletters.check_banned(draft, persona),
        )

    def draft_schema(self) -> Mapping[str, Any]:
        return variant_schema(
            {
                "subject": {"type": "string", "description": "The subject of the mail."},
                "preheader": {"type": "string", "description": "What an inbox shows after the subject."},
                "headline": {"type": "string", "description": "The headline of the story."},
                "paragraphs": {"type": "array", "items": {"type": "string"}},
            }
        )

    def rules(self) -> str:
        return _RULES

    def draft_from(self, answer: Mapping[str, Any], brief: Brief, persona: PersonaCard, angle: str) -> Draft:
        """Build the draft. The source's address is added here, as a model neither sees nor writes it.

        Raises `Refused` if the headline or the paragraphs are missing, or a claim cites an unknown fact.
        """
        headline = collapse(answer["headline"])
        paragraphs = [words for words in map(collapse, answer["paragraphs"]) if words]
        if not headline or not paragraphs:
            message = "An issue needs a headline and paragraphs."
            raise Refused(message, code="empty")
        return _build_draft(
            headline,
            newsletters.InboxLines(collapse(answer["subject"]), collapse(answer["preheader"])),
            paragraphs,
            url=ascii_url(brief.url),
            claims=claims_of(answer, brief),
            language=persona.language or brief.language,
            angle=angle,
        )


def _build_draft(
    headline: str,
    inbox: newsletters.InboxLines,
    paragraphs: Sequence[str],
    *,
    url: str,
    claims: tuple[Any, ...],
    language: str,
    angle: str = "",
) -> Draft:
    """Return the draft of an issue, whose one section has all paragraphs."""
    text = "\n\n".join(map(escape_markdown, paragraphs))
    sections = (NewsletterSection(headline, text, url),)
    return Draft(
        title=headline,
        body=body_of(headline, sections, language=language),
        body_format="markdown",
        content={**inbox._asdict(), "sections": as_content(sections)},
        claims=claims,
        language=language,
        angle=angle,
    )


def _choose_sentences(remaining: Sequence[tuple[str, Fact]]) -> list[tuple[str, Fact]]:
    """Return the first sentences within an excerpt's limits; the first one is taken however long it is."""
    chosen: list[tuple[str, Fact]] = []
    words = 0
    for sentence, fact in remaining:
        words += count_words(sentence)
        if len(chosen) == _MAX_SENTENCES or (words > _MAX_EXCERPT_WORDS and chosen):
            break
        chosen.append((sentence, fact))
    return chosen


def _build_excerpt(
    chosen: Sequence[tuple[str, Fact]],
    remaining: Sequence[tuple[str, Fact]],
    brief: Brief,
    persona: PersonaCard,
) -> Draft | None:
    """Return the draft of the chosen sentences, or `None` if no preheader reaches the minimum length."""
    ordered = sorted(chosen, key=lambda pair: pair[1].start)
    headline = title_of(brief, persona, ordered[0][0])
    # Many inboxes show the opening sentence right below the preheader.
    other_sentences = [
        pair for pair in remaining if pair != ordered[0] and not _repeats_headline(pair[0], headline)
    ]
    subject = newsletters.subject_of(headline)
    preheader, claims = newsletters.choose_preheader(other_sentences or ordered, subject)
    if len(preheader) < newsletters.MIN_PREHEADER_CHARACTERS:
        preheader, claims = newsletters.choose_preheader(ordered, subject)
    if len(preheader) < newsletters.MIN_PREHEADER_CHARACTERS:
        return None
    sentence_claims = [newsletters.claim_of(sentence, fact) for sentence, fact in ordered]
    return _build_draft(
        headline,
        newsletters.InboxLines(subject, preheader),
        [paragraph_of(paragraph) for paragraph in _split_into_paragraphs(ordered)],
        url=ascii_url(brief.url),
        claims=(*sentence_claims, *(claim for claim in claims if claim not in sentence_claims)),
        language=brief.language,
    )


def _repeats_headline(sentence: str, headline: str) -> bool:
    """Return whether more than half of the sentence's words are in the headline."""
    words, headline_words = (set(_WORD.findall(text.casefold())) for text in (sentence, headline))
    return len(words & headline_words) > len(words) // 2


def _split_into_paragraphs(ordered: Sequence[tuple[str, Fact]]) -> list[list[str]]:
    """Return paragraphs of at most three sentences that follow one another in the source, so that references hold."""
    paragraphs: list[list[str]] = []
    end = None
    for sentence, fact in ordered:
        # A space or a line break may lie between two sentences that follow one another.
        is_next = end is not None and 0 <= fact.start - end <= 1
        if is_next and len(paragraphs[-1]) < _SENTENCES_PER_PARAGRAPH:
            paragraphs[-1].append(sentence)
        else:
            paragraphs.append([sentence])
        end = fact.end
    return paragraphs


def _check_length(draft: Draft, brief: Brief) -> Check:
    """Check the number of words, of which `MAX_WORDS` is the maximum.

    Fewer than `MIN_WORDS` pass if all are verbatim. Else they are a warning if they are as many as the words
    of the facts, and fail if the facts hold enough for more.
    """
    sections = from_content(draft.content)
    words = sum(map(newsletters.count_section_words, sections))
    if words > MAX_WORDS:
        message = f"The issue has {counted(words, 'word')}; the maximum is {MAX_WORDS}."
        return Check("length", "failed", message)
    if words >= MIN_WORDS:
        return Check(
            "length", "passed", f"The issue has {counted(words, 'word')}, from {MIN_WORDS} to {MAX_WORDS}."
        )
    if sections and all(newsletters.is_verbatim(section, draft.claims) for section in sections):
        message = (
            f"The issue has {counted(words, 'word')}: sentences of the source and nothing added, so it is shorter than the "
            f"{MIN_WORDS} words of a written one."
        )
        return Check("length", "passed", message)
    fact_words = sum(count_words(fact.quote) for fact in brief.facts)
    if words < min(MIN_WORDS, fact_words):
        message = f"The issue has {counted(words, 'word')}; write {MIN_WORDS} to {MAX_WORDS}, the facts hold enough for more."
        return Check("length", "failed", message)
    message = f"The issue has {counted(words, 'word')}, fewer than {MIN_WORDS}: its facts hold no more."
    return Check("length", "warning", message)


PLUGIN = NewsletterIssue()
