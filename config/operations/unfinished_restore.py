"""The mark of a restore that isn't over: while it stands, nothing of the service may start.

It is a table that comes into the database in the same transaction as the restored rows, and leaves it in the one that
ends the restore. So every process that shares the database sees it, on whatever machine.
"""

from __future__ import annotations

from typing import Any, Final, cast

from django.db import DatabaseError, connection

TABLE: Final = "half_restored"
CREATE: Final = f"CREATE TABLE {TABLE} (since varchar(40) NOT NULL)"
SENTENCE: Final = (
    "A restore was broken off in the middle, so this instance is not whole. "
    "Run the same manage.py restore again; nothing starts before it has ended."
)


class HalfRestored(Exception):
    """The instance must not work until its restore was run again."""

    def __init__(self) -> None:
        super().__init__(SENTENCE)


def is_half_restored() -> bool:
    """One cheap question: the readiness probe asks it too."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT to_regclass(%s) IS NOT NULL", [f"public.{TABLE}"])
        else:
            cursor.execute("SELECT count(*) FROM sqlite_master WHERE name = %s", [TABLE])
        return bool(cursor.fetchone()[0])


def refuse_to_start(*, before_fork: bool = False) -> None:
    """Raises `HalfRestored`; a database that is away is no reason to refuse, it is waited for elsewhere.

    With `before_fork` no pool is left behind either: the threads that open its connections don't live on in a forked
    process, which would share its parent's few and wait in vain for more. Nobody else may be using it then.
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
    """Inside the transaction that ends the restore."""
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS {TABLE}")
