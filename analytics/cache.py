"""Rows of past dates as they were written once, kept by the process that wrote them.

Most of an answer is of days that nothing happens to any more. The rows of a date (or week, or month) are kept together
with what they were made of: which adding up of each of its UTC days, and what the workspace's outlets were called then.
Both are read anew for every answer, so that a day that is marked, or an outlet that gets another name, is enough for
nothing old to be said. Only what is read from rollups alone is kept.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from analytics.periods import DateBuckets, buckets_of, local_midnight
from config.core import limits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analytics.accumulators import Cell, Note
    from analytics.intervals import Spans
    from analytics.periods import Period
    from analytics.queries import Question

    Key = tuple[Any, ...]
    MadeOf = tuple[Any, ...]

_PART_BYTES: Final = 1000
"""What a part takes beside its text."""


@dataclass(frozen=True)
class Part:
    """The rows of one bucket, with commas between them, and all of them as one; `notes` are those of `total`."""

    rows: bytes
    total: Cell
    notes: tuple[Note, ...]


@dataclass(frozen=True)
class Place:
    """Where the part of one bucket is kept; `start` and `end` are the bucket's, or the period's within it."""

    start: datetime
    end: datetime
    key: Key
    made_of: MadeOf


class Shelf:
    """The parts that were used last, of all workspaces together, up to so many bytes."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = 0
        self._parts: OrderedDict[Key, tuple[MadeOf, Part]] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, place: Place) -> Part | None:
        with self._lock:
            made_of, part = self._parts.get(place.key, (None, None))
            if part is None or made_of != place.made_of:
                return None
            self._parts.move_to_end(place.key)
            return part

    def put(self, place: Place, part: Part) -> None:
        with self._lock:
            self._drop(place.key)
            self._parts[place.key] = (place.made_of, part)
            self._held += len(part.rows) + _PART_BYTES
            while self._held > self._most:
                self._drop(next(iter(self._parts)))

    def clear(self) -> None:
        with self._lock:
            self._parts.clear()
            self._held = 0

    def _drop(self, key: Key) -> None:
        _, part = self._parts.pop(key, (None, None))
        if part is not None:
            self._held -= len(part.rows) + _PART_BYTES


SHELF: Final = Shelf(limits.ANALYTICS_KEPT_BYTES)


def places(question: Question, spans: Spans, outlets: object) -> dict[int, Place]:
    """By the buckets' places, those whose rows can be kept; `outlets` is all that rows tell of them."""
    period = question.period
    if "date" not in question.group_by or period.interval == "hour" or _is_turned_back(period):
        return {}
    asked = (
        question.workspace_id,
        question.test,
        question.group_by,
        question.attribution,
        question.outlets,
        question.content_types,
        period.interval,
    )
    found = {}
    for place, start, end in _buckets(period):
        if any(first <= start and end <= last for first, last in spans.rolled):
            made_of = (outlets, *(spans.versions.get(day) for day in _days(start, end)))
            found[place] = Place(start, end, (*asked, place, start, end), made_of)
    return found


def _buckets(period: Period) -> Iterator[tuple[int, datetime, datetime]]:
    """Place, start and end of every bucket that has any time within the period."""
    buckets = buckets_of(period)
    day = period.start.astimezone(period.zone).date()
    start = period.start
    while start < period.end:
        place = buckets.place_of((day - date(1970, 1, 1)).days)
        while buckets.place_of((day - date(1970, 1, 1)).days) == place:
            day += timedelta(days=1)
        end = min(local_midnight(day, period.zone), period.end)
        # A date that the clocks skipped has no time.
        if start < end:
            yield place, start, end
        start = max(start, end)


def _days(start: datetime, end: datetime) -> Iterator[date]:
    """The UTC days that have any time between the two."""
    day, last = start.date(), (end - timedelta(microseconds=1)).date()
    while day <= last:
        yield day
        day += timedelta(days=1)


def _is_turned_back(period: Period) -> bool:
    """Whether clocks were set back over a midnight: then a date has two stretches of time."""
    buckets = buckets_of(period)
    if not isinstance(buckets, DateBuckets):
        return True
    offsets = [*(offset for _, offset in buckets.offsets), buckets.last_offset]
    return any(
        (until + later) // buckets.step < (until - 1 + before) // buckets.step
        for (until, before), later in zip(buckets.offsets, offsets[1:], strict=True)
    )
