"""A sentence of the source that may stand alone, word for word, with whoever said it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from pipeline.engines.checks.allowed_contacts import is_allowed
from pipeline.engines.checks.persona_rules import missing_in
from pipeline.engines.quote_graphic.speakers import speech_in
from pipeline.engines.shared.picture_parts import (
    with_url,
)
from pipeline.engines.shared.source_sentences import MAX_HASHTAGS, THREAD_MARK
from pipeline.render.typography.typeset import marks_of
from pipeline.text.links import find_links
from pipeline.text.sentences import signature_in
from pipeline.text.verbatim_edits import (
    collapse,
    drawn_length,
    is_clean,
    is_self_contained,
    opens_dangling,
    word_set,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.engines.base import Brief, Fact, PersonaCard

MOST: Final = 220
"""Characters of the quote."""
BEST: Final = range(40, 181)
"""Characters of a sentence that is read at a glance and still says something."""
LEAST: Final = 20
_LEAST_WORDS: Final = 4
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
_NO_SITES: Final = word_set("local localhost localdomain internal intranet lan home corp test invalid arpa")


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
    opening, closing = marks_of(language) if quote.is_spoken else ("", "")
    return f"{opening}{quote.words}{closing}"


def quotation_body(quote: Quotation, language: str) -> str:
    return with_url(in_marks(quote, language), f"\u2013 {quote.by}" if quote.by else "")


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
        yield from (one for one in usable if len(one[0].words) in BEST)
        yield from (one for one in usable if len(one[0].words) not in BEST)


def _is_usable(quote: Quotation, brief: Brief, persona: PersonaCard) -> bool:
    words = quote.words
    body = quotation_body(quote, brief.language)
    return (
        drawn_length(words) >= LEAST
        and len(words) <= MOST
        and (len(WORD.findall(words)) >= _LEAST_WORDS or " " not in words)
        and is_clean(words)
        and not find_links(words)
        and THREAD_MARK not in words
        and words.count("#") <= MAX_HASHTAGS
        and is_allowed(body, brief, persona)
        and not missing_in(body, persona)
    )


def origin_of(brief: Brief, persona: PersonaCard) -> str:
    """Who stands behind words that nobody is named for: of the persona's own it, of a source its site; else nobody.

    A brand says nothing as a person does: the picture's foot has its name.
    """
    if brief.lane is not None:
        return "" if persona.is_brand else persona.name.strip()
    try:
        host = (urlsplit(brief.url.strip()).hostname or "").lower()
    except ValueError:
        return ""
    if not _is_site(host):
        return ""
    bare = host.removeprefix("www.")
    return bare if is_allowed(bare, brief, persona) else host


def _is_site(host: str) -> bool:
    """Whether readers know a site by that name: no number, and no machine of a network at home."""
    labels = host.rstrip(".").split(".")
    is_named = len(labels) > 1 and ":" not in host and not labels[-1].isdigit()
    return is_named and labels[-1] not in _NO_SITES
