"""Prepared: statements that are built and compiled once, and sent many times.

Django spends several times longer on building a statement of forty columns than the database on answering it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar
from uuid import UUID, uuid4

from django.core.exceptions import EmptyResultSet
from django.db import connections, models
from django.db.models.expressions import DatabaseDefault
from django.db.models.query import ModelIterable, ValuesIterable, get_related_populators
from django.db.models.sql import InsertQuery

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models import Model, QuerySet

Row = TypeVar("Row")

_FORMS_KEPT: Final = 128
"""Compiled forms of one query; a list has one for each combination of its filters that somebody uses."""
_numbers: Final = count(1)


@dataclass(frozen=True)
class _Compiled:
    sql: str
    constants: tuple[Any, ...]
    """The statement's parameters; those that vary are overwritten."""
    places: tuple[tuple[int, int], ...]
    """Which of the given values goes to which parameter."""
    read: Callable[[Iterable[Sequence[Any]]], list[Any]]


class Prepared(Generic[Row]):
    """Asks what `make(**values)` asks, with the same answer.

    UUIDs, moments, texts, bytes and lists of them may differ from one time to the next; everything else (None, flags,
    numbers, tuples) is part of the statement, and each combination is compiled once. `make` must use each value only
    as the operand of a filter. Its queryset gives instances, with annotations too, or `.values()`; the first time of each form it is asked
    as it is, so that one that refuses to answer still does.
    """

    def __init__(self, make: Callable[..., QuerySet[Any, Row]]) -> None:
        self._make = make
        self._forms: OrderedDict[Hashable, _Compiled] = OrderedDict()
        self._lock = threading.Lock()

    def ask(self, **values: Any) -> list[Row]:
        form, given = _split(values)
        with self._lock:
            compiled = self._forms.get(form)
            if compiled is not None:
                self._forms.move_to_end(form)
        if compiled is None:
            return self._ask_first(form, values)
        connection = connections["default"]
        parameters = list(compiled.constants)
        for place, number in compiled.places:
            parameters[place] = _adapted(given[number], connection)
        with connection.cursor() as cursor:
            cursor.execute(compiled.sql, parameters)
            return compiled.read(cursor.fetchall())

    def _ask_first(self, form: Hashable, values: dict[str, Any]) -> list[Row]:
        rows = list(self._make(**values))
        compiled = _compile(self._make, values)
        if compiled is not None:
            with self._lock:
                self._forms[form] = compiled
                while len(self._forms) > _FORMS_KEPT:
                    self._forms.popitem(last=False)
        return rows


def _split(values: dict[str, Any]) -> tuple[Hashable, list[Any]]:
    """What of the values is part of the statement, and those that vary, in order."""
    form: list[Hashable] = [connections["default"].vendor]
    given: list[Any] = []
    for name, value in values.items():
        if isinstance(value, UUID | datetime | str | bytes):
            form.append((name, type(value)))
            given.append(value)
        elif isinstance(value, list):
            form.append((name, list, len(value)))
            given.extend(value)
        else:
            form.append((name, value))
    return tuple(form), given


def _compile(make: Callable[..., QuerySet[Any, Any]], values: dict[str, Any]) -> _Compiled | None:
    """The statement with the places of the values that vary; None where it needs no database to be answered."""
    connection = connections["default"]
    marked = {
        name: [_mark_like(one) for one in value] if isinstance(value, list) else _mark_like(value)
        for name, value in values.items()
    }
    marks = [_plain(_adapted(mark, connection)) for mark in _split(marked)[1]]
    queryset = make(**marked)
    compiler = queryset.query.get_compiler(connection=connection)
    try:
        sql, parameters = compiler.as_sql()
    except EmptyResultSet:
        return None
    places = tuple(
        (place, marks.index(parameter))
        for place, parameter in enumerate(map(_plain, parameters))
        if parameter in marks
    )
    if {number for _, number in places} != set(range(len(marks))):
        message = "A value of a prepared query is not the plain operand of a filter."
        raise LookupError(message)
    return _Compiled(sql, tuple(parameters), places, _reader(queryset, compiler))


def _mark_like(value: Any) -> Any:
    """A value of the same type that nothing else in the statement is equal to; what is no parameter, as it is."""
    if isinstance(value, UUID):
        return uuid4()
    if isinstance(value, datetime):
        return datetime(1971, 1, 1, tzinfo=UTC) + timedelta(microseconds=next(_numbers))
    if isinstance(value, str):
        return uuid4().hex[:12]
    if isinstance(value, bytes):
        return uuid4().bytes
    return value


def _adapted(value: Any, connection: BaseDatabaseWrapper) -> Any:
    """As the filters of Django hand it to the driver."""
    if isinstance(value, UUID):
        return value if connection.features.has_native_uuid_field else value.hex
    if isinstance(value, datetime):
        return connection.ops.adapt_datetimefield_value(value)
    if isinstance(value, bytes):
        return connection.Database.Binary(value)  # type: ignore[attr-defined]
    return value


def _plain(parameter: Any) -> Any:
    """The bytes in psycopg's wrapper, which is equal to nothing but itself."""
    return getattr(parameter, "obj", parameter) if type(parameter).__name__ == "Binary" else parameter


def _reader(queryset: QuerySet[Any, Any], compiler: Any) -> Callable[[Iterable[Sequence[Any]]], list[Any]]:
    """What makes of the driver's rows what the queryset itself would give."""
    converters = compiler.get_converters([column for column, _, _ in compiler.select])
    make_rows = _maker(queryset, compiler)
    if not converters:
        return make_rows
    return lambda rows: make_rows(compiler.apply_converters(rows, converters))


def _maker(queryset: QuerySet[Any, Any], compiler: Any) -> Callable[[Iterable[Sequence[Any]]], list[Any]]:
    kind = queryset._iterable_class  # noqa: SLF001
    if issubclass(kind, ValuesIterable):
        names = tuple(queryset.query.selected or queryset.query.values_select)
        return lambda rows: [dict(zip(names, row, strict=True)) for row in rows]
    if not issubclass(kind, ModelIterable):
        message = "A prepared query gives instances or values()."
        raise TypeError(message)
    info = compiler.klass_info
    chosen = info["select_fields"]
    start, end = chosen[0], chosen[-1] + 1
    model, database = info["model"], queryset.db
    attributes = [column.target.attname for column, _, _ in compiler.select[start:end]]
    # The stubs speak of a later Django.
    populators = get_related_populators(info, compiler.select, database)  # type: ignore[call-arg]
    annotations = tuple(compiler.annotation_col_map.items())

    def make_instances(rows: Iterable[Sequence[Any]]) -> list[Any]:
        made = []
        for row in rows:
            instance = model.from_db(database, attributes, row[start:end])
            for populator in populators:
                populator.populate(row, instance)
            for name, place in annotations:
                setattr(instance, name, row[place])
            made.append(instance)
        return made

    return make_instances


def insert(rows: Sequence[Model]) -> None:
    """Store new instances of one model as `bulk_create` does, without building anything.

    What they refer to must have its key already.
    """
    _insert(rows, "")


def insert_unless_there(row: Model) -> bool:
    """Store a new instance, unless a unique constraint has it already; says whether it was stored.

    Without a savepoint: nothing is refused, so nothing spoils the transaction. An insert of the same thing that isn't
    committed yet is waited for.
    """
    return insert_missing([row]) == 1


def insert_missing(rows: Sequence[Model]) -> int:
    """Of several, those that no unique constraint has already; says how many were stored."""
    return _insert(rows, " ON CONFLICT DO NOTHING")


def insert_or_replace(rows: Sequence[Model], *, unique: str, fields: Sequence[str]) -> None:
    """Store new instances; where the unique column `unique` has its value already, only `fields` are written there."""
    quote = connections["default"].ops.quote_name
    written = ", ".join(f"{quote(name)} = EXCLUDED.{quote(name)}" for name in fields)
    _insert(rows, f" ON CONFLICT ({quote(unique)}) DO UPDATE SET {written}")


def _insert(rows: Sequence[Model], ending: str) -> int:
    """In as few statements as the database has room for parameters; returns how many rows were stored."""
    if not rows:
        return 0
    connection = connections["default"]
    if any(
        isinstance(getattr(row, name), DatabaseDefault) for name in _defaulted(type(rows[0])) for row in rows
    ):
        if ending:
            message = f"Every column of {type(rows[0])._meta.label} needs a value here."
            raise LookupError(message)
        return len(type(rows[0])._base_manager.bulk_create(rows))  # noqa: SLF001  Django documents it
    columns = _columns(type(rows[0]))
    at_once = max(1, (connection.features.max_query_params or MOST_PARAMETERS) // len(columns))
    head, group = _insertion(type(rows[0]), connection.vendor)
    stored = 0
    for start in range(0, len(rows), at_once):
        some = rows[start : start + at_once]
        values = [value for row in some for value in _values(row, columns, connection)]
        with connection.cursor() as cursor:
            cursor.execute(f"{head}{', '.join([group] * len(some))}{ending}", values)
            stored += int(cursor.rowcount)
    if stored == len(rows):
        for row in rows:
            row._state.adding = False
            row._state.db = connection.alias
    return stored


def _values(row: Model, columns: Sequence[tuple[Any, bool]], connection: BaseDatabaseWrapper) -> list[Any]:
    return [
        value
        if is_plain and type(value := getattr(row, field.attname)) in _PLAIN_VALUES
        else field.get_db_prep_save(field.pre_save(row, add=True), connection)
        for field, is_plain in columns
    ]


MOST_PARAMETERS: Final = 10_000
"""Of one statement, where the database itself sets no limit."""
# Of these Django hands the values on as they are; asking it for each of thirty columns costs more than the insert.
_PLAIN_FIELDS: Final = frozenset(
    {
        models.BigIntegerField,
        models.BooleanField,
        models.CharField,
        models.PositiveIntegerField,
        models.PositiveSmallIntegerField,
        models.TextField,
    }
)
_PLAIN_VALUES: Final = frozenset({bool, int, str, type(None)})


@cache
def _columns(model: type[Model]) -> tuple[tuple[Any, bool], ...]:
    return tuple((field, type(field) in _PLAIN_FIELDS) for field in model._meta.local_concrete_fields)


@cache
def _defaulted(model: type[Model]) -> tuple[str, ...]:
    """The columns that the database fills in where an instance has no value."""
    fields = model._meta.local_concrete_fields
    return tuple(field.attname for field in fields if field.db_default is not models.NOT_PROVIDED)


@cache
def _insertion(model: type[Model], vendor: str) -> tuple[str, str]:
    """The statement up to its first row, and what stands there for one row."""
    del vendor
    query = InsertQuery(model)
    sample = model(**dict.fromkeys(_defaulted(model)))
    query.insert_values(model._meta.local_concrete_fields, [sample])
    ((statement, _),) = query.get_compiler(connection=connections["default"]).as_sql()
    head, values, group = str(statement).partition(" VALUES ")
    return head + values, group


def update(
    model: type[Model], where: Mapping[str, Any], values: Mapping[str, Any], *, raised: Sequence[str] = ()
) -> int:
    """As a queryset's `filter(**where).update(**values)` does; returns how many rows were changed.

    `where` are columns and what they have to be equal to, never None; those of `raised` become one more. Values that
    only a queryset can write (expressions, instances) are left to it.
    """
    if _needs_queryset(values):
        more = {name: models.F(name) + 1 for name in raised}
        rows = model._base_manager.filter(**where)  # noqa: SLF001  Django documents it
        return int(rows.update(**values, **more))
    return update_each(model, [(where, values)], raised=raised)


def update_each(
    model: type[Model],
    changes: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
    *,
    raised: Sequence[str] = (),
) -> int:
    """Several `update`s in one round trip: pairs of `where` and `values`, all with the same names and plain values."""
    connection = connections["default"]
    where, values = changes[0]
    statement, changed, asked = _updating(model, tuple(values), tuple(raised), tuple(where))
    fields = (*changed, *asked)
    rows = [
        [
            field.get_db_prep_save(value, connection)
            for field, value in zip(fields, (*values.values(), *where.values()), strict=True)
        ]
        for where, values in changes
    ]
    with connection.cursor() as cursor:
        if len(rows) == 1:
            cursor.execute(statement, rows[0])
        elif connection.vendor == "postgresql":
            # Planned once for all of them.
            head, row, tail = _updating_rows(model, tuple(values), tuple(raised), tuple(where))
            given = [value for one in rows for value in one]
            cursor.execute(f"{head}{', '.join([row] * len(rows))}{tail}", given)
        else:
            cursor.executemany(statement, rows)
        return int(cursor.rowcount)


def _needs_queryset(values: Mapping[str, Any]) -> bool:
    return any(
        hasattr(value, "resolve_expression") or isinstance(value, models.Model) for value in values.values()
    )


@cache
def _updating(
    model: type[Model], values: tuple[str, ...], raised: tuple[str, ...], where: tuple[str, ...]
) -> tuple[str, tuple[Any, ...], tuple[Any, ...]]:
    """The statement, and the fields of its parameters: those that are written, and those that are asked for."""
    quote = connections["default"].ops.quote_name
    fields = _fields(model)
    changed, asked = [fields[name] for name in values], [fields[name] for name in where]
    assignments = [f"{quote(field.column)} = %s" for field in changed]
    assignments += [f"{quote(fields[name].column)} = {quote(fields[name].column)} + 1" for name in raised]
    conditions = " AND ".join(f"{quote(field.column)} = %s" for field in asked)
    statement = f"UPDATE {quote(model._meta.db_table)} SET {', '.join(assignments)} WHERE {conditions}"  # noqa: S608  names of columns
    return statement, tuple(changed), tuple(asked)


@cache
def _updating_rows(
    model: type[Model], values: tuple[str, ...], raised: tuple[str, ...], where: tuple[str, ...]
) -> tuple[str, str, str]:
    """For PostgreSQL the statement that changes many rows: up to the first one's parameters, those of one, the rest."""
    connection = connections["default"]
    quote = connection.ops.quote_name
    fields = _fields(model)
    changed, asked = [fields[name] for name in values], [fields[name] for name in where]
    table = quote(model._meta.db_table)
    assignments = [f"{quote(field.column)} = given.v{place}" for place, field in enumerate(changed)]
    assignments += [
        f"{quote(fields[name].column)} = {table}.{quote(fields[name].column)} + 1" for name in raised
    ]
    conditions = [
        f"{table}.{quote(field.column)} = given.v{place}" for place, field in enumerate(asked, len(changed))
    ]
    # What is quoted has no type by itself.
    row = ", ".join(f"%s::{field.db_type(connection)}" for field in (*changed, *asked))
    names = ", ".join(f"v{place}" for place in range(len(changed) + len(asked)))
    head = f"UPDATE {table} SET {', '.join(assignments)} FROM (VALUES "  # noqa: S608  names of columns
    return head, f"({row})", f") AS given({names}) WHERE {' AND '.join(conditions)}"


@cache
def _fields(model: type[Model]) -> dict[str, Any]:
    """By each of the names that Django knows them under."""
    fields: dict[str, Any] = {"pk": model._meta.pk}
    for field in model._meta.concrete_fields:
        fields |= {field.name: field, field.attname: field}
    return fields
