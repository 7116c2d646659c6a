"""Inserts rows by statements that are built once, and tells whether a row was stored.

Django takes longer to build a `bulk_create` than the database to run it, and doesn't tell which rows it ignored.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from django.db import connections

from config.core.database.plan_cache import keyed_cursor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import Field, Model


_ROWS_PER_STATEMENT: Final = 100
"""The most rows of one statement, so that no database refuses the number of parameters."""


def insert(rows: Sequence[Model]) -> None:
    """Store new instances of one model, each with a value for every column, as `bulk_create` does."""
    for start in range(0, len(rows), _ROWS_PER_STATEMENT):
        _insert(rows[start : start + _ROWS_PER_STATEMENT])


def insert_or_ignore(row: Model) -> bool:
    """Store a new instance unless a unique constraint prevents it; return whether it was stored.

    It needs no savepoint, because a conflict isn't an error and the transaction stays usable. It waits for another
    transaction's insert of the same row.
    """
    return _insert([row], " ON CONFLICT DO NOTHING") == 1


def _insert(rows: Sequence[Model], ending: str = "") -> int:
    """Insert the rows with one statement that ends in `ending`, and return how many were stored."""
    connection = connections["default"]
    head, group, fields = _build_statement(type(rows[0]), connection.vendor)
    values = [
        field.get_db_prep_save(field.pre_save(row, add=True), connection) for row in rows for field in fields
    ]
    with keyed_cursor(connection) if len(rows) == 1 else connection.cursor() as cursor:
        cursor.execute(f"{head}{', '.join([group] * len(rows))}{ending}", values)
        stored = int(cursor.rowcount)
    if stored == len(rows):
        for row in rows:
            row._state.adding = False
            row._state.db = connection.alias
    return stored


@cache
def _build_statement(model: type[Model], vendor: str) -> tuple[str, str, tuple[Field[Any, Any], ...]]:
    """Return the statement up to its first row, the template of a row, and the fields of its parameters."""
    # It is part of the cache's key, because quoting is the database's.
    del vendor
    quote = connections["default"].ops.quote_name
    fields: tuple[Any, ...] = tuple(model._meta.local_concrete_fields)
    columns = ", ".join(quote(field.column) for field in fields)
    # Only names of tables and columns are formatted into it; values are parameters.
    head = f"INSERT INTO {quote(model._meta.db_table)} ({columns}) VALUES "  # noqa: S608
    return head, f"({', '.join(['%s'] * len(fields))})", fields
