"""What the page of analytics shows of a period: totals beside the period before, series, and who did best.

The facts are read three times, however many charts there are: this period by date, outlet and type, the one before by
date, and this one by source and engine.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC
from typing import TYPE_CHECKING, Final

from analytics import first_party_counts, queries
from analytics.aggregate import COUNTED, METRICS, Figures, Fold
from analytics.periods import Period, labels_of
from pipeline import labels
from pipeline.models import Source
from pipeline.outlets.outlet_client import platform_if_known

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from analytics.queries import AnalyticsAnswer, AnalyticsRow, OutletName, Question

LINES: Final = 8
"""Of a chart; the table has all."""
BEST: Final = 10
_OPENING: Final = ("impressions", "views", "engagements")
"""The metric that is shown where nobody chose one: the first of these that anything is known of."""


@dataclass(frozen=True)
class ReportLine:
    """`values` has one for each label; None where nothing is known."""

    name: str
    values: tuple[int | float | None, ...]
    is_before: bool = False


@dataclass(frozen=True)
class Chart:
    labels: tuple[str, ...]
    lines: tuple[ReportLine, ...]
    left_out: int = 0
    """Lines that are smaller than those shown."""

    @property
    def is_empty(self) -> bool:
        return all(value is None for line in self.lines for value in line.values)


@dataclass(frozen=True)
class Compared:
    """`before` is the same metric of the period before; `change` in percent, None where it can't be told."""

    metric: str
    now: int | float | None
    before: int | float | None
    reason: str

    @property
    def change(self) -> int | None:
        if self.now is None or not self.before or self.before < 0:
            return None
        return round((self.now - self.before) * 100 / self.before)


@dataclass(frozen=True)
class ReportPart:
    """One outlet and type, one source or one engine, in all of the period."""

    name: str
    about: str
    figures: Figures


@dataclass(frozen=True)
class Report:
    metric: str
    totals: Figures
    compared: tuple[Compared, ...]
    over_time: Chart
    by_outlet: Chart
    by_type: Chart
    parts: tuple[ReportPart, ...]
    sources: tuple[ReportPart, ...]
    engines: tuple[ReportPart, ...]
    fresh_at: datetime | None
    own: Mapping[str, int | None]
    """What the service counted itself; fetches of feeds are of no kind, so that they are asked for apart."""
    is_empty: bool
    """Nothing was published, failed or measured within the period."""


def report(question: Question, metric: str, *, now: datetime) -> Report:
    """`metric` is empty where nobody chose one; `question.group_by` is not looked at."""
    dated, by_outlet, by_type, parts, _all = queries.answers(
        replace(question, group_by=("outlet", "content_type", "date")),
        [("date",), ("outlet", "date"), ("content_type", "date"), ("outlet", "content_type"), ()],
    )
    (before,) = queries.answers(
        replace(question, group_by=("date",), period=period_before(question.period)), [("date",)]
    )
    sources, engines = queries.answers(
        replace(question, group_by=("source", "engine_output")), [("source",), ("engine_output",)]
    )
    chosen = metric or _opening(dated.totals)
    frame = _Frame(question.period, chosen, now)
    names = _names(row.dimensions.outlet for row in parts.rows if row.dimensions.outlet)
    return Report(
        metric=chosen,
        totals=dated.totals,
        compared=tuple(_compared(name, dated.totals, before.totals) for name in METRICS),
        over_time=frame.beside(dated, before),
        by_outlet=frame.lines(by_outlet, "outlet"),
        by_type=frame.lines(by_type, "content_type"),
        parts=tuple(
            ReportPart(names[row.dimensions.outlet.id], row.dimensions.content_type or "", row.figures)
            for row in parts.rows
            if row.dimensions.outlet
        ),
        sources=_best(sources, "source", chosen, _sources(question, sources)),
        engines=_best(engines, "engine_output", chosen, {}),
        fresh_at=dated.fresh_at,
        own=_own(question),
        is_empty=not dated.rows,
    )


def period_before(period: Period) -> Period:
    """As long by the clocks on the wall, and over where this one starts."""
    start, end = (
        moment.astimezone(period.zone).replace(tzinfo=None) for moment in (period.start, period.end)
    )
    earlier = (start - (end - start)).replace(tzinfo=period.zone).astimezone(UTC)
    return replace(period, start=earlier, end=period.start)


# --- Inside ----------------------------------------------------------------------------------------------------------


def _own(question: Question) -> Mapping[str, int | None]:
    total = Fold()
    whole = replace(question, group_by=("outlet",))
    for groups in queries.hit_groups(whole, None, queries.spans_for(whole, None)):
        for group in groups:
            total.add_hits(first_party_counts.NAMES[group["kind"]], group["total"], "")
    first_party_counts.add_zeros(whole, None, total, [])
    return total.first_party


def _opening(totals: Figures) -> str:
    return next((name for name in _OPENING if totals.metrics[name] is not None), "published")


def _compared(metric: str, now: Figures, before: Figures) -> Compared:
    return Compared(metric, now.metrics[metric], before.metrics[metric], now.availability.get(metric, ""))


class _Frame:
    """The buckets of a period, into which the rows of an answer are put."""

    def __init__(self, period: Period, metric: str, now: datetime) -> None:
        self.period = period
        self.metric = metric
        self.labels = labels_of(period)
        self.known_until = (
            len(labels_of(replace(period, end=min(period.end, now)))) if now > period.start else 0
        )

    def lines(self, answer: AnalyticsAnswer, dimension: str) -> Chart:
        """One for each value of the dimension, the largest first."""
        rows: dict[str | OutletName, list[AnalyticsRow]] = {}
        for row in answer.rows:
            rows.setdefault(getattr(row.dimensions, dimension), []).append(row)
        names = _names(value for value in rows if not isinstance(value, str))
        lines = [
            ReportLine(value if isinstance(value, str) else names[value.id], self.values(found))
            for value, found in rows.items()
        ]
        lines.sort(key=lambda line: (-sum(value or 0 for value in line.values), line.name))
        return Chart(self.labels, tuple(lines[:LINES]), max(len(lines) - LINES, 0))

    def beside(self, answer: AnalyticsAnswer, before: AnalyticsAnswer) -> Chart:
        """Two lines: the period and the one before it, place by place."""
        earlier = _Frame(period_before(self.period), self.metric, self.period.start)
        then = earlier.values(before.rows)[: len(self.labels)]
        then += (None,) * (len(self.labels) - len(then))
        return Chart(
            self.labels, (ReportLine("", self.values(answer.rows)), ReportLine("", then, is_before=True))
        )

    def values(self, rows: Sequence[AnalyticsRow]) -> tuple[int | float | None, ...]:
        found = {row.dimensions.date: row.figures.metrics[self.metric] for row in rows}
        # That nothing was published is known of a day that is over; that nobody saw anything isn't.
        missing = 0 if self.metric in COUNTED else None
        return tuple(
            found.get(label, missing if place < self.known_until else None)
            for place, label in enumerate(self.labels)
        )


def _names(outlets: Iterable[OutletName]) -> dict[UUID, str]:
    """What each is called; where several are called the same, with its platform."""
    found = set(outlets)
    often = Counter(one.name for one in found)
    return {
        one.id: one.name if often[one.name] == 1 else f"{one.name} ({_label_of(one.platform)})"
        for one in found
    }


def _label_of(platform: str) -> str:
    known = platform_if_known(platform)
    return known.label if known else platform


def _best(
    answer: AnalyticsAnswer, dimension: str, metric: str, names: Mapping[UUID, str]
) -> tuple[ReportPart, ...]:
    """The largest first; of what is unknown the most published."""

    def rank(row: AnalyticsRow) -> tuple[bool, float, float]:
        value = row.figures.metrics[metric]
        return value is None, -(value or 0), -(row.figures.metrics["published"] or 0)

    rows = sorted(answer.rows, key=rank)[:BEST]
    values = [getattr(row.dimensions, dimension) for row in rows]
    return tuple(
        ReportPart(names.get(value, "") if dimension == "source" else value, "", row.figures)
        for row, value in zip(rows, values, strict=True)
    )


def _sources(question: Question, answer: AnalyticsAnswer) -> dict[UUID, str]:
    ids = {row.dimensions.source for row in answer.rows if row.dimensions.source}
    rows = Source.objects.of(question.workspace_id).filter(pk__in=ids)
    return {
        key: labels.source_name_of(name, is_push=is_push)
        for key, name, is_push in rows.values_list("id", "name", "is_push")
    }
