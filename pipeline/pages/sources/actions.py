"""What is done with a source: pause, resume, poll now, delete, take that back, admit one entry, change its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.http import QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from accounts.pages import form_recovery
from accounts.pages.act_messages import offer_undo, report_errors
from accounts.pages.page_access import Place, page
from config.core.clock import utc_now
from config.core.ids import encode
from pipeline import personas
from pipeline.ingest import collect, replan
from pipeline.models import RawItem
from pipeline.pages.sources import lanes
from pipeline.pages.sources.forms import SourceSettingsForm, values_of
from pipeline.pages.sources.views import find_source, source_head

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse


@page("edit", methods=("POST",))
def source_pause(request: HttpRequest, place: Place, src: UUID) -> HttpResponse:
    """Pauses, and resumes with `active=yes`; with `list`, the query of the list, it leads back there."""
    row = find_source(place, src)
    is_active = request.POST.get("active") == "yes"
    changes = {"status": "active" if is_active else "paused"}
    back = {"list": request.POST["list"]} if "list" in request.POST else {}
    with report_errors(request):
        collect.change(row, changes, workspace=place.workspace, now=utc_now())
        said = _("%(name)s switched on.") if is_active else _("%(name)s paused.")
        opposite = {"active": "no" if is_active else "yes", **back}
        offer_undo(request, said % {"name": row.name}, place.address("source_pause", src=src), opposite)
    if not back:
        return redirect(place.address("source_page", src=src))
    query = QueryDict(back["list"]).urlencode()
    return redirect(f"{place.address('sources_page')}?{query}#{encode('src', src)}")


@page("edit", methods=("POST",))
def source_poll(request: HttpRequest, place: Place, src: UUID) -> HttpResponse:
    row = find_source(place, src)
    with report_errors(request):
        collect.poll_now(row, now=utc_now())
        said = _("Choosing a topic.") if row.type == "brand" else _("Polling.")
        messages.success(request, said)
    return redirect(place.address("source_page", src=src))


@page("edit", methods=("POST",))
def source_delete(request: HttpRequest, place: Place, src: UUID) -> HttpResponse:
    row = find_source(place, src)
    with report_errors(request):
        collect.delete(row, now=utc_now())
        said = _("%(name)s deleted. Existing items stay.") % {"name": row.name}
        offer_undo(request, said, place.address("source_restore", src=src))
    return redirect(place.address("sources_page"))


@page("edit", methods=("POST",))
def source_restore(request: HttpRequest, place: Place, src: UUID) -> HttpResponse:
    row = find_source(place, src, deleted=True)
    with report_errors(request):
        restored = collect.restore(row, workspace=place.workspace, now=utc_now())
        said = _("%(name)s restored.") % {"name": restored.name}
        if restored.inbound_token:
            said += " " + _("Inbound URL changed.")
        messages.success(request, said)
        return redirect(place.address("source_page", src=src))
    return redirect(place.address("sources_page"))


@page("edit", methods=("POST",))
def source_admit(request: HttpRequest, place: Place, src: UUID, raw: UUID) -> HttpResponse:
    """Have an entry made that was kept without being worked on."""
    row = find_source(place, src)
    kept = get_object_or_404(RawItem.objects.of(place.workspace), pk=raw, source=row, deleted_at=None)
    with report_errors(request):
        replan.retry(kept, workspace=place.workspace, now=utc_now())
        return redirect(place.address("made", raw=raw))
    return redirect(place.address("source_page", src=src))


@page("edit")
def source_edit(request: HttpRequest, place: Place, src: UUID) -> HttpResponse:
    row = find_source(place, src)
    if row.type == personas.KIND:
        return lanes.edit(request, place, row)
    form = form_recovery.form_for(
        request, SourceSettingsForm, workspace=place.workspace, initial=values_of(row)
    )
    if request.method == "POST" and form.is_valid():
        values = form.values()
        if not values["name"]:
            del values["name"]
        with report_errors(request, form):
            collect.change(row, values, workspace=place.workspace, now=utc_now())
            messages.success(request, _("Saved. Applies to new content."))
            return redirect(place.address("source_page", src=src))
    return render(request, "pages/sources/edit.html", {**source_head(place, row, "settings"), "form": form})
