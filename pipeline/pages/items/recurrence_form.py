"""Letting an item come back by itself: how often, when next, what came of it, and why it stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.contrib import messages
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.pages import form_recovery
from accounts.pages.act_messages import offer_undo, report_errors
from accounts.pages.page_access import Place, page
from config.core.clock import utc_now
from pipeline import limits
from pipeline.generate import eligible_formats
from pipeline.models import Recurrence, RecurrenceStatus
from pipeline.pages.items.detail import find_item, item_head
from pipeline.pages.items.forms import VersionedForm, version_in
from pipeline.schedule import recurring
from pipeline.schedule.recurring.crud import TIME

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse

    from pipeline.models import GeneratedItem

_DAYS: Final = 30
"""What the form begins with."""


class RecurringForm(VersionedForm):
    every_days = forms.IntegerField(
        label=gettext_lazy("Repeat every (days)"),
        min_value=1,
        max_value=limits.RECURRING_DAYS_MOST,
        help_text=gettext_lazy("Counted from the publishing date"),
    )
    time = forms.TimeField(
        label=gettext_lazy("At"),
        widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M"),
        help_text=gettext_lazy("In the workspace's time zone"),
    )

    def values(self) -> dict[str, Any]:
        given = self.cleaned_data
        return {"every_days": given["every_days"], "time": given["time"].strftime("%H:%M")}


@page("edit")
def item_recurring(request: HttpRequest, place: Place, gen: UUID) -> HttpResponse:
    """Lets it come back, or changes how often; each can be taken back."""
    row = find_item(place, gen)
    there = Recurrence.objects.of(place.workspace).filter(item=row).first()
    form = form_recovery.form_for(request, RecurringForm, initial=_initial(there))
    if request.method == "POST" and form.is_valid():
        if not form_recovery.is_first_sending(request):
            return redirect(place.address("item_page", gen=gen))
        newest = Recurrence.objects.of(place.workspace).filter(item=row)
        with report_errors(request, form, on_overtaken=lambda: form.take_newest(newest.get().version)):
            _keep(request, place, row, there, form.values())
            return redirect(place.address("item_page", gen=gen))
    context = {
        **item_head(place, row),
        "form": form,
        "recurrence": there,
        "credits": eligible_formats.engine_named(row.engine_output).credits,
    }
    return render(request, "pages/items/recurring.html", context)


def _initial(there: Recurrence | None) -> dict[str, Any]:
    if there is None:
        return {"every_days": _DAYS, "time": TIME}
    return {"every_days": there.every_days, "time": there.time, "version": there.version}


def _keep(
    request: HttpRequest,
    place: Place,
    item: GeneratedItem,
    there: Recurrence | None,
    given: Mapping[str, Any],
) -> None:
    now, by = utc_now(), place.user.email
    if there is None or there.status == RecurrenceStatus.STOPPED:
        made = recurring.begin(item, **given, by=by, now=now)
        fields = {"version": str(made.version)}
        offer_undo(request, _said(made), place.address("item_recurring_stop", gen=item.pk), fields)
        return
    former = {"every_days": str(there.every_days), "time": there.time}
    expected = version_in(request.POST)
    changed = recurring.change(there, given, by=by, now=now, expected_version=expected)
    fields = {**former, "version": str(changed.version)}
    offer_undo(request, _said(changed), place.address("item_recurring", gen=item.pk), fields)


def _said(row: Recurrence) -> str:
    return ngettext("Repeats every day.", "Repeats every %(days)d days.", row.every_days) % {
        "days": row.every_days
    }


@page("edit", methods=("POST",))
def item_recurring_stop(request: HttpRequest, place: Place, gen: UUID) -> HttpResponse:
    """Stops it, and lets it go on with `on=yes`."""
    item, is_on = find_item(place, gen), request.POST.get("on") == "yes"
    row = get_object_or_404(Recurrence.objects.of(place.workspace), item=item)
    with report_errors(request):
        changed = recurring.change(
            row,
            {"status": "active" if is_on else "stopped"},
            by=place.user.email,
            now=utc_now(),
            expected_version=version_in(request.POST),
        )
        if is_on:
            messages.success(request, _said(changed))
        else:
            said = _("Repeat stopped.")
            fields = {"on": "yes", "version": str(changed.version)}
            offer_undo(request, said, place.address("item_recurring_stop", gen=gen), fields)
    return redirect(place.address("item_page", gen=gen))
