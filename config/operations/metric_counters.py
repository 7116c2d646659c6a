"""Writes this process's counters to the table `tally`, so that /metrics knows the sums of all processes.

Every few seconds, in one statement; a process that is killed loses what it counted since.
"""

from __future__ import annotations

import time
from typing import Final

import structlog
from django.db import Error, connection

from config.core import counters, task_runner, work_queue
from config.core.database.relaxed_durability import MAY_BE_LOST
from pipeline.models import Tally

log = structlog.get_logger(__name__)

EVERY_SECONDS: Final = 5.0
_last: Final = {"at": 0.0}


def write_counters() -> None:
    """Add them to the table; where the database is away they wait for the next time."""
    taken = counters.drain()
    if not taken:
        return
    # One order for everybody, or two processes could wait for each other.
    rows = sorted((name, kind, value) for (name, kind), value in taken.items())
    sql = f"""INSERT INTO tally (name, kind, value) VALUES {", ".join(["(%s, %s, %s)"] * len(rows))}
        ON CONFLICT (name, kind) DO UPDATE SET value = tally.value + excluded.value
        {MAY_BE_LOST}"""  # noqa: S608
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql, [one for row in rows for one in row])
    # A connection that was closed meanwhile is an `InterfaceError`, which is no `DatabaseError`.
    except Error as error:
        counters.give_back(taken)
        log.warning("tallies_not_written", error=str(error))
    finally:
        work_queue.release_connections()


def write_counters_when_due() -> None:
    if time.monotonic() - _last["at"] >= EVERY_SECONDS:
        _last["at"] = time.monotonic()
        write_counters()


def counter_sums() -> dict[tuple[str, str], float]:
    return {
        (name, kind): value for name, kind, value in Tally.everywhere.values_list("name", "kind", "value")
    }


task_runner.every_second(write_counters_when_due)
