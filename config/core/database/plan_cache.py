"""Gives cursors for statements that PostgreSQL plans once per connection: reads by key, and plain inserts.

Django puts the values into the text of a statement, so that each is parsed and planned again, which takes the
database several times longer than the statement itself: `benchmarks/publication.py`. Statements whose best
plan depends on the values, such as claims and lists, stay with Django's own cursor.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.backends.utils import CursorWrapper


def keyed_cursor(connection: BaseDatabaseWrapper) -> CursorWrapper:
    """Return a cursor whose statements PostgreSQL plans once, or Django's own cursor on other databases."""
    if connection.vendor != "postgresql":
        return connection.cursor()
    connection.ensure_connection()
    with connection.wrap_database_errors:
        cursor = _cursor_class()(connection.connection)
        return connection._prepare_cursor(cursor)  # type: ignore[attr-defined,no-any-return]  # noqa: SLF001  as its own cursor()


@cache
def _cursor_class() -> Any:
    # The module needs the driver, which an installation on SQLite may lack.
    from django.db.backends.postgresql.base import ServerBindingCursor  # noqa: PLC0415

    return ServerBindingCursor
