"""Views of the analytics: charts and tables of what was published and its results, and the same as CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from accounts.pages.page_access import Place, page
from analytics import queries
from analytics.pages import charts
from analytics.pages.filters import METRIC_NAMES, AnalyticsFilter
from analytics.reports.number_format import format_seconds, number
from analytics.reports.page_report import report
from analytics.reports.punctuality_and_top_posts import performance
from analytics.serialize import as_csv, serialize_row
from config.core.clock import utc_now

if TYPE_CHECKING:
    from django.http import HttpRequest

    from analytics.aggregate import Figures
    from analytics.reports.page_report import Report

_DEFAULT_POST_METRIC: Final = "engagements"
"""Ranks posts if the shown metric isn't one that a post has."""


@page("look", methods=("GET",))
def analytics(request: HttpRequest, place: Place) -> HttpResponse:
    """Show the report of the chosen period and filters."""
    form = _form(request, place)
    context: dict[str, Any] = {"filter": form, "kept": request.GET.urlencode()}
    if not form.is_valid():
        return render(request, "pages/analytics/page.html", context)
    question = form.question()
    shown = report(question, form.cleaned_data["metric"], now=form.now)
    post_metric = _DEFAULT_POST_METRIC if shown.metric in {"published", "failed"} else shown.metric
    results = performance(question, post_metric)
    failed, published = shown.totals.metrics["failed"], shown.totals.metrics["published"]
    ended = (failed or 0) + (published or 0)
    context |= {
        "report": shown,
        "own": shown.own,
        "did": results,
        "metric": METRIC_NAMES[shown.metric],
        "cards": charts.metric_cards(shown.compared),
        "coverage": None if shown.totals.coverage is None else round(shown.totals.coverage * 100),
        "charts": _charts(shown),
        "columns": [METRIC_NAMES[name] for name in charts.TABLE_METRICS],
        "parts": [
            (
                part.name,
                charts.part_type_label(part),
                charts.metric_cells(part.figures),
                _own_clicks(part.figures),
            )
            for part in shown.parts
        ],
        "sources": [(part.name, _published_and_metric(part.figures, shown.metric)) for part in shown.sources],
        "engines": [(part.name, _published_and_metric(part.figures, shown.metric)) for part in shown.engines],
        "posts": [(post, number(post.value, post_metric)) for post in results.best],
        "post_metric": METRIC_NAMES[post_metric],
        "failed_percent": round((failed or 0) * 100 / ended, 1) if ended else None,
        "median": format_seconds(results.lateness.median) if results.lateness else "",
        "worst": format_seconds(results.lateness.worst_twentieth) if results.lateness else "",
        "is_today_in_it": question.period.end > form.now >= question.period.start,
        "zone": question.period.zone.key,
        "is_filtered": bool(request.GET),
    }
    return render(request, "pages/analytics/page.html", context)


@page("look", methods=("GET",))
def analytics_csv(request: HttpRequest, place: Place) -> HttpResponse:
    """Download the rows of `GET /v1/analytics` for what the page shows."""
    form = _form(request, place)
    if not form.is_valid():
        return redirect(f"{place.address('analytics_page')}?{request.GET.urlencode()}")
    question = form.question()
    rows = [serialize_row(row, question.group_by) for row in queries.answer(question).rows]
    response = HttpResponse(as_csv(rows, question.group_by), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="analytics.csv"'
    return response


def _form(request: HttpRequest, place: Place) -> AnalyticsFilter:
    data = request.GET.copy()
    # Fill in the defaults, so that the fields say what is shown.
    if "range" not in data:
        data["range"] = "chosen" if data.get("start") else "30"
    if not data.get("tz"):
        data["tz"] = place.workspace.timezone
    return AnalyticsFilter(data, workspace=place.workspace, now=utc_now())


def _charts(shown: Report) -> list[charts.ChartWithTable]:
    metric = shown.metric
    label = str(METRIC_NAMES[metric])
    return [
        charts.chart_with_table(
            "over-time",
            label,
            _("Compared with the previous period. Gaps: no data"),
            shown.over_time,
            metric,
            line_label=lambda line: _("Previous period") if line.is_before else _("This period"),
        ),
        charts.chart_with_table(
            "by-outlet",
            _("%(metric)s by outlet") % {"metric": label},
            "",
            shown.by_outlet,
            metric,
            line_label=lambda line: line.name,
        ),
        charts.chart_with_table(
            "by-kind",
            _("%(metric)s by kind") % {"metric": label},
            "",
            shown.by_type,
            metric,
            line_label=charts.content_type_label,
        ),
    ]


def _own_clicks(figures: Figures) -> str:
    return number(figures.first_party["clicks"], "clicks")


def _published_and_metric(figures: Figures, metric: str) -> tuple[charts.ChartCell, charts.ChartCell]:
    return charts.metric_cell(figures, "published"), charts.metric_cell(figures, metric)
