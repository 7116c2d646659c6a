"""Reads and clears the mark of an unfinished restore, with which nothing of the service may start.

The mark is a table that is created in the transaction that restores the rows, and dropped in the one that ends
the restore. So every process that shares the database sees it, on whatever machine.
"""

from __future__ import annotations

from typing import Any, Final, cast

from django.db import DatabaseError, connection

TABLE: Final = "half_restored"
CREATE_TABLE_SQL: Final = f"CREATE TABLE {TABLE} (since varchar(40) NOT NULL)"
MESSAGE: Final = (
    "A restore was broken off in the middle, so this instance is not whole. "
    "Run the same manage.py restore again; nothing starts before it has ended."
)


class HalfRestored(Exception):
    """Raised if the instance must not start before its restore was run again."""

    def __init__(self) -> None:
        super().__init__(MESSAGE)


def is_half_restored() -> bool:
    """Return whether the mark is there; a cheap query, for the readiness probe."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT to_regclass(%s) IS NOT NULL", [f"public.{TABLE}"])
        else:
            cursor.execute("SELECT count(*) FROM sqlite_master WHERE name = %s", [TABLE])
        return bool(cursor.fetchone()[0])


def refuse_to_start(*, before_fork: bool = False) -> None:
    """Raise `HalfRestored` if the mark is there; do nothing if the database is unavailable.

    With `before_fork` the pool is closed too, because the threads that open its connections don't live on in a
    forked process, which would share its parent's few connections and wait in vain for more. No other thread may
    use the pool then.
    """
    try:
        if is_half_restored():
            raise HalfRestored
    except DatabaseError:
        return
    finally:
        connection.close()
        if before_fork and connection.vendor == "postgresql":
            cast("Any", connection).close_pool()


def clear_mark() -> None:
    """Drop the mark, inside the transaction that ends the restore."""
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS {TABLE}")
