"""The sources of a workspace and how each is doing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.shortcuts import render

from accounts.pages.workspace_view import Place, page
from pipeline.models import Source, SourceStatus
from pipeline.pages.sources import health

if TYPE_CHECKING:
    from datetime import datetime

    from django.http import HttpRequest, HttpResponse


@page("look", methods=("GET",))
def sources(request: HttpRequest, place: Place) -> HttpResponse:
    there = Source.objects.of(place.workspace).filter(deleted_at=None, test=False, is_push=False)
    rows = [
        {
            "source": one,
            "kind": health.kind_of(one).label,
            "health": health.health_of(one),
            "where": health.place_of(one),
            "next": _next_of(one),
        }
        for one in there.order_by("name", "id")
    ]
    return render(request, "pages/sources/list.html", {"place": place, "rows": rows})


def _next_of(one: Source) -> datetime | None:
    """When it is polled next; of a brand lane, when it makes something next."""
    if one.status not in {SourceStatus.ACTIVE, SourceStatus.FAILING}:
        return None
    return one.due_at if one.type == "brand" else one.wake_at
