"""Renders page fragments that poll for their own updates with HTMX.

The page must include `components/htmx.html` in its head.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from django.http import HttpResponse
from django.template.loader import render_to_string
from django.utils.html import format_html

if TYPE_CHECKING:
    from django.http import HttpRequest

_STATE_PARAMETER: Final = "poll_state"
"""The parameter of `page_state`; what a page's own address says there is overwritten."""


def polling_fragment(
    request: HttpRequest,
    element_id: str,
    template: str,
    context: dict[str, Any],
    *,
    url: str = "",
    css_class: str = "",
    interval_seconds: int = 0,
    page_state: str = "",
) -> HttpResponse | str:
    """Render a fragment that requests itself every `interval_seconds`, or doesn't poll if that is 0.

    Returns HTML on a full page load, and a response on a poll: 204 if nothing has changed since the digest in
    `seen`, else the fragment. It polls `url`, by default the page's address. The template must render the same
    HTML each time, so it may contain no forms, whose CSRF tokens differ. `page_state` names what the page shows
    outside of the fragment: a poll that finds another one than the page was loaded with reloads the page.
    """
    inner_html = render_to_string(template, context, request)
    digest = hashlib.sha256(f"{interval_seconds}{inner_html}".encode()).hexdigest()[:16]
    is_poll = is_poll_for(request, element_id)
    if is_poll and request.GET.get(_STATE_PARAMETER, "") != page_state:
        return HttpResponse(headers={"HX-Refresh": "true"})
    if is_poll and request.GET.get("seen") == digest:
        # HTMX swaps nothing on a 204, so the focus and what somebody has opened stay.
        return HttpResponse(status=204)
    query = request.GET.copy()
    query["seen"] = digest
    query[_STATE_PARAMETER] = page_state
    htmx_attributes = format_html(
        ' hx-get="{}?{}" hx-trigger="every {}s" hx-swap="outerHTML" hx-target="this"',
        url or request.path,
        query.urlencode(),
        interval_seconds,
    )
    fragment = format_html(
        '<div class="{}" id="{}"{}>{}</div>',
        css_class,
        element_id,
        htmx_attributes if interval_seconds else "",
        inner_html,
    )
    return HttpResponse(fragment) if is_poll else fragment


def is_poll_for(request: HttpRequest, element_id: str) -> bool:
    """Return whether the request is a poll of this fragment."""
    return request.headers.get("HX-Target") == element_id
