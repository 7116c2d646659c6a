"""A brand lane made and changed by page: a source without documents, whose next slots are shown before it is saved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from accounts.pages import form_recovery
from accounts.pages.act_messages import report_errors
from accounts.pages.page_access import Place, page
from config.core.clock import utc_now
from pipeline import personas
from pipeline.ingest import collect
from pipeline.models import Persona, Source, WorkspaceDefaults
from pipeline.pages import choices
from pipeline.pages.sources import lane_cadence
from pipeline.pages.sources.brand_lane_form import FRESH, LaneForm, values_of
from pipeline.pages.sources.views import source_head
from pipeline.personas.lane_slots import forecast_slots

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import HttpRequest, HttpResponse


@page("edit")
def lane_add(request: HttpRequest, place: Place) -> HttpResponse:
    if not Persona.objects.of(place.workspace).filter(deleted_at=None).exists():
        return render(request, "pages/sources/lane_without_persona.html")
    form = form_recovery.form_for(request, LaneForm, workspace=place.workspace, initial=FRESH)
    if request.method == "POST" and "save" in request.POST and form.is_valid():
        if not form_recovery.is_first_sending(request):
            return redirect(place.address("sources_page"))
        with report_errors(request, form):
            settings = collect.SourceSettings(type=personas.KIND, **form.values())
            made = collect.register(place.workspace, settings, now=utc_now())
            messages.success(request, _("%(name)s saved") % {"name": made.name})
            return redirect(place.address("source_page", src=made.pk))
    fresh = Source(workspace=place.workspace, type=personas.KIND)
    return render(request, "pages/sources/lane_add.html", {"form": form, **_outlook(form, fresh)})


def edit(request: HttpRequest, place: Place, row: Source) -> HttpResponse:
    """The settings of a lane; the door has found the row and asked who may change it."""
    form = form_recovery.form_for(
        request, LaneForm, workspace=place.workspace, kept=row.config, initial=values_of(row)
    )
    if request.method == "POST" and "save" in request.POST and form.is_valid():
        values = form.values()
        if not values["name"]:
            del values["name"]
        with report_errors(request, form):
            collect.change(row, values, workspace=place.workspace, now=utc_now())
            messages.success(request, _("Saved. Applies to new content."))
            return redirect(place.address("source_page", src=row.pk))
    context = {**source_head(place, row, "settings"), "form": form, **_outlook(form, row)}
    return render(request, "pages/sources/lane_edit.html", context)


def _outlook(form: LaneForm, row: Source) -> dict[str, Any]:
    """What a lane would do that is set as the form says; nothing where the form says nothing sound."""
    if form.is_bound and not form.is_valid():
        return {}
    if form.is_bound:
        _set(row, form.values())
    elif not row.config:
        begun = LaneForm(_as_sent(form), workspace=row.workspace)
        if not begun.is_valid():
            return {}
        _set(row, begun.values())
    seen = forecast_slots(row, now=utc_now())
    persona_id = row.persona_id or WorkspaceDefaults.objects.of(row.workspace).get().persona_id
    return {
        "seen": seen,
        "cadence": lane_cadence.describe(row.config),
        "price": choices.credits_label(seen.price),
        "price_of_week": choices.credits_label(seen.price_of_week),
        "persona_id": persona_id,
    }


def _as_sent(form: LaneForm) -> dict[str, Any]:
    return {name: form[name].value() or "" for name in form.fields}


def _set(row: Source, values: Mapping[str, Any]) -> None:
    """As the form says, on the row in memory alone."""
    for name in ("config", "engines", "persona_id"):
        setattr(row, name, values[name])
