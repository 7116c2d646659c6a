"""Finds quotations with their speakers in a source, writes one as an item's body, and parses it back."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pipeline.engines.checks.allowed_contacts import is_allowed
from pipeline.engines.checks.persona_rules import missing_in
from pipeline.engines.quote_graphic.attribution import origin_of
from pipeline.engines.quote_graphic.speakers import speech_in
from pipeline.engines.shared.picture_parts import with_last_line
from pipeline.engines.shared.source_sentences import MAX_HASHTAGS, THREAD_MARK
from pipeline.render.typography.punctuation import quotation_marks
from pipeline.text.links import find_links
from pipeline.text.prose.sentences import find_signature
from pipeline.text.prose.verbatim_edits import (
    collapse,
    display_width,
    is_clean,
    is_self_contained,
    opens_dangling,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.engines.base import Brief, Fact, PersonaCard

MAX_QUOTE_CHARACTERS: Final = 220
"""A longer quotation isn't drawn."""
BEST_QUOTE_CHARACTERS: Final = range(40, 181)
"""The length of a sentence that is read at a glance and still says something."""
MIN_QUOTE_CHARACTERS: Final = 20
"""The minimum of a quotation; a wide Chinese or Japanese character counts as two."""
_MIN_QUOTE_WORDS: Final = 4
"""The minimum of a quotation that is written with spaces."""
_MARKS: Final = (
    "\"'\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00ab\u00bb\u2039\u203a\u300c\u300d\u300e\u300f"
)
_QUOTING: Final = '"\u201c\u201d\u201e\u00ab\u00bb\u2039\u203a\u300c\u300e'
# Such as "ALDERHAM, 24 November 2026 – The council".
_DATELINE: Final = re.compile(
    r"[^\W\d_a-z]{3,}[^a-z]{0,30}(?:,|\s\()?[^:;!?\u2013\u2014]{0,30}[\u2013\u2014-]\s"
)
_BY_LINE: Final = re.compile(r"\s*[\u2013\u2014\u2015-]\s*(?P<by>\S.*?)\s*")
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True)
class Quotation:
    """The quotation on the picture, with its speaker `by`, which is empty for a brand's own line.

    An edit may remove the speaker, too. With `is_spoken` it is a person's speech, which takes quotation marks; a
    sentence that a site wrote takes none.
    """

    words: str
    by: str
    is_spoken: bool = field(default=True, compare=False)


def quotation_in(body: str) -> Quotation:
    """Return the quotation of an item's body, whose last line names the speaker if it begins with a dash."""
    lines = [line.strip() for line in body.splitlines() if line.strip()]
    match = _BY_LINE.fullmatch(lines[-1]) if len(lines) > 1 else None
    text = "\n".join(lines[:-1] if match else lines)
    return Quotation(bare_words(text), match["by"] if match else "", is_spoken=bare_words(text) != text)


def bare_words(words: str) -> str:
    """Return the words without the quotation marks at their beginning and end, if both have one."""
    if len(words) > 2 and words[0] in _MARKS and words[-1] in _MARKS:
        return words[1:-1].strip()
    return words


def in_marks(quote: Quotation, language: str) -> str:
    """Return the words, in the language's quotation marks if they were spoken."""
    opening, closing = quotation_marks(language) if quote.is_spoken else ("", "")
    return f"{opening}{quote.words}{closing}"


def quotation_body(quote: Quotation, language: str) -> str:
    """Return an item's body: the words, and a last line that names the speaker; `quotation_in` parses it."""
    return with_last_line(in_marks(quote, language), f"\u2013 {quote.by}" if quote.by else "")


def find_quotations(brief: Brief, persona: PersonaCard) -> Iterator[tuple[Quotation, Fact]]:
    """Yield the usable quotations with their facts: speech with a named speaker, then sentences of the source.

    Sentences without quotation marks come before others, and in each group the best lengths come first. There
    are no sentences if neither a site nor a brand lane can be named for them.
    """
    spoken = [
        (Quotation(speech.words, speech.speaker), fact)
        for fact in brief.facts
        for speech in speech_in(collapse(fact.quote))
        if not speech.words[0].islower() and not opens_dangling(speech.words, brief.language)
    ]
    origin = origin_of(brief, persona)
    sentences = [
        # A brand lane's words are the persona's own speech; a site's sentence is written.
        (Quotation(words, origin, is_spoken=brief.lane is not None), fact)
        for fact in brief.facts
        if (origin or brief.lane is not None)
        and is_self_contained(words := collapse(fact.quote), brief.language)
        and not find_signature(words)
    ]
    plain = [
        pair
        for pair in sentences
        if not any(mark in pair[0].words for mark in _QUOTING) and not _DATELINE.match(pair[0].words)
    ]
    # Sentences with marks inside, and datelines of press releases, come last.
    quoting = [pair for pair in sentences if pair not in plain]
    for group in (spoken, plain, quoting):
        usable = [pair for pair in group if _is_usable(pair[0], brief, persona)]
        yield from (pair for pair in usable if len(pair[0].words) in BEST_QUOTE_CHARACTERS)
        yield from (pair for pair in usable if len(pair[0].words) not in BEST_QUOTE_CHARACTERS)


def _is_usable(quote: Quotation, brief: Brief, persona: PersonaCard) -> bool:
    """Return whether the quotation fits a picture, the allow-list and the persona's rules, and has no links."""
    words = quote.words
    body = quotation_body(quote, brief.language)
    return (
        display_width(words) >= MIN_QUOTE_CHARACTERS
        and len(words) <= MAX_QUOTE_CHARACTERS
        and (len(_WORD.findall(words)) >= _MIN_QUOTE_WORDS or " " not in words)
        and is_clean(words)
        and not find_links(words)
        and THREAD_MARK not in words
        and words.count("#") <= MAX_HASHTAGS
        and is_allowed(body, brief, persona)
        and not missing_in(body, persona)
    )
