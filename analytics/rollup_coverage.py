"""Splits a period into parts that are answered from rollups and parts answered from facts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING

from analytics.models import DAY, QUARTER

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator

    from analytics.calendar_periods import Buckets, Period

_DAY = timedelta(days=1)

Span = tuple[datetime, datetime]


@dataclass(frozen=True)
class Spans:
    """Half-open spans of time that together are the period; neighbours are of different kinds."""

    live: tuple[Span, ...]
    """The spans that are read from facts."""
    rolled: tuple[Span, ...]
    """The spans that are read from rollups."""
    are_days: bool
    """Whether the rolled spans are read from rollups of UTC days, which no bucket's edge cuts, or of quarters."""


def split_period(
    period: Period, buckets: Buckets | None, current: Callable[[date, date], Container[date]]
) -> Spans:
    """Split the period into the spans that are read from facts and from rollups.

    `current` returns which of the UTC days between two, both included, have current rollups.
    """
    unit = _unit(buckets)
    if unit is None:
        return Spans(((period.start, period.end),), (), are_days=False)
    first, last = period.start.date(), (period.end - timedelta(microseconds=1)).date()
    days = current(first, last) if first <= last else ()
    live: list[tuple[datetime, datetime]] = []
    rolled: list[tuple[datetime, datetime]] = []
    for start, end in _days(period):
        is_rolled = start.date() in days and _is_aligned(start, unit) and _is_aligned(end, unit)
        kind = rolled if is_rolled else live
        if kind and kind[-1][1] == start:
            kind[-1] = (kind[-1][0], end)
        else:
            kind.append((start, end))
    return Spans(tuple(live), tuple(rolled), are_days=unit == DAY)


def _unit(buckets: Buckets | None) -> int | None:
    """Return the largest unit, in seconds, that no bucket's edge cuts, or `None` if each would be cut."""
    if buckets is None:
        return DAY
    shifts = [buckets.last_offset, *(number for change in buckets.offsets for number in change)]
    if buckets.step % DAY == 0 and buckets.last_offset == 0 and not buckets.offsets:
        return DAY
    return QUARTER if all(number % QUARTER == 0 for number in (buckets.step, *shifts)) else None


def _days(period: Period) -> Iterator[tuple[datetime, datetime]]:
    """Yield the period cut at each UTC midnight."""
    start = period.start
    while start < period.end:
        midnight = datetime.combine(start.astimezone(UTC).date(), time(), tzinfo=UTC) + _DAY
        yield start, min(midnight, period.end)
        start = midnight


def _is_aligned(moment: datetime, unit: int) -> bool:
    """Return whether the moment is a multiple of the unit, in seconds since 1970."""
    return moment.timestamp() % unit == 0
