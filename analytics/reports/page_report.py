"""Computes the report of the analytics page: totals compared with the period before, series and rankings.

The facts are read three times, however many charts there are: this period by date, outlet and type, the one
before by date, and this one by source and engine.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC
from typing import TYPE_CHECKING, Final

from analytics import first_party_counts, queries
from analytics.aggregate import COUNTED, METRICS, Figures, Fold
from analytics.calendar_periods import Period, labels_of
from pipeline import labels
from pipeline.models import Source
from pipeline.outlets.outlet_client import platform_if_known

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from analytics.queries import AnalyticsAnswer, AnalyticsRow, OutletName, Question

MAX_LINES: Final = 8
"""The most lines of a chart, the largest first."""
MAX_RANKED_PARTS: Final = 10
"""The most sources, and the most engines."""
_DEFAULT_METRICS: Final = ("impressions", "views", "engagements")
"""If nobody chose a metric, the first of these with any known value is shown."""


@dataclass(frozen=True)
class ReportLine:
    """A line of a chart; `values` has a number for each label, or `None` if it is unknown."""

    name: str
    values: tuple[int | float | None, ...]
    is_before: bool = False


@dataclass(frozen=True)
class Chart:
    """Lines over the same buckets, which `labels` names."""

    labels: tuple[str, ...]
    lines: tuple[ReportLine, ...]
    left_out: int = 0
    """The number of smaller lines that aren't shown."""

    @property
    def is_empty(self) -> bool:
        return all(value is None for line in self.lines for value in line.values)


@dataclass(frozen=True)
class MetricComparison:
    """A metric's total, and its total in the period before."""

    metric: str
    now: int | float | None
    before: int | float | None
    reason: str
    """Why `now` is unknown, or empty."""

    @property
    def change(self) -> int | None:
        """The change in percent, or `None` if a total is unknown or the one before isn't above 0."""
        if self.now is None or not self.before or self.before < 0:
            return None
        return round((self.now - self.before) * 100 / self.before)


@dataclass(frozen=True)
class ReportPart:
    """One outlet and type, one source or one engine, over the whole period."""

    name: str
    about: str
    """The type of content, or empty."""
    figures: Figures


@dataclass(frozen=True)
class Report:
    """The numbers of the analytics page; `metric` is the one that its charts show."""

    metric: str
    totals: Figures
    compared: tuple[MetricComparison, ...]
    over_time: Chart
    by_outlet: Chart
    by_type: Chart
    parts: tuple[ReportPart, ...]
    sources: tuple[ReportPart, ...]
    engines: tuple[ReportPart, ...]
    fresh_at: datetime | None
    own: Mapping[str, int | None]
    """The service's counts, queried separately because feed fetches have no content type."""
    has_before: bool
    """Whether anything happened in the period before."""
    is_empty: bool
    """Whether nothing was published, failed or measured within the period."""


def build_report(question: Question, metric: str, *, now: datetime) -> Report:
    """Return a period's report; an empty `metric` stands for the default, `question.group_by` is ignored."""
    dated, by_outlet, by_type, parts, _all = queries.answers(
        replace(question, group_by=("outlet", "content_type", "date")),
        [("date",), ("outlet", "date"), ("content_type", "date"), ("outlet", "content_type"), ()],
    )
    (earlier,) = queries.answers(
        replace(question, group_by=("date",), period=period_before(question.period)), [("date",)]
    )
    sources, engines = queries.answers(
        replace(question, group_by=("source", "engine_output")), [("source",), ("engine_output",)]
    )
    shown_metric = metric or _default_metric(dated.totals)
    series = _Series(question.period, shown_metric, now)
    names = _unique_names(row.dimensions.outlet for row in parts.rows if row.dimensions.outlet)
    return Report(
        metric=shown_metric,
        totals=dated.totals,
        compared=tuple(_comparison(name, dated.totals, earlier.totals) for name in METRICS),
        over_time=series.compare(dated, earlier),
        by_outlet=series.lines(by_outlet, "outlet"),
        by_type=series.lines(by_type, "content_type"),
        parts=tuple(
            ReportPart(names[row.dimensions.outlet.id], row.dimensions.content_type or "", row.figures)
            for row in parts.rows
            if row.dimensions.outlet
        ),
        sources=_ranked(
            sources,
            "source",
            shown_metric,
            read_source_names(
                question, [row.dimensions.source for row in sources.rows if row.dimensions.source]
            ),
        ),
        engines=_ranked(engines, "engine_output", shown_metric, {}),
        fresh_at=dated.fresh_at,
        own=_first_party_totals(question),
        has_before=bool(earlier.rows),
        is_empty=not dated.rows,
    )


def period_before(period: Period) -> Period:
    """Return the period of the same local length that ends where this one starts."""
    start, end = (
        moment.astimezone(period.zone).replace(tzinfo=None) for moment in (period.start, period.end)
    )
    earlier = (start - (end - start)).replace(tzinfo=period.zone).astimezone(UTC)
    return replace(period, start=earlier, end=period.start)


# --- Helpers ---------------------------------------------------------------------------------------------------------


def _first_party_totals(question: Question) -> Mapping[str, int | None]:
    """Return what the service counted itself in the whole period, with feed fetches."""
    total = Fold()
    by_outlet = replace(question, group_by=("outlet",))
    for groups in queries.hit_groups(by_outlet, None, queries.choose_spans(by_outlet, None)):
        for group in groups:
            total.add_hits(first_party_counts.METRIC_BY_HIT_KIND[group["kind"]], group["total"], "")
    first_party_counts.add_zeros(by_outlet, None, total, [])
    return total.first_party


def _default_metric(totals: Figures) -> str:
    return next((name for name in _DEFAULT_METRICS if totals.metrics[name] is not None), "published")


def _comparison(metric: str, now: Figures, earlier: Figures) -> MetricComparison:
    return MetricComparison(
        metric, now.metrics[metric], earlier.metrics[metric], now.availability.get(metric, "")
    )


class _Series:
    """Fills the buckets of a period with the rows of an answer."""

    def __init__(self, period: Period, metric: str, now: datetime) -> None:
        self.period = period
        self.metric = metric
        self.labels = labels_of(period)
        # The number of buckets that have begun by `now`.
        self.known_until = (
            len(labels_of(replace(period, end=min(period.end, now)))) if now > period.start else 0
        )

    def lines(self, answer: AnalyticsAnswer, dimension: str) -> Chart:
        """Return a line for each value of the dimension, the largest `MAX_LINES` first."""
        rows: dict[str | OutletName, list[AnalyticsRow]] = {}
        for row in answer.rows:
            rows.setdefault(getattr(row.dimensions, dimension), []).append(row)
        names = _unique_names(value for value in rows if not isinstance(value, str))
        lines = [
            ReportLine(value if isinstance(value, str) else names[value.id], self.values(rows_of_value))
            for value, rows_of_value in rows.items()
        ]
        lines.sort(key=lambda line: (-sum(value or 0 for value in line.values), line.name))
        return Chart(self.labels, tuple(lines[:MAX_LINES]), max(len(lines) - MAX_LINES, 0))

    def compare(self, answer: AnalyticsAnswer, earlier_answer: AnalyticsAnswer) -> Chart:
        """Return two lines, this period and the one before it, bucket by bucket."""
        earlier = _Series(period_before(self.period), self.metric, self.period.start)
        earlier_values = earlier.values(earlier_answer.rows)[: len(self.labels)]
        earlier_values += (None,) * (len(self.labels) - len(earlier_values))
        return Chart(
            self.labels,
            (ReportLine("", self.values(answer.rows)), ReportLine("", earlier_values, is_before=True)),
        )

    def values(self, rows: Sequence[AnalyticsRow]) -> tuple[int | float | None, ...]:
        """Return the metric's value in each bucket; an unknown or future one is `None`."""
        value_by_label = {row.dimensions.date: row.figures.metrics[self.metric] for row in rows}
        # A missing count of a past day is 0, because we count it ourselves; a missing metric of a platform is
        # unknown.
        missing = 0 if self.metric in COUNTED else None
        return tuple(
            value_by_label.get(label, missing if index < self.known_until else None)
            for index, label in enumerate(self.labels)
        )


def _unique_names(outlets: Iterable[OutletName]) -> dict[UUID, str]:
    """Return each outlet's name, with its platform if several have the same name."""
    distinct = set(outlets)
    name_counts = Counter(outlet.name for outlet in distinct)
    return {
        outlet.id: outlet.name
        if name_counts[outlet.name] == 1
        else f"{outlet.name} ({_platform_label(outlet.platform)})"
        for outlet in distinct
    }


def _platform_label(platform: str) -> str:
    plugin = platform_if_known(platform)
    return plugin.label if plugin else platform


def _ranked(
    answer: AnalyticsAnswer, dimension: str, metric: str, names: Mapping[UUID, str]
) -> tuple[ReportPart, ...]:
    """Return the first rows by the metric, the largest first, and by posts those without a value."""

    def rank(row: AnalyticsRow) -> tuple[bool, float, float]:
        value = row.figures.metrics[metric]
        return value is None, -(value or 0), -(row.figures.metrics["published"] or 0)

    rows = sorted(answer.rows, key=rank)[:MAX_RANKED_PARTS]
    values = [getattr(row.dimensions, dimension) for row in rows]
    return tuple(
        ReportPart(names.get(value, "") if dimension == "source" else value, "", row.figures)
        for row, value in zip(rows, values, strict=True)
    )


def read_source_names(question: Question, ids: Collection[UUID]) -> dict[UUID, str]:
    """Return the names of the workspace's sources by id, including deleted ones."""
    rows = Source.objects.of(question.workspace_id).filter(pk__in=ids)
    return {
        key: labels.source_name_of(name, is_push=is_push)
        for key, name, is_push in rows.values_list("id", "name", "is_push")
    }
