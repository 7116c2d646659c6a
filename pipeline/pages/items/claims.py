"""Builds the claim map: what the item claims, and where the source says it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from pipeline import generate
from pipeline.engines.checks.grounded import words_of
from pipeline.grounding import find_in_draft
from pipeline.models import RawBody
from pipeline.text.plain_text import seen_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.models import GeneratedItem

MAX_WHOLE_SOURCE_CHARACTERS: Final = 12_000
"""The longest source that is shown whole; of a longer one only the text around the quotes is shown."""
QUOTE_CONTEXT_CHARACTERS: Final = 500
"""The characters of a longer source that are shown before and after each quote."""


@dataclass(frozen=True)
class ShownClaim:
    """A claim, numbered from 1; `is_placed` is true if its quote was found in the source that is shown."""

    number: int
    text: str
    quote: str
    is_placed: bool
    derived: str = ""
    """How the claim's numbers follow from the source's."""


@dataclass(frozen=True)
class SourcePassage:
    """A passage of the source's text; an empty one with `is_gap` stands for text that was left out.

    `numbers` are the claims whose quotes cover the passage, `starting_here` those whose quote begins with it.
    """

    text: str
    numbers: tuple[int, ...] = ()
    starting_here: tuple[int, ...] = ()
    is_gap: bool = False

    @property
    def numbers_text(self) -> str:
        """The numbers of the claims, with spaces between them."""
        return " ".join(map(str, self.numbers))


@dataclass(frozen=True)
class ClaimMap:
    """An item's claims, and the source's text in passages."""

    claims: tuple[ShownClaim, ...]
    pieces: tuple[SourcePassage, ...]
    """The shown text of the source; empty if the source isn't kept, had no text, or has no quote to show."""
    title: str = ""
    dropped_count: int = 0
    """The number of claims of the generated text that the edited text no longer makes."""


def number_claims(item: GeneratedItem) -> list[tuple[int, str]]:
    """Return number and text of each claim that the item's text still makes."""
    return [
        (number, str(claim.get("text", ""))) for number, claim in enumerate(_remaining_claims(item), start=1)
    ]


def _remaining_claims(item: GeneratedItem) -> list[Mapping[str, Any]]:
    """Return the claims that the item's text still makes.

    A claim of an edited item is dropped if the edited text no longer contains it.
    """
    claims: list[Mapping[str, Any]] = item.claims
    if item.revision <= 1:
        return claims
    item_text = "\n".join((item.title, *words_of(generate.draft_of(item))))
    return [claim for claim in claims if find_in_draft(item_text, str(claim.get("text", ""))) is not None]


def build_claim_map(item: GeneratedItem) -> ClaimMap:
    """Return the item's claim map with one SQL query at most, and without one for an item that claimed nothing."""
    claims = _remaining_claims(item)
    if not item.claims:
        return ClaimMap((), ())
    body = _find_source_body(item)
    text = seen_text(body.body, body.body_format) if body is not None else ""
    spans = {number: _find_quote(claim, text) for number, claim in enumerate(claims, start=1)}
    shown_claims = tuple(
        ShownClaim(
            number=number,
            text=str(claim.get("text", "")),
            quote=str(claim.get("quote", "")),
            is_placed=spans[number] is not None,
            derived=str(claim.get("derived") or ""),
        )
        for number, claim in enumerate(claims, start=1)
    )
    placed_spans = {number: span for number, span in spans.items() if span is not None}
    dropped_count = len(item.claims) - len(claims)
    passages = (
        tuple(_split_into_passages(text, placed_spans))
        if placed_spans or not dropped_count
        else tuple(_beginning_passages(text))
    )
    return ClaimMap(shown_claims, passages, body.title if body is not None else "", dropped_count)


def _beginning_passages(text: str) -> list[SourcePassage]:
    """Return the beginning of the source, for a text with no claim left, because a person has to compare them."""
    if not text:
        return []
    if len(text) <= MAX_WHOLE_SOURCE_CHARACTERS:
        return [SourcePassage(text)]
    end = _next_word_edge(text, MAX_WHOLE_SOURCE_CHARACTERS)
    return [SourcePassage(text[:end]), SourcePassage("", is_gap=True)]


def _find_source_body(item: GeneratedItem) -> RawBody | None:
    """Return the source's text in the version that the item was made from, or `None` if it isn't kept."""
    if item.raw_item_id is None or item.raw_version is None:
        return None
    body: RawBody | None = (
        RawBody.objects.of(item.workspace_id)
        .filter(raw_item_id=item.raw_item_id, number=item.raw_version, raw_item__deleted_at=None)
        .first()
    )
    return body


def _find_quote(claim: Mapping[str, Any], text: str) -> tuple[int, int] | None:
    """Return start and end of the claim's quote, or `None` if the quote is empty or not in the text.

    The position that the claim names is used if the quote is there, else the quote's first occurrence.
    """
    quote = str(claim.get("quote", ""))
    start, end = claim.get("start"), claim.get("end")
    if not quote or not text:
        return None
    if isinstance(start, int) and isinstance(end, int) and text[start:end] == quote:
        return start, end
    position = text.find(quote)
    return (position, position + len(quote)) if position >= 0 else None


def _split_into_passages(text: str, spans: Mapping[int, tuple[int, int]]) -> list[SourcePassage]:
    """Return the shown text of the source, split wherever a quote begins or ends; none without a quote."""
    if not spans:
        return []
    passages: list[SourcePassage] = []
    windows = _shown_windows(text, spans)
    for start, end in windows:
        if start:
            passages.append(SourcePassage("", is_gap=True))
        edges = {start, end}
        for span in spans.values():
            edges |= {edge for edge in span if start <= edge <= end}
        sorted_edges = sorted(edges)
        for passage_start, passage_end in pairwise(sorted_edges):
            numbers = tuple(
                number
                for number, (first, last) in spans.items()
                if first < passage_end and passage_start < last
            )
            starting_here = tuple(number for number in numbers if spans[number][0] == passage_start)
            passages.append(SourcePassage(text[passage_start:passage_end], numbers, starting_here))
    if windows[-1][1] < len(text):
        passages.append(SourcePassage("", is_gap=True))
    return passages


def _shown_windows(text: str, spans: Mapping[int, tuple[int, int]]) -> list[tuple[int, int]]:
    """Return start and end of each shown part: all of the source, or the text around each quote."""
    if len(text) <= MAX_WHOLE_SOURCE_CHARACTERS:
        return [(0, len(text))]
    windows: list[tuple[int, int]] = []
    for first, last in sorted(spans.values()):
        start = _next_word_edge(text, max(first - QUOTE_CONTEXT_CHARACTERS, 0))
        end = _next_word_edge(text, min(last + QUOTE_CONTEXT_CHARACTERS, len(text)))
        # Moved to the edge of a word, a bound may have passed the quote's own.
        start, end = min(start, first), max(end, last)
        if windows and start <= windows[-1][1]:
            windows[-1] = (windows[-1][0], max(windows[-1][1], end))
        else:
            windows.append((start, end))
    return windows


def _next_word_edge(text: str, at: int) -> int:
    """Return the index of the first space from `at` on, so that no word is cut, or `at` if no space is near."""
    if at in {0, len(text)}:
        return at
    space = text.find(" ", at)
    return at if space < 0 or space - at > QUOTE_CONTEXT_CHARACTERS else space
