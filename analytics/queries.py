"""Answers `GET /analytics`: outcomes and measurements by dimension and local date.

The database sums slices of time that no bucket's edge cuts; the slices are sorted into local dates here, so
that time zones work the same on SQLite and PostgreSQL. Days with rollups are read from them, the others from
their facts, so that an answer is exact at every moment. A question costs at most ten statements, however many
rows it gives.

A number that no platform gave is `None` with its reason, never 0. Of several reasons `unavailable` outweighs
`delayed`, and `delayed` outweighs `unsupported`, because people can do something about the first. `coverage` is
the share of the publications published in a row's scope of which a number is known by now, or `None` if none
was published.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.db.models import Q, Subquery, TextField, Value
from django.db.models.functions import Cast

from accounts.models import Workspace
from analytics import fact_sums, first_party_counts, rollup
from analytics.aggregate import Figures, Fold
from analytics.calendar_periods import Buckets, buckets_of
from analytics.models import (
    DAY,
    QUARTER,
    HitRollup,
    Measurement,
    MeasurementRollup,
    Outcome,
    OutcomeRollup,
)
from analytics.rollup_coverage import Spans, split_period
from pipeline.models import HitCount, HitKind, Outlet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import date, datetime
    from uuid import UUID

    from django.db.models import QuerySet

    from analytics.calendar_periods import Period

DIMENSIONS: Final = ("outlet", "content_type", "date", "source", "engine_output", "persona")
DEFAULT_DIMENSIONS: Final = ("outlet", "content_type", "date")
_COLUMN_BY_DIMENSION: Final = {
    "outlet": "outlet_id",
    "content_type": "content_type",
    "source": "source_id",
    "engine_output": "engine_output",
    "persona": "persona_id",
}


@dataclass(frozen=True)
class Question:
    """The period, grouping and filters of a request for numbers of one workspace.

    `outlets` and `content_types` are `None` if nothing is filtered; an unknown outlet has no rows.
    """

    workspace_id: UUID
    test: bool
    """Whether it asks about test or live content."""
    period: Period
    group_by: tuple[str, ...] = DEFAULT_DIMENSIONS
    attribution: str = "received"
    """A value of `Attribution`."""
    outlets: tuple[UUID, ...] | None = None
    content_types: tuple[str, ...] | None = None


@dataclass(frozen=True)
class OutletName:
    """An outlet as rows show it."""

    id: UUID
    platform: str
    name: str


@dataclass(frozen=True)
class Dimensions:
    """The requested dimensions of a row; the others are `None`."""

    outlet: OutletName | None = None
    content_type: str | None = None
    date: str | None = None
    source: UUID | None = None
    engine_output: str | None = None
    persona: UUID | None = None


@dataclass(frozen=True)
class AnalyticsRow:
    """The figures of one combination of dimensions."""

    dimensions: Dimensions
    figures: Figures


@dataclass(frozen=True)
class AnalyticsAnswer:
    """The rows of one grouping, with the totals of the whole question."""

    rows: tuple[AnalyticsRow, ...]
    totals: Figures
    fresh_at: datetime | None
    """The newest moment of any outcome or measurement of the workspace, or `None` without any."""


def answer(question: Question) -> AnalyticsAnswer:
    """Return the answer, grouped by the question's `group_by`."""
    (result,) = answers(question, [question.group_by])
    return result


def answers(question: Question, groupings: Sequence[tuple[str, ...]]) -> list[AnalyticsAnswer]:
    """Answer a question in several groupings, which are parts of its `group_by`; the facts are read once."""
    buckets = buckets_of(question.period) if "date" in question.group_by else None
    spans = choose_spans(question, buckets)
    outcomes = [group for groups in outcome_groups(question, buckets, spans) for group in groups]
    measurements = [group for groups in measurement_groups(question, buckets, spans) for group in groups]
    hits = [group for groups in hit_groups(question, buckets, spans) for group in groups]
    outlets = load_outlet_names(question, {group["outlet_id"] for group in (*outcomes, *measurements, *hits)})
    fresh_at = find_newest_moment(question)
    total = Fold()
    grouped_rows: list[dict[RowKey, Fold]] = [{} for _ in groupings]

    def find_folds(group: Mapping[str, Any]) -> Iterator[Fold]:
        """Yield the total and each grouping's row to which the group's numbers are added."""
        yield total
        for rows, group_by in zip(grouped_rows, groupings, strict=True):
            key = _row_key(group_by, group, buckets)
            yield rows.setdefault(key, Fold())

    for group in outcomes:
        for fold in find_folds(group):
            fold.add_outcomes(group, outlets[group["outlet_id"]].platform)
    for group in measurements:
        for fold in find_folds(group):
            fold.add_measurements(group, outlets[group["outlet_id"]].platform)
    for group in hits:
        for fold in find_folds(group):
            fold.add_hits(
                first_party_counts.METRIC_BY_HIT_KIND[group["kind"]],
                group["total"],
                outlets[group["outlet_id"]].platform,
            )
    first_party_counts.add_zeros(question, buckets, total, grouped_rows)
    totals = total.figures()
    return [
        AnalyticsAnswer(
            tuple(
                AnalyticsRow(_dimensions(key, outlets, buckets), rows[key].figures())
                for key in sorted(rows, key=sort_key)
            ),
            totals,
            fresh_at,
        )
        for rows in grouped_rows
    ]


# --- Reading ---------------------------------------------------------------------------------------------------------


def columns(question: Question) -> list[str]:
    """Return the columns to group by, always with the outlet, whose platform tells why a number is missing."""
    return [
        "outlet_id",
        *(_COLUMN_BY_DIMENSION[name] for name in question.group_by if name not in {"date", "outlet"}),
    ]


def _filter_mode(rows: QuerySet[Any], question: Question) -> QuerySet[Any]:
    """Filter by a list of one value: SQLite finds no index for the `NOT test` of a plain filter."""
    return rows.filter(test__in=[question.test])


def choose_spans(question: Question, buckets: Buckets | None) -> Spans:
    """Choose which parts of the period are read from rollups, and which from facts."""

    def find_current(first: date, last: date) -> set[date]:
        return rollup.find_current_days(question.workspace_id, test=question.test, first=first, last=last)

    return split_period(question.period, buckets, find_current)


def _in_scope(rows: QuerySet[Any], question: Question) -> QuerySet[Any]:
    """Filter by the question's mode, outlets and content types."""
    rows = _filter_mode(rows, question)
    if question.outlets is not None:
        rows = rows.filter(outlet_id__in=question.outlets)
    if question.content_types is not None:
        rows = rows.filter(content_type__in=question.content_types)
    return rows


def _unrolled_rows(
    model: type[Any],
    question: Question,
    date_field: str,
    buckets: Buckets | None,
    spans: Spans,
    **filters: str,
) -> QuerySet[Any]:
    """Return the facts of the spans that are read from facts, each with its slice, 0 without buckets."""
    within = Q()
    for start, end in spans.live:
        within |= Q(**{f"{date_field}__gte": start, f"{date_field}__lt": end})
    facts = model.objects.of(question.workspace_id)
    if model is HitCount:
        facts = fact_sums.with_items(facts)
    rows = _in_scope(facts, question).filter(within, **filters)
    sliced: QuerySet[Any] = rows.annotate(slice=fact_sums.Slice(date_field, buckets) if buckets else Value(0))
    return sliced


def _rollup_rows(
    model: type[Any], question: Question, buckets: Buckets | None, spans: Spans, **filters: str
) -> QuerySet[Any]:
    """Return the rollups of the other spans, each with its slice, 0 without buckets."""
    within = Q()
    for start, end in spans.rolled:
        within |= Q(start__gte=int(start.timestamp()), start__lt=int(end.timestamp()))
    unit = DAY if spans.are_days else QUARTER
    rows = _in_scope(model.objects.of(question.workspace_id), question).filter(within, unit=unit, **filters)
    sliced: QuerySet[Any] = rows.annotate(
        slice=fact_sums.SliceOfSeconds("start", buckets) if buckets else Value(0)
    )
    return sliced


def outcome_groups(question: Question, buckets: Buckets | None, spans: Spans) -> Iterator[QuerySet[Any]]:
    """Yield groups by slice, `columns` and `known`, with the counts `published` and `failed`."""
    group_columns = ["slice", *columns(question)]
    if spans.live:
        yield fact_sums.outcome_groups(_unrolled_rows(Outcome, question, "at", buckets, spans), group_columns)
    if spans.rolled:
        yield fact_sums.outcome_groups_of_rollups(
            _rollup_rows(OutcomeRollup, question, buckets, spans), group_columns
        )


def measurement_groups(question: Question, buckets: Buckets | None, spans: Spans) -> Iterator[QuerySet[Any]]:
    """Yield groups by slice, `columns` and `reasons`, which is JSON text, with the sum of each metric."""
    group_columns = ["slice", *columns(question)]
    if spans.live:
        date_field = rollup.ATTRIBUTIONS[question.attribution]
        rows = _unrolled_rows(Measurement, question, date_field, buckets, spans)
        yield fact_sums.measurement_groups(_with_reasons_text(rows), group_columns, reasons="reasons")
    if spans.rolled:
        rows = _rollup_rows(MeasurementRollup, question, buckets, spans, attribution=question.attribution)
        yield fact_sums.measurement_groups_of_rollups(
            _with_reasons_text(rows), group_columns, reasons="reasons"
        )


def hit_groups(question: Question, buckets: Buckets | None, spans: Spans) -> Iterator[QuerySet[Any]]:
    """Yield groups by slice, `columns` and `kind`, with the `total` of what the service counted itself.

    A feed fetch has no item, so it is counted only if the rows are grouped by nothing else than outlet and date.
    """
    group_columns = ["slice", *columns(question)]
    filters = {} if set(question.group_by) <= {"outlet", "date"} else {"kind": HitKind.CLICK}
    if spans.live:
        yield fact_sums.hit_groups(
            _unrolled_rows(HitCount, question, "start", buckets, spans, **filters), group_columns
        )
    if spans.rolled:
        yield fact_sums.hit_groups(
            _rollup_rows(HitRollup, question, buckets, spans, **filters), group_columns
        )


def _with_reasons_text(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Annotate `availability` as text: parsing JSON thousands of times costs more than summing."""
    annotated: QuerySet[Any] = rows.annotate(reasons=Cast("availability", TextField()))
    return annotated


def load_outlet_names(question: Question, ids: set[UUID]) -> dict[UUID, OutletName]:
    """Return names and platforms of the outlets by id."""
    rows = Outlet.objects.of(question.workspace_id).filter(pk__in=ids).values_list("id", "platform", "name")
    return {row[0]: OutletName(*row) for row in rows}


def find_newest_moment(question: Question) -> datetime | None:
    """Return the newest moment of any outcome or measurement, or `None` without any, from two indexes' ends."""

    def newest(rows: QuerySet[Any]) -> Subquery:
        return Subquery(_filter_mode(rows, question).order_by("-at").values("at")[:1])

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


# --- Building rows ---------------------------------------------------------------------------------------------------


class RowKey(NamedTuple):
    """The dimensions that identify a row, in the order of rows; those that aren't asked for are `None`."""

    bucket: int | None
    """The number of the row's bucket, as in `Buckets`."""
    outlet: UUID | None
    content_type: str | None
    source: UUID | None
    engine_output: str | None
    persona: UUID | None


def _row_key(group_by: tuple[str, ...], group: Mapping[str, Any], buckets: Buckets | None) -> RowKey:
    return RowKey(
        buckets.bucket_of(group["slice"]) if buckets and "date" in group_by else None,
        *(group[_COLUMN_BY_DIMENSION[name]] if name in group_by else None for name in _COLUMN_BY_DIMENSION),
    )


def sort_key(key: RowKey) -> tuple[Any, ...]:
    """Return a key that sorts by date, outlet, content type and the others, with `None` last."""
    return tuple((part is None, "" if part is None else part) for part in key)


def _dimensions(key: RowKey, outlets: Mapping[UUID, OutletName], buckets: Buckets | None) -> Dimensions:
    return Dimensions(
        outlet=None if key.outlet is None else outlets[key.outlet],
        content_type=key.content_type,
        date=None if key.bucket is None or buckets is None else buckets.label_of(key.bucket),
        source=key.source,
        engine_output=key.engine_output,
        persona=key.persona,
    )
