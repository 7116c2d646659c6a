"""The page of analytics: what was published and what became of it, in charts and tables; and the same as CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from accounts.pages.page_access import Place, page
from analytics import queries
from analytics.pages import charts
from analytics.pages.filters import METRIC_NAMES, AnalyticsFilter
from analytics.reports.number_format import number, seconds_said
from analytics.reports.page_report import report
from analytics.reports.punctuality_and_top_posts import doing
from analytics.serialize import as_csv, serialize_row
from config.core.clock import utc_now

if TYPE_CHECKING:
    from django.http import HttpRequest

    from analytics.aggregate import Figures
    from analytics.reports.page_report import Report

_OF_A_POST: Final = "engagements"
"""By what posts are ranked where the number shown is none that a post has."""


@page("look", methods=("GET",))
def analytics(request: HttpRequest, place: Place) -> HttpResponse:
    form = _form(request, place)
    context: dict[str, Any] = {"filter": form, "kept": request.GET.urlencode()}
    if not form.is_valid():
        return render(request, "pages/analytics/page.html", context)
    question = form.question()
    found = report(question, form.cleaned_data["metric"], now=form.now)
    of_a_post = _OF_A_POST if found.metric in {"published", "failed"} else found.metric
    did = doing(question, of_a_post)
    failed, published = found.totals.metrics["failed"], found.totals.metrics["published"]
    ended = (failed or 0) + (published or 0)
    context |= {
        "report": found,
        "own": found.own,
        "did": did,
        "metric": METRIC_NAMES[found.metric],
        "cards": charts.cards(found.compared),
        "coverage": None if found.totals.coverage is None else round(found.totals.coverage * 100),
        "charts": _charts(found),
        "columns": [METRIC_NAMES[name] for name in charts.COLUMNS],
        "parts": [
            (one.name, charts.part_said(one), charts.cells(one.figures), _own_clicks(one.figures))
            for one in found.parts
        ],
        "sources": [(one.name, _beside(one.figures, found.metric)) for one in found.sources],
        "engines": [(one.name, _beside(one.figures, found.metric)) for one in found.engines],
        "posts": [(post, number(post.value, of_a_post)) for post in did.best],
        "post_metric": METRIC_NAMES[of_a_post],
        "failed_percent": round((failed or 0) * 100 / ended, 1) if ended else None,
        "median": seconds_said(did.lateness.median) if did.lateness else "",
        "worst": seconds_said(did.lateness.worst_twentieth) if did.lateness else "",
        "is_today_in_it": question.period.end > form.now >= question.period.start,
        "zone": question.period.zone.key,
        "is_filtered": bool(request.GET),
    }
    return render(request, "pages/analytics/page.html", context)


@page("look", methods=("GET",))
def analytics_csv(request: HttpRequest, place: Place) -> HttpResponse:
    """The rows of `GET /v1/analytics` for what the page shows."""
    form = _form(request, place)
    if not form.is_valid():
        return redirect(f"{place.address('analytics_page')}?{request.GET.urlencode()}")
    question = form.question()
    rows = [serialize_row(row, question.group_by) for row in queries.answer(question).rows]
    answer = HttpResponse(as_csv(rows, question.group_by), content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = 'attachment; filename="analytics.csv"'
    return answer


def _form(request: HttpRequest, place: Place) -> AnalyticsFilter:
    given = request.GET.copy()
    # What the form opens with stands in its fields, so that they say what is shown.
    if "range" not in given:
        given["range"] = "chosen" if given.get("start") else "30"
    if not given.get("tz"):
        given["tz"] = place.workspace.timezone
    return AnalyticsFilter(given, workspace=place.workspace, now=utc_now())


def _charts(found: Report) -> list[charts.ChartWithTable]:
    metric = found.metric
    label = str(METRIC_NAMES[metric])
    return [
        charts.chart(
            "over-time",
            label,
            _("Compared with the previous period. Gaps: no data"),
            found.over_time,
            metric,
            said=lambda line: _("Previous period") if line.is_before else _("This period"),
        ),
        charts.chart(
            "by-outlet",
            _("%(metric)s by outlet") % {"metric": label},
            "",
            found.by_outlet,
            metric,
            said=lambda line: line.name,
        ),
        charts.chart(
            "by-kind",
            _("%(metric)s by kind") % {"metric": label},
            "",
            found.by_type,
            metric,
            said=charts.type_said,
        ),
    ]


def _own_clicks(figures: Figures) -> str:
    return number(figures.first_party["clicks"], "clicks")


def _beside(figures: Figures, metric: str) -> tuple[charts.ChartCell, charts.ChartCell]:
    return charts.cell(figures, "published"), charts.cell(figures, metric)
