"""Describes the cadence of a brand lane, which is days and times or a number of hours, and parses times."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pipeline.sources.brand import DEFAULT_CADENCE, WEEKDAYS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.utils.functional import _StrPromise

DAYS: Final[Mapping[str, _StrPromise]] = {
    "mon": gettext_lazy("Monday"),
    "tue": gettext_lazy("Tuesday"),
    "wed": gettext_lazy("Wednesday"),
    "thu": gettext_lazy("Thursday"),
    "fri": gettext_lazy("Friday"),
    "sat": gettext_lazy("Saturday"),
    "sun": gettext_lazy("Sunday"),
}
_TIME: Final = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])")
_SEPARATORS: Final = re.compile(r"[\s,;]+")
_WORKING_WEEK: Final = WEEKDAYS[:5]


@dataclass(frozen=True)
class Grid:
    """A week's slots that have the same times on each of their days."""

    days: tuple[str, ...]
    times: tuple[str, ...]

    @property
    def slots(self) -> list[dict[str, str]]:
        """The slots as a lane's config holds them."""
        return [{"weekday": day, "time": moment} for day in self.days for moment in self.times]


def grid_of(slots: Sequence[Mapping[str, str]]) -> Grid | None:
    """Return the days and times that give exactly these slots, or `None` if times differ between days."""
    times_by_day = _times_by_day(slots)
    distinct_times = set(times_by_day.values())
    return Grid(tuple(times_by_day), distinct_times.pop()) if len(distinct_times) == 1 else None


def describe(config: Mapping[str, Any]) -> str:
    """Return the cadence as "Monday to Friday at 09:30"; slots in a zone of their own have that added."""
    cadence: Mapping[str, Any] = config.get("cadence") or DEFAULT_CADENCE
    slots = cadence.get("slots")
    text = _describe_slots(slots) if slots else _describe_hours(cadence["every_hours"])
    zone = cadence.get("timezone")
    return f"{text}, {zone}" if zone and slots else text


def read_times(text: str) -> tuple[str, ...] | None:
    """Parse times of day into `HH:MM`, sorted and unique; return `None` if the text holds anything else."""
    matches = [_TIME.fullmatch(part) for part in _SEPARATORS.split(text) if part]
    if not all(matches):
        return None
    return tuple(sorted({f"{int(match[1]):02}:{match[2]}" for match in matches if match}))


def _describe_hours(hours: int) -> str:
    return _("every hour") if hours == 1 else _("every %(hours)d hours") % {"hours": hours}


def _describe_slots(slots: Sequence[Mapping[str, str]]) -> str:
    grid = grid_of(slots)
    if grid is not None:
        return _("%(days)s at %(times)s") % {
            "days": _describe_days(grid.days),
            "times": ", ".join(grid.times),
        }
    return "; ".join(f"{DAYS[day]} {', '.join(times)}" for day, times in _times_by_day(slots).items())


def _describe_days(days: tuple[str, ...]) -> str:
    if days == WEEKDAYS:
        return _("every day")
    if days == _WORKING_WEEK:
        return _("Monday to Friday")
    return ", ".join(str(DAYS[day]) for day in days)


def _times_by_day(slots: Sequence[Mapping[str, str]]) -> dict[str, tuple[str, ...]]:
    """Return the sorted times of each day that has slots, in the order of the week."""
    times_by_day = {
        day: tuple(sorted({slot["time"] for slot in slots if slot["weekday"] == day})) for day in WEEKDAYS
    }
    return {day: times for day, times in times_by_day.items() if times}
