"""Adds this process's counters to the table `tally`, so that /metrics has the totals of all processes.

It does so every few seconds, in one statement; a killed process loses the counts since the last one.
"""

from __future__ import annotations

import time
from typing import Final

import structlog
from django.db import Error, connection

from config.core import counters, task_runner, work_queue
from config.core.database.raw_sql import MAY_BE_LOST
from pipeline.models import Tally

log = structlog.get_logger(__name__)

WRITE_INTERVAL_SECONDS: Final = 5.0
_last_write: Final = {"at": 0.0}
"""The time at which the counters were last written, in seconds of the monotonic clock."""


def write_counters() -> None:
    """Add the counters to the table; if the database is unavailable, they wait for the next call."""
    counts = counters.drain()
    if not counts:
        return
    # All processes write in the same order, or two could deadlock.
    rows = sorted((name, kind, value) for (name, kind), value in counts.items())
    sql = f"""INSERT INTO tally (name, kind, value) VALUES {", ".join(["(%s, %s, %s)"] * len(rows))}
        ON CONFLICT (name, kind) DO UPDATE SET value = tally.value + excluded.value
        {MAY_BE_LOST}"""  # noqa: S608
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql, [parameter for row in rows for parameter in row])
    # A connection that was closed meanwhile is an `InterfaceError`, which is no `DatabaseError`.
    except Error as error:
        counters.give_back(counts)
        log.warning("tallies_not_written", error=str(error))
    finally:
        work_queue.release_connections()


def write_counters_when_due() -> None:
    """Write the counters if `WRITE_INTERVAL_SECONDS` have passed."""
    if time.monotonic() - _last_write["at"] >= WRITE_INTERVAL_SECONDS:
        _last_write["at"] = time.monotonic()
        write_counters()


def counter_sums() -> dict[tuple[str, str], float]:
    """Return the totals by name and kind."""
    return {
        (name, kind): value for name, kind, value in Tally.everywhere.values_list("name", "kind", "value")
    }


task_runner.every_second(write_counters_when_due)
