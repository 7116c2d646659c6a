"""Serves the analytics page, with charts and tables of publications and their results, and its CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from accounts.pages.page_access import Place, workspace_page
from analytics import queries
from analytics.aggregate import COUNTED
from analytics.pages import charts
from analytics.pages.controls import controls_of, metric_query
from analytics.pages.filters import METRIC_NAMES, AnalyticsFilter
from analytics.pages.rankings import MIN_RANKED_POSTS, build_highlights
from analytics.reports.number_format import format_number, format_seconds
from analytics.reports.page_report import build_report
from analytics.reports.punctuality_and_top_posts import compute_performance
from analytics.reports.rankings import DIMENSIONS, MIN_POSTS
from analytics.serialize import as_csv, serialize_row
from config.core.clock import utc_now

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest

    from analytics.aggregate import Figures
    from analytics.reports.page_report import Chart, Report, ReportLine

_DEFAULT_POST_METRIC: Final = "engagements"
"""The metric that ranks posts if the page shows one that posts don't have."""


@workspace_page("look", methods=("GET",))
def analytics(request: HttpRequest, place: Place) -> HttpResponse:
    """Show the report of the chosen period and filters."""
    form = _form(request, place)
    context: dict[str, Any] = {
        "filter": form,
        "controls": controls_of(form),
        "kept": request.GET.urlencode(),
    }
    if not form.is_valid():
        return render(request, "pages/analytics/page.html", context)
    question = form.question()
    shown_report = build_report(question, form.cleaned_data["metric"], now=form.now)
    context |= {"report": shown_report, "zone": question.period.zone.key}
    if not shown_report.is_empty:
        context |= _headline(form, shown_report)
        context |= _highlights(place, question, shown_report)
        context |= _numbers(shown_report)
    return render(request, "pages/analytics/page.html", context)


def _headline(form: AnalyticsFilter, shown: Report) -> dict[str, Any]:
    period = form.cleaned_data["period"]
    return {
        "cards": [
            (card, metric_query(form, card.metric), card.metric == shown.metric)
            for card in charts.metric_cards(shown.compared, has_before=shown.has_before)
        ],
        "coverage": None if shown.totals.coverage is None else round(shown.totals.coverage * 100),
        "days_before": round(period.days) if shown.has_before else 0,
        "is_today_in_it": period.end > form.now >= period.start,
    }


def _highlights(place: Place, question: queries.Question, shown: Report) -> dict[str, Any]:
    """Return the template context of the best posts, the rankings and the delays."""
    metric = _DEFAULT_POST_METRIC if shown.metric in COUNTED else shown.metric
    results = compute_performance(question, metric, dimensions=DIMENSIONS)
    lateness = results.lateness
    return {
        "did": results,
        "highlights": build_highlights(place, question, results, metric),
        "post_metric": METRIC_NAMES[metric],
        "min_posts": MIN_RANKED_POSTS,
        "min_group_posts": MIN_POSTS,
        "median": format_seconds(lateness.median) if lateness else "",
        "worst": format_seconds(lateness.worst_twentieth) if lateness else "",
    }


def _numbers(shown: Report) -> dict[str, Any]:
    """Return the template context of the charts and tables."""
    failed, published = shown.totals.metrics["failed"], shown.totals.metrics["published"]
    ended = (failed or 0) + (published or 0)
    return {
        "own": shown.own,
        "metric": METRIC_NAMES[shown.metric],
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
        "failed_percent": round((failed or 0) * 100 / ended, 1) if ended else None,
    }


@workspace_page("look", methods=("GET",))
def analytics_csv(request: HttpRequest, place: Place) -> HttpResponse:
    """Download the rows of `GET /v1/analytics` for the page's filters; invalid ones lead to the page."""
    form = _form(request, place)
    if not form.is_valid():
        return redirect(f"{place.url_of('analytics_page')}?{request.GET.urlencode()}")
    question = form.question()
    rows = [serialize_row(row, question.group_by) for row in queries.answer(question).rows]
    response = HttpResponse(as_csv(rows, question.group_by), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="analytics.csv"'
    return response


def _form(request: HttpRequest, place: Place) -> AnalyticsFilter:
    data = request.GET.copy()
    # The defaults are filled in, so that the fields show them.
    if not data.get("range"):
        data["range"] = "chosen" if data.get("start") else "30"
    if not data.get("tz"):
        data["tz"] = place.workspace.timezone
    return AnalyticsFilter(data, workspace=place.workspace, now=utc_now())


def _charts(shown: Report) -> list[charts.ChartWithTable]:
    """Return the charts over time, by outlet and by kind that have any known value."""
    metric = shown.metric
    label = str(METRIC_NAMES[metric])
    specs: list[tuple[str, str, str, Chart, Callable[[ReportLine], str]]] = [
        (
            "over-time",
            label,
            _("Gaps: no data"),
            shown.over_time,
            lambda line: _("Previous period") if line.is_before else _("This period"),
        ),
        (
            "by-outlet",
            _("%(metric)s by outlet") % {"metric": label},
            "",
            shown.by_outlet,
            lambda line: line.name,
        ),
        (
            "by-kind",
            _("%(metric)s by kind") % {"metric": label},
            "",
            shown.by_type,
            charts.content_type_label,
        ),
    ]
    return [
        charts.chart_with_table(name, title, about, source, metric, line_label=line_label)
        for name, title, about, source, line_label in specs
        if not source.is_empty
    ]


def _own_clicks(figures: Figures) -> str:
    return format_number(figures.first_party["clicks"], "clicks")


def _published_and_metric(figures: Figures, metric: str) -> tuple[charts.ChartCell, charts.ChartCell]:
    return charts.metric_cell(figures, "published"), charts.metric_cell(figures, metric)
