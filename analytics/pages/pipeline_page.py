"""Serves the page of the pipeline: how much is in each stage, and what the oldest of each waits for.

The stages poll for updates; the delivery rates are read only when the page is opened.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _

from accounts.pages.page_access import Place, workspace_page
from accounts.pages.poll_fragment import polling_fragment
from analytics import queries
from analytics.calendar_periods import Period
from analytics.pages.content_flow import count_flow
from analytics.reports.number_format import format_seconds
from analytics.reports.punctuality_and_top_posts import compute_punctuality
from config.core.clock import utc_now

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import HttpRequest

SPANS: Final[Mapping[str, tuple[Any, timedelta]]] = {
    "day": (_("24 hours"), timedelta(days=1)),
    "week": (_("7 days"), timedelta(days=7)),
    "month": (_("30 days"), timedelta(days=30)),
}
_POLL_SECONDS: Final = 10
_FRAGMENT_ID: Final = "stages"


@dataclass(frozen=True)
class Rates:
    """Delivery rates as text, with a dash for an unknown one."""

    on_time: str
    median: str
    """The median delay."""
    worst: str
    """The 95th percentile of the delays."""
    not_published: str
    """The share of publications that failed."""
    not_made: str
    """The share of items that failed before there was anything to publish."""
    is_complete: bool
    """Whether all publications and items of the span were read."""


@workspace_page("look", methods=("GET",))
def pipeline_page(request: HttpRequest, place: Place) -> HttpResponse:
    """Show the stages and the delivery rates of the chosen span."""
    span_name = request.GET.get("span", "day")
    if span_name not in SPANS:
        span_name = "day"
    now = utc_now()
    label, span = SPANS[span_name]
    flow = count_flow(place.workspace, span=span, now=now)
    context: dict[str, Any] = {"flow": flow, "span": label, "public_url": settings.PUBLIC_URL}
    fragment = polling_fragment(
        request,
        _FRAGMENT_ID,
        "pages/analytics/stages.html",
        context,
        css_class="stack",
        interval_seconds=_POLL_SECONDS,
    )
    if isinstance(fragment, HttpResponse):
        return fragment
    context |= {
        "live": fragment,
        "spans": {name: span_label for name, (span_label, _span) in SPANS.items()},
        "chosen": span_name,
        "rates": _rates(place, span) if flow.has_content else None,
    }
    return render(request, "pages/analytics/pipeline.html", context)


def _rates(place: Place, span: timedelta) -> Rates:
    """Return the delivery rates of the span until now, of live content."""
    now = utc_now().astimezone(UTC)
    period = Period(now - span, now, "day", ZoneInfo(place.workspace.timezone))
    question = queries.Question(place.workspace.pk, test=False, period=period, group_by=())
    results = compute_punctuality(question)
    totals = queries.answer(question).totals.metrics
    failed, published = totals["failed"] or 0, totals["published"] or 0
    lateness = results.lateness
    return Rates(
        on_time=_percent(lateness.on_time_percent if lateness else None),
        median=format_seconds(lateness.median) if lateness else "—",
        worst=format_seconds(lateness.worst_twentieth) if lateness else "—",
        not_published=_percent(round(failed * 100 / (failed + published), 1) if failed + published else None),
        not_made=_percent(results.not_made_percent),
        is_complete=results.is_complete,
    )


def _percent(value: float | None) -> str:
    return "—" if value is None else f"{value} %"
