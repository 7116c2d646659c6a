"""The list of keys, the page of one, and its last requests."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from django.http import HttpResponse
from django.shortcuts import render

from accounts.access import recent_requests
from accounts.pages.keys import labels
from accounts.pages.workspace_view import Place, page
from config.core.clock import utc_now

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest


@page("manage", methods=("GET",))
def keys(request: HttpRequest, place: Place) -> HttpResponse:
    now = utc_now()
    is_with_ended = request.GET.get("ended") == "1"
    ended = labels.count_ended(place, now)
    context = {
        "keys": labels.live(place, now),
        "ended": labels.ended(place, now) if is_with_ended else [],
        "ended_count": ended,
        "is_with_ended": is_with_ended,
        "ended_shown": labels.ENDED_SHOWN,
    }
    return render(request, "pages/keys/list.html", context)


@page("manage", methods=("GET",))
def key(request: HttpRequest, place: Place, token_id: UUID) -> HttpResponse:
    found = labels.find(place, token_id)
    context = {"key": found, "examples": labels.examples(found.token) if found.is_live else []}
    return render(request, "pages/keys/detail.html", {**context, **_requests(found)})


@page("manage", methods=("GET",))
def requests(request: HttpRequest, place: Place, token_id: UUID) -> HttpResponse:
    """A part of a key's page, asked for again and again; 204 while there is nothing that the page doesn't show."""
    found = labels.find(place, token_id)
    context = _requests(found)
    if request.GET.get("seen") == context["seen"]:
        return HttpResponse(status=204)
    return render(request, "pages/keys/requests.html", {"key": found, **context})


def _requests(found: labels.Key) -> dict[str, Any]:
    rows = recent_requests.of(found.token.pk)
    seen = hashlib.sha256(repr(rows).encode()).hexdigest()[:16]
    return {"requests": rows, "seen": seen}
