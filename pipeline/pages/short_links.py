"""Redirects a short link to its target, and counts the click without a cookie or a trace of the person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import Http404, HttpResponse
from django.utils.encoding import iri_to_uri

from config.core.clock import utc_now
from config.core.middleware import error_response
from pipeline.outlets import hit_counts, short_links

if TYPE_CHECKING:
    from django.http import HttpRequest


def short_link(request: HttpRequest, code: str) -> HttpResponse:
    """Redirect to the address that the item linked; the response is a 405 for methods other than GET and HEAD.

    GET requests that look like a person's are counted; robots and HEAD requests aren't. Raises `Http404` if the code is
    unknown.
    """
    if request.method not in {"GET", "HEAD"}:
        return error_response("method_not_allowed", headers={"Allow": "GET, HEAD"})
    link = short_links.find(code)
    if link is None:
        raise Http404
    if request.method == "GET" and hit_counts.is_counted_click(request.headers):
        hit_counts.count_click(link, utc_now())
    headers = {
        "Location": iri_to_uri(link.target),
        # The redirect isn't cached, so that each click is counted.
        "Cache-Control": "private, no-store",
        "X-Robots-Tag": "noindex, nofollow",
    }
    return HttpResponse(status=302, headers=headers)
