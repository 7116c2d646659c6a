"""Several updates in one round trip, which Django's `bulk_update` can't do under conditions of each row."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from django.db import connections

from config.core.database.kept_plans import keyed_cursor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.db.models import Field, Model


def update_each(
    model: type[Model],
    changes: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
    *,
    raised: Sequence[str] = (),
) -> int:
    """As `filter(**where).update(**values)` for each pair of `where` and `values`; returns how many rows were changed.

    All pairs have the same names, none of their values is an expression, and nothing is asked to be NULL. The columns
    of `raised` become one more. On PostgreSQL it is one statement, planned once: `benchmarks/webhooks.py`.
    """
    connection = connections["default"]
    where, values = changes[0]
    one, (head, row, tail), fields = _statements(
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
            cursor.execute(one, rows[0])
            return int(cursor.rowcount)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            statement = f"{head}{', '.join([row] * len(rows))}{tail}"
            cursor.execute(statement, [value for given in rows for value in given])
        else:
            cursor.executemany(one, rows)
        return int(cursor.rowcount)


@cache
def _statements(
    model: type[Model], values: tuple[str, ...], where: tuple[str, ...], raised: tuple[str, ...], vendor: str
) -> tuple[str, tuple[str, str, str], tuple[Field[Any, Any], ...]]:
    """That of one row, that of many (up to the first row, a row, the rest), and the fields of a row's parameters."""
    del vendor
    connection = connections["default"]
    quote = connection.ops.quote_name
    meta = model._meta
    fields: list[Any] = [meta.pk if name == "pk" else meta.get_field(name) for name in (*values, *where)]
    table, columns = quote(model._meta.db_table), [quote(field.column) for field in fields]
    changed, asked = columns[: len(values)], columns[len(values) :]
    more = [f"{column} = {table}.{column} + 1" for column in map(quote, raised)]
    # Names of tables and columns alone are put together here.
    one = f"UPDATE {table} SET {', '.join([f'{column} = %s' for column in changed] + more)}"  # noqa: S608
    one += f" WHERE {' AND '.join(f'{column} = %s' for column in asked)}"
    sets = [f"{column} = given.v{place}" for place, column in enumerate(changed)] + more
    conditions = [f"{table}.{column} = given.v{place}" for place, column in enumerate(asked, len(changed))]
    # What is quoted has no type by itself.
    row = f"({', '.join(f'%s::{field.db_type(connection)}' for field in fields)})"
    names = ", ".join(f"v{place}" for place in range(len(fields)))
    head = f"UPDATE {table} SET {', '.join(sets)} FROM (VALUES "  # noqa: S608
    return one, (head, row, f") AS given({names}) WHERE {' AND '.join(conditions)}"), tuple(fields)
