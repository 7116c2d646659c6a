"""Which pieces go on which line: as few lines as there can be, and those as even as can be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_SEARCH_STEPS = 10
_LOOSE = 1.05
"""The column that is aimed at, against the narrowest one that takes no more lines."""
_LONGEST = 1.25
"""How long a line may get against the narrowest column, where that spares a bad break."""
_TOO_LONG = 3.0
_SHORT_LAST = 0.34
_SHORT_LAST_COST = 0.25
_LAST_LINE = 0.6
_PER_LINE = 2.0


@dataclass(frozen=True)
class Measured:
    """A piece in units of its type size: its own width, that of the space after it, that of its hyphen."""

    width: float
    space: float
    hyphen: float
    cost: float


def _greedy(parts: Sequence[Measured], width: float) -> int | None:
    """How many lines it takes; None where a piece is wider than a line."""
    lines = 1
    used = 0.0
    for part in parts:
        if part.width + part.hyphen > width:
            return None
        # A hyphen is only drawn where the line ends there.
        if used and used + part.width + part.hyphen > width:
            lines += 1
            used = 0.0
        used += part.width + part.space
    return lines


def line_count(parts: Sequence[Measured], width: float) -> int | None:
    """The fewest lines; None where a piece is wider than a line."""
    return _greedy(parts, width)


def balanced(parts: Sequence[Measured], width: float) -> list[tuple[int, int]]:
    """The lines as ranges of pieces. Every piece must fit into the width."""
    fewest = _greedy(parts, width)
    if fewest is None:
        message = "A piece is wider than the line."
        raise ValueError(message)
    if fewest == 1:
        return [(0, len(parts))]
    narrow, wide = 0.0, width
    for _ in range(_SEARCH_STEPS):
        middle = (narrow + wide) / 2
        lines = _greedy(parts, middle)
        if lines is not None and lines <= fewest:
            wide = middle
        else:
            narrow = middle
    return _evenest(parts, min(width, wide * _LOOSE), min(width, wide * _LONGEST))


def _evenest(parts: Sequence[Measured], column: float, longest: float) -> list[tuple[int, int]]:
    """The cheapest lines: squares of what they differ from the column, prices of the breaks, and each line's own."""
    count = len(parts)
    best = [0.0] + [float("inf")] * count
    cut_at = [0] * (count + 1)
    for end in range(1, count + 1):
        used = -parts[end - 1].space
        is_last = end == count
        for start in range(end - 1, -1, -1):
            used += parts[start].width + parts[start].space
            line = used + parts[end - 1].hyphen
            if line > longest + 1e-9 and start < end - 1:
                break
            slack = (column - line) / column
            weight = _TOO_LONG if slack < 0 else _LAST_LINE if is_last else 1.0
            price = _PER_LINE + slack * slack * weight
            if not is_last:
                price += parts[end - 1].cost
            elif line < _SHORT_LAST * column:
                price += _SHORT_LAST_COST
            if best[start] + price < best[end]:
                best[end] = best[start] + price
                cut_at[end] = start
    lines: list[tuple[int, int]] = []
    end = count
    while end:
        lines.append((cut_at[end], end))
        end = cut_at[end]
    return lines[::-1]
