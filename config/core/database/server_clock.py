"""Tells the time by the database server's clock, asking it about once in `MAX_READING_AGE_SECONDS`."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import Final

from django.db import connection

MAX_READING_AGE_SECONDS: Final = 5.0
"""The longest time for which a reading is extrapolated by the monotonic clock."""
MAX_ERROR_SECONDS: Final = 0.01
"""The longest time that a reading may take to be extrapolated, because it may be wrong by as much."""
_UPTIME: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""A monotonic clock, if possible the one that counts the time for which the machine sleeps, too."""


class _LastReading:
    """The last reading of the server's clock."""

    value: tuple[datetime, float] | None = None
    """The server's time, and the uptime in seconds at which it was asked for, or `None` before the first."""


_last: Final = _LastReading()


def now() -> datetime:
    """Return the time of PostgreSQL's server, at most `MAX_ERROR_SECONDS` ahead of it.

    After the server's clock was set, the time is wrong by as much for up to `MAX_READING_AGE_SECONDS`.
    """
    # Taken before the query, so that the extrapolated time isn't behind the server's.
    uptime = time.clock_gettime(_UPTIME)
    if _last.value is not None:
        server_time, read_at = _last.value
        if uptime - read_at < MAX_READING_AGE_SECONDS:
            return server_time + timedelta(seconds=uptime - read_at)
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        answer: datetime = cursor.fetchone()[0]
    if time.clock_gettime(_UPTIME) - uptime < MAX_ERROR_SECONDS:
        _last.value = answer, uptime
    return answer
