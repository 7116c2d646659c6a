"""A time on somebody's clock, and the moment that it stands for: hours that are skipped, and hours that come twice."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import date, time

CLOCK_PATTERN: Final = r"^([01][0-9]|2[0-3]):[0-5][0-9]$"
"""Hours and minutes, `09:30`."""


class UnknownZone(ValueError):
    """No IANA zone of that name."""


@dataclass(frozen=True)
class WallClock:
    """`on_gap` says what becomes of a time that the clocks skip: `shift` moves it on by the gap's length, as calendars
    do. `on_overlap` says which of two equal times is meant: `first` or `second`.
    """

    local_time: datetime
    timezone: str
    on_gap: str = "shift"
    on_overlap: str = "first"

    @property
    def text(self) -> str:
        return self.local_time.isoformat(timespec="seconds")


@dataclass(frozen=True)
class Slot:
    moment: datetime
    clock: WallClock


def zone_named(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UnknownZone(name) from error


def is_skipped(local_time: datetime, zone: ZoneInfo) -> bool:
    """Whether the clocks of the zone never show this time. Raises `OverflowError` at the ends of the calendar."""
    there = local_time.replace(tzinfo=zone)
    return there.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != local_time


def moment_of(clock: WallClock) -> datetime:
    """Raises `UnknownZone`, and `OverflowError` at the ends of the calendar."""
    zone = zone_named(clock.timezone)
    # With the offset from before the gap a skipped time moves on by the gap's length, whatever the other rule says.
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
    """What comes again on these days: each time with its weekday, 0 for Monday, or None for every one of the days.

    With `on_gap` `skip` a time that the clocks skip is left out. Raises as `moment_of` does.
    """
    zone = zone_named(timezone)
    for day in days:
        for weekday, at in times:
            local_time = datetime.combine(day, at)
            if weekday not in {None, day.weekday()} or (on_gap == "skip" and is_skipped(local_time, zone)):
                continue
            clock = WallClock(local_time, timezone, on_gap="shift", on_overlap=on_overlap)
            yield Slot(moment_of(clock), clock)


def shift_of(clock: WallClock) -> str:
    """A sentence where the zone's clocks skip the time, so that another one stands for it; else empty."""
    zone = zone_named(clock.timezone)
    if not is_skipped(clock.local_time, zone):
        return ""
    shown = moment_of(clock).astimezone(zone)
    day = f"{clock.local_time.day} {clock.local_time:%B %Y}"
    return (
        f"The clocks of {clock.timezone} are put forward on {day} and skip {clock.local_time:%H:%M}: it is {shown:%H:%M} "
        "in its place."
    )
