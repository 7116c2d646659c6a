"""Creates and edits a queue, with a preview of its next slots before it is saved."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from accounts.pages import kept_forms
from accounts.pages.act_messages import report_errors
from accounts.pages.page_access import Place, workspace_page
from config.core.clock import utc_now
from pipeline import publish
from pipeline.models import Publication, PublishQueue
from pipeline.pages.queues.forms import QueueForm, default_values, values_of
from pipeline.pages.queues.views import find_queue, outlets_of, users_of
from pipeline.schedule import queues

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse

    from pipeline.models import Outlet

SLOTS_SHOWN: Final = 10
"""The number of slots in the preview."""


@workspace_page("edit")
def queue_add(request: HttpRequest, place: Place) -> HttpResponse:
    """Create a queue; a POST without `save` only previews its slots, and a double click creates one."""
    initial = default_values(place.workspace)
    form = kept_forms.form_for(request, QueueForm, workspace=place.workspace, initial=initial)
    if request.method == "POST" and "save" in request.POST and form.is_valid():
        if not kept_forms.is_first_sending(request):
            return redirect(place.url_of("queues_page"))
        with report_errors(request, form):
            created = queues.create(place.workspace, form.values(), by=place.user.email)
            messages.success(request, _("%(name)s saved.") % {"name": created.name})
            return redirect(place.url_of("queues_page"))
    new_queue = PublishQueue(workspace=place.workspace)
    context = {"form": form, **_slot_preview(place, form, new_queue, [])}
    return render(request, "pages/queues/detail.html", context)


@workspace_page("edit")
def queue_edit(request: HttpRequest, place: Place, que: UUID) -> HttpResponse:
    """Edit a queue; a POST without `save` only previews its slots. Scheduled posts keep their times."""
    queue, outlets = find_queue(place, que), outlets_of(place)
    form = kept_forms.form_for(
        request, QueueForm, workspace=place.workspace, queue=queue, initial=values_of(queue, outlets)
    )
    if request.method == "POST" and "save" in request.POST and form.is_valid():
        with report_errors(
            request, form, on_overtaken=lambda: form.take_newest(find_queue(place, que).version)
        ):
            expected = form.cleaned_data["version"]
            queues.change(queue, form.values(), by=place.user.email, expected_version=expected)
            message = _("Saved. Scheduled posts keep their time.")
            messages.success(request, message)
            return redirect(place.url_of("queues_page"))
    users = users_of(queue, outlets)
    context = {
        "form": form,
        "queue": queue,
        "users": users,
        **_slot_preview(place, form, queue, users),
    }
    return render(request, "pages/queues/detail.html", context)


def _slot_preview(
    place: Place, form: QueueForm, queue: PublishQueue, users: Sequence[Outlet]
) -> dict[str, Any]:
    """Return the context of the next slots that the queue would have, with the number of posts in each.

    The context is empty if the times of the form have errors. Sets the form's values on `queue` in memory.
    """
    if not form.is_bound:
        form = QueueForm(
            {name: form[name].value() or "" for name in form.fields}, workspace=place.workspace, queue=queue
        )
    if not form.has_times:
        return {}
    for name in ("timezone", "slots", "blackouts", "on_gap", "on_overlap"):
        # The row is never saved; it only carries the form's values to the computation of the slots.
        setattr(queue, name, form.cleaned_data[name])
    slots = islice(publish.moments_of(queue, after=utc_now()), SLOTS_SHOWN)
    moments = [slot.moment for slot in slots]
    due_times = list(
        Publication.objects.of(place.workspace)
        .scheduled()
        .filter(test=False, due_at__in=moments, outlet__in=users)
        .values_list("due_at", flat=True)
    )
    return {
        "zone": queue.timezone,
        "next": [(moment, due_times.count(moment)) for moment in moments],
        "seen": True,
    }
