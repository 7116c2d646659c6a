"""Updates several rows in one round trip, each under its own conditions, which Django's `bulk_update` can't."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from django.db import connections

from config.core.database.plan_cache import keyed_cursor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.db.models import Field, Model


def update_each(
    model: type[Model],
    changes: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
    *,
    raised: Sequence[str] = (),
) -> int:
    """Run `filter(**where).update(**values)` for each pair; return how many rows were changed.

    All pairs have the same names, no value is an expression, and no condition is NULL. The columns in
    `raised` are incremented by one. On PostgreSQL it is one statement, planned once:
    `benchmarks/webhooks.py`.
    """
    connection = connections["default"]
    where, values = changes[0]
    single_statement, (head, row_template, tail), fields = _statements(
        model, tuple(values), tuple(where), tuple(raised), connection.vendor
    )
    rows = [
        [
            field.get_db_prep_save(value, connection)
            for field, value in zip(fields, (*values.values(), *where.values()), strict=True)
        ]
        for where, values in changes
    ]
    if len(rows) == 1:
        with keyed_cursor(connection) as cursor:
            cursor.execute(single_statement, rows[0])
            return int(cursor.rowcount)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            statement = f"{head}{', '.join([row_template] * len(rows))}{tail}"
            cursor.execute(statement, [value for parameters in rows for value in parameters])
        else:
            cursor.executemany(single_statement, rows)
        return int(cursor.rowcount)


@cache
def _statements(
    model: type[Model], values: tuple[str, ...], where: tuple[str, ...], raised: tuple[str, ...], vendor: str
) -> tuple[str, tuple[str, str, str], tuple[Field[Any, Any], ...]]:
    """Return the statement for one row, that for many (head, row, tail), and the parameters' fields."""
    del vendor
    connection = connections["default"]
    quote = connection.ops.quote_name
    meta = model._meta
    fields: list[Any] = [meta.pk if name == "pk" else meta.get_field(name) for name in (*values, *where)]
    table, columns = quote(model._meta.db_table), [quote(field.column) for field in fields]
    set_columns, where_columns = columns[: len(values)], columns[len(values) :]
    increments = [f"{column} = {table}.{column} + 1" for column in map(quote, raised)]
    # Only names of tables and columns are formatted into it; values are parameters.
    single_statement = (
        f"UPDATE {table} SET {', '.join([f'{column} = %s' for column in set_columns] + increments)}"  # noqa: S608
    )
    single_statement += f" WHERE {' AND '.join(f'{column} = %s' for column in where_columns)}"
    sets = [f"{column} = given.v{index}" for index, column in enumerate(set_columns)] + increments
    conditions = [
        f"{table}.{column} = given.v{index}" for index, column in enumerate(where_columns, len(set_columns))
    ]
    # A parameter in VALUES has no type by itself.
    row = f"({', '.join(f'%s::{field.db_type(connection)}' for field in fields)})"
    names = ", ".join(f"v{index}" for index in range(len(fields)))
    head = f"UPDATE {table} SET {', '.join(sets)} FROM (VALUES "  # noqa: S608
    return (
        single_statement,
        (head, row, f") AS given({names}) WHERE {' AND '.join(conditions)}"),
        tuple(fields),
    )
