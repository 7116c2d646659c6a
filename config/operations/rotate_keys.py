"""Encrypts every secret in the database again with the first of `FIELD_KEYS`, while the service runs."""

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

BATCH_SIZE: Final = 200
MAX_PASSES: Final = 5
"""The most passes over one column; a further pass gets the values that others changed during the last one."""


@dataclass(frozen=True)
class Column:
    """A column with encrypted values; `key` is its table's primary key column."""

    table: str
    key: str
    name: str

    def __str__(self) -> str:
        return f"{self.table}.{self.name}"


@dataclass(frozen=True)
class RotatedColumn:
    """The numbers of a column's values with each outcome."""

    column: Column
    rewritten: int
    overtaken: int
    """Values that others changed meanwhile."""
    undecryptable: int


def sealed_columns() -> list[Column]:
    """Return every encrypted column of every app."""
    return [
        Column(model._meta.db_table, str(model._meta.pk.column), str(field.column))
        for model in apps.get_models()
        if model._meta.managed and not model._meta.proxy and model._meta.pk is not None
        for field in model._meta.concrete_fields
        if isinstance(field, SealedTextField)
    ]


def newest_key() -> str:
    """Return the id of the key that encrypts, the first of `FIELD_KEYS`."""
    return str(settings.FIELD_KEYS[0]).partition(":")[0]


def count_by_key() -> dict[Column, Counter[str]]:
    """Return how many values of each column are encrypted with which key id."""
    return {column: _count_keys(column) for column in sealed_columns()}


def rotate() -> Iterator[RotatedColumn]:
    """Encrypt the values of one column after the other again, and yield each result.

    It may be killed and started again at any moment.
    """
    for column in sealed_columns():
        rewritten, overtaken, undecryptable = 0, 0, 0
        for _ in range(MAX_PASSES):
            result = _rotate_once(column)
            rewritten, overtaken = rewritten + result.rewritten, overtaken + result.overtaken
            # Each pass counts the same ones.
            undecryptable = result.undecryptable
            if not result.overtaken:
                break
        yield RotatedColumn(column, rewritten, overtaken, undecryptable)


def _rotate_once(column: Column) -> RotatedColumn:
    """Encrypt the column's outdated values again, in one pass."""
    counts: Counter[str] = Counter()
    last: Any = None
    while rows := _outdated_values(column, last):
        for key, stored in rows:
            counts[_rotate_value(column, key, stored)] += 1
        last = rows[-1][0]
    return RotatedColumn(column, counts["rewritten"], counts["overtaken"], counts["undecryptable"])


def _rotate_value(column: Column, key: Any, stored: str) -> str:
    """Encrypt one value again unless others changed it, and return the outcome's field in `RotatedColumn`."""
    try:
        fresh = seal(unseal(stored))
    except CannotDecrypt:
        return "undecryptable"
    quote = connection.ops.quote_name
    table, name, pk = quote(column.table), quote(column.name), quote(column.key)
    sql = f"UPDATE {table} SET {name} = %s WHERE {pk} = %s AND {name} = %s"  # noqa: S608  names of our own models
    with connection.cursor() as cursor:
        cursor.execute(sql, [fresh, key, stored])
        return "rewritten" if cursor.rowcount else "overtaken"


def _outdated_values(column: Column, after: Any) -> list[tuple[Any, str]]:
    """Return the next batch of keys and stored values that aren't encrypted with the newest key."""
    quote = connection.ops.quote_name
    table, name, pk = quote(column.table), quote(column.name), quote(column.key)
    prefix = f"{newest_key()}:"
    condition = f"AND {pk} > %s" if after is not None else ""
    sql = (
        f"SELECT {pk}, {name} FROM {table} WHERE {name} IS NOT NULL AND substr({name}, 1, %s) <> %s {condition} "  # noqa: S608
        f"ORDER BY {pk} LIMIT %s"
    )
    values = [len(prefix), prefix, *([after] if after is not None else []), BATCH_SIZE]
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        rows: list[tuple[Any, str]] = cursor.fetchall()
        return rows


def _count_keys(column: Column) -> Counter[str]:
    """Return how many values of the column are encrypted with each key id."""
    quote = connection.ops.quote_name
    table, name, pk = quote(column.table), quote(column.name), quote(column.key)
    counts: Counter[str] = Counter()
    last: Any = None
    while True:
        condition = f"AND {pk} > %s" if last is not None else ""
        # Only the beginning is read: key ids are short, and the tokens behind them long.
        sql = (
            f"SELECT {pk}, substr({name}, 1, 100) FROM {table} WHERE {name} IS NOT NULL {condition} "  # noqa: S608
            f"ORDER BY {pk} LIMIT 1000"
        )
        with connection.cursor() as cursor:
            cursor.execute(sql, [last] if last is not None else [])
            rows = cursor.fetchall()
        if not rows:
            return counts
        counts.update(str(stored).partition(":")[0] for _key, stored in rows)
        last = rows[-1][0]
