"""Defines the rows of the benchmarks' table, and renders it as text."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

COLUMN_HEADS: Final = ("", "figure", "floor", "ratio", "goal", "commit")


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Each list has a number for each round, of which the table shows the median, the lowest and the highest. `maximum`
    and `minimum` bound the figure, `max_ratio` and `min_ratio` bound figure ÷ floor. A row that is `unsound` (rows
    lost, answers that differ) makes the run fail; a missed goal doesn't.
    """

    label: str
    unit: str
    figures: Sequence[float]
    floors: Sequence[float] = ()
    maximum: float | None = None
    minimum: float | None = None
    max_ratio: float | None = None
    min_ratio: float | None = None
    note: str = ""
    unsound: str = ""
    ratios: list[float] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        if self.floors:
            self.ratios.extend(
                figure / floor for figure, floor in zip(self.figures, self.floors, strict=True) if floor
            )

    def goal(self) -> str:
        """Return each bound, and whether the median meets it; empty if there is no bound."""
        figure = statistics.median(self.figures)
        ratio = statistics.median(self.ratios) if self.ratios else None
        parts = []
        for sign, bound, value, unit in (
            ("≤", self.maximum, figure, self.unit),
            ("≥", self.minimum, figure, self.unit),
            ("ratio ≤", self.max_ratio, ratio, ""),
            ("ratio ≥", self.min_ratio, ratio, ""),
        ):
            if bound is None or value is None:
                continue
            is_met = value <= bound if sign.endswith("≤") else value >= bound
            parts.append(f"{sign} {bound:g} {unit}".rstrip() + (": ok" if is_met else ": MISSED"))
        return ", ".join(parts)

    def cells(self, commit: str) -> tuple[str, ...]:
        """Return the texts of the row's columns."""
        return (
            self.label,
            _format_spread(self.figures, self.unit),
            _format_spread(self.floors, self.unit),
            _format_spread(self.ratios, ""),
            self.goal(),
            commit,
        )

    def as_json(self) -> dict[str, Any]:
        """Return the row's fields for JSON, from which `Row` can be made again."""
        return {name: value for name, value in asdict(self).items() if name != "ratios"}


def percentile(numbers: Iterable[float], share: float) -> float:
    """Return the number at a share of the ordered ones, by nearest rank, or infinity if there are none."""
    ordered = sorted(numbers)
    if not ordered:
        return float("inf")
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def render_table(rows: Sequence[Row], commit: str) -> str:
    """Return the table as text, with each row's note and its fault below it."""
    lines = [COLUMN_HEADS, *(row.cells(commit) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(COLUMN_HEADS))]
    text = []
    for line, row in zip(lines, (None, *rows), strict=True):
        text.append("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
        if row is not None:
            text += [f"    {note}" for note in (row.note, row.unsound and f"UNSOUND: {row.unsound}") if note]
    return "\n".join(text)


def _format_spread(numbers: Sequence[float], unit: str) -> str:
    """Return the median with its unit, and the lowest and highest if there are several numbers."""
    if not numbers:
        return "–"
    median_text = f"{_format_number(statistics.median(numbers))} {unit}".rstrip()
    if len(numbers) == 1:
        return median_text
    return f"{median_text} ({_format_number(min(numbers))}–{_format_number(max(numbers))})"


def _format_number(number: float) -> str:
    return (
        f"{number:.0f}" if abs(number) >= 100 else f"{number:.1f}" if abs(number) >= 10 else f"{number:.2f}"
    )
