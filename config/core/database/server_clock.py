"""Tells the time by the database server's clock, asking it at most every `KEPT_SECONDS`."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import Final

from django.db import connection

KEPT_SECONDS: Final = 5.0
"""How long a reading is extrapolated by the monotonic clock."""
MAX_ERROR_SECONDS: Final = 0.01
"""A reading that took longer says too little about the present to be extrapolated."""
_UPTIME: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""The monotonic clock; on a system that has it, the one that counts the time asleep too."""


class _LastReading:
    """The server's time, and the uptime in seconds at which it was asked for; None before the first."""

    value: tuple[datetime, float] | None = None


_last: Final = _LastReading()


def now() -> datetime:
    """Return the time of PostgreSQL's server, at most `MAX_ERROR_SECONDS` ahead of it.

    After somebody has set the server's clock it is wrong by as much for up to `KEPT_SECONDS`.
    """
    # Taken before the query, so that the extrapolated time isn't behind the server's.
    uptime = time.clock_gettime(_UPTIME)
    if _last.value is not None:
        server_time, read_at = _last.value
        if uptime - read_at < KEPT_SECONDS:
            return server_time + timedelta(seconds=uptime - read_at)
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        answer: datetime = cursor.fetchone()[0]
    if time.clock_gettime(_UPTIME) - uptime < MAX_ERROR_SECONDS:
        _last.value = answer, uptime
    return answer
