"""Formats report figures and charts; an unknown value is a dash or a gap with its reason, never 0."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from analytics.aggregate import METRICS
from analytics.pages.filters import METRIC_NAMES
from analytics.reports.number_format import format_change, format_number
from pipeline.models import Bucket

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from analytics.aggregate import Figures
    from analytics.reports.page_report import Chart, MetricComparison, ReportLine, ReportPart

REASONS: Final = {
    "unsupported": gettext_lazy("not provided by the platform"),
    "delayed": gettext_lazy("not yet counted"),
    "unavailable": gettext_lazy("not provided"),
}
_CARDS: Final = ("published", "impressions", "views", "engagements", "engagement_rate", "failed")
TABLE_METRICS: Final = METRICS


@dataclass(frozen=True)
class ChartCell:
    """A formatted number, with the reason if it is unknown."""

    text: str
    reason: str = ""


@dataclass(frozen=True)
class ChartCard:
    """A number above the charts."""

    metric: str
    label: str
    text: str
    change: str
    """The change against the period before, or empty if there is none."""
    tone: str
    """The change's tone: `good`, `bad`, or empty if neither is better."""
    about: str
    """The value before, or the reason if the number is unknown, or empty."""


@dataclass(frozen=True)
class ChartWithTable:
    """A chart with its table; `left_out` is the number of smaller lines that aren't drawn."""

    id: str
    title: str
    about: str
    data: dict[str, Any]
    """The JSON that the script draws: `labels`, `percent` and `lines`."""
    names: tuple[str, ...]
    """The names of the lines, which are the table's columns."""
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    """The table's rows: a bucket's label with each line's formatted value."""
    left_out: int


def metric_cell(figures: Figures, metric: str) -> ChartCell:
    """Return the formatted metric with the reason if it is unknown."""
    value = figures.metrics[metric]
    return ChartCell(format_number(value, metric), str(REASONS.get(figures.availability.get(metric, ""), "")))


def metric_cells(figures: Figures) -> list[tuple[str, ChartCell]]:
    """Return each metric's name and cell."""
    return [(str(METRIC_NAMES[metric]), metric_cell(figures, metric)) for metric in TABLE_METRICS]


def metric_cards(compared: Sequence[MetricComparison], *, has_before: bool) -> list[ChartCard]:
    """Return the cards of the most important metrics that are known now, or were before.

    `has_before` says whether anything happened in the period before.
    """
    by_metric = {comparison.metric: comparison for comparison in compared}
    return [
        _card(by_metric[metric], has_before=has_before) for metric in _CARDS if _has_card(by_metric[metric])
    ]


def _has_card(comparison: MetricComparison) -> bool:
    """Return whether the metric is known now or was before; failures need to be above 0 now."""
    if comparison.metric == "failed":
        return bool(comparison.now)
    return comparison.now is not None or comparison.before is not None


def _card(comparison: MetricComparison, *, has_before: bool) -> ChartCard:
    """Return the card of a metric; more failures are bad, more of anything else but posts is good."""
    change, before = comparison.change, comparison.before
    if comparison.now is None:
        about = str(REASONS.get(comparison.reason, ""))
    elif before is None or not has_before:
        about = ""
    else:
        about = _("from %(before)s") % {"before": format_number(before, comparison.metric)}
    tone = ""
    if change and comparison.metric != "published":
        tone = "bad" if (change > 0) == (comparison.metric == "failed") else "good"
    return ChartCard(
        comparison.metric,
        str(METRIC_NAMES[comparison.metric]),
        format_number(comparison.now, comparison.metric),
        "" if change is None else format_change(change),
        tone,
        about,
    )


def chart_with_table(
    name: str, title: str, about: str, source: Chart, metric: str, *, line_label: Callable[[ReportLine], str]
) -> ChartWithTable:
    """Return a chart and its table; `line_label` names its lines."""
    labels = [format_bucket_label(label) for label in source.labels]
    names = tuple(line_label(line) for line in source.lines)
    columns = [[format_number(value, metric) for value in line.values] for line in source.lines]
    is_percent = metric == "engagement_rate"
    return ChartWithTable(
        id=name,
        title=title,
        about=about,
        data={
            "labels": labels,
            "percent": is_percent,
            "lines": [
                {
                    "name": label,
                    "values": [
                        value * 100 if is_percent and value is not None else value for value in line.values
                    ],
                    "before": line.is_before,
                }
                for label, line in zip(names, source.lines, strict=True)
            ],
        },
        names=names,
        rows=tuple((label, tuple(column[index] for column in columns)) for index, label in enumerate(labels)),
        left_out=source.left_out,
    )


def format_day(day: date) -> str:
    return f"{day.day} {day:%b %Y}"


def format_bucket_label(label: str) -> str:
    """Format a bucket's label, a date or a moment, for people.

    A moment gets its UTC offset, which tells an hour apart that a change of the clocks repeats.
    """
    if "T" not in label:
        return format_day(date.fromisoformat(label))
    moment = datetime.fromisoformat(label)
    # The offset follows `YYYY-MM-DDTHH:MM:SS`.
    return f"{moment.day} {moment:%b, %H:%M} ({label[19:]})"


def content_type_label(line: ReportLine) -> str:
    return str(dict(Bucket.choices).get(line.name, line.name))


def part_type_label(part: ReportPart) -> str:
    return str(dict(Bucket.choices).get(part.about, part.about))
