"""Parses the numbers of a text with their units, and caches the parsed texts."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from pipeline.grounding.number_lexicon import language_of
from pipeline.grounding.parse_quantities import QuantityReader
from pipeline.grounding.parsed_numbers import ParsedText
from pipeline.text.links import find_links

_MAYBE_LINK: Final = re.compile(r"://|\w\.\w")
_MAX_PARSED_CHARACTERS: Final = 500_000
"""The most characters that are parsed, as many as a long book has; later numbers are only found as written."""
_MAX_WORD_CHARACTERS: Final = 100
"""The most characters before that limit in which a space is searched."""
_MAX_CACHED_CHARACTERS: Final = 50_000
"""The longest text of the common cache. Of longer ones only the last is kept, as it takes tens of megabytes."""


def parse_numbers(text: str, language: str = "") -> ParsedText:
    """Return the text with its numbers, in order; web addresses and the end of a very long text are skipped."""
    text_language = language_of(text[:_MAX_PARSED_CHARACTERS], language)
    parse = _parse_cached if len(text) <= _MAX_CACHED_CHARACTERS else _parse_long
    return parse(text, text_language)


@lru_cache(maxsize=32)
def _parse_cached(text: str, language: str) -> ParsedText:
    return _parse_uncached(text, language)


@lru_cache(maxsize=1)
def _parse_long(text: str, language: str) -> ParsedText:
    return _parse_uncached(text, language)


def _parse_uncached(text: str, language: str) -> ParsedText:
    """Parse the text up to `_MAX_PARSED_CHARACTERS`, and index its numbers."""
    end = len(text)
    if end > _MAX_PARSED_CHARACTERS:
        # Parsing ends at a space, so that no number is cut in two.
        end = max(
            text.rfind(space, _MAX_PARSED_CHARACTERS - _MAX_WORD_CHARACTERS, _MAX_PARSED_CHARACTERS)
            for space in " \n"
        )
        end = end if end >= 0 else _MAX_PARSED_CHARACTERS
    readable_text = _without_addresses(text[:end])
    parsed = ParsedText(
        readable_text, language, QuantityReader(readable_text, language).read(), unread_text=text[end:]
    )
    parsed.index()
    return parsed


def clear_cache() -> None:
    """Forget the cached texts, for benchmarks and tests that measure the parsing itself."""
    _parse_cached.cache_clear()
    _parse_long.cache_clear()


def _without_addresses(text: str) -> str:
    """Return the text with spaces for web addresses, so that all offsets stay the same."""
    if not _MAYBE_LINK.search(text):
        return text
    parts: list[str] = []
    position = 0
    for link in find_links(text):
        parts += [text[position : link.start], " " * (link.end - link.start)]
        position = link.end
    return "".join([*parts, text[position:]])
