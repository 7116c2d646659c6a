"""Ranks formats, topics, sources, weekdays and times of day by the median value of their posts.

One post that goes viral doesn't move a median. A group needs `MIN_POSTS` posts with a known value, and a
ranking needs two groups with different medians; otherwise there is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor
from statistics import median
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence
    from zoneinfo import ZoneInfo

MIN_POSTS: Final = 3
"""The fewest posts with a known value that a group needs."""
MAX_GROUPS: Final = 5
"""The most groups of a ranking, the best first."""
HOURS: Final = 3
"""The length of a time of day, in hours."""

Row = dict[str, Any]
"""The columns of a publication, as in `COLUMNS`, with `published_at`."""


@dataclass(frozen=True)
class RankedGroup:
    """A group of posts that have the same value of a dimension."""

    key: Any
    """A format's name, the id of a topic or source, a weekday (Monday is 0), or the first hour of a time."""
    posts: int
    """The number of posts with a known value."""
    median: int | float
    change: int | None
    """The percentage by which the median is above that of all posts, or `None` if the latter is 0."""


COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "format": ("item__engine_output",),
    "topic": ("item__topic_id",),
    "source": ("item__source_id",),
    "weekday": (),
    "time": (),
}
"""The columns that each dimension reads, besides the moment of publication."""
DIMENSIONS: Final = tuple(COLUMNS)
_KEYS: Final[Mapping[str, Callable[[Row, ZoneInfo], Hashable]]] = {
    "format": lambda row, _zone: row["item__engine_output"] or None,
    "topic": lambda row, _zone: row["item__topic_id"],
    "source": lambda row, _zone: row["item__source_id"],
    "weekday": lambda row, zone: row["published_at"].astimezone(zone).weekday(),
    "time": lambda row, zone: row["published_at"].astimezone(zone).hour // HOURS * HOURS,
}


def rank_by(
    dimension: str, posts: Sequence[tuple[int | float, Row]], zone: ZoneInfo
) -> tuple[RankedGroup, ...]:
    """Return the best groups of a dimension, or none if a ranking isn't possible.

    `posts` are the known values with their publications. Weekdays and hours are those of `zone`.
    """
    key_of = _KEYS[dimension]
    values: dict[Any, list[int | float]] = {}
    for value, row in posts:
        key = key_of(row, zone)
        if key is not None:
            values.setdefault(key, []).append(value)
    medians = {key: median(known) for key, known in values.items() if len(known) >= MIN_POSTS}
    if len(set(medians.values())) < 2:
        return ()
    overall = median(value for value, _row in posts)
    is_count = all(isinstance(value, int) for value, _row in posts)
    # Of equal medians the one of more posts is surer, so it comes first.
    ranked = sorted(medians, key=lambda key: (-medians[key], -len(values[key]), str(key)))
    return tuple(
        RankedGroup(
            key,
            len(values[key]),
            floor(medians[key] + 0.5) if is_count else round(medians[key], 4),
            round((medians[key] - overall) * 100 / overall) if overall else None,
        )
        for key in ranked[:MAX_GROUPS]
    )
