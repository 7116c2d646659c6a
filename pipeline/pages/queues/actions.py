"""What is done with a queue by a click: begin with the usual one, pause it, go on with it, delete it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.http import Http404
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from accounts.pages.feedback import offer_undo, report_errors
from accounts.pages.workspace_view import Place, page
from pipeline import publish
from pipeline.models import Publication
from pipeline.pages.queues.listing import find_queue, outlets_of, users_of
from pipeline.schedule import queues

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse


@page("edit", methods=("POST",))
def queue_begin(request: HttpRequest, place: Place) -> HttpResponse:
    """Makes the default queue of a workspace that has none yet."""
    made = publish.default_queue(place.workspace)
    messages.success(request, _("%(name)s is there; change its times as you like.") % {"name": made.name})
    return redirect(place.address("queue_edit", que=made.pk))


@page("edit", methods=("POST",))
def queue_pause(request: HttpRequest, place: Place, que: UUID) -> HttpResponse:
    """Pauses, and goes on with `on=yes`."""
    row, is_on = find_queue(place, que), request.POST.get("on") == "yes"
    with report_errors(request):
        queues.change(row, {"is_paused": not is_on}, by=place.user.email)
        if is_on:
            said = _("%(name)s goes on. What waited for it goes out at each outlet's own pace.")
            messages.success(request, said % {"name": row.name})
        else:
            said = _("%(name)s is paused. What was promised by it waits.") % {"name": row.name}
            offer_undo(request, said, place.address("queue_pause", que=que), {"on": "yes"})
    return redirect(place.address("queues_page"))


@page("edit")
def queue_delete(request: HttpRequest, place: Place, que: UUID) -> HttpResponse:
    """Asks first, and says what becomes of what was promised by it: nothing tells afterwards which that was."""
    row = find_queue(place, que)
    if request.method == "POST":
        with report_errors(request):
            queues.delete(row, by=place.user.email)
            messages.success(request, _("%(name)s is deleted.") % {"name": row.name})
        return redirect(place.address("queues_page"))
    if row.is_default:
        raise Http404
    promised = Publication.objects.of(place.workspace).scheduled().filter(test=False, queue=row)
    context = {
        "place": place,
        "queue": row,
        "promised": promised.count(),
        "users": users_of(row, outlets_of(place)),
    }
    return render(request, "pages/queues/delete.html", context)
