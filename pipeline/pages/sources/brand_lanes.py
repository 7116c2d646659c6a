"""Adds and edits brand lanes, which make posts of topics, with a forecast before saving."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from accounts.pages import kept_forms
from accounts.pages.act_messages import report_errors
from accounts.pages.page_access import Place, workspace_page
from config.core.clock import utc_now
from pipeline import personas
from pipeline.ingest import collect
from pipeline.models import Persona, Source, WorkspaceDefaults
from pipeline.pages import form_choices
from pipeline.pages.sources import lane_cadence
from pipeline.pages.sources.brand_lane_form import INITIAL_VALUES, LaneForm, values_of
from pipeline.pages.sources.views import source_head
from pipeline.personas.lane_slots import forecast_slots

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import HttpRequest, HttpResponse


@workspace_page("edit")
def lane_add(request: HttpRequest, place: Place) -> HttpResponse:
    """Add a brand lane; if the workspace has no persona, the page says where to create one."""
    if not Persona.objects.of(place.workspace).filter(deleted_at=None).exists():
        return render(request, "pages/sources/lane_without_persona.html")
    form = kept_forms.form_for(request, LaneForm, workspace=place.workspace, initial=INITIAL_VALUES)
    if request.method == "POST" and "save" in request.POST and form.is_valid():
        if not kept_forms.is_first_sending(request):
            return redirect(place.url_of("sources_page"))
        with report_errors(request, form):
            settings = collect.SourceSettings(type=personas.KIND, **form.values())
            lane = collect.register(place.workspace, settings, now=utc_now())
            messages.success(request, _("%(name)s saved") % {"name": lane.name})
            return redirect(place.url_of("source_page", src=lane.pk))
    unsaved_lane = Source(workspace=place.workspace, type=personas.KIND)
    return render(
        request, "pages/sources/lane_add.html", {"form": form, **_forecast_context(form, unsaved_lane)}
    )


def edit_lane(request: HttpRequest, place: Place, row: Source) -> HttpResponse:
    """Edit the settings of a lane; the calling view has found the row and checked the permission."""
    form = kept_forms.form_for(
        request, LaneForm, workspace=place.workspace, stored_config=row.config, initial=values_of(row)
    )
    if request.method == "POST" and "save" in request.POST and form.is_valid():
        values = form.values()
        if not values["name"]:
            del values["name"]
        with report_errors(request, form):
            collect.change(row, values, workspace=place.workspace, now=utc_now())
            messages.success(request, _("Saved. Applies to new content."))
            return redirect(place.url_of("source_page", src=row.pk))
    context = {**source_head(place, row, "settings"), "form": form, **_forecast_context(form, row)}
    return render(request, "pages/sources/lane_edit.html", context)


def _forecast_context(form: LaneForm, row: Source) -> dict[str, Any]:
    """Return the context of a forecast of the lane with the form's values, or nothing if the form isn't valid.

    Sets the form's values on `row` in memory, without saving it, because the forecast is made of a row.
    """
    if form.is_bound and not form.is_valid():
        return {}
    if form.is_bound:
        _apply_values(row, form.values())
    elif not row.config:
        initial_form = LaneForm(_initial_data(form), workspace=row.workspace)
        if not initial_form.is_valid():
            return {}
        _apply_values(row, initial_form.values())
    forecast = forecast_slots(row, now=utc_now())
    persona_id = row.persona_id or WorkspaceDefaults.objects.of(row.workspace).get().persona_id
    return {
        "seen": forecast,
        "cadence": lane_cadence.describe(row.config),
        "price": form_choices.credits_label(forecast.price),
        "price_of_week": form_choices.credits_label(forecast.price_of_week),
        "persona_id": persona_id,
    }


def _initial_data(form: LaneForm) -> dict[str, Any]:
    """Return the form's initial values as a browser would send them."""
    return {name: form[name].value() or "" for name in form.fields}


def _apply_values(row: Source, values: Mapping[str, Any]) -> None:
    """Set the form's values on the row in memory, without saving it."""
    for name in ("config", "engines", "persona_id"):
        setattr(row, name, values[name])
