"""Updates several rows in one round trip, each under its own conditions, which Django's `bulk_update` can't."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db import connections

from config.core.database.plan_cache import keyed_cursor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.db.models import Field, Model


def update_each(
    model: type[Model],
    changes: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
    *,
    incremented: Sequence[str] = (),
) -> int:
    """Run `filter(**where).update(**values)` for each pair of `changes`, and return how many rows were changed.

    All pairs have the same names in the same order, no value is an expression, and no condition is `None`. The
    columns in `incremented` rise by one. On PostgreSQL it is one statement, which is planned once if there is a
    single pair. Raises `IndexError` if `changes` is empty.
    """
    connection = connections["default"]
    where, values = changes[0]
    statements = _build_statements(model, tuple(values), tuple(where), tuple(incremented), connection.vendor)
    rows = [
        [
            field.get_db_prep_save(value, connection)
            for field, value in zip(statements.fields, (*values.values(), *where.values()), strict=True)
        ]
        for where, values in changes
    ]
    if len(rows) == 1:
        with keyed_cursor(connection) as cursor:
            cursor.execute(statements.single, rows[0])
            return int(cursor.rowcount)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            statement = f"{statements.head}{', '.join([statements.row] * len(rows))}{statements.tail}"
            cursor.execute(statement, [value for parameters in rows for value in parameters])
        else:
            cursor.executemany(statements.single, rows)
        return int(cursor.rowcount)


class _Statements(NamedTuple):
    """The statements that update one row, or many: `head`, then `row` for each pair, then `tail`."""

    single: str
    head: str
    row: str
    tail: str
    fields: tuple[Field[Any, Any], ...]
    """The fields of a row's parameters, in their order."""


@cache
def _build_statements(
    model: type[Model],
    values: tuple[str, ...],
    where: tuple[str, ...],
    incremented: tuple[str, ...],
    vendor: str,
) -> _Statements:
    """Return the statements that set `values` if the columns of `where` are as expected."""
    # It is part of the cache's key, because quoting and types are the database's.
    del vendor
    connection = connections["default"]
    quote = connection.ops.quote_name
    meta = model._meta
    fields: list[Any] = [meta.pk if name == "pk" else meta.get_field(name) for name in (*values, *where)]
    table, columns = quote(model._meta.db_table), [quote(field.column) for field in fields]
    set_columns, where_columns = columns[: len(values)], columns[len(values) :]
    increments = [f"{column} = {table}.{column} + 1" for column in map(quote, incremented)]
    # Only names of tables and columns are formatted into it; values are parameters.
    single = f"UPDATE {table} SET {', '.join([f'{column} = %s' for column in set_columns] + increments)}"  # noqa: S608
    single += f" WHERE {' AND '.join(f'{column} = %s' for column in where_columns)}"
    sets = [f"{column} = given.v{index}" for index, column in enumerate(set_columns)] + increments
    conditions = [
        f"{table}.{column} = given.v{index}" for index, column in enumerate(where_columns, len(set_columns))
    ]
    # Without the cast a parameter in VALUES would have no type.
    row = f"({', '.join(f'%s::{field.db_type(connection)}' for field in fields)})"
    names = ", ".join(f"v{index}" for index in range(len(fields)))
    head = f"UPDATE {table} SET {', '.join(sets)} FROM (VALUES "  # noqa: S608
    tail = f") AS given({names}) WHERE {' AND '.join(conditions)}"
    return _Statements(single, head, row, tail, tuple(fields))
