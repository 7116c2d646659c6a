"""What `GET /analytics` says: outcomes and measurements, put together by dimension and local date.

The database adds up by slices of time that no bucket's edge cuts; the slices are sorted into local dates here, so that
time zones work the same on SQLite and PostgreSQL. A question costs four statements, however many rows it gives.

What no platform gave is None with its reason, never 0. Of several reasons `unavailable` outweighs `delayed`, and that
`unsupported`: what a person can do something about comes first. `coverage` is the share of the publications published
in a row's scope of which a number is known by now; None where none was published.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from django.db.models import (
    BigIntegerField,
    Case,
    Count,
    Func,
    IntegerField,
    Max,
    OuterRef,
    Q,
    Subquery,
    Sum,
    Value,
    When,
)

from accounts.models import Workspace
from analytics.measure import reason_for
from analytics.models import Measurement, Outcome
from analytics.periods import Buckets, buckets_of
from pipeline.models import Outlet
from pipeline.platforms.base import METRICS as MEASURED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime
    from uuid import UUID

    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models import QuerySet
    from django.db.models.sql.compiler import SQLCompiler

    from analytics.periods import Period

DIMENSIONS: Final = ("outlet", "content_type", "date", "source", "engine_output", "persona")
DEFAULT_DIMENSIONS: Final = ("outlet", "content_type", "date")
COUNTED: Final = ("published", "failed")
ENGAGING: Final = ("likes", "comments", "shares", "clicks")
METRICS: Final = (*COUNTED, *MEASURED, "engagements", "engagement_rate")
NULLABLE: Final = (*MEASURED, "engagements", "engagement_rate")
"""What may be None, and then has its reason in `availability`."""
REASONS: Final = ("unavailable", "delayed", "unsupported")
"""The weightiest first."""

_COLUMNS: Final = {
    "outlet": "outlet_id",
    "content_type": "content_type",
    "source": "source_id",
    "engine_output": "engine_output",
    "persona": "persona_id",
}


@dataclass(frozen=True)
class Question:
    """`outlets` and `content_types` are None where nothing is filtered; an unknown outlet simply has no rows."""

    workspace_id: UUID
    test: bool
    period: Period
    group_by: tuple[str, ...] = DEFAULT_DIMENSIONS
    attribution: str = "received"
    outlets: tuple[UUID, ...] | None = None
    content_types: tuple[str, ...] | None = None


@dataclass(frozen=True)
class OutletName:
    id: UUID
    platform: str
    name: str


@dataclass(frozen=True)
class Figures:
    metrics: Mapping[str, int | float | None]
    availability: Mapping[str, str]
    coverage: float | None


@dataclass(frozen=True)
class Dimensions:
    """Those that were asked for; the others are None."""

    outlet: OutletName | None = None
    content_type: str | None = None
    date: str | None = None
    source: UUID | None = None
    engine_output: str | None = None
    persona: UUID | None = None


@dataclass(frozen=True)
class Row:
    dimensions: Dimensions
    figures: Figures


@dataclass(frozen=True)
class Answer:
    rows: tuple[Row, ...]
    totals: Figures
    fresh_at: datetime | None
    """The newest moment that any count or measurement of the workspace tells of."""


def answer(question: Question) -> Answer:
    buckets = buckets_of(question.period) if "date" in question.group_by else None
    outcomes = list(_outcomes(question, buckets))
    measurements = list(_measurements(question, buckets))
    outlets = _outlets(question, {group["outlet_id"] for group in (*outcomes, *measurements)})
    total = _Fold()
    folds: dict[tuple[Any, ...], _Fold] = {}
    for group in outcomes:
        for fold in (total, folds.setdefault(_key(question, group, buckets), _Fold())):
            fold.add_outcomes(group, outlets[group["outlet_id"]].platform)
    for group in measurements:
        for fold in (total, folds.setdefault(_key(question, group, buckets), _Fold())):
            fold.add_measurements(group, outlets[group["outlet_id"]].platform)
    rows = tuple(
        Row(_dimensions(question, key, outlets, buckets), folds[key].figures())
        for key in sorted(folds, key=_order)
    )
    return Answer(rows, total.figures(), _fresh_at(question))


# --- From the database -----------------------------------------------------------------------------------------------


class Slice(Func):
    """The number of the slice that a moment falls into, as `Buckets` tells it."""

    output_field = BigIntegerField()
    arity = 1

    def __init__(self, moment: str, buckets: Buckets) -> None:
        super().__init__(moment)
        self.buckets = buckets

    def as_sqlite(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any
    ) -> tuple[str, Any]:
        # Percent signs are doubled once for the template and once for the parameters.
        seconds = "CAST(strftime('%%%%s', %(expressions)s) AS INTEGER)"
        template = f"(({seconds} + {self._offset(seconds)}) / {self.buckets.step})"
        return self.as_sql(compiler, connection, template=template, **context)

    def as_postgresql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any
    ) -> tuple[str, Any]:
        seconds = "EXTRACT(EPOCH FROM %(expressions)s)"
        template = f"FLOOR(({seconds} + {self._offset(seconds)}) / {self.buckets.step})::bigint"
        return self.as_sql(compiler, connection, template=template, **context)

    def _offset(self, seconds: str) -> str:
        if not self.buckets.offsets:
            return str(self.buckets.last_offset)
        cases = " ".join(f"WHEN {seconds} < {until} THEN {offset}" for until, offset in self.buckets.offsets)
        return f"CASE {cases} ELSE {self.buckets.last_offset} END"


def _columns(question: Question) -> list[str]:
    """The outlet is always among them: its platform says why a number is missing."""
    return ["outlet_id", *(_COLUMNS[name] for name in question.group_by if name not in {"date", "outlet"})]


def _of_kind(rows: QuerySet[Any], question: Question) -> QuerySet[Any]:
    """Live rows or test rows, by a list of one value: SQLite finds no index for the `NOT test` of a plain filter."""
    return rows.filter(test__in=[question.test])


def _in_scope(rows: QuerySet[Any], question: Question, moment: str) -> QuerySet[Any]:
    period = question.period
    rows = _of_kind(rows, question).filter(**{f"{moment}__gte": period.start, f"{moment}__lt": period.end})
    if question.outlets is not None:
        rows = rows.filter(outlet_id__in=question.outlets)
    if question.content_types is not None:
        rows = rows.filter(content_type__in=question.content_types)
    return rows


def _sliced(rows: QuerySet[Any], moment: str, buckets: Buckets | None) -> QuerySet[Any]:
    sliced: QuerySet[Any] = rows.annotate(slice=Slice(moment, buckets) if buckets else Value(0))
    return sliced


def _outcomes(question: Question, buckets: Buckets | None) -> Iterable[dict[str, Any]]:
    rows = _in_scope(Outcome.objects.of(question.workspace_id), question, "at")
    given = Q()
    for metric in MEASURED:
        given |= Q(**{f"{metric}__isnull": False})
    # 1 where a number of the publication is known, 0 where its platform was asked in vain, NULL where nobody asked.
    # Bound by the publication alone: with the workspace beside it, SQLite reads all of the workspace's measurements
    # for each outcome instead of the publication's few.
    known = (
        Measurement.everywhere.filter(publication_id=OuterRef("publication_id"))
        .order_by()
        .values("publication_id")
        .annotate(known=Max(Case(When(given, then=1), default=0, output_field=IntegerField())))
        .values("known")
    )
    found: Iterable[dict[str, Any]] = (
        _sliced(rows, "at", buckets)
        .annotate(known=Subquery(known, output_field=IntegerField()))
        .values("slice", "known", *_columns(question))
        .annotate(
            published=Count("pk", filter=Q(is_published=True)),
            failed=Count("pk", filter=Q(is_published=False)),
        )
        .order_by()
    )
    return found


def _measurements(question: Question, buckets: Buckets | None) -> Iterable[dict[str, Any]]:
    """Rises since the measurement before: all of a publication add up to its newest known value."""
    moment = "published_at" if question.attribution == "published" else "at"
    rows = _in_scope(Measurement.objects.of(question.workspace_id), question, moment)
    found: Iterable[dict[str, Any]] = (
        _sliced(rows, moment, buckets)
        # A platform answers with few patterns of missing metrics, so grouping by them adds few rows.
        .values("slice", "availability", *_columns(question))
        .annotate(**{f"sum_{metric}": Sum(f"{metric}_delta") for metric in MEASURED})
        .order_by()
    )
    return found


def _outlets(question: Question, ids: set[UUID]) -> dict[UUID, OutletName]:
    rows = Outlet.objects.of(question.workspace_id).filter(pk__in=ids).values_list("id", "platform", "name")
    return {row[0]: OutletName(*row) for row in rows}


def _fresh_at(question: Question) -> datetime | None:
    """Read from the ends of two indexes."""

    def newest(rows: QuerySet[Any]) -> Subquery:
        return Subquery(_of_kind(rows, question).order_by("-at").values("at")[:1])

    row = (
        Workspace.everywhere.filter(pk=question.workspace_id)
        .annotate(
            counted=newest(Outcome.objects.of(question.workspace_id)),
            measured=newest(Measurement.objects.of(question.workspace_id)),
        )
        .values_list("counted", "measured")
        .first()
    )
    return max((moment for moment in row or () if moment is not None), default=None)


# --- Into rows -------------------------------------------------------------------------------------------------------


@dataclass
class _Fold:
    """What adds up to one row."""

    published: int = 0
    failed: int = 0
    known: int = 0
    sums: dict[str, int | None] = field(default_factory=lambda: dict.fromkeys(MEASURED))
    reasons: dict[str, set[str]] = field(default_factory=lambda: {metric: set() for metric in MEASURED})
    published_on: set[str] = field(default_factory=set)
    failed_on: set[str] = field(default_factory=set)

    def add_outcomes(self, group: Mapping[str, Any], platform: str) -> None:
        self.published += group["published"]
        self.failed += group["failed"]
        if group["published"]:
            self.published_on.add(platform)
            if group["known"] is None:
                self._add_reasons({metric: reason_for(platform, metric, "delayed") for metric in MEASURED})
            elif group["known"]:
                self.known += group["published"]
        if group["failed"]:
            self.failed_on.add(platform)

    def add_measurements(self, group: Mapping[str, Any], platform: str) -> None:
        for metric in MEASURED:
            rise = group[f"sum_{metric}"]
            if rise is not None:
                self.sums[metric] = (self.sums[metric] or 0) + rise
        self._add_reasons(group["availability"])
        self.published_on.add(platform)

    def _add_reasons(self, reasons: Mapping[str, str]) -> None:
        for metric, reason in reasons.items():
            self.reasons[metric].add(reason)

    def figures(self) -> Figures:
        metrics: dict[str, int | float | None] = {
            "published": self.published,
            "failed": self.failed,
            **self.sums,
        }
        availability = {metric: self._reason(metric) for metric in MEASURED if self.sums[metric] is None}
        engaged = [value for metric in ENGAGING if (value := self.sums[metric]) is not None]
        engagements = metrics["engagements"] = sum(engaged) if engaged else None
        if engagements is None:
            availability["engagements"] = _weightiest({availability[metric] for metric in ENGAGING})
        impressions = self.sums["impressions"]
        if engagements is not None and impressions is not None and impressions > 0:
            metrics["engagement_rate"] = round(engagements / impressions, 4)
        else:
            metrics["engagement_rate"] = None
            missing = {availability[name] for name in ("impressions", "engagements") if name in availability}
            # Both are known and nobody has seen it: a rate of nothing doesn't exist.
            availability["engagement_rate"] = _weightiest(missing) if missing else "unavailable"
        coverage = round(self.known / self.published, 4) if self.published else None
        return Figures(metrics, availability, coverage)

    def _reason(self, metric: str) -> str:
        if self.reasons[metric]:
            return _weightiest(self.reasons[metric])
        if self.published_on:
            # It was measured, but not within this row's dates.
            return _weightiest({reason_for(platform, metric, "delayed") for platform in self.published_on})
        if self.failed_on:
            return _weightiest({reason_for(platform, metric, "unavailable") for platform in self.failed_on})
        return "unavailable"


def _weightiest(reasons: set[str]) -> str:
    return next(reason for reason in REASONS if reason in reasons)


def _key(question: Question, group: Mapping[str, Any], buckets: Buckets | None) -> tuple[Any, ...]:
    """The values of all dimensions in the order of rows; None for those that weren't asked for."""
    return (
        buckets.place_of(group["slice"]) if buckets else None,
        *(group[_COLUMNS[name]] if name in question.group_by else None for name in _COLUMNS),
    )


def _order(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """By date, outlet, content type and the others; what is missing comes last."""
    return tuple((part is None, "" if part is None else part) for part in key)


def _dimensions(
    question: Question, key: tuple[Any, ...], outlets: Mapping[UUID, OutletName], buckets: Buckets | None
) -> Dimensions:
    place, outlet, content_type, source, engine_output, persona = key
    return Dimensions(
        outlet=outlets[outlet] if "outlet" in question.group_by else None,
        content_type=content_type,
        date=buckets.label_of(place) if buckets else None,
        source=source,
        engine_output=engine_output,
        persona=persona,
    )
