"""Cuts a text around the words of a search, and marks them.

Both databases find the same words, so the text is searched here and not by either of them.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from config.core.database.search_words import MAX_CHARACTERS, UNSPACED_RUN, fold, query_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_UNSPACED: Final = re.compile(UNSPACED_RUN)
_BEFORE_MATCH: Final = 24
"""Characters that are kept before the first match, few enough that a narrow line still shows the match."""
_ENDING: Final = 3
"""The most letters in which an inflected form differs from the word that was searched for."""
_LEAST_STEM: Final = 4


class TextPart(NamedTuple):
    """A part of an excerpt; `is_match` is true if it is a word of the search."""

    text: str
    is_match: bool


def excerpt_around(text: str, query: str, *, length: int) -> tuple[TextPart, ...]:
    """Return about `length` characters of the text around the first word of the query, in one line.

    An excerpt without a match is the beginning of the text. What was cut off is shown as "…".
    """
    # A composed letter is marked whole, with its accent.
    line = unicodedata.normalize("NFC", " ".join(text.split()))
    spans = list(_find_matches(line, query)) if query else []
    start, end = _window(line, spans[0] if spans else (0, 0), length)
    parts: list[TextPart] = [TextPart("…", is_match=False)] if start else []
    position = start
    for first, last in spans:
        if first >= position and last <= end:
            parts += [
                TextPart(line[position:first], is_match=False),
                TextPart(line[first:last], is_match=True),
            ]
            position = last
    tail = line[position:end].rstrip(" .,;:") + "…" if end < len(line) else line[position:end]
    return tuple(part for part in (*parts, TextPart(tail, is_match=False)) if part.text)


def has_match(parts: Sequence[TextPart]) -> bool:
    """Return whether an excerpt has a word of the search."""
    return any(part.is_match for part in parts)


def _window(line: str, first_match: tuple[int, int], length: int) -> tuple[int, int]:
    """Return where an excerpt begins and ends: both between words, and with the first match in it."""
    start = 0
    if len(line) > length and first_match[1] > length // 2:
        start = max(first_match[0] - _BEFORE_MATCH, 0)
        space = line.rfind(" ", 0, start + 1)
        # Scripts without spaces, and very long words, are cut where the excerpt begins.
        start = space + 1 if start - space <= _BEFORE_MATCH else start
    end = start + length
    if end >= len(line):
        return start, len(line)
    space = line.rfind(" ", start, end)
    return start, space if space >= max(first_match[1], end - length // 2) else max(end, first_match[1])


def _find_matches(line: str, query: str) -> Iterator[tuple[int, int]]:
    """Yield where the line has a word of the query, in order; neighbouring pairs of letters count as one word."""
    folded, origins = _fold_with_origins(line[:MAX_CHARACTERS])
    words, beginnings = query_words(query)
    found = sorted(
        {
            (match.start(), match.end())
            for word, is_beginning in [
                *((word, False) for word in words),
                *((word, True) for word in beginnings),
            ]
            for match in _matches_of(word, folded, is_beginning=is_beginning)
        }
    )
    merged: list[tuple[int, int]] = []
    for start, end in found:
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    for start, end in merged:
        yield origins[start], origins[end - 1] + 1


def _matches_of(word: str, folded: str, *, is_beginning: bool) -> list[re.Match[str]]:
    """Return where a text has the word, or else an inflected form of it, which PostgreSQL finds too."""
    escaped = re.escape(word)
    if _UNSPACED.match(word):
        return list(re.finditer(escaped, folded))
    ending = r"\w*" if is_beginning else r"(?!\w)"
    exact = list(re.finditer(rf"(?<!\w){escaped}{ending}", folded))
    if exact or len(word) < _LEAST_STEM:
        return exact
    stem = re.escape(word[: max(_LEAST_STEM, len(word) - _ENDING)])
    return list(re.finditer(rf"(?<!\w){stem}\w{{0,{2 * _ENDING}}}(?!\w)", folded))


def _fold_with_origins(line: str) -> tuple[str, list[int]]:
    """Return the folded line, and for each of its characters the place of its origin in the line."""
    folded: list[str] = []
    origins: list[int] = []
    for place, character in enumerate(line):
        for letter in _fold_character(character):
            folded.append(letter)
            origins.append(place)
    return "".join(folded), origins


@lru_cache(maxsize=4096)
def _fold_character(character: str) -> str:
    return fold(character)
