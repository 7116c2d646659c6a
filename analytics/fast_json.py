"""The rows of an answer written as JSON: byte for byte what `told` says of `queries.answer`, several times quicker.

Rows come from the database as tuples, add up in `cells` and become text.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.db import connection

from analytics import cache, first_party, queries
from analytics.accumulators import Cell, Notes, added, total_of
from analytics.aggregate import FIRST_PARTY, METRICS, rate_of
from analytics.periods import buckets_of
from analytics.queries import OutletName
from analytics.serialize import dimension_told, figures
from config.core.api.jsonio import dump

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from django.db.models import QuerySet

    from analytics.intervals import Spans
    from analytics.periods import Buckets
    from analytics.queries import Question

    Cells = dict[tuple[Any, ...], Cell]
    Numbers = tuple[int | float | None, ...]


_NOTHING: Final = cache.Part(b"", Cell(), ())
_IDS: Final = ("source", "persona")


@dataclass(frozen=True)
class Written:
    """`rows` is a JSON array and `totals` an object."""

    rows: bytes
    totals: bytes
    fresh_at: datetime | None


def written(question: Question) -> Written:
    buckets = buckets_of(question.period) if "date" in question.group_by else None
    spans = queries.spans_for(question, buckets)
    outlets = queries.outlets_of(question)
    places = cache.places(question, spans, outlets)
    parts = {place: part for place, at in places.items() if (part := cache.SHELF.find(at))}
    reading = _Reading(question, buckets, {_as_read(row[0]): OutletName(*row[:3]) for row in outlets})
    reading.read(spans.without((at.start, at.end) for place, at in places.items() if place in parts))
    cells = reading.cells
    total = Cell()
    first_party.add_zeros(question, buckets, total, [(question.group_by, cells)], id_of=_as_read)
    writing = _Writing(reading.notes)
    starts = _Starts(question, reading.outlets, buckets)
    has_gaps = any(None in key[1:] for key in cells)
    ordered = sorted(cells.items(), key=lambda one: queries.order(one[0]) if has_gaps else one[0])
    made = {
        place: _part([(starts.of(key), cell) for key, cell in of_place], writing)
        for place, of_place in groupby(ordered, key=lambda one: one[0][0])
    }
    for place, at in places.items():
        if place not in parts:
            cache.SHELF.put(at, made.setdefault(place, _NOTHING))
    parts.update(made)
    whole = total_of([total, *(part.total for part in parts.values())])
    # Bits of parts that were kept are those of another answer.
    whole.notes = sum({reading.notes.bit(note) for part in parts.values() for note in part.notes})
    rows = [part.rows for _, part in sorted(parts.items(), key=itemgetter(0)) if part.rows]
    return Written(
        b"[%b]" % b",".join(rows), b"{%b" % writing.figures(whole).encode(), queries.fresh_at(question)
    )


def _part(rows: list[tuple[str, Cell]], writing: _Writing) -> cache.Part:
    total = total_of([cell for _, cell in rows])
    text = ",".join([start + writing.figures(cell) for start, cell in rows])
    return cache.Part(text.encode(), total, writing.notes.of(total.notes))


class _Places(dict[int, int | None]):
    """Of slices; all of one place where no dates are told apart."""

    def __init__(self, buckets: Buckets | None) -> None:
        super().__init__()
        self._buckets = buckets

    def __missing__(self, number: int) -> int | None:
        place = self[number] = self._buckets.place_of(number) if self._buckets else None
        return place


class _Reading:
    """Groups of facts as tuples, added up in cells by the dimensions that were asked for.

    Ids stay as the database writes them: making thousands of them into objects costs more than reading them.
    """

    def __init__(
        self, question: Question, buckets: Buckets | None, outlets: Mapping[str, OutletName]
    ) -> None:
        self.cells: Cells = {}
        self.notes = Notes()
        self.outlets = outlets
        self._question = question
        self._buckets = buckets
        self._columns = queries.columns(question)
        self._places = _Places(buckets)
        # The slice and the outlet are always read; a key has a place instead of the one, and maybe not the other.
        self._start = 1 if "outlet" in question.group_by else 2
        self._end = 1 + len(self._columns)

    def read(self, spans: Spans) -> None:
        for add, groups_of in (
            (self._add_outcomes, queries.outcome_groups),
            (self._add_measurements, queries.measurement_groups),
            (self._add_hits, queries.hit_groups),
        ):
            for groups in groups_of(self._question, self._buckets, spans):
                add(self._rows(groups))

    def _rows(self, groups: QuerySet[Any]) -> list[tuple[Any, ...]]:
        """Straight from the driver: what the ORM does to each value takes longer than the database."""
        sql, parameters = groups.query.sql_with_params()
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                _read_plainly(cursor)
            cursor.execute(sql, parameters)
            found: list[tuple[Any, ...]] = cursor.fetchall()
        return found

    def _add_outcomes(self, rows: list[tuple[Any, ...]]) -> None:
        bits: dict[tuple[Any, ...], int] = {}
        cells, places, start, end = self.cells, self._places, self._start, self._end
        for row in rows:
            key = (places[row[0]], *row[start:end])
            cell = cells.get(key)
            if cell is None:
                cell = cells[key] = Cell()
            known, published, failed = row[end:]
            cell.published += published
            cell.failed += failed
            if known:
                cell.known += published
            note = (row[1], known, published > 0, failed > 0)
            if note not in bits:
                platform = self.outlets[row[1]].platform
                bits[note] = self.notes.of_outcomes(platform, known, published=note[2], failed=note[3])
            cell.notes |= bits[note]

    def _add_measurements(self, rows: list[tuple[Any, ...]]) -> None:
        bits: dict[tuple[str, str], int] = {}
        cells, places, start, end = self.cells, self._places, self._start, self._end
        for row in rows:
            key = (places[row[0]], *row[start:end])
            cell = cells.get(key)
            if cell is None:
                cell = cells[key] = Cell()
            sums = row[end + 1 :]
            # Most cells are of one group.
            cell.sums = added(cell.sums, sums) if cell.is_measured else sums
            cell.is_measured = True
            note = (row[1], row[end])
            if note not in bits:
                bits[note] = self.notes.of_measurements(self.outlets[row[1]].platform, row[end])
            cell.notes |= bits[note]

    def _add_hits(self, rows: list[tuple[Any, ...]]) -> None:
        for row in rows:
            key = (self._places[row[0]], *row[self._start : self._end])
            cell = self.cells.setdefault(key, Cell())
            platform = self.outlets[row[1]].platform
            kind, count = row[self._end :]
            cell.add_hits(first_party.NAMES[kind], count, platform)
            cell.notes |= self.notes.of_hits(platform, count)


def _read_plainly(cursor: Any) -> None:
    """Sums of large whole numbers, which are `numeric`, as whole numbers, and ids as text."""
    from psycopg.types.numeric import IntLoader  # noqa: PLC0415  there is none where SQLite is used
    from psycopg.types.string import TextLoader  # noqa: PLC0415

    cursor.adapters.register_loader("numeric", IntLoader)
    cursor.adapters.register_loader("uuid", TextLoader)


def _as_read(value: Any) -> Any:
    if not isinstance(value, UUID):
        return value
    return str(value) if connection.features.has_native_uuid_field else value.hex


class _Starts:
    """The dimensions of a row, until its figures."""

    def __init__(
        self, question: Question, outlets: Mapping[str, OutletName], buckets: Buckets | None
    ) -> None:
        names = question.group_by
        # In a key the place is first, then come those of the columns that were asked for.
        keyed = ["date", *(name for name in names if name != "date")]
        date = names.index("date") if "date" in names else len(names)
        self._before = [(name, keyed.index(name)) for name in names[:date]]
        self._after = [(name, keyed.index(name)) for name in names[date + 1 :]]
        self._is_dated = date < len(names)
        self._outlets = outlets
        self._buckets = buckets
        self._dates: dict[int | None, str] = {}
        self._others: dict[tuple[Any, ...], tuple[str, str]] = {}

    def of(self, key: tuple[Any, ...]) -> str:
        place, others = key[0], key[1:]
        found = self._others.get(others)
        if found is None:
            before, after = (
                "".join([self._part(name, key[at]) for name, at in side])
                for side in (self._before, self._after)
            )
            found = self._others[others] = ("{" + before, after)
        date = self._dates.get(place)
        if date is None:
            date = self._dates[place] = self._part("date", place) if self._is_dated else ""
        return found[0] + date + found[1]

    def _part(self, name: str, value: Any) -> str:
        if name == "outlet":
            value = self._outlets[value]
        elif name == "date" and self._buckets:
            value = self._buckets.label_of(value)
        elif name in _IDS and value is not None:
            value = UUID(value)
        return f'"{name}":{_json(dimension_told(name, value))},'


class _Writing:
    """Figures as text; a template for each shape has what doesn't depend on how large the numbers are."""

    def __init__(self, notes: Notes) -> None:
        self.notes = notes
        self._templates: dict[tuple[Any, ...], tuple[str, Callable[[Numbers], Any]]] = {}
        self._ends: dict[tuple[Any, ...], str] = {}

    def figures(self, cell: Cell) -> str:
        impressions, views, likes, comments, shares, clicks = cell.sums
        if likes is None and comments is None and shares is None and clicks is None:
            engagements = None
        else:
            engagements = (likes or 0) + (comments or 0) + (shares or 0) + (clicks or 0)
        rate = rate_of(engagements, impressions)
        shape = (
            cell.notes,
            rate is None,
            impressions is None,
            views is None,
            likes is None,
            comments is None,
            shares is None,
            clicks is None,
        )
        made = self._templates.get(shape)
        numbers = (
            cell.published,
            cell.failed,
            impressions,
            views,
            likes,
            comments,
            shares,
            clicks,
            engagements,
            rate,
        )
        if made is None:
            made = self._templates[shape] = self._template(cell, numbers)
        template, known = made
        given = (cell.known, cell.published, cell.first_party)
        end = self._ends.get(given)
        if end is None:
            end = self._ends[given] = _end(cell)
        text: str = template % known(numbers)
        return text + end

    def _template(self, cell: Cell, numbers: Numbers) -> tuple[str, Callable[[Numbers], Any]]:
        """With the numbers that every row of the shape has; what is null is written already."""
        metrics = ",".join(
            f'"{metric}":{"null" if value is None else "%d" if isinstance(value, int) else "%s"}'
            for metric, value in zip(METRICS, numbers, strict=True)
        )
        reasons = figures(self.notes.figures(cell.notes, cell.sums))["availability"]
        known = [place for place, value in enumerate(numbers) if value is not None]
        return f'"metrics":{{{metrics}}},"availability":{_json(reasons)}', itemgetter(*known)


def _end(cell: Cell) -> str:
    counted = _json(dict(zip(FIRST_PARTY, cell.first_party, strict=True)))
    return f',"coverage":{_json(cell.coverage)},"first_party":{counted}}}'


def _json(value: Any) -> str:
    return dump(value).decode()
