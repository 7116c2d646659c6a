"""Adds a source: reads a pasted address, offers the ways to read it, and previews it before it is saved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from accounts.pages import kept_forms
from accounts.pages.act_messages import report_errors
from accounts.pages.page_access import Place, workspace_page
from config.core import limits
from config.core.clock import utc_now
from config.core.errors import AppError
from pipeline import labels
from pipeline.ingest import collect, own_feeds
from pipeline.ingest.pasted_url import AddressReading, read_address
from pipeline.models import DecidedBy
from pipeline.pages import form_choices
from pipeline.pages.platform_mark import mark_of_source
from pipeline.pages.sources.forms import (
    INITIAL_VALUES,
    TILES,
    AddressForm,
    ChooseForm,
    load_readings,
    sign_readings,
)

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


@workspace_page("edit")
def source_add(request: HttpRequest, place: Place) -> HttpResponse:
    """Show the first step; on POST, read the pasted address and show the ways in which it can be a source."""
    form = kept_forms.form_for(request, AddressForm)
    chosen_tile = next((tile for tile in TILES if tile.kind == request.GET.get("kind")), None)
    if chosen_tile is not None:
        form.ask_for(chosen_tile)
    if request.method == "POST" and form.is_valid():
        with report_errors(request, form):
            own_feeds.refuse(place.workspace.pk, {"address": form.cleaned_data["address"]})
            readings = read_address(form.cleaned_data["address"], now=utc_now())
            return _render_choice(request, place, readings, _new_form(place, readings))
    tiles = [{"tile": tile, "mark": mark_of_source(tile.kind, str(tile.label))} for tile in TILES]
    return render(request, "pages/sources/add.html", {"form": form, "tiles": tiles, "chosen": chosen_tile})


@workspace_page("edit")
def source_choose(request: HttpRequest, place: Place) -> HttpResponse:
    """Show the second step, the choice of settings, and save the source on POST with `save`.

    A webhook (`?type=webhook`) begins with this step.
    """
    if request.method == "GET":
        if request.GET.get("type") != "webhook":
            return redirect(place.url_of("source_add"))
        description = _("Get a URL that accepts content")
        readings = [AddressReading("webhook", {}, _("Webhook"), description)]
        return _render_choice(request, place, readings, _new_form(place, readings))
    readings = load_readings(request.POST.get("found", ""))
    if not readings:
        messages.error(request, _("Expired. Enter the address again."))
        return redirect(place.url_of("source_add"))
    form = ChooseForm(request.POST, workspace=place.workspace, readings=readings)
    if form.is_valid() and "save" in request.POST:
        if not kept_forms.is_first_sending(request):
            return redirect(place.url_of("sources_page"))
        with report_errors(request, form):
            source = collect.register(place.workspace, _chosen_settings(form, readings), now=utc_now())
            messages.success(request, _("%(name)s saved") % {"name": source.name})
            return redirect(place.url_of("source_page", src=source.pk))
    return _render_choice(request, place, readings, form)


def _new_form(place: Place, readings: list[AddressReading]) -> ChooseForm:
    return ChooseForm(
        workspace=place.workspace,
        readings=readings,
        initial={**INITIAL_VALUES, "found": sign_readings(readings)},
    )


def _chosen_settings(form: ChooseForm, readings: list[AddressReading]) -> collect.SourceSettings:
    reading = readings[int(form.cleaned_data["kind"])]
    return collect.SourceSettings(type=reading.type, config=reading.config, **form.values())


def _render_choice(
    request: HttpRequest, place: Place, readings: list[AddressReading], form: ChooseForm
) -> HttpResponse:
    """Render the second step, with a preview if the form is new or valid; a new form gets the previewed name."""
    context: dict[str, Any] = {"form": form, "is_webhook": readings[0].type == "webhook"}
    if not form.is_bound:
        settings = collect.SourceSettings(
            type=readings[0].type, config=readings[0].config, first_poll={"newest": INITIAL_VALUES["newest"]}
        )
        context |= _preview_context(place, settings)
        if "preview" in context:
            form.initial["name"] = context["preview"].title[: limits.NAME_CHARACTERS]
    elif form.is_valid():
        context |= _preview_context(place, _chosen_settings(form, readings))
    return render(request, "pages/sources/choose.html", context)


def _preview_context(place: Place, settings: collect.SourceSettings) -> dict[str, Any]:
    """Return the context of a preview of the first poll, or of the error that it met; nothing for a webhook."""
    if not collect.kind_of(settings.type).fetches:
        return {}
    try:
        preview = collect.preview(place.workspace, settings, test=False, now=utc_now())
    except AppError as error:
        return {"trouble": str(error)}
    entries = [
        {
            "entry": entry.entry,
            "decision": labels.SOURCE_ENTRIES[entry.decision],
            "by": DecidedBy(entry.decided_by).label,
            "message": entry.message,
        }
        for entry in preview.entries
    ]
    return {
        "preview": preview,
        "entries": entries,
        "new": sum(entry.decision == "new" for entry in preview.entries),
        "price": form_choices.credits_label(preview.price_in_credits),
    }
