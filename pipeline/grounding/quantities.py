"""Every number of a text with its unit: digits and words, shares, money, measures, dates, times, ordinals."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from pipeline.grounding.number_lexicon import language_of
from pipeline.grounding.parse_quantities import QuantityReader
from pipeline.grounding.parsed_numbers import ParsedText
from pipeline.text.links import find_links

_LINKISH: Final = re.compile(r"://|\w\.\w")
_READ_MOST: Final = 500_000
"""Characters of a text whose numbers are read: a long book. Further on they are only found as they are written."""
_LONGEST_WORD: Final = 100
_KEPT_MOST: Final = 50_000
"""Characters of a text that is kept read with others; of longer ones, tens of megabytes when read, only the last."""


def parse_numbers(text: str, language: str = "") -> ParsedText:
    """The numbers of a text in order. What stands in a web address is no number of the text."""
    tongue = language_of(text[:_READ_MOST], language)
    return _parse(text, tongue) if len(text) <= _KEPT_MOST else _parse_long(text, tongue)


@lru_cache(maxsize=32)
def _parse(text: str, language: str) -> ParsedText:
    return _read(text, language)


@lru_cache(maxsize=1)
def _parse_long(text: str, language: str) -> ParsedText:
    return _read(text, language)


def _read(text: str, language: str) -> ParsedText:
    end = len(text)
    if end > _READ_MOST:
        # It ends at a space, so that no number is cut in two.
        end = max(text.rfind(space, _READ_MOST - _LONGEST_WORD, _READ_MOST) for space in " \n")
        end = end if end >= 0 else _READ_MOST
    said = _without_addresses(text[:end])
    parsed = ParsedText(said, language, QuantityReader(said, language).read(), unread_text=text[end:])
    parsed.index()
    return parsed


def clear_cache() -> None:
    """Texts that were read are kept for the next draft of the same source; a measurement doesn't want that."""
    _parse.cache_clear()
    _parse_long.cache_clear()


def _without_addresses(text: str) -> str:
    """The same length, so that every place stays the same."""
    if not _LINKISH.search(text):
        return text
    parts: list[str] = []
    position = 0
    for link in find_links(text):
        parts += [text[position : link.start], " " * (link.end - link.start)]
        position = link.end
    return "".join([*parts, text[position:]])
