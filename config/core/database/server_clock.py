"""Tells the time of the database's server, with one question in some seconds."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import Final

from django.db import connection

KEPT_SECONDS: Final = 5.0
"""How long a reading is counted on from, by a clock of this machine that nobody can set."""
MAX_ERROR_SECONDS: Final = 0.01
"""A reading that took longer says too little about the present to be counted on from."""
_UPTIME: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Counts the time that a machine sleeps too, where its system has such a clock."""

_reading: Final[dict[str, tuple[datetime, float]]] = {}
"""The last reading, and the uptime in seconds at which it was asked for."""


def read() -> datetime:
    """Return the time of PostgreSQL's server, at most `MAX_ERROR_SECONDS` ahead of it."""
    uptime = time.clock_gettime(_UPTIME)
    server_time, read_at = _reading.get("last", (None, 0.0))
    if server_time is not None and uptime - read_at < KEPT_SECONDS:
        return server_time + timedelta(seconds=uptime - read_at)
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now: datetime = cursor.fetchone()[0]
    if time.clock_gettime(_UPTIME) - uptime < MAX_ERROR_SECONDS:
        _reading["last"] = now, uptime
    return now
