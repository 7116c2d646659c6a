"""Defines the Brand Prompt Lane, a source without a document: its settings and its schedule.

Items are made of the persona and a pool of topics.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final
from zoneinfo import ZoneInfo, available_timezones

from pipeline.limits import TOPIC_NOTES_CHARACTERS, TOPIC_TITLE_CHARACTERS
from pipeline.plugins import Evidence, Problem
from pipeline.sources.base import Source
from pipeline.sources.config_fields import (
    BATCH_HOURS,
    PARAGRAPHS,
    Choice,
    Count,
    Group,
    Many,
    Text,
    TextOr,
    clean,
)
from pipeline.text.local_time import slots_on

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_TOPICS: Final = 200
MAX_EVERY_HOURS: Final = 720
"""Thirty days, because a lane that is slower than that looks broken."""
MAX_SLOTS: Final = 70
"""The most slots of a week, which is ten a day."""
DEFAULT_CADENCE: Final[Mapping[str, int]] = {"every_hours": 24}
_HOURS_BY_WORD: Final[Mapping[str, int]] = {"hourly": 1, "daily": 24, "weekly": 168}
WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAYS_PER_WEEK: Final = 7


@dataclass(frozen=True)
class _TimeZone(Text):
    """The name of a time zone of the IANA database."""

    max_length: int = 60
    pattern: str = r"^\s*[A-Za-z][A-Za-z0-9_+\-]*(/[A-Za-z0-9_+\-]+)*\s*$"

    def read(self, value: object, path: str) -> tuple[Any, list[Problem]]:
        name, problems = super().read(value, path)
        if not problems and name not in available_timezones():
            problems = [Problem(path, "unknown_timezone", f"Give {self.hint}.")]
        return name, problems


SETTINGS: Final = Group(
    "the settings of the lane",
    {
        "topics": Many(
            "the topics of this lane, in place of the workspace's pool",
            TextOr(
                Text("a topic in a few words", max_length=TOPIC_TITLE_CHARACTERS),
                Group(
                    "a topic, or an object with its title and notes",
                    {
                        "title": Text("a topic in a few words", max_length=TOPIC_TITLE_CHARACTERS),
                        "notes": Text(
                            "what may be said about it as a fact, in whole sentences",
                            max_length=TOPIC_NOTES_CHARACTERS,
                            pattern=PARAGRAPHS,
                        ),
                    },
                    required=("title",),
                ),
            ),
            maximum=MAX_TOPICS,
        ),
        "pool": Many(
            "the ids of those topics of the workspace's pool that this lane takes, in place of all",
            Text(
                "the id of a topic, such as GET /v1/topics shows it",
                max_length=30,
                pattern="^top_[0-9a-z]{26}$",
            ),
            maximum=MAX_TOPICS,
        ),
        "cadence": Group(
            "how often the lane makes something: every_hours, or slots in the week",
            {
                "every_hours": Count(
                    "the hours from one piece to the next", minimum=1, maximum=MAX_EVERY_HOURS
                ),
                "slots": Many(
                    "the times of the week at which a piece is made",
                    Group(
                        "a time of the week, such as mon and 09:30",
                        {
                            "weekday": Choice("a day of the week", WEEKDAYS),
                            "time": Text(
                                "a time of the day as HH:MM, such as 09:30",
                                max_length=5,
                                pattern="^([01][0-9]|2[0-3]):[0-5][0-9]$",
                            ),
                        },
                        required=("weekday", "time"),
                    ),
                    maximum=MAX_SLOTS,
                ),
                "timezone": _TimeZone("a time zone of the IANA database, such as Europe/Berlin"),
            },
            exactly_one_of=("every_hours", "slots"),
        ),
        "batch_hours": BATCH_HOURS,
    },
    at_most_one_of=("topics", "pool"),
    defaults={"cadence": DEFAULT_CADENCE},
)


class Brand(Source):
    """Defines a lane's settings; nothing is fetched, because slots make its items."""

    kind = "brand"
    label = "Brand Prompt Lane"
    evidence = Evidence("none")
    config_schema: ClassVar[Mapping[str, Any]] = SETTINGS.schema()

    def clean_config(self, config: Mapping[str, Any]) -> dict[str, Any]:
        return clean(SETTINGS, config)

    def guess_settings(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Split topics in one text, and read a cadence that is a word or a number of hours."""
        guessed = super().guess_settings(values)
        topics, cadence = values.get("topics"), guessed.get("cadence")
        if isinstance(topics, str):
            guessed["topics"] = [topic.strip() for topic in re.split(r"[,;\n]", topics) if topic.strip()]
        if isinstance(cadence, str) and cadence.strip().lower() in _HOURS_BY_WORD:
            guessed["cadence"] = {"every_hours": _HOURS_BY_WORD[cadence.strip().lower()]}
        if isinstance(cadence, int) and not isinstance(cadence, bool):
            guessed["cadence"] = {"every_hours": cadence}
        return guessed


def topics_in(config: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the notes of the lane's topics by title.

    The notes are `None` for a topic without any. The mapping is empty if the lane takes its topics from the
    workspace's pool.
    """
    topics: dict[str, str | None] = {}
    for topic in config.get("topics") or ():
        if isinstance(topic, str):
            topics[topic] = None
        else:
            topics[topic["title"]] = topic.get("notes")
    return topics


def zone_of(config: Mapping[str, Any], default: str) -> ZoneInfo:
    """Return the lane's time zone, else the `default` one; months, seasons and days of rest are counted in it."""
    return ZoneInfo(cadence_of(config).get("timezone") or default)


def next_slot(
    config: Mapping[str, Any], *, after: datetime, previous: datetime | None, default_zone: str
) -> datetime:
    """Return the next moment at which an item is due, in UTC. Missed slots are left out.

    With `slots` it is the first slot after `after`. A local time that the clocks skip is as much later as they skip;
    of a local time that comes twice, the first counts. With `every_hours` it is the first moment after `after` that
    is a whole number of intervals after `previous`, or `after` itself without a `previous`.
    """
    cadence = cadence_of(config)
    slots = cadence.get("slots")
    if slots:
        return _next_weekly_slot(slots, after, zone_of(config, default_zone))
    if previous is None:
        return after
    step = timedelta(hours=cadence["every_hours"])
    steps = max(1, (after - previous) // step + 1)
    return previous + steps * step


def cadence_of(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the lane's cadence, or the default one."""
    cadence: Mapping[str, Any] = config.get("cadence") or DEFAULT_CADENCE
    return cadence


def _next_weekly_slot(slots: list[Mapping[str, str]], after: datetime, zone: ZoneInfo) -> datetime:
    """Return the first weekly slot after `after`."""
    today = after.astimezone(zone).date()
    # From yesterday, for a slot that a clock change moved over midnight; to a week ahead, for a slot just passed.
    days = [today + timedelta(days=ahead) for ahead in range(-1, _DAYS_PER_WEEK + 2)]
    times = [(WEEKDAYS.index(slot["weekday"]), time.fromisoformat(slot["time"])) for slot in slots]
    return min(slot.moment for slot in slots_on(days, times, zone.key) if slot.moment > after)


def is_in_season(day: str, first: str, last: str) -> bool:
    """Return whether `day` (`MM-DD`) lies in the season, ends included.

    A season that ends before it begins spans the new year; without a `first` day it is always in season.
    """
    if not first:
        return True
    return first <= day <= last if first <= last else day >= first or day <= last


PLUGIN = Brand()
