"""A queue made and changed by page; its next slots are shown before it is saved."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from accounts.pages import form_recovery
from accounts.pages.act_messages import report_errors
from accounts.pages.page_access import Place, page
from config.core.clock import utc_now
from pipeline import publish
from pipeline.models import Publication, PublishQueue
from pipeline.pages.queues.forms import QueueForm, fresh_values, values_of
from pipeline.pages.queues.views import find_queue, outlets_of, users_of
from pipeline.schedule import queues

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse

    from pipeline.models import Outlet

SLOTS_SHOWN: Final = 10


@page("edit")
def queue_add(request: HttpRequest, place: Place) -> HttpResponse:
    initial = fresh_values(place.workspace)
    form = form_recovery.form_for(request, QueueForm, workspace=place.workspace, initial=initial)
    if request.method == "POST" and "save" in request.POST and form.is_valid():
        if not form_recovery.is_first_sending(request):
            return redirect(place.address("queues_page"))
        with report_errors(request, form):
            made = queues.create(place.workspace, form.values(), by=place.user.email)
            messages.success(request, _("%(name)s saved.") % {"name": made.name})
            return redirect(place.address("queues_page"))
    fresh = PublishQueue(workspace=place.workspace)
    context = {"form": form, **_outlook(place, form, fresh, [])}
    return render(request, "pages/queues/detail.html", context)


@page("edit")
def queue_edit(request: HttpRequest, place: Place, que: UUID) -> HttpResponse:
    row, outlets = find_queue(place, que), outlets_of(place)
    form = form_recovery.form_for(
        request, QueueForm, workspace=place.workspace, queue=row, initial=values_of(row, outlets)
    )
    if request.method == "POST" and "save" in request.POST and form.is_valid():
        with report_errors(
            request, form, on_overtaken=lambda: form.take_newest(find_queue(place, que).version)
        ):
            expected = form.cleaned_data["version"]
            queues.change(row, form.values(), by=place.user.email, expected_version=expected)
            said = _("Saved. Scheduled posts keep their time.")
            messages.success(request, said)
            return redirect(place.address("queues_page"))
    users = users_of(row, outlets)
    context = {
        "form": form,
        "queue": row,
        "users": users,
        **_outlook(place, form, row, users),
    }
    return render(request, "pages/queues/detail.html", context)


def _outlook(place: Place, form: QueueForm, row: PublishQueue, users: Sequence[Outlet]) -> dict[str, Any]:
    """The next slots of a queue that is set as the form says, and how many posts each has; nothing of an unsound one."""
    if not form.is_bound:
        form = QueueForm(
            {name: form[name].value() or "" for name in form.fields}, workspace=place.workspace, queue=row
        )
    if not form.has_times:
        return {}
    for name in ("timezone", "slots", "blackouts", "on_gap", "on_overlap"):
        # On the row in memory alone.
        setattr(row, name, form.cleaned_data[name])
    slots = islice(publish.moments_of(row, after=utc_now()), SLOTS_SHOWN)
    moments = [slot.moment for slot in slots]
    taken = list(
        Publication.objects.of(place.workspace)
        .scheduled()
        .filter(test=False, due_at__in=moments, outlet__in=users)
        .values_list("due_at", flat=True)
    )
    return {
        "zone": row.timezone,
        "next": [(moment, taken.count(moment)) for moment in moments],
        "seen": True,
    }
