"""The claim map: what the draft says, and where the source says it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from pipeline import generate
from pipeline.engines.checks.grounded import words_of
from pipeline.grounding import place_in
from pipeline.models import RawBody
from pipeline.text.plain_text import seen_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.models import GeneratedItem

WHOLE_CHARACTERS: Final = 12_000
"""A longer source is shown around the claims alone."""
AROUND_CHARACTERS: Final = 500


@dataclass(frozen=True)
class ShownClaim:
    """One claim, numbered from 1. `is_placed` where its quote was found in the source that is shown."""

    number: int
    text: str
    quote: str
    is_placed: bool
    derived: str = ""
    """How its numbers follow from the source's."""


@dataclass(frozen=True)
class SourcePassage:
    """A run of the source's text. `numbers` are the claims that rest on it, `starting_here` those whose quote begins here."""

    text: str
    numbers: tuple[int, ...] = ()
    starting_here: tuple[int, ...] = ()
    is_gap: bool = False

    @property
    def numbers_text(self) -> str:
        return " ".join(map(str, self.numbers))


@dataclass(frozen=True)
class ClaimMap:
    claims: tuple[ShownClaim, ...]
    pieces: tuple[SourcePassage, ...]
    """Empty where the source's words aren't kept, or there were none."""
    title: str = ""
    dropped_count: int = 0
    """Claims of the words as they were made that the edited ones no longer say."""


def numbered(item: GeneratedItem) -> list[tuple[int, str]]:
    return [(number, str(one.get("text", ""))) for number, one in enumerate(_remaining_claims(item), start=1)]


def _remaining_claims(item: GeneratedItem) -> list[Mapping[str, Any]]:
    """The claims that its words still make: those that a person has written anew claim nothing of the source."""
    claims: list[Mapping[str, Any]] = item.claims
    if item.revision <= 1:
        return claims
    said = "\n".join((item.title, *words_of(generate.draft_of(item))))
    return [one for one in claims if place_in(said, str(one.get("text", ""))) is not None]


def map_of(item: GeneratedItem) -> ClaimMap:
    """One statement at most; none for an item that claimed nothing."""
    claims = _remaining_claims(item)
    if not item.claims:
        return ClaimMap((), ())
    body = _body_of(item)
    text = seen_text(body.body, body.body_format) if body is not None else ""
    spans = {number: _span(one, text) for number, one in enumerate(claims, start=1)}
    told = tuple(
        ShownClaim(
            number=number,
            text=str(one.get("text", "")),
            quote=str(one.get("quote", "")),
            is_placed=spans[number] is not None,
            derived=str(one.get("derived") or ""),
        )
        for number, one in enumerate(claims, start=1)
    )
    placed = {number: span for number, span in spans.items() if span is not None}
    dropped_count = len(item.claims) - len(claims)
    pieces = tuple(_pieces(text, placed)) if placed or not dropped_count else tuple(_beginning(text))
    return ClaimMap(told, pieces, body.title if body is not None else "", dropped_count)


def _beginning(text: str) -> list[SourcePassage]:
    """For words that no claim leads into: a person has to read the source against them."""
    if not text:
        return []
    if len(text) <= WHOLE_CHARACTERS:
        return [SourcePassage(text)]
    return [SourcePassage(text[: _word_edge(text, WHOLE_CHARACTERS)]), SourcePassage("", is_gap=True)]


def _body_of(item: GeneratedItem) -> RawBody | None:
    """The words that it was made from, in the version that it was made from."""
    if item.raw_item_id is None or item.raw_version is None:
        return None
    found: RawBody | None = (
        RawBody.objects.of(item.workspace_id)
        .filter(raw_item_id=item.raw_item_id, number=item.raw_version, raw_item__deleted_at=None)
        .first()
    )
    return found


def _span(claim: Mapping[str, Any], text: str) -> tuple[int, int] | None:
    """Where its quote stands: at the place that it names; None where it isn't in the text."""
    quote = str(claim.get("quote", ""))
    start, end = claim.get("start"), claim.get("end")
    if not quote or not text:
        return None
    if isinstance(start, int) and isinstance(end, int) and text[start:end] == quote:
        return start, end
    found = text.find(quote)
    return (found, found + len(quote)) if found >= 0 else None


def _pieces(text: str, spans: Mapping[int, tuple[int, int]]) -> list[SourcePassage]:
    if not spans:
        return []
    found: list[SourcePassage] = []
    for start, end in _windows(text, spans):
        if start:
            found.append(SourcePassage("", is_gap=True))
        edges = {start, end}
        for span in spans.values():
            edges |= {edge for edge in span if start <= edge <= end}
        marks = sorted(edges)
        for begin, finish in pairwise(marks):
            numbers = tuple(
                number for number, (first, last) in spans.items() if first < finish and begin < last
            )
            starting_here = tuple(number for number in numbers if spans[number][0] == begin)
            found.append(SourcePassage(text[begin:finish], numbers, starting_here))
    if _windows(text, spans)[-1][1] < len(text):
        found.append(SourcePassage("", is_gap=True))
    return found


def _windows(text: str, spans: Mapping[int, tuple[int, int]]) -> list[tuple[int, int]]:
    """The stretches of the source that are shown: all of it, or some words around each quote."""
    if len(text) <= WHOLE_CHARACTERS:
        return [(0, len(text))]
    windows: list[tuple[int, int]] = []
    for first, last in sorted(spans.values()):
        start = _word_edge(text, max(first - AROUND_CHARACTERS, 0))
        end = _word_edge(text, min(last + AROUND_CHARACTERS, len(text)))
        start, end = min(start, first), max(end, last)
        if windows and start <= windows[-1][1]:
            windows[-1] = (windows[-1][0], max(windows[-1][1], end))
        else:
            windows.append((start, end))
    return windows


def _word_edge(text: str, at: int) -> int:
    if at in {0, len(text)}:
        return at
    space = text.find(" ", at)
    return at if space < 0 or space - at > AROUND_CHARACTERS else space
