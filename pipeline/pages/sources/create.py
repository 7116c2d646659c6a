"""A new source: an address is pasted, said what it is, looked at before anything is saved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from accounts.pages import form_recovery
from accounts.pages.act_messages import report_errors
from accounts.pages.page_access import Place, page
from config.core import limits
from config.core.clock import utc_now
from config.core.errors import AppError
from pipeline import labels
from pipeline.ingest import collect, own_feeds
from pipeline.ingest.pasted_url import AddressReading, read_address
from pipeline.models import DecidedBy
from pipeline.pages import choices
from pipeline.pages.platform_mark import mark_of
from pipeline.pages.sources.forms import FRESH, TILES, AddressForm, ChooseForm, opened, sealed

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


@page("edit")
def source_add(request: HttpRequest, place: Place) -> HttpResponse:
    form = form_recovery.form_for(request, AddressForm)
    chosen = next((tile for tile in TILES if tile.kind == request.GET.get("kind")), None)
    if chosen is not None:
        form.ask_for(chosen)
    if request.method == "POST" and form.is_valid():
        with report_errors(request, form):
            own_feeds.refuse(place.workspace.pk, {"address": form.cleaned_data["address"]})
            found = read_address(form.cleaned_data["address"], now=utc_now())
            return _choose(request, place, found, _fresh(place, found))
    tiles = [{"tile": tile, "mark": mark_of(tile.kind, str(tile.label))} for tile in TILES]
    return render(request, "pages/sources/add.html", {"form": form, "tiles": tiles, "chosen": chosen})


@page("edit")
def source_choose(request: HttpRequest, place: Place) -> HttpResponse:
    """The second step. What is only pushed to has no first one: `?type=webhook`."""
    if request.method == "GET":
        if request.GET.get("type") != "webhook":
            return redirect(place.address("source_add"))
        about = _("Get a URL that accepts content")
        found = [AddressReading("webhook", {}, _("Webhook"), about)]
        return _choose(request, place, found, _fresh(place, found))
    found = opened(request.POST.get("found", ""))
    if not found:
        messages.error(request, _("Expired. Enter the address again."))
        return redirect(place.address("source_add"))
    form = ChooseForm(request.POST, workspace=place.workspace, found=found)
    if form.is_valid() and "save" in request.POST:
        if not form_recovery.is_first_sending(request):
            return redirect(place.address("sources_page"))
        with report_errors(request, form):
            made = collect.register(place.workspace, _settings(form, found), now=utc_now())
            messages.success(request, _("%(name)s saved") % {"name": made.name})
            return redirect(place.address("source_page", src=made.pk))
    return _choose(request, place, found, form)


def _fresh(place: Place, found: list[AddressReading]) -> ChooseForm:
    return ChooseForm(workspace=place.workspace, found=found, initial={**FRESH, "found": sealed(found)})


def _settings(form: ChooseForm, found: list[AddressReading]) -> collect.SourceSettings:
    chosen = found[int(form.cleaned_data["kind"])]
    return collect.SourceSettings(type=chosen.type, config=chosen.config, **form.values())


def _choose(
    request: HttpRequest, place: Place, found: list[AddressReading], form: ChooseForm
) -> HttpResponse:
    context: dict[str, Any] = {"form": form, "is_webhook": found[0].type == "webhook"}
    if not form.is_bound:
        settings = collect.SourceSettings(
            type=found[0].type, config=found[0].config, first_poll={"newest": FRESH["newest"]}
        )
        context |= _previewed(place, settings)
        if "preview" in context:
            form.initial["name"] = context["preview"].title[: limits.NAME_CHARACTERS]
    elif form.is_valid():
        context |= _previewed(place, _settings(form, found))
    return render(request, "pages/sources/choose.html", context)


def _previewed(place: Place, settings: collect.SourceSettings) -> dict[str, Any]:
    """What the first poll would do; where it can't be asked, why."""
    if not collect.kind_of(settings.type).fetches:
        return {}
    try:
        seen = collect.preview(place.workspace, settings, test=False, now=utc_now())
    except AppError as error:
        return {"trouble": str(error)}
    entries = [
        {
            "entry": one.entry,
            "decision": labels.SOURCE_ENTRIES[one.decision],
            "by": DecidedBy(one.decided_by).label,
            "message": one.message,
        }
        for one in seen.entries
    ]
    return {
        "preview": seen,
        "entries": entries,
        "new": sum(one.decision == "new" for one in seen.entries),
        "price": choices.credits_label(seen.price_in_credits),
    }
