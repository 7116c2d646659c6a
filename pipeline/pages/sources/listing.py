"""The sources of a workspace and how each is doing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.shortcuts import render

from accounts.pages.place import Place, page
from pipeline.models import Source
from pipeline.pages.sources import words

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


@page("look", methods=("GET",))
def sources(request: HttpRequest, place: Place) -> HttpResponse:
    there = Source.objects.of(place.workspace).filter(deleted_at=None, test=False, is_push=False)
    rows = [
        {
            "source": one,
            "kind": words.kind_of(one).label,
            "health": words.health_of(one),
            "where": words.place_of(one),
            "next": one.wake_at if one.status in {"active", "failing"} else None,
        }
        for one in there.order_by("name", "id")
    ]
    return render(request, "pages/sources.html", {"place": place, "rows": rows})
