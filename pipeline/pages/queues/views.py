"""The queues of a workspace, and what is done with one by a click: begin, pause, go on, delete."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.http import Http404
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from accounts.pages.act_messages import offer_undo, report_errors
from accounts.pages.page_access import Place, page
from config.core.clock import utc_now
from pipeline import publish
from pipeline.models import Outlet, Publication, PublishQueue
from pipeline.pages.queues import display
from pipeline.publish import workspace_hold
from pipeline.schedule import queues
from pipeline.text.local_time import UnknownZone

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse

SLOTS_SHOWN: Final = 3


def find_queue(place: Place, que: UUID) -> PublishQueue:
    return get_object_or_404(PublishQueue.objects.of(place.workspace).select_related("workspace"), pk=que)


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
    hold = workspace_hold.read_hold(place.workspace)
    coming, has_more = (
        workspace_hold.coming_publications(place.workspace, test=False, now=now) if hold else ([], False)
    )
    context = {
        "rows": [_shown(one, outlets, now) for one in there],
        "hold": hold,
        "counts": display.counts_of(coming),
        "has_more": has_more,
    }
    return render(request, "pages/queues/list.html", context)


def _shown(queue: PublishQueue, outlets: Sequence[Outlet], now: datetime) -> dict[str, Any]:
    return {
        "queue": queue,
        "week": display.week_of(queue),
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


@page("edit", methods=("POST",))
def queue_begin(request: HttpRequest, place: Place) -> HttpResponse:
    """Makes the default queue of a workspace that has none yet."""
    made = publish.default_queue(place.workspace)
    messages.success(request, _("%(name)s created.") % {"name": made.name})
    return redirect(place.address("queue_edit", que=made.pk))


@page("edit", methods=("POST",))
def queue_pause(request: HttpRequest, place: Place, que: UUID) -> HttpResponse:
    """Pauses, and goes on with `on=yes`."""
    row, is_on = find_queue(place, que), request.POST.get("on") == "yes"
    with report_errors(request):
        queues.change(row, {"is_paused": not is_on}, by=place.user.email)
        if is_on:
            said = _("%(name)s resumed.")
            messages.success(request, said % {"name": row.name})
        else:
            said = _("%(name)s paused. Scheduled posts wait.") % {"name": row.name}
            offer_undo(request, said, place.address("queue_pause", que=que), {"on": "yes"})
    return redirect(place.address("queues_page"))


@page("edit")
def queue_delete(request: HttpRequest, place: Place, que: UUID) -> HttpResponse:
    """Asks first, and says what becomes of what was promised by it: nothing tells afterwards which that was."""
    row = find_queue(place, que)
    if request.method == "POST":
        with report_errors(request):
            queues.delete(row, by=place.user.email)
            messages.success(request, _("%(name)s deleted.") % {"name": row.name})
        return redirect(place.address("queues_page"))
    if row.is_default:
        raise Http404
    promised = Publication.objects.of(place.workspace).scheduled().filter(test=False, queue=row)
    context = {
        "queue": row,
        "promised": promised.count(),
        "users": users_of(row, outlets_of(place)),
    }
    return render(request, "pages/queues/delete.html", context)
