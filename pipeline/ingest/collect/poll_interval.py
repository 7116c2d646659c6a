"""When a source is polled again: pure functions of what its polls brought.

A source that somebody set an interval for keeps to it. Any other follows its own rhythm: half of the median gap between
its newest entries, growing with each poll that brings nothing new. What the server asks for is a lower bound of both.
"""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from config.core import limits

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime


def rhythm(published: Iterable[datetime | None]) -> timedelta | None:
    """Half of the median gap between the newest entries; None where fewer than two say when they are from."""
    moments = sorted({one for one in published if one is not None}, reverse=True)
    moments = moments[: limits.POLL_RHYTHM_ENTRIES]
    gaps = [(later - earlier).total_seconds() for later, earlier in pairwise(moments)]
    return timedelta(seconds=median(gaps) / 2) if gaps else None


def own_interval(
    *,
    rhythm: timedelta | None,
    previous: timedelta | None,
    is_new: bool,
    least: timedelta,
    default: timedelta,
) -> timedelta:
    """The wait that the source's rhythm leads to, between `least` and a day.

    `rhythm` is None where the poll read no entries with dates. `previous` is the wait before this poll, None at the
    first one. `is_new` tells whether the poll brought anything new or changed.
    """
    least = max(least, limits.POLL_INTERVAL_LEAST)
    if not is_new and previous is not None:
        wished = previous * limits.POLL_UNCHANGED_FACTOR
    else:
        wished = rhythm or previous or default
    return max(least, min(wished, limits.POLL_INTERVAL_MOST))


def wait(
    interval: timedelta, *, failures: int = 0, at_least: timedelta | None = None, jitter: float = 0.0
) -> timedelta:
    """How long to wait: the interval, doubled for each failure in a row up to a day, and never less than was asked for.

    An interval that is longer than a day by itself isn't shortened. `jitter`, from 0 to 1, makes it up to a tenth
    longer, so that sources registered together don't come back together for ever.
    """
    doubled = min(interval * float(2 ** min(failures, 16)), max(interval, limits.POLL_BACKOFF_MOST))
    longest: timedelta = max(doubled, at_least or timedelta(0))
    return longest * (1 + jitter / 10)
