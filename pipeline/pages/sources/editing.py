"""The settings of a source that is there already."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from accounts.pages import typed
from accounts.pages.place import Place, page
from config.ground.clock import utc_now
from config.ground.errors import AppError
from pipeline.pages.sources import lanes
from pipeline.pages.sources.forms import SettingsForm, values_of
from pipeline.pages.sources.one import find_source, head
from pipeline.stages import brand, collect

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse


@page("edit")
def source_edit(request: HttpRequest, place: Place, src: UUID) -> HttpResponse:
    row = find_source(place, src)
    if row.type == brand.KIND:
        return lanes.edit(request, place, row)
    form = typed.form_for(request, SettingsForm, workspace=place.workspace, initial=values_of(row))
    if request.method == "POST" and form.is_valid():
        values = form.values()
        if not values["name"]:
            del values["name"]
        try:
            collect.change(row, values, workspace=place.workspace, now=utc_now())
        except AppError as error:
            typed.blame(form, error)
        else:
            messages.success(request, _("Saved. What comes from now on follows it."))
            return redirect(place.address("source_page", src=src))
    return render(request, "pages/source_edit.html", {**head(place, row, "settings"), "form": form})
