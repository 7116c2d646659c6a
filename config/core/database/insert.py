"""Plain inserts: Django builds a `bulk_create` for longer than it takes to run, and doesn't tell whether a row was stored."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from django.db import connections

from config.core.database.kept_plans import keyed_cursor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import Field, Model


_AT_ONCE: Final = 100
"""Rows of a statement: fewer parameters than any database refuses."""


def insert(rows: Sequence[Model]) -> None:
    """Store new instances of one model, each with a value for every column, as `bulk_create` does."""
    for start in range(0, len(rows), _AT_ONCE):
        _insert(rows[start : start + _AT_ONCE])


def insert_unless_there(row: Model) -> bool:
    """Store a new instance, unless a unique constraint has it already; says whether it was stored.

    Without a savepoint: nothing is refused, so nothing spoils the transaction. An insert of the same thing that isn't
    committed yet is waited for.
    """
    return _insert([row], " ON CONFLICT DO NOTHING") == 1


def _insert(rows: Sequence[Model], ending: str = "") -> int:
    connection = connections["default"]
    head, group, fields = _statement(type(rows[0]), connection.vendor)
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
def _statement(model: type[Model], vendor: str) -> tuple[str, str, tuple[Field[Any, Any], ...]]:
    """The statement up to its first row, what stands there for a row, and the fields of its parameters."""
    del vendor
    quote = connections["default"].ops.quote_name
    fields: tuple[Any, ...] = tuple(model._meta.local_concrete_fields)
    columns = ", ".join(quote(field.column) for field in fields)
    # Names of tables and columns alone are put together here.
    head = f"INSERT INTO {quote(model._meta.db_table)} ({columns}) VALUES "  # noqa: S608
    return head, f"({', '.join(['%s'] * len(fields))})", fields
