"""Which days a calendar shows, on the clocks of a time zone: days of 23 and 25 hours are days like any other."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from zoneinfo import ZoneInfo

DAY, WEEK, MONTH = "day", "week", "month"
VIEWS: Final = (DAY, WEEK, MONTH)
YEARS: Final = range(2000, 2100)
_HOURS: Final = 24


@dataclass(frozen=True)
class Day:
    """From its first moment to the next one's."""

    on: date
    starts_at: datetime
    ends_at: datetime

    @property
    def hours(self) -> float:
        return (self.ends_at - self.starts_at).total_seconds() / 3600

    @property
    def has_clock_change(self) -> bool:
        """It has not 24 hours, because the clocks change on it."""
        return self.hours != _HOURS


@dataclass(frozen=True)
class DateRange:
    """The days from `first` to `last` in a zone; `on` is the day that was asked for."""

    view: str
    on: date
    first: date
    last: date
    zone: ZoneInfo

    @property
    def days(self) -> Iterator[Day]:
        for number in range((self.last - self.first).days + 1):
            on = self.first + timedelta(days=number)
            yield Day(on, start_of(on, self.zone), start_of(on + timedelta(days=1), self.zone))

    @property
    def starts_at(self) -> datetime:
        return start_of(self.first, self.zone)

    @property
    def ends_at(self) -> datetime:
        return start_of(self.last + timedelta(days=1), self.zone)

    @property
    def previous(self) -> date | None:
        """A date in the range before this one; None where that isn't in `YEARS`."""
        return self._step(-1)

    @property
    def next(self) -> date | None:
        """A date in the range after this one; None where that isn't in `YEARS`."""
        return self._step(1)

    def _step(self, direction: int) -> date | None:
        """One range back for -1, one on for 1."""
        if self.view == DAY:
            found = self.on + timedelta(days=direction)
        elif self.view == WEEK:
            found = self.on + timedelta(days=7 * direction)
        else:
            # From the middle of a month each step reaches the next one, however long it is.
            found = (self.on.replace(day=15) + timedelta(days=30 * direction)).replace(day=1)
        return found if found.year in YEARS else None


def start_of(on: date, zone: ZoneInfo) -> datetime:
    """The first moment of that date; where midnight is skipped, the one after the gap."""
    return datetime.combine(on, time.min, tzinfo=zone).astimezone(UTC)


def date_range_of(view: str, asked: str, today: date, zone: ZoneInfo) -> DateRange:
    """The days that a view around that date shows, for a week or month in whole weeks.

    An unknown view is a week; what is no date in `YEARS` is today.
    """
    if view not in VIEWS:
        view = WEEK
    on = _read(asked) or today
    first = last = on
    if view == WEEK:
        first = on - timedelta(days=on.weekday())
        last = first + timedelta(days=6)
    elif view == MONTH:
        begins = on.replace(day=1)
        ends = (begins + timedelta(days=31)).replace(day=1) - timedelta(days=1)
        # Whole weeks.
        first = begins - timedelta(days=begins.weekday())
        last = ends + timedelta(days=6 - ends.weekday())
    return DateRange(view, on, first, last, zone)


def _read(text: str) -> date | None:
    """An ISO date; None for any other text, and for a year that isn't in `YEARS`."""
    try:
        found = date.fromisoformat(text)
    except ValueError:
        return None
    return found if found.year in YEARS else None
