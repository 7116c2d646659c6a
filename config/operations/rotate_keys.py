"""Seal every secret in the database anew with the first of `FIELD_KEYS`, while the service runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.apps import apps
from django.conf import settings
from django.db import connection

from config.core.encrypted_fields import CannotDecrypt, SealedTextField, seal, unseal

if TYPE_CHECKING:
    from collections.abc import Iterator

BATCH: Final = 200
PASSES: Final = 5
"""Over one column: what was written with another key meanwhile is met by the next."""


@dataclass(frozen=True)
class Column:
    table: str
    key: str
    name: str

    def __str__(self) -> str:
        return f"{self.table}.{self.name}"


@dataclass(frozen=True)
class RotatedColumn:
    """What became of a column's values: `overtaken` were written by somebody else at that moment."""

    column: Column
    anew: int
    overtaken: int
    shut: int


def sealed_columns() -> list[Column]:
    """Every sealed column of every app."""
    return [
        Column(model._meta.db_table, str(model._meta.pk.column), str(field.column))
        for model in apps.get_models()
        if model._meta.managed and not model._meta.proxy and model._meta.pk is not None
        for field in model._meta.concrete_fields
        if isinstance(field, SealedTextField)
    ]


def newest_key() -> str:
    return str(settings.FIELD_KEYS[0]).partition(":")[0]


def count_by_key() -> dict[Column, Counter[str]]:
    """How many values of each column are sealed with which key id."""
    return {column: _counted(column) for column in sealed_columns()}


def rotate() -> Iterator[RotatedColumn]:
    """One column after the other; may be killed and begun again at any moment, for only what is left is taken up."""
    for column in sealed_columns():
        anew, overtaken, shut = 0, 0, 0
        for _ in range(PASSES):
            one = _pass(column)
            anew, overtaken, shut = anew + one.anew, overtaken + one.overtaken, one.shut
            if not one.overtaken:
                break
        yield RotatedColumn(column, anew, overtaken, shut)


def _pass(column: Column) -> RotatedColumn:
    counts: Counter[str] = Counter()
    last: Any = None
    while rows := _left(column, last):
        for key, stored in rows:
            counts[_turn(column, key, stored)] += 1
        last = rows[-1][0]
    return RotatedColumn(column, counts["anew"], counts["overtaken"], counts["shut"])


def _turn(column: Column, key: Any, stored: str) -> str:
    """A statement of its own, which names the value that was read: a write at the same moment is never undone."""
    try:
        fresh = seal(unseal(stored))
    except CannotDecrypt:
        return "shut"
    quote = connection.ops.quote_name
    table, name, pk = quote(column.table), quote(column.name), quote(column.key)
    sql = f"UPDATE {table} SET {name} = %s WHERE {pk} = %s AND {name} = %s"  # noqa: S608  names of our own models
    with connection.cursor() as cursor:
        cursor.execute(sql, [fresh, key, stored])
        return "anew" if cursor.rowcount else "overtaken"


def _left(column: Column, after: Any) -> list[tuple[Any, str]]:
    """The next values, as they are stored, that another key has sealed."""
    quote = connection.ops.quote_name
    table, name, pk = quote(column.table), quote(column.name), quote(column.key)
    prefix = f"{newest_key()}:"
    more = f"AND {pk} > %s" if after is not None else ""
    sql = (
        f"SELECT {pk}, {name} FROM {table} WHERE {name} IS NOT NULL AND substr({name}, 1, %s) <> %s {more} "  # noqa: S608
        f"ORDER BY {pk} LIMIT %s"
    )
    values = [len(prefix), prefix, *([after] if after is not None else []), BATCH]
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        rows: list[tuple[Any, str]] = cursor.fetchall()
        return rows


def _counted(column: Column) -> Counter[str]:
    quote = connection.ops.quote_name
    table, name, pk = quote(column.table), quote(column.name), quote(column.key)
    counts: Counter[str] = Counter()
    last: Any = None
    while True:
        more = f"AND {pk} > %s" if last is not None else ""
        # Ids of keys are short, and the tokens behind them are long.
        sql = (
            f"SELECT {pk}, substr({name}, 1, 100) FROM {table} WHERE {name} IS NOT NULL {more} "  # noqa: S608
            f"ORDER BY {pk} LIMIT 1000"
        )
        with connection.cursor() as cursor:
            cursor.execute(sql, [last] if last is not None else [])
            rows = cursor.fetchall()
        if not rows:
            return counts
        counts.update(str(stored).partition(":")[0] for _key, stored in rows)
        last = rows[-1][0]
