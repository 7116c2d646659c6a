"""Lists the queues of a workspace, creates the default one, and pauses, resumes and deletes queues."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.http import Http404
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from accounts.pages.act_messages import offer_undo, report_errors
from accounts.pages.page_access import Place, workspace_page
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
"""The number of next slots that the list shows of each queue."""


def find_queue(place: Place, que: UUID) -> PublishQueue:
    """Return the queue. Raises `Http404` if the workspace has none with that id."""
    return get_object_or_404(PublishQueue.objects.of(place.workspace).select_related("workspace"), pk=que)


def outlets_of(place: Place) -> list[Outlet]:
    """Return the workspace's outlets, the oldest first, without their credentials."""
    rows = Outlet.objects.of(place.workspace).filter(deleted_at=None).defer("credentials")
    return list(rows.order_by("id"))


def users_of(queue: PublishQueue, outlets: Sequence[Outlet]) -> list[Outlet]:
    """Return the outlets that use the queue; all outlets without a queue of their own use the default one."""
    return [
        outlet
        for outlet in outlets
        if outlet.queue_id == queue.pk or (queue.is_default and outlet.queue_id is None)
    ]


@workspace_page("look", methods=("GET",))
def queues_page(request: HttpRequest, place: Place) -> HttpResponse:
    """List the queues with their next slots, the default one first, and what releasing the hold now would do."""
    now, outlets = utc_now(), outlets_of(place)
    rows = PublishQueue.objects.of(place.workspace).order_by("-is_default", "name", "id")
    hold = workspace_hold.read_hold(place.workspace)
    coming, has_more = (
        workspace_hold.coming_publications(place.workspace, test=False, now=now) if hold else ([], False)
    )
    context = {
        "rows": [_queue_row(queue, outlets, now) for queue in rows],
        "hold": hold,
        "counts": display.count_outcomes(coming),
        "has_more": has_more,
    }
    return render(request, "pages/queues/list.html", context)


def _queue_row(queue: PublishQueue, outlets: Sequence[Outlet], now: datetime) -> dict[str, Any]:
    """Return a row of the list: the queue with its week, next slots and outlets."""
    return {
        "queue": queue,
        "week": display.describe_week(queue),
        "next": _next_slots(queue, now),
        "outlets": users_of(queue, outlets),
    }


def _next_slots(queue: PublishQueue, now: datetime) -> list[datetime]:
    """Return the next slots, or none if the queue is paused or its time zone no longer exists."""
    if queue.is_paused:
        return []
    try:
        return [slot.moment for slot in islice(publish.moments_of(queue, after=now), SLOTS_SHOWN)]
    except UnknownZone:
        return []


@workspace_page("edit", methods=("POST",))
def queue_begin(request: HttpRequest, place: Place) -> HttpResponse:
    """Create the default queue of a workspace that has none, and redirect to its form."""
    queue = publish.ensure_default_queue(place.workspace)
    messages.success(request, _("%(name)s created.") % {"name": queue.name})
    return redirect(place.url_of("queue_edit", que=queue.pk))


@workspace_page("edit", methods=("POST",))
def queue_pause(request: HttpRequest, place: Place, que: UUID) -> HttpResponse:
    """Pause the queue with an undo, or resume it with `on=yes`."""
    queue, is_on = find_queue(place, que), request.POST.get("on") == "yes"
    with report_errors(request):
        queues.change(queue, {"is_paused": not is_on}, by=place.user.email)
        if is_on:
            message = _("%(name)s resumed.")
            messages.success(request, message % {"name": queue.name})
        else:
            message = _("%(name)s paused. Scheduled posts wait.") % {"name": queue.name}
            offer_undo(request, message, place.url_of("queue_pause", que=que), {"on": "yes"})
    return redirect(place.url_of("queues_page"))


@workspace_page("edit")
def queue_delete(request: HttpRequest, place: Place, que: UUID) -> HttpResponse:
    """Delete the queue on POST; before that, show a page that says how many posts it has scheduled.

    The page says so because nothing tells afterwards which posts these were. Raises `Http404` for the default queue,
    which can't be deleted.
    """
    queue = find_queue(place, que)
    if request.method == "POST":
        with report_errors(request):
            queues.delete(queue, by=place.user.email)
            messages.success(request, _("%(name)s deleted.") % {"name": queue.name})
        return redirect(place.url_of("queues_page"))
    if queue.is_default:
        raise Http404
    scheduled = Publication.objects.of(place.workspace).scheduled().filter(test=False, queue=queue)
    context = {
        "queue": queue,
        "promised": scheduled.count(),
        "users": users_of(queue, outlets_of(place)),
    }
    return render(request, "pages/queues/delete.html", context)
