"""Rows of an answer as cells: a few numbers each, and bits for what was heard of where they come from.

An answer has thousands of rows and few shapes of them: the same platforms, patterns of what is missing and numbers that
are known. Why a number is missing is asked of a `Fold` once for each shape, and of none of the rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from analytics.aggregate import FIRST_PARTY, Figures, Fold, share_of
from pipeline.platforms.base import METRICS as MEASURED

if TYPE_CHECKING:
    from collections.abc import Iterable

Note = tuple[Any, ...]
"""A kind of group of facts: `outcomes`, `measurements` or `hits`, the platform, and what the groups say."""

Sums = tuple[int | None, ...]
"""One for each metric that platforms give; None where nothing is known."""

_NOTHING: Final[Sums] = (None,) * len(MEASURED)
_NOBODY: Final[Sums] = (None,) * len(FIRST_PARTY)
_PLACES: Final = {name: place for place, name in enumerate(FIRST_PARTY)}


class Cell:
    """What adds up to one row; `notes` are bits of `Notes`."""

    __slots__ = ("failed", "first_party", "is_measured", "known", "notes", "published", "sums")

    def __init__(self) -> None:
        self.published = 0
        self.failed = 0
        self.known = 0
        self.is_measured = False
        self.sums = _NOTHING
        self.first_party = _NOBODY
        self.notes = 0

    def add_hits(self, name: str, count: int, platform: str) -> None:
        """As a `Fold` does it; who calls takes the note."""
        del platform
        counts = list(self.first_party)
        counts[_PLACES[name]] = (counts[_PLACES[name]] or 0) + count
        self.first_party = tuple(counts)

    @property
    def coverage(self) -> float | None:
        return share_of(self.known, self.published)


def added(one: Sums, other: Sums) -> Sums:
    return tuple(
        mine if yours is None else yours if mine is None else mine + yours
        for mine, yours in zip(one, other, strict=True)
    )


def total_of(cells: Iterable[Cell]) -> Cell:
    """All of them as one."""
    total = Cell()
    sums: list[Sums] = []
    for cell in cells:
        total.published += cell.published
        total.failed += cell.failed
        total.known += cell.known
        total.notes |= cell.notes
        sums.append(cell.sums)
        if cell.first_party != _NOBODY:
            total.first_party = added(total.first_party, cell.first_party)
    total.sums = tuple(_sum(column) for column in zip(*sums, strict=True)) or _NOTHING
    return total


def _sum(values: Sums) -> int | None:
    if None not in values:
        return sum(values)  # type: ignore[arg-type]
    known = [value for value in values if value is not None]
    return sum(known) if known else None


class Notes:
    """What groups of facts say of missing numbers, each kind of group once; a cell has the bits of its groups."""

    def __init__(self) -> None:
        self._bits: dict[Note, int] = {}
        self._notes: list[Note] = []

    def of_outcomes(self, platform: str, known: int | None, *, published: bool, failed: bool) -> int:
        return self.bit(("outcomes", platform, known, published, failed))

    def of_measurements(self, platform: str, reasons: str) -> int:
        return self.bit(("measurements", platform, reasons))

    def of_hits(self, platform: str, count: int) -> int:
        return self.bit(("hits", platform)) if count else 0

    def figures(self, bits: int, sums: Sums) -> Figures:
        """Of a row with these sums: only its `availability` is that of every such row."""
        fold = Fold()
        for note in self.of(bits):
            _replay(fold, *note)
        fold.sums = dict(zip(MEASURED, sums, strict=True))
        return fold.figures()

    def of(self, bits: int) -> tuple[Note, ...]:
        """What other notes than these can be told."""
        return tuple(note for place, note in enumerate(self._notes) if bits >> place & 1)

    def bit(self, note: Note) -> int:
        bit = self._bits.get(note)
        if bit is None:
            bit = self._bits[note] = 1 << len(self._notes)
            self._notes.append(note)
        return bit


def _replay(fold: Fold, what: str, platform: str, *said: Any) -> None:
    if what == "outcomes":
        known, published, failed = said
        group = {"published": int(published), "failed": int(failed), "known": known}
        fold.add_outcomes(group, platform)
    elif what == "measurements":
        sums = dict.fromkeys(f"sum_{metric}" for metric in MEASURED)
        fold.add_measurements({"reasons": said[0], **sums}, platform)
    else:
        fold.add_hits(FIRST_PARTY[0], 1, platform)
