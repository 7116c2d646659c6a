"""The page of the pipeline: what entered, is being made, waits, is due, late and failed, with the oldest of
each and why.

The stages look again by themselves; how punctual the pipeline was is read when the page is opened.
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

from accounts.pages.auto_refresh import polling_fragment
from accounts.pages.page_access import Place, page
from analytics import queries
from analytics.pages.stages import flow
from analytics.periods import Period
from analytics.reports.number_format import seconds_said
from analytics.reports.punctuality_and_top_posts import punctuality
from config.core.clock import utc_now

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import HttpRequest

SPANS: Final[Mapping[str, tuple[Any, timedelta]]] = {
    "day": (_("24 hours"), timedelta(days=1)),
    "week": (_("7 days"), timedelta(days=7)),
    "month": (_("30 days"), timedelta(days=30)),
}
_LIVE_SECONDS: Final = 10
_PART: Final = "stages"


@dataclass(frozen=True)
class Rates:
    """In words; a dash where there was nothing to be punctual with."""

    on_time: str
    median: str
    worst: str
    not_published: str
    not_made: str
    is_whole: bool


@page("look", methods=("GET",))
def pipeline_page(request: HttpRequest, place: Place) -> HttpResponse:
    chosen = request.GET.get("span", "day")
    if chosen not in SPANS:
        chosen = "day"
    now = utc_now()
    label, span = SPANS[chosen]
    seen = flow(place.workspace, span=span, now=now)
    context: dict[str, Any] = {"flow": seen, "span": label, "public_url": settings.PUBLIC_URL}
    part = polling_fragment(
        request,
        _PART,
        "pages/analytics/stages.html",
        context,
        css_class="stack",
        interval_seconds=_LIVE_SECONDS,
    )
    if isinstance(part, HttpResponse):
        return part
    context |= {
        "live": part,
        "spans": {name: said for name, (said, _span) in SPANS.items()},
        "chosen": chosen,
        "rates": _rates(place, span) if seen.has_content else None,
    }
    return render(request, "pages/analytics/pipeline.html", context)


def _rates(place: Place, span: timedelta) -> Rates:
    now = utc_now().astimezone(UTC)
    period = Period(now - span, now, "day", ZoneInfo(place.workspace.timezone))
    question = queries.Question(place.workspace.pk, test=False, period=period, group_by=())
    did = punctuality(question)
    ended = queries.answer(question).totals.metrics
    failed, published = ended["failed"] or 0, ended["published"] or 0
    late = did.lateness
    return Rates(
        on_time=_percent(late.on_time_percent if late else None),
        median=seconds_said(late.median) if late else "—",
        worst=seconds_said(late.worst_twentieth) if late else "—",
        not_published=_percent(round(failed * 100 / (failed + published), 1) if failed + published else None),
        not_made=_percent(did.not_made_percent),
        is_whole=did.is_whole,
    )


def _percent(value: float | None) -> str:
    return "—" if value is None else f"{value} %"
