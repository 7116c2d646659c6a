"""A lane's cadence as people say it, and as they fill it in: days and times, or every so many hours."""

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
_BETWEEN: Final = re.compile(r"[\s,;]+")
_WORKING_WEEK: Final = WEEKDAYS[:5]


@dataclass(frozen=True)
class Grid:
    """The same times on each of some days."""

    days: tuple[str, ...]
    times: tuple[str, ...]

    @property
    def slots(self) -> list[dict[str, str]]:
        return [{"weekday": day, "time": moment} for day in self.days for moment in self.times]


def grid_of(slots: Sequence[Mapping[str, str]]) -> Grid | None:
    """The days and times that give exactly these slots; None where the days differ in their times."""
    by_day = _by_day(slots)
    several = set(by_day.values())
    return Grid(tuple(by_day), several.pop()) if len(several) == 1 else None


def describe(config: Mapping[str, Any]) -> str:
    """In words, such as "Monday to Friday at 09:30"; the time zone where it is the lane's own."""
    cadence: Mapping[str, Any] = config.get("cadence") or DEFAULT_CADENCE
    slots = cadence.get("slots")
    said = _slots_told(slots) if slots else _hours_told(cadence["every_hours"])
    zone = cadence.get("timezone")
    return f"{said}, {zone}" if zone and slots else said


def read_times(text: str) -> tuple[str, ...] | None:
    """Times of the day as `HH:MM`, in their order, each once; None where something else stands among them."""
    found = [_TIME.fullmatch(part) for part in _BETWEEN.split(text) if part]
    if not all(found):
        return None
    return tuple(sorted({f"{int(one[1]):02}:{one[2]}" for one in found if one}))


def _hours_told(hours: int) -> str:
    return _("every hour") if hours == 1 else _("every %(hours)d hours") % {"hours": hours}


def _slots_told(slots: Sequence[Mapping[str, str]]) -> str:
    grid = grid_of(slots)
    if grid is not None:
        return _("%(days)s at %(times)s") % {"days": _days_told(grid.days), "times": ", ".join(grid.times)}
    return "; ".join(f"{DAYS[day]} {', '.join(times)}" for day, times in _by_day(slots).items())


def _days_told(days: tuple[str, ...]) -> str:
    if days == WEEKDAYS:
        return _("every day")
    if days == _WORKING_WEEK:
        return _("Monday to Friday")
    return ", ".join(str(DAYS[day]) for day in days)


def _by_day(slots: Sequence[Mapping[str, str]]) -> dict[str, tuple[str, ...]]:
    """The times of each day that has some, both in their order."""
    found = {day: tuple(sorted({one["time"] for one in slots if one["weekday"] == day})) for day in WEEKDAYS}
    return {day: times for day, times in found.items() if times}
