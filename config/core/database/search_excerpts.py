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
    from collections.abc import Iterable, Sequence

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


class _Line(NamedTuple):
    """A text in one line, and as it is searched: each of its folded characters has its place in the line."""

    text: str
    folded: str
    places: Sequence[int]


def excerpt_around(text: str, query: str, *, length: int) -> tuple[TextPart, ...]:
    """Return about `length` characters of the text around the first word of the query, in one line.

    An excerpt without a match is the beginning of the text. What was cut off is shown as "…".
    """
    line = _read_line(text)
    return _cut(line, [spans for (spans,) in _find_by_word([line], query)], length)


def label_and_excerpt(
    label: str, text: str, query: str, *, label_length: int, length: int
) -> tuple[tuple[TextPart, ...], tuple[TextPart, ...]]:
    """Return the label of a thing and an excerpt of its text, each around the words of the query.

    There is no excerpt if the text has no word of the query, or if the label has them all or says the same.
    """
    lines = [_read_line(label), _read_line(text)]
    found = _find_by_word(lines, query)
    label_spans, text_spans = [spans[0] for spans in found], [spans[1] for spans in found]
    label_parts = _cut(lines[0], label_spans, label_length)
    if all(label_spans) or not any(text_spans):
        return label_parts, ()
    parts = _cut(lines[1], text_spans, length)
    excerpt = "".join(part.text for part in parts).strip("…")
    return label_parts, () if excerpt in lines[0].text else parts


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


def _cut(
    line: _Line, spans_by_word: Iterable[Iterable[tuple[int, int]]], length: int
) -> tuple[TextPart, ...]:
    """Return the parts of an excerpt around the first span; overlapping spans are one match."""
    matches: list[tuple[int, int]] = []
    for start, end in sorted({span for spans in spans_by_word for span in spans}):
        if matches and start < matches[-1][1]:
            matches[-1] = (matches[-1][0], max(end, matches[-1][1]))
        else:
            matches.append((start, end))
    text = line.text
    start, end = _window(text, matches[0] if matches else (0, 0), length)
    parts: list[TextPart] = [TextPart("…", is_match=False)] if start else []
    position = start
    for first, last in matches:
        if first >= position and last <= end:
            parts += [
                TextPart(text[position:first], is_match=False),
                TextPart(text[first:last], is_match=True),
            ]
            position = last
    tail = text[position:end].rstrip(" .,;:") + "…" if end < len(text) else text[position:end]
    return tuple(part for part in (*parts, TextPart(tail, is_match=False)) if part.text)


def _find_by_word(lines: Sequence[_Line], query: str) -> list[list[list[tuple[int, int]]]]:
    """Return where each line has each word of the query, by word.

    A word that no line has as it was typed is looked for in an inflected form, which PostgreSQL finds too.
    """
    words, beginnings = query_words(query)
    found = []
    for word, is_beginning in [*((word, False) for word in words), *((word, True) for word in beginnings)]:
        spans = [_spans_of(_exact_pattern(word, is_beginning=is_beginning), line) for line in lines]
        if not any(spans) and len(word) >= _LEAST_STEM and not _UNSPACED.match(word):
            stem = re.escape(word[: max(_LEAST_STEM, len(word) - _ENDING)])
            spans = [_spans_of(rf"(?<!\w){stem}\w{{0,{2 * _ENDING}}}(?!\w)", line) for line in lines]
        found.append(spans)
    return found


def _exact_pattern(word: str, *, is_beginning: bool) -> str:
    escaped = re.escape(word)
    if _UNSPACED.match(word):
        return escaped
    ending = r"\w*" if is_beginning else r"(?!\w)"
    return rf"(?<!\w){escaped}{ending}"


def _spans_of(pattern: str, line: _Line) -> list[tuple[int, int]]:
    """Return where the line has the pattern, as places in its text."""
    return [
        (line.places[match.start()], line.places[match.end() - 1] + 1)
        for match in re.finditer(pattern, line.folded)
    ]


def _read_line(text: str) -> _Line:
    """Return the text in one line; a composed letter is marked whole, with its accent."""
    line = unicodedata.normalize("NFC", " ".join(text.split()))
    searched = line[:MAX_CHARACTERS]
    # A few hundred different characters are folded, not each one of a long text.
    folds = {character: _fold_character(character) for character in set(searched)}
    folded = searched.translate({ord(character): letters for character, letters in folds.items()})
    if all(len(letters) == 1 for letters in folds.values()):
        return _Line(line, folded, range(len(searched)))
    places = [place for place, character in enumerate(searched) for _letter in folds[character]]
    return _Line(line, folded, places)


@lru_cache(maxsize=4096)
def _fold_character(character: str) -> str:
    return fold(character)
