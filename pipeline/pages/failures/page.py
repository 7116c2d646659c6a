"""Shows the list of what failed and what is late; the list refreshes itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import render

from accounts.pages.page_access import Place, workspace_page
from accounts.pages.poll_fragment import polling_fragment
from config.core.clock import utc_now
from pipeline.pages.failures import sections as failure_sections
from pipeline.pages.failures.forms import FailureFilter

if TYPE_CHECKING:
    from django.http import HttpRequest

_LIST_ELEMENT_ID: Final = "failures"
_REFRESH_SECONDS: Final = 10


@workspace_page("look", methods=("GET",))
def failures(request: HttpRequest, place: Place) -> HttpResponse:
    """Show the first rows of each section; the parameter `section` names one to show alone, with more rows."""
    filter_form = FailureFilter.from_query(request.GET, place.workspace)
    query = filter_form.query
    section_name = request.GET.get("section", "")
    if section_name not in failure_sections.SECTIONS:
        section_name = ""
    now = utc_now()
    sections = failure_sections.list_sections(place, filter_form, alone=section_name, now=now)
    context: dict[str, Any] = {
        "sections": sections,
        "alone": section_name,
        "query": query,
        "is_filtered": bool(query) or bool(section_name),
        "public_url": settings.PUBLIC_URL,
    }
    fragment = polling_fragment(
        request,
        _LIST_ELEMENT_ID,
        "pages/failures/list.html",
        context,
        css_class="stack",
        interval_seconds=_REFRESH_SECONDS,
    )
    if isinstance(fragment, HttpResponse):
        return fragment
    full_query = f"{query}&section={section_name}".strip("&") if section_name else query
    context |= {
        "part": fragment,
        "filter": filter_form,
        "kept": full_query,
        "zone": place.workspace.timezone,
        "local_time": request.GET.get("local_time", "")[:20],
        "has_acts": place.may_edit and any(row.token for section in sections for row in section.rows),
    }
    return render(request, "pages/failures/page.html", context)
