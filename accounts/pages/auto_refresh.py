"""Parts of a page that look again by themselves; its head includes `components/htmx.html`."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from django.http import HttpResponse
from django.template.loader import render_to_string
from django.utils.html import format_html

if TYPE_CHECKING:
    from django.http import HttpRequest


def look_again(
    request: HttpRequest,
    part: str,
    template: str,
    context: dict[str, Any],
    *,
    address: str = "",
    css: str = "",
    seconds: int = 0,
) -> HttpResponse | str:
    """A part of a page that asks for itself every few seconds, 0 for one that is done; by default at the page's address.

    To a page it is HTML to put in; to the part's own question it is an answer, without content where nothing has
    changed, so that neither the focus nor what somebody has opened is lost. `part` is the element's id. The template
    must say the same in every rendering: no forms, whose tokens differ.
    """
    inner = render_to_string(template, context, request)
    digest = hashlib.sha256(f"{seconds}{inner}".encode()).hexdigest()[:16]
    is_asked_for = asks_for_part(request, part)
    if is_asked_for and request.GET.get("seen") == digest:
        return HttpResponse(status=204)
    query = request.GET.copy()
    query["seen"] = digest
    asks = format_html(
        ' hx-get="{}?{}" hx-trigger="every {}s" hx-swap="outerHTML" hx-target="this"',
        address or request.path,
        query.urlencode(),
        seconds,
    )
    whole = format_html('<div class="{}" id="{}"{}>{}</div>', css, part, asks if seconds else "", inner)
    return HttpResponse(whole) if is_asked_for else whole


def asks_for_part(request: HttpRequest, part: str) -> bool:
    return request.headers.get("HX-Target") == part
