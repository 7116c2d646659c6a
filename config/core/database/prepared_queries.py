"""Builds and compiles a query once, and runs it many times.

Django takes several times longer to build a statement of forty columns than the database to answer it
(`benchmarks/api.py`, `benchmarks/generation.py`). Prepared queries are for the hottest routes alone. They use
the compiler's `as_sql`, `select` and `klass_info`, which Django doesn't promise to keep, so
`tests/core/test_prepared_queries.py` compares each answer with the queryset's own.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar
from uuid import UUID, uuid4

from django.core.exceptions import EmptyResultSet
from django.db import connections
from django.db.models import DateTimeField, JSONField
from django.db.models.expressions import Col
from django.db.models.query import ModelIterable, ValuesIterable, get_related_populators
from django.db.transaction import TransactionManagementError

from config.core.database.plan_cache import keyed_cursor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models import QuerySet

Row = TypeVar("Row")

_MAX_FORMS: Final = 128
"""The most compiled forms of one query; a list has one for each combination of its filters in use."""
_scan_json: Final = json.JSONDecoder().scan_once  # type: ignore[attr-defined]  # the stubs lack it
_numbers: Final = count(1)
"""Numbers for unique marks, by which the parameters of moments are found."""


@dataclass(frozen=True)
class _Compiled:
    """One compiled form of a prepared query."""

    sql: str
    constants: tuple[Any, ...]
    """The statement's parameters; those that vary are overwritten at each call."""
    positions: tuple[tuple[int, int], ...]
    """Pairs of a parameter's index and the index of the value that goes there."""
    read: Callable[[Iterable[Sequence[Any]]], list[Any]]
    """Turns the driver's rows into instances or dicts."""
    locks: bool
    """True if it locks the rows until the transaction ends, so that it must run in one."""


class Prepared(Generic[Row]):
    """A query that returns the same rows as the queryset of `make(**values)`.

    UUIDs, moments, texts, bytes and lists of them may differ between calls. Every other value (`None`, booleans,
    numbers, tuples) and the length of a list are part of the statement, and each combination is compiled once.
    `make` must use each value only as the operand of a filter. Its queryset gives instances, with annotations
    too, or `.values()`. The first call of each form runs the queryset itself, so that a queryset that refuses to
    be evaluated still does.

    PostgreSQL caches the plan, which is right if filters name keys; a list passes `keeps_plan=False`.
    """

    def __init__(self, make: Callable[..., QuerySet[Any, Row]], *, keeps_plan: bool = True) -> None:
        self._make = make
        self._keeps_plan = keeps_plan
        self._forms: OrderedDict[Hashable, _Compiled] = OrderedDict()
        self._lock = threading.Lock()

    def ask(self, **values: Any) -> list[Row]:
        """Run the query with these values and return its rows.

        Raises `TransactionManagementError` if it locks outside a transaction. The first call of a form raises
        `LookupError` if a value isn't the plain operand of a filter, `TypeError` for other kinds of querysets.
        """
        form, variables = _split_values(values)
        with self._lock:
            compiled = self._forms.get(form)
            if compiled is not None:
                self._forms.move_to_end(form)
        if compiled is None:
            return self._ask_first(form, values)
        connection = connections["default"]
        if compiled.locks and not connection.in_atomic_block:
            message = "A prepared query that locks is asked in a transaction."
            raise TransactionManagementError(message)
        parameters = list(compiled.constants)
        for index, value_index in compiled.positions:
            parameters[index] = _adapt_value(variables[value_index], connection)
        with keyed_cursor(connection) if self._keeps_plan else connection.cursor() as cursor:
            cursor.execute(compiled.sql, parameters)
            return compiled.read(cursor.fetchall())

    def _ask_first(self, form: Hashable, values: dict[str, Any]) -> list[Row]:
        """Run the queryset itself, and compile it for the next calls unless Django knows that it has no rows."""
        rows = list(self._make(**values))
        compiled = _compile_query(self._make, values)
        if compiled is not None:
            with self._lock:
                self._forms[form] = compiled
                while len(self._forms) > _MAX_FORMS:
                    self._forms.popitem(last=False)
        return rows


def _split_values(values: dict[str, Any]) -> tuple[Hashable, list[Any]]:
    """Return the form (the values that are part of the statement), and the values that vary, in order."""
    form: list[Hashable] = [connections["default"].vendor]
    variables: list[Any] = []
    for name, value in values.items():
        if isinstance(value, UUID | datetime | str | bytes):
            form.append((name, type(value)))
            variables.append(value)
        elif isinstance(value, list):
            form.append((name, list, len(value)))
            variables.extend(value)
        else:
            form.append((name, value))
    return tuple(form), variables


def _compile_query(make: Callable[..., QuerySet[Any, Any]], values: dict[str, Any]) -> _Compiled | None:
    """Return the compiled form, or `None` if Django knows that the query has no rows.

    Raises `LookupError` if a value isn't the plain operand of a filter, `TypeError` for other kinds of querysets.
    """
    connection = connections["default"]
    # Each value that varies is replaced by a unique mark, by which its parameter is found.
    marked = {
        name: [_mark_like(member) for member in value] if isinstance(value, list) else _mark_like(value)
        for name, value in values.items()
    }
    marks = {
        _unwrap_binary(_adapt_value(mark, connection)): value_index
        for value_index, mark in enumerate(_split_values(marked)[1])
    }
    queryset = make(**marked)
    compiler = queryset.query.get_compiler(connection=connection)
    try:
        sql, parameters = compiler.as_sql()
    except EmptyResultSet:
        return None
    positions = tuple(
        (index, marks[parameter])
        for index, parameter in enumerate(map(_unwrap_binary, parameters))
        if isinstance(parameter, Hashable) and parameter in marks
    )
    if {value_index for _, value_index in positions} != set(marks.values()):
        message = "A value of a prepared query is not the plain operand of a filter."
        raise LookupError(message)
    locks = queryset.query.select_for_update and connection.features.has_select_for_update
    return _Compiled(sql, tuple(parameters), positions, _build_reader(queryset, compiler), locks=locks)


def _mark_like(value: Any) -> Any:
    """Return a unique value of the same type, or the value itself if its type is part of the statement."""
    if isinstance(value, UUID):
        return uuid4()
    if isinstance(value, datetime):
        return datetime(1971, 1, 1, tzinfo=UTC) + timedelta(microseconds=next(_numbers))
    if isinstance(value, str):
        return uuid4().hex[:12]
    if isinstance(value, bytes):
        return uuid4().bytes
    return value


def _adapt_value(value: Any, connection: BaseDatabaseWrapper) -> Any:
    """Return the value as Django's filters pass it to the driver."""
    if isinstance(value, UUID):
        return value if connection.features.has_native_uuid_field else value.hex
    if isinstance(value, datetime):
        return connection.ops.adapt_datetimefield_value(value)
    if isinstance(value, bytes):
        return connection.Database.Binary(value)  # type: ignore[attr-defined]
    return value


def _unwrap_binary(parameter: Any) -> Any:
    """Return the bytes inside psycopg's wrapper, which equals nothing but itself, or any other parameter."""
    return getattr(parameter, "obj", parameter) if type(parameter).__name__ == "Binary" else parameter


def _build_reader(
    queryset: QuerySet[Any, Any], compiler: Any
) -> Callable[[Iterable[Sequence[Any]]], list[Any]]:
    """Return a function that turns the driver's rows into the dicts or instances of the queryset."""
    converters = compiler.get_converters([column for column, _, _ in compiler.select])
    make_rows = _build_row_maker(queryset, compiler)
    if not converters:
        return make_rows
    columns = [
        (index, _convert_one(functions, expression, compiler.connection))
        for index, (functions, expression) in converters.items()
    ]

    def convert_rows(rows: Iterable[Sequence[Any]]) -> Iterator[list[Any]]:
        for row in map(list, rows):
            for index, convert in columns:
                row[index] = convert(row[index])
            yield row

    return lambda rows: make_rows(convert_rows(rows))


def _convert_one(
    functions: Sequence[Callable[..., Any]], expression: Any, connection: BaseDatabaseWrapper
) -> Callable[[Any], Any]:
    """Return a function that converts a column's value as Django's converters do, faster for JSON and moments."""

    def convert(value: Any) -> Any:
        for function in functions:
            value = function(value, expression, connection)
        return value

    def convert_json(text: Any) -> Any:
        # `json.loads` takes several times longer for values as short as most are.
        try:
            value, end = _scan_json(text, 0)
        except (StopIteration, TypeError):
            return convert(text)
        return value if end == len(text) else convert(text)

    def convert_moment(moment: Any) -> Any:
        is_naive = isinstance(moment, datetime) and moment.tzinfo is None
        return moment.replace(tzinfo=connection.timezone) if is_naive else convert(moment)

    if len(functions) == 1 and isinstance(expression, Col):
        field = expression.output_field
        if type(field) is JSONField and field.decoder is None:
            return convert_json
        # SQLite's driver gives moments without a zone.
        if type(field) is DateTimeField:
            return convert_moment
    return convert


def _build_row_maker(
    queryset: QuerySet[Any, Any], compiler: Any
) -> Callable[[Iterable[Sequence[Any]]], list[Any]]:
    """Return a function that turns rows into dicts or instances. Raises `TypeError` for other querysets."""
    iterable_class = queryset._iterable_class  # noqa: SLF001
    if issubclass(iterable_class, ValuesIterable):
        names = tuple(queryset.query.selected or queryset.query.values_select)
        return lambda rows: [dict(zip(names, row, strict=True)) for row in rows]
    if not issubclass(iterable_class, ModelIterable):
        message = "A prepared query gives instances or values()."
        raise TypeError(message)
    info = compiler.klass_info
    selected = info["select_fields"]
    start, end = selected[0], selected[-1] + 1
    model, database = info["model"], queryset.db
    attributes = [column.target.attname for column, _, _ in compiler.select[start:end]]
    # The stubs describe a later Django.
    populators = get_related_populators(info, compiler.select, database)  # type: ignore[call-arg]
    annotations = tuple(compiler.annotation_col_map.items())

    def make_instances(rows: Iterable[Sequence[Any]]) -> list[Any]:
        instances = []
        for row in rows:
            instance = model.from_db(database, attributes, row[start:end])
            for populator in populators:
                populator.populate(row, instance)
            for name, index in annotations:
                setattr(instance, name, row[index])
            instances.append(instance)
        return instances

    return make_instances
