"""Computes which days a calendar shows in a time zone; days of 23 and 25 hours are handled like any other."""

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
"""Years in which the calendar shows a date."""
_HOURS_PER_DAY: Final = 24


@dataclass(frozen=True)
class Day:
    """A calendar day, from its first moment to the first moment of the next day."""

    on: date
    starts_at: datetime
    ends_at: datetime

    @property
    def hours(self) -> float:
        """The length of the day in hours; it isn't 24 if the clocks change on the day."""
        return (self.ends_at - self.starts_at).total_seconds() / 3600

    @property
    def has_clock_change(self) -> bool:
        """True if the day doesn't have 24 hours, because the clocks change on it."""
        return self.hours != _HOURS_PER_DAY


@dataclass(frozen=True)
class DateRange:
    """The days from `first` to `last` in a zone; `on` is the requested day."""

    view: str
    on: date
    first: date
    last: date
    zone: ZoneInfo

    @property
    def days(self) -> Iterator[Day]:
        """The days of the range, each with its bounds."""
        for number in range((self.last - self.first).days + 1):
            on = self.first + timedelta(days=number)
            yield Day(on, start_of(on, self.zone), start_of(on + timedelta(days=1), self.zone))

    @property
    def starts_at(self) -> datetime:
        """The first moment of the range, in UTC."""
        return start_of(self.first, self.zone)

    @property
    def ends_at(self) -> datetime:
        """The first moment after the range, in UTC."""
        return start_of(self.last + timedelta(days=1), self.zone)

    @property
    def previous(self) -> date | None:
        """A date in the range before this one, or `None` if its year isn't in `YEARS`."""
        return self._step(-1)

    @property
    def next(self) -> date | None:
        """A date in the range after this one, or `None` if its year isn't in `YEARS`."""
        return self._step(1)

    def _step(self, direction: int) -> date | None:
        """Return a date in the range before (-1) or after (1), or `None` if its year isn't in `YEARS`."""
        if self.view == DAY:
            target = self.on + timedelta(days=direction)
        elif self.view == WEEK:
            target = self.on + timedelta(days=7 * direction)
        else:
            # From the middle of a month each step reaches the next one, however long it is.
            target = (self.on.replace(day=15) + timedelta(days=30 * direction)).replace(day=1)
        return target if target.year in YEARS else None


def start_of(on: date, zone: ZoneInfo) -> datetime:
    """Return the first moment of a date, in UTC; if the clocks skip midnight, the first one after the gap."""
    return datetime.combine(on, time.min, tzinfo=zone).astimezone(UTC)


def date_range_of(view: str, date_text: str, today: date, zone: ZoneInfo) -> DateRange:
    """Return the days that a view around a date shows; a week or a month is shown in whole weeks.

    An unknown view counts as a week, and text that is no date in `YEARS` as today.
    """
    if view not in VIEWS:
        view = WEEK
    on = parse_date(date_text) or today
    first = last = on
    if view == WEEK:
        first = on - timedelta(days=on.weekday())
        last = first + timedelta(days=6)
    elif view == MONTH:
        first_of_month = on.replace(day=1)
        last_of_month = (first_of_month + timedelta(days=31)).replace(day=1) - timedelta(days=1)
        # Whole weeks, from Monday to Sunday.
        first = first_of_month - timedelta(days=first_of_month.weekday())
        last = last_of_month + timedelta(days=6 - last_of_month.weekday())
    return DateRange(view, on, first, last, zone)


def parse_date(text: str) -> date | None:
    """Return the date of an ISO text, or `None` for another text or a year that isn't in `YEARS`."""
    try:
        parsed = date.fromisoformat(text)
    except ValueError:
        return None
    return parsed if parsed.year in YEARS else None
