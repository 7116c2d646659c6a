"""Selects the text of a source that a model gets: without hidden characters, and cut to cap the cost."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from pipeline.text.html_text import strip_invisible
from pipeline.text.links import without_links
from pipeline.text.prose.boilerplate import sounds_like_boilerplate
from pipeline.text.prose.verbatim_edits import collapse
from pipeline.writers.extractive.telling_sentences import MAX_CHARACTERS, find_facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.engines.base import SourceText

LEFT_OUT = "\n\n[\u2026]\n\n"
"""The mark between two spans with a gap."""
_HEAD_CHARACTERS = MAX_CHARACTERS // 2
"""About the length of the head that is always kept."""
_SECTION_CHARACTERS = 2_000
"""About the length of a section of the rest."""
MAX_RANKED_CHARACTERS = 10 * MAX_CHARACTERS
"""Later sections are dropped: a book's end costs seconds to rank, and says little of a post's subject."""
_MAX_TITLE_AND_LINK_CHARACTERS = 300
"""A longer text never counts as a title and a link, even if no sentence is found in it."""


def select_readable_text(source: SourceText) -> str:
    """Return the text as a model gets it, at most `MAX_CHARACTERS` long, with a mark in each gap.

    Of a longer text the head is kept, half of the limit, and then the sections with the most telling sentences, in
    the order of the source. Sections beyond ten times the limit are dropped.
    """
    text = source.text
    if len(text) <= MAX_CHARACTERS:
        return strip_invisible(text)
    head = _cut_position(text, _HEAD_CHARACTERS)
    ranked = sorted(_sections(text, head, source.title), key=lambda section: (-section[2], section[0]))
    remaining = MAX_CHARACTERS - head
    spans: list[tuple[int, int]] = [(0, head)]
    for start, end, _ in ranked:
        if end - start + len(LEFT_OUT) <= remaining:
            remaining -= end - start + len(LEFT_OUT)
            spans.append((start, end))
    return strip_invisible("".join(_join_spans(text, sorted(spans))))


def has_text_beyond_title(source: SourceText) -> bool:
    """Return whether the text says more than its title, because a title with a link needs no model to read it."""
    text = collapse(without_links(source.text[: 4 * _MAX_TITLE_AND_LINK_CHARACTERS]))
    if len(text) > _MAX_TITLE_AND_LINK_CHARACTERS:
        return True
    title = collapse(source.title).rstrip(".!? ").lower()
    sentences = (fact.text for fact in find_facts(text))
    return any(
        not sounds_like_boilerplate(sentence) and sentence.rstrip(".!? ").lower() != title
        for sentence in sentences
    )


def _join_spans(text: str, spans: list[tuple[int, int]]) -> Iterator[str]:
    yield text[: spans[0][1]]
    for (_, before), (start, end) in pairwise(spans):
        yield ("" if before == start else LEFT_OUT) + text[start:end]
    if spans[-1][1] < len(text):
        yield LEFT_OUT


def _sections(text: str, first: int, title: str) -> Iterator[tuple[int, int, float]]:
    """Yield the start, the end and the worth of each section of about `_SECTION_CHARACTERS` from `first` on.

    A section ends with a paragraph if it can. Its worth is the sum of its most telling sentences' scores.
    """
    for start in range(first, min(len(text), MAX_RANKED_CHARACTERS), MAX_CHARACTERS):
        chunk = text[start : min(start + MAX_CHARACTERS, MAX_RANKED_CHARACTERS)]
        facts = find_facts(chunk, title=title, limit=_SECTION_CHARACTERS // 20)
        section = 0
        while section < len(chunk):
            end = section + _cut_position(
                chunk[section : section + 2 * _SECTION_CHARACTERS], _SECTION_CHARACTERS
            )
            worth = sum(max(fact.score, 0.0) for fact in facts if section <= fact.start < end)
            yield start + section, start + end, worth
            section = end


def _cut_position(text: str, length: int) -> int:
    """Return the offset at which the text is cut to at most `length` characters.

    It is that of a blank line, a sentence's end or a space in the second half of these characters, else `length`.
    """
    if len(text) <= length:
        return len(text)
    for mark in ("\n\n", ". ", " "):
        position = text.rfind(mark, length // 2, length)
        if position != -1:
            return position + len(mark)
    return length
