"""The settings of a source that is there already."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from accounts.pages import form_recovery
from accounts.pages.feedback import report_errors
from accounts.pages.workspace_view import Place, page
from config.core.clock import utc_now
from pipeline import personas
from pipeline.ingest import collect
from pipeline.pages.sources import lanes
from pipeline.pages.sources.detail import find_source, head
from pipeline.pages.sources.forms import SettingsForm, values_of

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse


@page("edit")
def source_edit(request: HttpRequest, place: Place, src: UUID) -> HttpResponse:
    row = find_source(place, src)
    if row.type == personas.KIND:
        return lanes.edit(request, place, row)
    form = form_recovery.form_for(request, SettingsForm, workspace=place.workspace, initial=values_of(row))
    if request.method == "POST" and form.is_valid():
        values = form.values()
        if not values["name"]:
            del values["name"]
        with report_errors(request, form):
            collect.change(row, values, workspace=place.workspace, now=utc_now())
            messages.success(request, _("Saved. What comes from now on follows it."))
            return redirect(place.address("source_page", src=src))
    return render(request, "pages/sources/edit.html", {**head(place, row, "settings"), "form": form})
