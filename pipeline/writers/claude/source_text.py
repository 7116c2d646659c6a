"""What a model is given of a source: its words without hidden characters, no more than are paid for."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from pipeline.text.html_text import strip_invisible
from pipeline.text.links import without_links
from pipeline.text.prose.boilerplate import sounds_like_boilerplate
from pipeline.text.prose.verbatim_edits import collapse
from pipeline.writers.extractive import MAX_CHARACTERS, find_facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.engines.base import SourceText

LEFT_OUT = "\n\n[\u2026]\n\n"
_HEAD = MAX_CHARACTERS // 2
_SECTION = 2_000
FARTHEST = 10 * MAX_CHARACTERS
"""Nothing beyond is weighed: a book's end costs seconds to rank and says little of what a post is about."""
_SHORT = 300
"""A longer text is never taken for a title and a link, even where no sentence is found in it."""


def readable(source: SourceText) -> str:
    """The text as a model is given it: at most `MAX_CHARACTERS` and the marks where something is left out.

    Longer texts give their head, half of the room, and the sections of the rest that hold the most telling
    sentences, in the order of the source. What is ranked ends at ten times the room.
    """
    text = source.text
    if len(text) <= MAX_CHARACTERS:
        return strip_invisible(text)
    head = _cut(text, _HEAD)
    ranked = sorted(_sections(text, head, source.title), key=lambda section: (-section[2], section[0]))
    room = MAX_CHARACTERS - head
    taken: list[tuple[int, int]] = [(0, head)]
    for start, end, _ in ranked:
        if end - start + len(LEFT_OUT) <= room:
            room -= end - start + len(LEFT_OUT)
            taken.append((start, end))
    return strip_invisible("".join(_joined(text, sorted(taken))))


def says_more_than_its_title(source: SourceText) -> bool:
    """False for a title with a link, which no model need be paid to read."""
    words = collapse(without_links(source.text[: 4 * _SHORT]))
    if len(words) > _SHORT:
        return True
    title = collapse(source.title).rstrip(".!? ").lower()
    said = (fact.text for fact in find_facts(words))
    return any(not sounds_like_boilerplate(one) and one.rstrip(".!? ").lower() != title for one in said)


def _joined(text: str, spans: list[tuple[int, int]]) -> Iterator[str]:
    yield text[: spans[0][1]]
    for (_, before), (start, end) in pairwise(spans):
        yield ("" if before == start else LEFT_OUT) + text[start:end]
    if spans[-1][1] < len(text):
        yield LEFT_OUT


def _sections(text: str, begin: int, title: str) -> Iterator[tuple[int, int, float]]:
    """Pieces of about `_SECTION` characters that end where a paragraph does, with the worth of their sentences."""
    for start in range(begin, min(len(text), FARTHEST), MAX_CHARACTERS):
        stretch = text[start : min(start + MAX_CHARACTERS, FARTHEST)]
        facts = find_facts(stretch, title=title, limit=_SECTION // 20)
        position = 0
        while position < len(stretch):
            end = position + _cut(stretch[position : position + 2 * _SECTION], _SECTION)
            worth = sum(max(fact.score, 0.0) for fact in facts if position <= fact.start < end)
            yield start + position, start + end, worth
            position = end


def _cut(text: str, least: int) -> int:
    """Where to cut after about `least` characters: at a blank line, a sentence's end, a space, or anywhere."""
    if len(text) <= least:
        return len(text)
    for mark in ("\n\n", ". ", " "):
        place = text.rfind(mark, least // 2, least)
        if place != -1:
            return place + len(mark)
    return least
