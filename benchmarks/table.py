"""The rows of the one table, and how it is printed."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

HEAD: Final = ("", "figure", "floor", "ratio", "goal", "commit")


@dataclass(frozen=True)
class Row:
    """One line. Each list has one number for each round; medians are shown, with the lowest and the highest.

    `most` and `least` bound the figure, `most_ratio` and `least_ratio` bound figure ÷ floor. What is `unsound` (rows
    lost, answers that differ) makes the run fail; a missed goal doesn't.
    """

    what: str
    unit: str
    figures: Sequence[float]
    floors: Sequence[float] = ()
    most: float | None = None
    least: float | None = None
    most_ratio: float | None = None
    least_ratio: float | None = None
    note: str = ""
    unsound: str = ""
    ratios: list[float] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        if self.floors:
            self.ratios.extend(
                figure / floor for figure, floor in zip(self.figures, self.floors, strict=True) if floor
            )

    def goal(self) -> str:
        figure = statistics.median(self.figures)
        ratio = statistics.median(self.ratios) if self.ratios else None
        parts = []
        for sign, bound, value, unit in (
            ("≤", self.most, figure, self.unit),
            ("≥", self.least, figure, self.unit),
            ("ratio ≤", self.most_ratio, ratio, ""),
            ("ratio ≥", self.least_ratio, ratio, ""),
        ):
            if bound is None or value is None:
                continue
            is_met = value <= bound if sign.endswith("≤") else value >= bound
            parts.append(f"{sign} {bound:g} {unit}".rstrip() + (": ok" if is_met else ": MISSED"))
        return ", ".join(parts)

    def cells(self, commit: str) -> tuple[str, ...]:
        return (
            self.what,
            _spread(self.figures, self.unit),
            _spread(self.floors, self.unit),
            _spread(self.ratios, ""),
            self.goal(),
            commit,
        )

    def as_json(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name != "ratios"}


def percentile(numbers: Iterable[float], share: float) -> float:
    """The nearest rank; infinite where there are no numbers."""
    ordered = sorted(numbers)
    if not ordered:
        return float("inf")
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def render(rows: Sequence[Row], commit: str) -> str:
    lines = [HEAD, *(row.cells(commit) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    text = []
    for line, row in zip(lines, (None, *rows), strict=True):
        text.append("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
        if row is not None:
            text += [f"    {note}" for note in (row.note, row.unsound and f"UNSOUND: {row.unsound}") if note]
    return "\n".join(text)


def _spread(numbers: Sequence[float], unit: str) -> str:
    if not numbers:
        return "–"
    middle = f"{_short(statistics.median(numbers))} {unit}".rstrip()
    if len(numbers) == 1:
        return middle
    return f"{middle} ({_short(min(numbers))}–{_short(max(numbers))})"


def _short(number: float) -> str:
    return (
        f"{number:.0f}" if abs(number) >= 100 else f"{number:.1f}" if abs(number) >= 10 else f"{number:.2f}"
    )
