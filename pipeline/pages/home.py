"""View of a workspace's first page: new content, what waits for review, what is due and what failed.

A newcomer is also shown what to do first.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.shortcuts import render
from django.utils.translation import gettext_lazy as _

from accounts.pages.page_access import Place, workspace_page
from config.core.clock import utc_now
from pipeline.dashboard.overview import read_overview

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import HttpRequest, HttpResponse

SPANS: Final[Mapping[str, tuple[Any, timedelta]]] = {
    "day": (_("Last day"), timedelta(days=1)),
    "week": (_("Last week"), timedelta(days=7)),
}
"""Label and length of each span, by its value of the query parameter `since`."""


@workspace_page("look", methods=("GET",))
def home(request: HttpRequest, place: Place) -> HttpResponse:
    """Show the dashboard of the last day or week; an unknown `since` means the day."""
    chosen = request.GET.get("since", "day")
    if chosen not in SPANS:
        chosen = "day"
    now = utc_now()
    dashboard = read_overview(place.workspace, since=now - SPANS[chosen][1], now=now)
    context = {
        "seen": dashboard,
        "spans": {name: label for name, (label, _length) in SPANS.items()},
        "chosen": chosen,
    }
    return render(request, "pages/home.html", context)
