"""Newsletter Issue: one story as a mail, with subject, preheader and a link to the whole of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pipeline.engines.base import Check, Draft, Engine, claims_of, variant_schema
from pipeline.engines.checks import newsletters as rules
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

WORDS_LEAST: Final = 300
WORDS_MOST: Final = 500
SOURCE_LEAST: Final = 40
"""A text of fewer words is no story that somebody would open a mail for."""
_SENTENCES_MOST: Final = 8
_EXCERPT_MOST: Final = 220
"""Words that are taken from one source without a model: an excerpt, not a copy."""
_PARAGRAPH: Final = 3
"""Sentences."""
_FURTHER_LEAST: Final = 60
"""Words of an excerpt beyond the first: what is left of a short source makes no mail of its own."""
_WORD: Final = re.compile(r"\w+")
_RULES: Final = f"""\
A Newsletter Issue is one mail about one story, for readers who subscribed and have a minute and a half.
- {WORDS_LEAST} to {WORDS_MOST} words in `paragraphs`, each of 2 to 4 sentences; fewer only where the facts hold no more.
- `headline`: at most {rules.HEADLINE_MOST} characters, what happened; it may say more than the subject.
- The first paragraph says what happened and why it matters to the reader. Then the details by weight, one idea to a \
paragraph, and at the end what comes next or what isn't known yet.
- No greeting, no sign-off, no "in this issue", no call to share.
{rules.SUBJECT_RULES}"""


class NewsletterIssue(Engine):
    """Without a model it is an excerpt: the story's best sentences in their order, and the link to the rest."""

    kind = "newsletter_issue"
    name = "Newsletter Issue"
    bucket = "newsletter"
    version = 1
    credits = 3
    made_from = ("text", "topic")
    draft_tokens = 8_000
    least_lines = _PARAGRAPH

    def why_not(self, source: SourceText) -> str | None:
        words = count_words(source.text)
        if words >= SOURCE_LEAST:
            return None
        if not words:
            return "This item has no words beyond its title, and a newsletter needs a story."
        return f"A newsletter needs a story of {SOURCE_LEAST} words or more; this item has {words}."

    def offline(self, brief: Brief, persona: PersonaCard, *, variants: int, seed: str) -> tuple[Draft, ...]:
        """The best sentences make the first variant, those that are left the next; the same whatever the seed."""
        del seed
        left = rules.rank_sentences(brief.facts, brief, persona)
        made: list[Draft] = []
        while len(made) < max(1, variants):
            taken = _excerpt(left)
            if not taken or (made and sum(count_words(one) for one, _ in taken) < _FURTHER_LEAST):
                break
            draft = _excerpt_draft(taken, left, brief, persona)
            left = [pair for pair in left if pair not in taken]
            if draft is not None and not missing_in(draft.body, persona):
                made.append(draft)
        if not made:
            message = "The source holds too few sentences that could stand in a newsletter."
            raise Refused(message, code="nothing_to_say")
        return tuple(made)

    def check(
        self, draft: Draft, brief: Brief, source: SourceText, persona: PersonaCard
    ) -> tuple[Check, ...]:
        return (
            rules.check_content(draft),
            rules.check_subject(draft),
            rules.check_preheader(draft),
            _check_length(draft, brief),
            *rules.check_words(draft, brief, source, persona),
            *rules.check_banned(draft, persona),
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
        """The source's address is added here: a model neither sees nor writes it."""
        headline = collapse(answer["headline"])
        paragraphs = [words for words in map(collapse, answer["paragraphs"]) if words]
        if not headline or not paragraphs:
            message = "An issue needs a headline and paragraphs."
            raise Refused(message, code="empty")
        return _draft(
            headline,
            (collapse(answer["subject"]), collapse(answer["preheader"])),
            paragraphs,
            url=ascii_url(brief.url),
            claims=claims_of(answer, brief),
            language=persona.language or brief.language,
            angle=angle,
        )


def _draft(
    headline: str,
    inbox: tuple[str, str],
    paragraphs: Sequence[str],
    *,
    url: str,
    claims: tuple[Any, ...],
    language: str,
    angle: str = "",
) -> Draft:
    text = "\n\n".join(map(escape_markdown, paragraphs))
    sections = (NewsletterSection(headline, text, url),)
    return Draft(
        title=headline,
        body=body_of(headline, sections, language=language),
        body_format="markdown",
        content={"subject": inbox[0], "preheader": inbox[1], "sections": as_content(sections)},
        claims=claims,
        language=language,
        angle=angle,
    )


def _excerpt(left: Sequence[tuple[str, Fact]]) -> list[tuple[str, Fact]]:
    taken: list[tuple[str, Fact]] = []
    words = 0
    for sentence, fact in left:
        words += count_words(sentence)
        if len(taken) == _SENTENCES_MOST or (words > _EXCERPT_MOST and taken):
            break
        taken.append((sentence, fact))
    return taken


def _excerpt_draft(
    taken: Sequence[tuple[str, Fact]], left: Sequence[tuple[str, Fact]], brief: Brief, persona: PersonaCard
) -> Draft | None:
    """None where there are too few words for a preheader beside the subject."""
    ordered = sorted(taken, key=lambda pair: pair[1].start)
    headline = title_of(brief, persona, ordered[0][0])
    # What opens the story stands right below the preheader in many an inbox.
    others = [pair for pair in left if pair != ordered[0] and not _repeats(pair[0], headline)]
    subject = rules.subject_of(headline)
    preheader, claims = rules.preheader_of(others or ordered, subject)
    if len(preheader) < rules.PREHEADER_LEAST:
        preheader, claims = rules.preheader_of(ordered, subject)
    if len(preheader) < rules.PREHEADER_LEAST:
        return None
    said = [rules.claim_of(sentence, fact) for sentence, fact in ordered]
    return _draft(
        headline,
        (subject, preheader),
        [paragraph_of(paragraph) for paragraph in _paragraphs(ordered)],
        url=ascii_url(brief.url),
        claims=(*said, *(claim for claim in claims if claim not in said)),
        language=brief.language,
    )


def _repeats(sentence: str, headline: str) -> bool:
    words, others = (set(_WORD.findall(one.casefold())) for one in (sentence, headline))
    return len(words & others) > len(words) // 2


def _paragraphs(ordered: Sequence[tuple[str, Fact]]) -> list[list[str]]:
    """Only sentences that follow one another in the source stand in one paragraph, so that none leans on a wrong one."""
    found: list[list[str]] = []
    end = None
    for sentence, fact in ordered:
        is_next = end is not None and 0 <= fact.start - end <= 1
        if is_next and len(found[-1]) < _PARAGRAPH:
            found[-1].append(sentence)
        else:
            found.append([sentence])
        end = fact.end
    return found


def _check_length(draft: Draft, brief: Brief) -> Check:
    sections = from_content(draft.content)
    words = sum(map(rules.words_in, sections))
    if words > WORDS_MOST:
        message = f"The issue has {counted(words, 'word')}; {WORDS_MOST} are the most."
        return Check("length", "failed", message)
    if words >= WORDS_LEAST:
        return Check(
            "length", "passed", f"The issue has {counted(words, 'word')}, from {WORDS_LEAST} to {WORDS_MOST}."
        )
    if sections and all(rules.is_verbatim(one, draft.claims) for one in sections):
        message = (
            f"The issue has {counted(words, 'word')}: sentences of the source and nothing added, so it is shorter than the "
            f"{WORDS_LEAST} words of a written one."
        )
        return Check("length", "passed", message)
    held = sum(count_words(fact.quote) for fact in brief.facts)
    if words < min(WORDS_LEAST, held):
        message = f"The issue has {counted(words, 'word')}; write {WORDS_LEAST} to {WORDS_MOST}, the facts hold enough for more."
        return Check("length", "failed", message)
    message = f"The issue has {counted(words, 'word')}, fewer than {WORDS_LEAST}: its facts hold no more."
    return Check("length", "warning", message)


PLUGIN = NewsletterIssue()
