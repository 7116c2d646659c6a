"""What `GET /analytics` says: outcomes and measurements, put together by dimension and local date.

The database adds up by slices of time that no bucket's edge cuts; the slices are sorted into local dates here, so that
time zones work the same on SQLite and PostgreSQL. Days that are rolled up are read from the rollups, the others from
their facts, so that an answer is exact at every moment. A question costs at most ten statements, however many rows it
gives.

What no platform gave is None with its reason, never 0. Of several reasons `unavailable` outweighs `delayed`, and that
`unsupported`: what a person can do something about comes first. `coverage` is the share of the publications published
in a row's scope of which a number is known by now; None where none was published.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.db.models import Q, Subquery, TextField, Value
from django.db.models.functions import Cast

from accounts.models import Workspace
from analytics import fact_sums, first_party_counts, rollup
from analytics.aggregate import Figures, Fold
from analytics.models import (
    DAY,
    QUARTER,
    HitRollup,
    Measurement,
    MeasurementRollup,
    Outcome,
    OutcomeRollup,
)
from analytics.periods import Buckets, buckets_of
from analytics.rollup_coverage import Spans, spans_of
from pipeline.models import HitCount, HitKind, Outlet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import date, datetime
    from uuid import UUID

    from django.db.models import QuerySet

    from analytics.periods import Period

DIMENSIONS: Final = ("outlet", "content_type", "date", "source", "engine_output", "persona")
DEFAULT_DIMENSIONS: Final = ("outlet", "content_type", "date")
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
class Dimensions:
    """Those that were asked for; the others are None."""

    outlet: OutletName | None = None
    content_type: str | None = None
    date: str | None = None
    source: UUID | None = None
    engine_output: str | None = None
    persona: UUID | None = None


@dataclass(frozen=True)
class AnalyticsRow:
    dimensions: Dimensions
    figures: Figures


@dataclass(frozen=True)
class AnalyticsAnswer:
    rows: tuple[AnalyticsRow, ...]
    totals: Figures
    fresh_at: datetime | None
    """The newest moment that any count or measurement of the workspace tells of."""


def answer(question: Question) -> AnalyticsAnswer:
    (one,) = answers(question, [question.group_by])
    return one


def answers(question: Question, groupings: Sequence[tuple[str, ...]]) -> list[AnalyticsAnswer]:
    """The same facts cut in several ways, read once; each way is a part of the question's own `group_by`."""
    buckets = buckets_of(question.period) if "date" in question.group_by else None
    spans = spans_for(question, buckets)
    outcomes = [group for groups in outcome_groups(question, buckets, spans) for group in groups]
    measurements = [group for groups in measurement_groups(question, buckets, spans) for group in groups]
    counted = [group for groups in hit_groups(question, buckets, spans) for group in groups]
    outlets = outlets_named(question, {group["outlet_id"] for group in (*outcomes, *measurements, *counted)})
    newest = fresh_at(question)
    total = Fold()
    cuts: list[dict[RowKey, Fold]] = [{} for _ in groupings]

    def folds_of(group: Mapping[str, Any]) -> Iterator[Fold]:
        yield total
        for folds, group_by in zip(cuts, groupings, strict=True):
            key = _key(group_by, group, buckets)
            yield folds.setdefault(key, Fold())

    for group in outcomes:
        for fold in folds_of(group):
            fold.add_outcomes(group, outlets[group["outlet_id"]].platform)
    for group in measurements:
        for fold in folds_of(group):
            fold.add_measurements(group, outlets[group["outlet_id"]].platform)
    for group in counted:
        for fold in folds_of(group):
            fold.add_hits(
                first_party_counts.NAMES[group["kind"]], group["total"], outlets[group["outlet_id"]].platform
            )
    first_party_counts.add_zeros(question, buckets, total, cuts)
    totals = total.figures()
    return [
        AnalyticsAnswer(
            tuple(
                AnalyticsRow(_dimensions(key, outlets, buckets), folds[key].figures())
                for key in sorted(folds, key=order)
            ),
            totals,
            newest,
        )
        for folds in cuts
    ]


# --- From the database -----------------------------------------------------------------------------------------------


def columns(question: Question) -> list[str]:
    """The outlet is always among them: its platform says why a number is missing."""
    return ["outlet_id", *(_COLUMNS[name] for name in question.group_by if name not in {"date", "outlet"})]


def _of_kind(rows: QuerySet[Any], question: Question) -> QuerySet[Any]:
    """Live rows or test rows, by a list of one value: SQLite finds no index for the `NOT test` of a plain filter."""
    return rows.filter(test__in=[question.test])


def spans_for(question: Question, buckets: Buckets | None) -> Spans:
    def current(first: date, last: date) -> set[date]:
        return rollup.current_days(question.workspace_id, test=question.test, first=first, last=last)

    return spans_of(question.period, buckets, current)


def _in_scope(rows: QuerySet[Any], question: Question) -> QuerySet[Any]:
    rows = _of_kind(rows, question)
    if question.outlets is not None:
        rows = rows.filter(outlet_id__in=question.outlets)
    if question.content_types is not None:
        rows = rows.filter(content_type__in=question.content_types)
    return rows


def _live(
    model: type[Any], question: Question, moment: str, buckets: Buckets | None, spans: Spans, **same: str
) -> QuerySet[Any]:
    """The facts of what isn't rolled up."""
    within = Q()
    for start, end in spans.live:
        within |= Q(**{f"{moment}__gte": start, f"{moment}__lt": end})
    found = model.objects.of(question.workspace_id)
    if model is HitCount:
        found = fact_sums.with_items(found)
    rows = _in_scope(found, question).filter(within, **same)
    sliced: QuerySet[Any] = rows.annotate(slice=fact_sums.Slice(moment, buckets) if buckets else Value(0))
    return sliced


def _rolled(
    model: type[Any], question: Question, buckets: Buckets | None, spans: Spans, **same: str
) -> QuerySet[Any]:
    within = Q()
    for start, end in spans.rolled:
        within |= Q(start__gte=int(start.timestamp()), start__lt=int(end.timestamp()))
    unit = DAY if spans.are_days else QUARTER
    rows = _in_scope(model.objects.of(question.workspace_id), question).filter(within, unit=unit, **same)
    sliced: QuerySet[Any] = rows.annotate(
        slice=fact_sums.SliceOfSeconds("start", buckets) if buckets else Value(0)
    )
    return sliced


def outcome_groups(question: Question, buckets: Buckets | None, spans: Spans) -> Iterator[QuerySet[Any]]:
    """By slice, `columns` and `known`: `published` and `failed`."""
    told_apart = ["slice", *columns(question)]
    if spans.live:
        yield fact_sums.outcome_groups(_live(Outcome, question, "at", buckets, spans), told_apart)
    if spans.rolled:
        yield fact_sums.rolled_outcome_groups(_rolled(OutcomeRollup, question, buckets, spans), told_apart)


def measurement_groups(question: Question, buckets: Buckets | None, spans: Spans) -> Iterator[QuerySet[Any]]:
    """By slice, `columns` and `reasons`, which is the text of JSON: the sum of each metric."""
    told_apart = ["slice", *columns(question)]
    if spans.live:
        moment = rollup.ATTRIBUTIONS[question.attribution]
        rows = _live(Measurement, question, moment, buckets, spans)
        yield fact_sums.measurement_groups(_as_text(rows), told_apart, reasons="reasons")
    if spans.rolled:
        rows = _rolled(MeasurementRollup, question, buckets, spans, attribution=question.attribution)
        yield fact_sums.rolled_measurement_groups(_as_text(rows), told_apart, reasons="reasons")


def hit_groups(question: Question, buckets: Buckets | None, spans: Spans) -> Iterator[QuerySet[Any]]:
    """By slice, `columns` and `kind`: the `total` of what the service counted itself.

    A fetch is of no item, so it is given only to rows grouped by outlet and date, or neither.
    """
    told_apart = ["slice", *columns(question)]
    same = {} if set(question.group_by) <= {"outlet", "date"} else {"kind": HitKind.CLICK}
    if spans.live:
        yield fact_sums.hit_groups(_live(HitCount, question, "start", buckets, spans, **same), told_apart)
    if spans.rolled:
        yield fact_sums.hit_groups(_rolled(HitRollup, question, buckets, spans, **same), told_apart)


def _as_text(rows: QuerySet[Any]) -> QuerySet[Any]:
    """With `availability` as it is written: reading JSON thousands of times costs more than adding up."""
    found: QuerySet[Any] = rows.annotate(reasons=Cast("availability", TextField()))
    return found


def outlets_named(question: Question, ids: set[UUID]) -> dict[UUID, OutletName]:
    rows = Outlet.objects.of(question.workspace_id).filter(pk__in=ids).values_list("id", "platform", "name")
    return {row[0]: OutletName(*row) for row in rows}


def fresh_at(question: Question) -> datetime | None:
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


class RowKey(NamedTuple):
    """What tells rows apart, in the order of rows; None for what isn't asked for."""

    place: int | None
    """The place of the row's bucket, as `Buckets` counts them."""
    outlet: UUID | None
    content_type: str | None
    source: UUID | None
    engine_output: str | None
    persona: UUID | None


def _key(group_by: tuple[str, ...], group: Mapping[str, Any], buckets: Buckets | None) -> RowKey:
    return RowKey(
        buckets.place_of(group["slice"]) if buckets and "date" in group_by else None,
        *(group[_COLUMNS[name]] if name in group_by else None for name in _COLUMNS),
    )


def order(key: RowKey) -> tuple[Any, ...]:
    """By date, outlet, content type and the others; what is missing comes last."""
    return tuple((part is None, "" if part is None else part) for part in key)


def _dimensions(key: RowKey, outlets: Mapping[UUID, OutletName], buckets: Buckets | None) -> Dimensions:
    return Dimensions(
        outlet=None if key.outlet is None else outlets[key.outlet],
        content_type=key.content_type,
        date=None if key.place is None or buckets is None else buckets.label_of(key.place),
        source=key.source,
        engine_output=key.engine_output,
        persona=key.persona,
    )
