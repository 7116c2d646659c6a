"""Pauses, resumes, polls, deletes and restores a source, admits an entry, and edits the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.http import QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from accounts.pages import kept_forms
from accounts.pages.act_messages import offer_undo, report_errors
from accounts.pages.page_access import Place, workspace_page
from config.core.clock import utc_now
from config.core.errors import Invalid
from config.core.ids import encode
from pipeline import personas
from pipeline.ingest import collect, replan
from pipeline.models import RawItem
from pipeline.pages.items.forms import version_in
from pipeline.pages.sources import brand_lanes
from pipeline.pages.sources.forms import FormatsForm, SourceSettingsForm, values_of
from pipeline.pages.sources.views import find_source, source_head

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse


@workspace_page("edit", methods=("POST",))
def source_pause(request: HttpRequest, place: Place, src: UUID) -> HttpResponse:
    """Pause the source, or resume it with `active=yes`.

    The field `list` holds the query string of the list of sources; if it is sent, the response redirects there.
    """
    source = find_source(place, src)
    is_active = request.POST.get("active") == "yes"
    changes = {"status": "active" if is_active else "paused"}
    list_field = {"list": request.POST["list"]} if "list" in request.POST else {}
    with report_errors(request):
        collect.change(source, changes, workspace=place.workspace, now=utc_now())
        message = _("%(name)s switched on.") if is_active else _("%(name)s paused.")
        undo_fields = {"active": "no" if is_active else "yes", **list_field}
        offer_undo(
            request, message % {"name": source.name}, place.url_of("source_pause", src=src), undo_fields
        )
    if not list_field:
        return redirect(place.url_of("source_page", src=src))
    query = QueryDict(list_field["list"]).urlencode()
    return redirect(f"{place.url_of('sources_page')}?{query}#{encode('src', src)}")


@workspace_page("edit", methods=("POST",))
def source_formats(request: HttpRequest, place: Place, src: UUID) -> HttpResponse:
    """Save the ticked formats; without any, show an error and change nothing."""
    source = find_source(place, src)
    form = FormatsForm(request.POST, source=source)
    with report_errors(request):
        if not form.is_valid():
            raise Invalid.one("engines", "invalid", str(form.errors["engines"][0]))
        collect.change(
            source,
            {"engines": form.cleaned_data["engines"]},
            workspace=place.workspace,
            now=utc_now(),
            expected_version=version_in(request.POST),
        )
        messages.success(request, _("Saved. Applies to new content."))
    return redirect(f"{place.url_of('source_page', src=src)}#formats")


@workspace_page("edit", methods=("POST",))
def source_poll(request: HttpRequest, place: Place, src: UUID) -> HttpResponse:
    """Poll the source now, or let a brand lane choose a topic."""
    source = find_source(place, src)
    with report_errors(request):
        collect.poll_now(source, now=utc_now())
        message = _("Choosing a topic.") if source.type == "brand" else _("Polling.")
        messages.success(request, message)
    return redirect(place.url_of("source_page", src=src))


@workspace_page("edit", methods=("POST",))
def source_delete(request: HttpRequest, place: Place, src: UUID) -> HttpResponse:
    """Delete the source, with an undo; its items stay."""
    source = find_source(place, src)
    with report_errors(request):
        collect.delete(source, now=utc_now())
        message = _("%(name)s deleted. Existing items stay.") % {"name": source.name}
        offer_undo(request, message, place.url_of("source_restore", src=src))
    return redirect(place.url_of("sources_page"))


@workspace_page("edit", methods=("POST",))
def source_restore(request: HttpRequest, place: Place, src: UUID) -> HttpResponse:
    """Restore a deleted source; an inbound source gets a new URL, which the message says."""
    source = find_source(place, src, deleted=True)
    with report_errors(request):
        restored = collect.restore(source, workspace=place.workspace, now=utc_now())
        message = _("%(name)s restored.") % {"name": restored.name}
        if restored.inbound_token:
            message += " " + _("Inbound URL changed.")
        messages.success(request, message)
        return redirect(place.url_of("source_page", src=src))
    return redirect(place.url_of("sources_page"))


@workspace_page("edit", methods=("POST",))
def source_admit(request: HttpRequest, place: Place, src: UUID, raw: UUID) -> HttpResponse:
    """Generate items of a stored entry that was left aside."""
    source = find_source(place, src)
    raw_item = get_object_or_404(RawItem.objects.of(place.workspace), pk=raw, source=source, deleted_at=None)
    with report_errors(request):
        replan.retry(raw_item, workspace=place.workspace, now=utc_now())
        return redirect(place.url_of("made", raw=raw))
    return redirect(place.url_of("source_page", src=src))


@workspace_page("edit")
def source_edit(request: HttpRequest, place: Place, src: UUID) -> HttpResponse:
    """Edit the settings of a source; a brand lane has another form."""
    source = find_source(place, src)
    if source.type == personas.KIND:
        return brand_lanes.edit_lane(request, place, source)
    form = kept_forms.form_for(
        request, SourceSettingsForm, workspace=place.workspace, initial=values_of(source)
    )
    if request.method == "POST" and form.is_valid():
        values = form.values()
        if not values["name"]:
            del values["name"]
        with report_errors(request, form):
            collect.change(source, values, workspace=place.workspace, now=utc_now())
            messages.success(request, _("Saved. Applies to new content."))
            return redirect(place.url_of("source_page", src=src))
    return render(
        request, "pages/sources/edit.html", {**source_head(place, source, "settings"), "form": form}
    )
