"""A quotation is found in a source with whoever said it, written as a body, and read back from one."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pipeline.engines.checks.allowed_contacts import is_allowed
from pipeline.engines.checks.persona_rules import missing_in
from pipeline.engines.quote_graphic.attribution import origin_of
from pipeline.engines.quote_graphic.speakers import speech_in
from pipeline.engines.shared.picture_parts import (
    with_last_line,
)
from pipeline.engines.shared.source_sentences import MAX_HASHTAGS, THREAD_MARK
from pipeline.render.typography.punctuation import quotation_marks
from pipeline.text.links import find_links
from pipeline.text.prose.sentences import signature_in
from pipeline.text.prose.verbatim_edits import (
    collapse,
    drawn_length,
    is_clean,
    is_self_contained,
    opens_dangling,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.engines.base import Brief, Fact, PersonaCard

QUOTE_CHARACTERS_MOST: Final = 220
"""Characters; a longer quotation isn't drawn."""
QUOTE_CHARACTERS_BEST: Final = range(40, 181)
"""Characters of a sentence that is read at a glance and still says something."""
QUOTE_CHARACTERS_LEAST: Final = 20
"""As drawn: a wide character of Chinese or Japanese counts for two."""
_QUOTE_WORDS_LEAST: Final = 4
"""Of a sentence that is written with spaces."""
_MARKS: Final = (
    "\"'\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00ab\u00bb\u2039\u203a\u300c\u300d\u300e\u300f"
)
_QUOTING: Final = '"\u201c\u201d\u201e\u00ab\u00bb\u2039\u203a\u300c\u300e'
# "ALDERHAM, 24 November 2026 – The council".
_DATELINE: Final = re.compile(
    r"[^\W\d_a-z]{3,}[^a-z]{0,30}(?:,|\s\()?[^:;!?\u2013\u2014]{0,30}[\u2013\u2014-]\s"
)
_BY_LINE: Final = re.compile(r"\s*[\u2013\u2014\u2015-]\s*(?P<by>\S.*?)\s*")
WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True)
class Quotation:
    """What stands on the picture; `by` is empty for a brand's own line, and may be in what a person has edited.

    `is_spoken`: somebody's words, which take quotation marks; a sentence that a site wrote has none.
    """

    words: str
    by: str
    is_spoken: bool = field(default=True, compare=False)


def quotation_in(body: str) -> Quotation:
    """The quotation and who said it, out of an item's body: a last line that begins with a dash names them."""
    lines = [line.strip() for line in body.splitlines() if line.strip()]
    match = _BY_LINE.fullmatch(lines[-1]) if len(lines) > 1 else None
    said = "\n".join(lines[:-1] if match else lines)
    return Quotation(bare_words(said), match["by"] if match else "", is_spoken=bare_words(said) != said)


def bare_words(words: str) -> str:
    """Without the quotation marks around the whole of it."""
    if len(words) > 2 and words[0] in _MARKS and words[-1] in _MARKS:
        return words[1:-1].strip()
    return words


def in_marks(quote: Quotation, language: str) -> str:
    """The words within the language's quotation marks where somebody spoke them, bare where nobody did."""
    opening, closing = quotation_marks(language) if quote.is_spoken else ("", "")
    return f"{opening}{quote.words}{closing}"


def quotation_body(quote: Quotation, language: str) -> str:
    """An item's body: the words, and a last line that names who said them; `quotation_in` reads it."""
    return with_last_line(in_marks(quote, language), f"\u2013 {quote.by}" if quote.by else "")


def find_quotations(brief: Brief, persona: PersonaCard) -> Iterator[tuple[Quotation, Fact]]:
    """Speech whose speaker is named, then sentences without quotation marks; of each first those of the best length."""
    spoken = [
        (Quotation(speech.words, speech.speaker), fact)
        for fact in brief.facts
        for speech in speech_in(collapse(fact.quote))
        if not speech.words[0].islower() and not opens_dangling(speech.words, brief.language)
    ]
    origin = origin_of(brief, persona)
    sentences = [
        # What a brand lane says is the persona's own speech; a site's sentence is written.
        (Quotation(words, origin, is_spoken=brief.lane is not None), fact)
        for fact in brief.facts
        if (origin or brief.lane is not None)
        and is_self_contained(words := collapse(fact.quote), brief.language)
        and not signature_in(words)
    ]
    plain = [
        one
        for one in sentences
        if not any(mark in one[0].words for mark in _QUOTING) and not _DATELINE.match(one[0].words)
    ]
    # Marks within sentences, and heads of press releases, only where there is nothing else.
    quoting = [one for one in sentences if one not in plain]
    for group in (spoken, plain, quoting):
        usable = [one for one in group if _is_usable(one[0], brief, persona)]
        yield from (one for one in usable if len(one[0].words) in QUOTE_CHARACTERS_BEST)
        yield from (one for one in usable if len(one[0].words) not in QUOTE_CHARACTERS_BEST)


def _is_usable(quote: Quotation, brief: Brief, persona: PersonaCard) -> bool:
    words = quote.words
    body = quotation_body(quote, brief.language)
    return (
        drawn_length(words) >= QUOTE_CHARACTERS_LEAST
        and len(words) <= QUOTE_CHARACTERS_MOST
        and (len(WORD.findall(words)) >= _QUOTE_WORDS_LEAST or " " not in words)
        and is_clean(words)
        and not find_links(words)
        and THREAD_MARK not in words
        and words.count("#") <= MAX_HASHTAGS
        and is_allowed(body, brief, persona)
        and not missing_in(body, persona)
    )
