"""The queues of a workspace: their weeks, their next slots, who uses them; and the hold above them."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from django.shortcuts import get_object_or_404, render

from accounts.pages.workspace_view import Place, page
from config.core.clock import utc_now
from pipeline import publish
from pipeline.models import Outlet, PublishQueue
from pipeline.pages.queues import outlook
from pipeline.publish import workspace_hold
from pipeline.text.wall_clock import UnknownZone

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse

SLOTS_SHOWN: Final = 3


def find_queue(place: Place, que: UUID) -> PublishQueue:
    found: PublishQueue = get_object_or_404(
        PublishQueue.objects.of(place.workspace).select_related("workspace"), pk=que
    )
    return found


def outlets_of(place: Place) -> list[Outlet]:
    rows = Outlet.objects.of(place.workspace).filter(deleted_at=None).defer("credentials")
    return list(rows.order_by("id"))


def users_of(queue: PublishQueue, outlets: Sequence[Outlet]) -> list[Outlet]:
    """Those of a workspace's outlets that use it; the default one is used by all that name no other."""
    return [one for one in outlets if one.queue_id == queue.pk or (queue.is_default and one.queue_id is None)]


@page("look", methods=("GET",))
def queues_page(request: HttpRequest, place: Place) -> HttpResponse:
    now, outlets = utc_now(), outlets_of(place)
    there = PublishQueue.objects.of(place.workspace).order_by("-is_default", "name", "id")
    hold = workspace_hold.read(place.workspace)
    coming, has_more = workspace_hold.coming(place.workspace, test=False, now=now) if hold else ([], False)
    context = {
        "place": place,
        "rows": [_shown(one, outlets, now) for one in there],
        "hold": hold,
        "counts": outlook.counts_of(coming),
        "has_more": has_more,
    }
    return render(request, "pages/queues/list.html", context)


def _shown(queue: PublishQueue, outlets: Sequence[Outlet], now: datetime) -> dict[str, Any]:
    return {
        "queue": queue,
        "week": outlook.week_of(queue),
        "next": _next(queue, now),
        "outlets": users_of(queue, outlets),
    }


def _next(queue: PublishQueue, now: datetime) -> list[datetime]:
    """None where it is paused, and where its time zone was dropped from the tables."""
    if queue.is_paused:
        return []
    try:
        return [slot.moment for slot in islice(publish.moments_of(queue, after=now), SLOTS_SHOWN)]
    except UnknownZone:
        return []
