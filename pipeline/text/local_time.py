"""Converts local times to moments, with rules for times that clocks skip and times that come twice."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import date, time

CLOCK_PATTERN: Final = r"^([01][0-9]|2[0-3]):[0-5][0-9]$"
"""A pattern for hours and minutes: `09:30`."""


class UnknownZone(ValueError):
    """Raised for a name that is no IANA time zone."""


@dataclass(frozen=True)
class WallClock:
    """A local time in a time zone, which clock changes can skip or repeat."""

    local_time: datetime
    timezone: str
    on_gap: str = "shift"
    """The rule for a time that the clocks skip: `shift` moves it on by the gap's length, as calendars do."""
    on_overlap: str = "first"
    """The one that is meant of two equal times: `first` or `second`."""

    @property
    def text(self) -> str:
        return self.local_time.isoformat(timespec="seconds")


@dataclass(frozen=True)
class Slot:
    """A local time with the moment that it stands for."""

    moment: datetime
    clock: WallClock


def zone_named(name: str) -> ZoneInfo:
    """Return the time zone. Raises `UnknownZone` if there is none of this name."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UnknownZone(name) from error


def is_skipped(local_time: datetime, zone: ZoneInfo) -> bool:
    """Return whether the zone's clocks never show this time.

    Raises `OverflowError` at the ends of the calendar.
    """
    zoned = local_time.replace(tzinfo=zone)
    return zoned.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != local_time


def moment_of(clock: WallClock) -> datetime:
    """Return the moment in UTC; a time that the clocks skip is moved on by the gap's length.

    Raises `UnknownZone` if there is no such zone, and `OverflowError` at the ends of the calendar.
    """
    zone = zone_named(clock.timezone)
    # With the offset before the gap a skipped time moves on by the gap's length, whatever `on_overlap` says.
    is_second = clock.on_overlap == "second" and not is_skipped(clock.local_time, zone)
    return clock.local_time.replace(tzinfo=zone, fold=int(is_second)).astimezone(UTC)


def slots_on(
    days: Iterable[date],
    times: Sequence[tuple[int | None, time]],
    timezone: str,
    *,
    on_gap: str = "shift",
    on_overlap: str = "first",
) -> Iterator[Slot]:
    """Yield the slots on these days, in their order; each of `times` has a weekday, 0 for Monday, or `None` for all.

    If `on_gap` is `skip`, a time that the clocks skip is left out. Raises `UnknownZone` if there is no such zone,
    and `OverflowError` at the ends of the calendar.
    """
    zone = zone_named(timezone)
    for day in days:
        for weekday, time_of_day in times:
            local_time = datetime.combine(day, time_of_day)
            if weekday not in {None, day.weekday()} or (on_gap == "skip" and is_skipped(local_time, zone)):
                continue
            clock = WallClock(local_time, timezone, on_gap="shift", on_overlap=on_overlap)
            yield Slot(moment_of(clock), clock)


def shift_of(clock: WallClock) -> str:
    """Return a sentence about the time that is used if the zone's clocks skip this one, else ""."""
    zone = zone_named(clock.timezone)
    if not is_skipped(clock.local_time, zone):
        return ""
    actual_time = moment_of(clock).astimezone(zone)
    day = f"{clock.local_time.day} {clock.local_time:%B %Y}"
    return (
        f"The clocks of {clock.timezone} are put forward on {day} and skip {clock.local_time:%H:%M}: it is {actual_time:%H:%M} "
        "in its place."
    )
