"""The page that lists what failed and what is late; it looks again by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.http import HttpResponse, QueryDict
from django.shortcuts import render

from accounts.pages.page_access import Place, page
from accounts.pages.polling import polling_fragment
from config.core.clock import utc_now
from pipeline.pages.failures import rows
from pipeline.pages.failures.forms import FILTERS, FailureFilter

if TYPE_CHECKING:
    from django.http import HttpRequest

_PART: Final = "failures"
_LIVE_SECONDS: Final = 10


@page("look", methods=("GET",))
def failures(request: HttpRequest, place: Place) -> HttpResponse:
    """`section` shows one of its lists further than its first rows."""
    narrowed, query = filters_of(place, request.GET)
    alone = request.GET.get("section", "")
    if alone not in rows.SECTIONS:
        alone = ""
    now = utc_now()
    found = rows.sections(place, narrowed, alone=alone, now=now)
    context: dict[str, Any] = {
        "sections": found,
        "alone": alone,
        "query": query,
        "is_filtered": bool(query) or bool(alone),
        "public_url": settings.PUBLIC_URL,
    }
    part = polling_fragment(
        request,
        _PART,
        "pages/failures/list.html",
        context,
        css_class="stack",
        interval_seconds=_LIVE_SECONDS,
    )
    if isinstance(part, HttpResponse):
        return part
    kept = f"{query}&section={alone}".strip("&") if alone else query
    context |= {
        "part": part,
        "filter": narrowed,
        "kept": kept,
        "zone": place.workspace.timezone,
        "local_time": request.GET.get("local_time", "")[:20],
        "has_acts": place.may_edit and any(row.token for section in found for row in section.rows),
    }
    return render(request, "pages/failures/page.html", context)


def filters_of(place: Place, given: QueryDict) -> tuple[FailureFilter, str]:
    """The filters, and as an address takes them; what nobody understands is left out."""
    narrowed = FailureFilter(given, workspace=place.workspace)
    if not narrowed.is_valid():
        kept = QueryDict(mutable=True)
        for name in FILTERS:
            if name not in narrowed.errors and given.get(name):
                kept[name] = str(given[name])
        given, narrowed = kept, FailureFilter(kept, workspace=place.workspace)
        narrowed.is_valid()
    query = QueryDict(mutable=True)
    for name in FILTERS:
        if given.get(name):
            query[name] = str(given[name])
    return narrowed, query.urlencode()
