"""Prepared: statements of reading that are built and compiled once, and sent many times.

Django spends several times longer on building a statement of forty columns than the database on answering it:
`benchmarks/api.py`, `benchmarks/generation.py`. So it is for the hottest routes alone. It reads the compiler's `as_sql`, `select` and `klass_info`,
which Django doesn't promise to keep: tests/core/test_prepared_queries.py compares each answer with the queryset's own.
"""

from __future__ import annotations

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
from django.db.models.query import ModelIterable, ValuesIterable, get_related_populators
from django.db.transaction import TransactionManagementError

from config.core.database.kept_plans import keyed_cursor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models import QuerySet

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
    locks: bool
    """It keeps what it reads locked until the transaction ends, so there must be one."""


class Prepared(Generic[Row]):
    """Asks what `make(**values)` asks, with the same answer.

    UUIDs, moments, texts, bytes and lists of them may differ from one time to the next; everything else (None, flags,
    numbers, tuples) is part of the statement, and each combination is compiled once. `make` must use each value only
    as the operand of a filter. Its queryset gives instances, with annotations too, or `.values()`;
    the first time of each form it is asked as it is, so that one that refuses to answer still does.

    PostgreSQL keeps its plan, which is right where the filters name keys; a list says `keeps_plan=False`.
    """

    def __init__(self, make: Callable[..., QuerySet[Any, Row]], *, keeps_plan: bool = True) -> None:
        self._make = make
        self._keeps_plan = keeps_plan
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
        if compiled.locks and not connection.in_atomic_block:
            message = "A prepared query that locks is asked in a transaction."
            raise TransactionManagementError(message)
        parameters = list(compiled.constants)
        for place, number in compiled.places:
            parameters[place] = _adapted(given[number], connection)
        with keyed_cursor(connection) if self._keeps_plan else connection.cursor() as cursor:
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
    marks = {_plain(_adapted(mark, connection)): number for number, mark in enumerate(_split(marked)[1])}
    queryset = make(**marked)
    compiler = queryset.query.get_compiler(connection=connection)
    try:
        sql, parameters = compiler.as_sql()
    except EmptyResultSet:
        return None
    places = tuple(
        (place, marks[parameter])
        for place, parameter in enumerate(map(_plain, parameters))
        if isinstance(parameter, Hashable) and parameter in marks
    )
    if {number for _, number in places} != set(marks.values()):
        message = "A value of a prepared query is not the plain operand of a filter."
        raise LookupError(message)
    locks = queryset.query.select_for_update and connection.features.has_select_for_update
    return _Compiled(sql, tuple(parameters), places, _reader(queryset, compiler), locks=locks)


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
