"""Serves a development instance's sample feed, of an invented library, and its webhook receiver."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.http import HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import condition

from config.core.middleware import error_response

if TYPE_CHECKING:
    from django.http import HttpRequest

PATH: Final = "/demo/feed.xml"
RECEIVER_PATH: Final = "/demo/webhook"
_FILE: Final = Path(__file__).with_name("sample_feed.xml")


def _etag(_request: HttpRequest) -> str:
    return f'"{hashlib.sha256(_FILE.read_bytes()).hexdigest()[:32]}"'


@condition(etag_func=_etag)
def feed(request: HttpRequest) -> HttpResponse:
    """Answer the sample feed of six entries, or 404 outside of development."""
    if not settings.IS_DEVELOPMENT:
        return error_response("not_found")
    if request.method not in {"GET", "HEAD"}:
        return error_response("method_not_allowed", headers={"Allow": "GET, HEAD"})
    return HttpResponse(_FILE.read_bytes(), content_type="application/rss+xml; charset=utf-8")


@csrf_exempt
def receiver(request: HttpRequest) -> HttpResponse:
    """Accept every webhook of the demo and store none; answer 404 outside of development."""
    if not settings.IS_DEVELOPMENT:
        return error_response("not_found")
    if request.method != "POST":
        return error_response("method_not_allowed", headers={"Allow": "POST"})
    return HttpResponse(status=204)
