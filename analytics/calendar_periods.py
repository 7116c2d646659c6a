"""Defines periods and the calendar buckets in them: local hours, days, weeks and months of any time zone."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo, available_timezones

if TYPE_CHECKING:
    from collections.abc import Iterator

INTERVALS: Final = ("hour", "day", "week", "month")

_EPOCH: Final = date(1970, 1, 1)
_DAY_SECONDS: Final = 86_400

# Names among the zone files that aren't places: they mean whatever the machine is set to.
_NOT_PLACES: Final = frozenset({"Factory", "localtime", "posixrules"})


@cache
def zone_names() -> frozenset[str]:
    """Return the IANA names of all time zones."""
    return frozenset(available_timezones()) - _NOT_PLACES


@dataclass(frozen=True)
class Period:
    """A half-open range: `start` belongs to it and `end` does not; both in UTC."""

    start: datetime
    end: datetime
    interval: str
    zone: ZoneInfo

    @property
    def days(self) -> float:
        """Return the length in days of the local calendar: a day of 23 or 25 hours is one."""
        return (self._local(self.end) - self._local(self.start)) / timedelta(days=1)

    def _local(self, moment: datetime) -> datetime:
        return moment.astimezone(self.zone).replace(tzinfo=None)


@dataclass(frozen=True)
class Buckets(ABC):
    """Sorts the rows of a period into buckets, the first half of it in the database.

    A row's slice is `(seconds since 1970 + offset) // step`; no bucket's edge cuts one. `offsets` has the
    offset to add until each moment (in seconds since 1970, not included), and the one after all of them.
    """

    step: int
    offsets: tuple[tuple[int, int], ...]
    last_offset: int

    @abstractmethod
    def place_of(self, number: int) -> int:
        """Return the place of the bucket that a slice belongs to; places are in the order of time."""

    @abstractmethod
    def label_of(self, place: int) -> str:
        """Return a bucket's start as the API writes it."""


@dataclass(frozen=True)
class DateBuckets(Buckets):
    """Slices are local days, whatever the clocks do; places are the ordinals of dates."""

    interval: str

    def place_of(self, number: int) -> int:
        return _first_day(_EPOCH + timedelta(days=number), self.interval).toordinal()

    def label_of(self, place: int) -> str:
        return date.fromordinal(place).isoformat()


@dataclass(frozen=True)
class HourBuckets(Buckets):
    """Places count the hours of the period; `starts` are in seconds since 1970, and `step` divides each of
    them.
    """

    starts: tuple[int, ...]
    labels: tuple[str, ...]

    def place_of(self, number: int) -> int:
        return bisect_right(self.starts, number * self.step) - 1

    def label_of(self, place: int) -> str:
        return self.labels[place]


def buckets_of(period: Period) -> Buckets:
    """Return the buckets of a period by its interval."""
    if period.interval != "hour":
        offsets, last_offset = _offsets(period)
        return DateBuckets(_DAY_SECONDS, offsets, last_offset, period.interval)
    hours = list(_hours(period))
    starts = tuple(int(start.timestamp()) for start, _ in hours)
    labels = tuple(label for _, label in hours)
    # The step is an hour in most zones, half an hour in Kolkata.
    return HourBuckets(math.gcd(*starts) or 1, (), 0, starts, labels)


def labels_of(period: Period) -> tuple[str, ...]:
    """Return the labels of all buckets of the period in the order of time, also of those without data."""
    buckets = buckets_of(period)
    if isinstance(buckets, HourBuckets):
        return buckets.labels
    first = period.start.astimezone(period.zone).date()
    last = (period.end - timedelta(microseconds=1)).astimezone(period.zone).date()
    first_days = (
        _first_day(first + timedelta(days=number), period.interval)
        for number in range((last - first).days + 1)
    )
    return tuple(dict.fromkeys(day.isoformat() for day in first_days))


def local_midnight(day: date, zone: ZoneInfo) -> datetime:
    """Return the first moment of a day, in UTC; if the clocks skip midnight, the moment of the change."""
    return datetime.combine(day, time(), tzinfo=zone).astimezone(UTC)


def _first_day(day: date, interval: str) -> date:
    """Return the first day of the day's interval."""
    if interval == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if interval == "month" else day


def _offsets(period: Period) -> tuple[tuple[tuple[int, int], ...], int]:
    """Return the zone's offsets in the period, each with the moment until which it applies, and the last."""
    offsets = []
    moment, end = int(period.start.timestamp()), int(period.end.timestamp())
    offset = _offset_at(moment, period.zone)
    while moment < end:
        next_moment = min(moment + _DAY_SECONDS, end)
        next_offset = _offset_at(next_moment, period.zone)
        if next_offset != offset:
            # The clocks change within this day: bisect it to the second.
            low, high = moment, next_moment
            while high - low > 1:
                middle = (low + high) // 2
                if _offset_at(middle, period.zone) == offset:
                    low = middle
                else:
                    high = middle
            offsets.append((high, offset))
            offset = next_offset
        moment = next_moment
    return tuple(offsets), offset


def _offset_at(seconds: int, zone: ZoneInfo) -> int:
    offset = datetime.fromtimestamp(seconds, zone).utcoffset() or timedelta(0)
    return int(offset.total_seconds())


def _hours(period: Period) -> Iterator[tuple[datetime, str]]:
    """Yield the local hours with labels; one that a change of clocks repeats comes twice, by its offset."""
    local = period.start.astimezone(period.zone)
    start = period.start - timedelta(
        minutes=local.minute, seconds=local.second, microseconds=local.microsecond
    )
    while start < period.end:
        local = start.astimezone(period.zone)
        yield start, local.isoformat(timespec="seconds")
        # A change by half an hour starts another bucket, which lasts until the next full local hour.
        start += timedelta(hours=1) - timedelta(minutes=local.minute, seconds=local.second)
