"""Numbers and charts as people read them: what isn't known is a dash and a gap, with its reason, and never 0."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from analytics.aggregate import METRICS
from analytics.pages.filters import METRIC_NAMES
from analytics.reports.number_format import number
from pipeline.models import Bucket

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from analytics.aggregate import Figures
    from analytics.reports.page_report import Chart, Compared, ReportLine, ReportPart

REASONS: Final = {
    "unsupported": gettext_lazy("not provided by the platform"),
    "delayed": gettext_lazy("not yet counted"),
    "unavailable": gettext_lazy("not provided"),
}
_CARDS: Final = ("published", "failed", "impressions", "views", "engagements", "engagement_rate")
COLUMNS: Final = METRICS


@dataclass(frozen=True)
class ChartCell:
    said: str
    reason: str = ""


@dataclass(frozen=True)
class ChartCard:
    label: str
    said: str
    about: str
    """The reason where the number isn't known, else what it was before."""
    tone: str = ""


@dataclass(frozen=True)
class ChartWithTable:
    """A chart with its table; `data` is what the script draws."""

    id: str
    title: str
    about: str
    data: dict[str, Any]
    names: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    is_empty: bool
    left_out: int


def cell(figures: Figures, metric: str) -> ChartCell:
    value = figures.metrics[metric]
    return ChartCell(number(value, metric), str(REASONS.get(figures.availability.get(metric, ""), "")))


def cells(figures: Figures) -> list[tuple[str, ChartCell]]:
    return [(str(METRIC_NAMES[metric]), cell(figures, metric)) for metric in COLUMNS]


def cards(compared: Sequence[Compared]) -> list[ChartCard]:
    return [_card(one) for one in compared if one.metric in _CARDS]


def _card(one: Compared) -> ChartCard:
    if one.now is None:
        about = str(REASONS.get(one.reason, ""))
    elif one.before is None:
        about = _("no earlier data")
    elif one.change is None:
        about = _("Previously %(before)s") % {"before": number(one.before, one.metric)}
    else:
        about = _("%(change)s %% vs %(before)s") % {
            "change": f"{one.change:+d}".replace("-", "\u2212"),
            "before": number(one.before, one.metric),
        }
    tone = "bad" if one.metric == "failed" and one.now else ""
    return ChartCard(str(METRIC_NAMES[one.metric]), number(one.now, one.metric), about, tone)


def chart(
    name: str, title: str, about: str, found: Chart, metric: str, *, said: Callable[[ReportLine], str]
) -> ChartWithTable:
    labels = [day_said(label) for label in found.labels]
    names = tuple(said(line) for line in found.lines)
    columns = [[number(value, metric) for value in line.values] for line in found.lines]
    percent = metric == "engagement_rate"
    return ChartWithTable(
        id=name,
        title=title,
        about=about,
        data={
            "labels": labels,
            "percent": percent,
            "lines": [
                {
                    "name": label,
                    "values": [
                        value * 100 if percent and value is not None else value for value in line.values
                    ],
                    "before": line.is_before,
                }
                for label, line in zip(names, found.lines, strict=True)
            ],
        },
        names=names,
        rows=tuple((label, tuple(column[place] for column in columns)) for place, label in enumerate(labels)),
        is_empty=found.is_empty,
        left_out=found.left_out,
    )


def day_said(label: str) -> str:
    """A bucket's label: a date, or a moment with its offset, which is said where a day has the hour twice."""
    if "T" not in label:
        day = date.fromisoformat(label)
        return f"{day.day} {day:%b %Y}"
    moment = datetime.fromisoformat(label)
    return f"{moment.day} {moment:%b, %H:%M} ({label[19:]})"


def type_said(line: ReportLine) -> str:
    return str(dict(Bucket.choices).get(line.name, line.name))


def part_said(part: ReportPart) -> str:
    return str(dict(Bucket.choices).get(part.about, part.about))
