"""View that redirects a short link to its target.

It counts the click without a cookie or any trace of the person.
"""

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
    """Redirect to what the item linked. Raises `Http404` for an unknown code.

    GET requests that look like a person's are counted; robots and HEAD requests aren't.
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
        # Not cached, so that each time somebody follows it is counted.
        "Cache-Control": "private, no-store",
        "X-Robots-Tag": "noindex, nofollow",
    }
    return HttpResponse(status=302, headers=headers)
