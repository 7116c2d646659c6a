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

# Names among the zone files that are no zones: they mean whatever the machine is set to.
_NOT_ZONES: Final = frozenset({"Factory", "localtime", "posixrules"})


@cache
def zone_names() -> frozenset[str]:
    """Return the IANA names of all time zones."""
    return frozenset(available_timezones()) - _NOT_ZONES


@dataclass(frozen=True)
class Period:
    """A half-open range: `start` belongs to it and `end` does not; both in UTC."""

    start: datetime
    end: datetime
    interval: str
    zone: ZoneInfo

    @property
    def days(self) -> float:
        """The length in days of the local calendar, in which a day of 23 or 25 hours is one."""
        return (self._local(self.end) - self._local(self.start)) / timedelta(days=1)

    def _local(self, moment: datetime) -> datetime:
        return moment.astimezone(self.zone).replace(tzinfo=None)


@dataclass(frozen=True)
class Buckets(ABC):
    """Sorts the rows of a period into buckets: the database computes a row's slice, this class its bucket.

    The slice is `(seconds since 1970 + offset) // step`, and no bucket's edge cuts a slice.
    """

    step: int
    """The length of a slice, in seconds."""
    offsets: tuple[tuple[int, int], ...]
    """Pairs of a moment, in seconds since 1970, and the offset to add before that moment."""
    last_offset: int
    """The offset in seconds to add after all those moments."""

    @abstractmethod
    def bucket_of(self, slice_number: int) -> int:
        """Return the number of the bucket that a slice belongs to; the numbers rise with time."""

    @abstractmethod
    def label_of(self, bucket: int) -> str:
        """Return a bucket's start as the API writes it."""


@dataclass(frozen=True)
class DateBuckets(Buckets):
    """Slices are local days, even if the clocks change; a bucket's number is its first day's ordinal."""

    interval: str

    def bucket_of(self, slice_number: int) -> int:
        return _first_day(_EPOCH + timedelta(days=slice_number), self.interval).toordinal()

    def label_of(self, bucket: int) -> str:
        return date.fromordinal(bucket).isoformat()


@dataclass(frozen=True)
class HourBuckets(Buckets):
    """A bucket's number is the index of its hour in the period."""

    starts: tuple[int, ...]
    """The starts of the hours in seconds since 1970, each a multiple of `step`."""
    labels: tuple[str, ...]

    def bucket_of(self, slice_number: int) -> int:
        return bisect_right(self.starts, slice_number * self.step) - 1

    def label_of(self, bucket: int) -> str:
        return self.labels[bucket]


def buckets_of(period: Period) -> Buckets:
    """Return the buckets of a period, which have the length of its interval."""
    if period.interval != "hour":
        offsets, last_offset = _offsets(period)
        return DateBuckets(_DAY_SECONDS, offsets, last_offset, period.interval)
    hours = list(_hours(period))
    starts = tuple(int(start.timestamp()) for start, _ in hours)
    labels = tuple(label for _, label in hours)
    # The step is an hour in most zones, half an hour in Kolkata.
    return HourBuckets(math.gcd(*starts) or 1, (), 0, starts, labels)


def labels_of(period: Period) -> tuple[str, ...]:
    """Return the labels of all buckets of the period in the order of time, including those without data."""
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
    """Return the first moment of a day, in UTC; if the clocks skip midnight, it is the moment of the change."""
    return datetime.combine(day, time(), tzinfo=zone).astimezone(UTC)


def _first_day(day: date, interval: str) -> date:
    """Return the first day of the week, month or day that the day is in."""
    if interval == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if interval == "month" else day


def _offsets(period: Period) -> tuple[tuple[tuple[int, int], ...], int]:
    """Return pairs of a moment and the offset before it, for each change of the clocks, and the last offset.

    All are in seconds; the moments count since 1970.
    """
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
    """Yield the starts of the local hours with labels; an hour that the clocks repeat comes twice."""
    local = period.start.astimezone(period.zone)
    start = period.start - timedelta(
        minutes=local.minute, seconds=local.second, microseconds=local.microsecond
    )
    while start < period.end:
        local = start.astimezone(period.zone)
        yield start, local.isoformat(timespec="seconds")
        # A change by half an hour starts another bucket, which lasts until the next full local hour.
        start += timedelta(hours=1) - timedelta(minutes=local.minute, seconds=local.second)
