"""Lets an item repeat, changes how often and at what time it does, and stops it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.contrib import messages
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.pages import kept_forms
from accounts.pages.act_messages import offer_undo, report_errors
from accounts.pages.page_access import Place, workspace_page
from config.core.clock import utc_now
from pipeline import limits
from pipeline.generate import generation_plan
from pipeline.models import Recurrence, RecurrenceStatus
from pipeline.pages.items.detail import find_item, item_head
from pipeline.pages.items.forms import VersionedForm, version_in
from pipeline.schedule import recurring
from pipeline.schedule.recurring.crud import DEFAULT_TIME

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse

    from pipeline.models import GeneratedItem

_INITIAL_DAYS: Final = 30
"""The initial number of days between repetitions."""


class RecurringForm(VersionedForm):
    """How often an item repeats, and at what time of the day."""

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
        """Return the values as `recurring.begin` and `recurring.change` take them."""
        data = self.cleaned_data
        return {"every_days": data["every_days"], "time": data["time"].strftime("%H:%M")}


@workspace_page("edit")
def item_recurring(request: HttpRequest, place: Place, gen: UUID) -> HttpResponse:
    """Show the form; on POST, let the item repeat or change how often it does, with an undo."""
    row = find_item(place, gen)
    recurrence = Recurrence.objects.of(place.workspace).filter(item=row).first()
    form = kept_forms.form_for(request, RecurringForm, initial=_initial_values(recurrence))
    if request.method == "POST" and form.is_valid():
        if not kept_forms.is_first_sending(request):
            return redirect(place.url_of("item_page", gen=gen))
        newest = Recurrence.objects.of(place.workspace).filter(item=row)
        with report_errors(request, form, on_overtaken=lambda: form.take_newest(newest.get().version)):
            _save(request, place, row, recurrence, form.values())
            return redirect(place.url_of("item_page", gen=gen))
    context = {
        **item_head(place, row),
        "form": form,
        "recurrence": recurrence,
        "credits": generation_plan.engine_named(row.engine_output).credits,
    }
    return render(request, "pages/items/recurring.html", context)


def _initial_values(recurrence: Recurrence | None) -> dict[str, Any]:
    """Return the form's initial values: those of the recurrence, or the default ones."""
    if recurrence is None:
        return {"every_days": _INITIAL_DAYS, "time": DEFAULT_TIME}
    return {"every_days": recurrence.every_days, "time": recurrence.time, "version": recurrence.version}


def _save(
    request: HttpRequest,
    place: Place,
    item: GeneratedItem,
    recurrence: Recurrence | None,
    values: Mapping[str, Any],
) -> None:
    """Begin a recurrence, or change the active one, and offer an undo."""
    now, by = utc_now(), place.user.email
    if recurrence is None or recurrence.status == RecurrenceStatus.STOPPED:
        begun = recurring.begin(item, **values, by=by, now=now)
        fields = {"version": str(begun.version)}
        offer_undo(request, _saved_message(begun), place.url_of("item_recurring_stop", gen=item.pk), fields)
        return
    former = {"every_days": str(recurrence.every_days), "time": recurrence.time}
    expected_version = version_in(request.POST)
    changed = recurring.change(recurrence, values, by=by, now=now, expected_version=expected_version)
    fields = {**former, "version": str(changed.version)}
    offer_undo(request, _saved_message(changed), place.url_of("item_recurring", gen=item.pk), fields)


def _saved_message(recurrence: Recurrence) -> str:
    """Return the message that says how often the item repeats."""
    return ngettext("Repeats every day.", "Repeats every %(days)d days.", recurrence.every_days) % {
        "days": recurrence.every_days
    }


@workspace_page("edit", methods=("POST",))
def item_recurring_stop(request: HttpRequest, place: Place, gen: UUID) -> HttpResponse:
    """Stop the recurrence with an undo, or resume it with `on=yes`."""
    item, is_resumed = find_item(place, gen), request.POST.get("on") == "yes"
    row = get_object_or_404(Recurrence.objects.of(place.workspace), item=item)
    with report_errors(request):
        changed = recurring.change(
            row,
            {"status": "active" if is_resumed else "stopped"},
            by=place.user.email,
            now=utc_now(),
            expected_version=version_in(request.POST),
        )
        if is_resumed:
            messages.success(request, _saved_message(changed))
        else:
            message = _("Repeat stopped.")
            fields = {"on": "yes", "version": str(changed.version)}
            offer_undo(request, message, place.url_of("item_recurring_stop", gen=gen), fields)
    return redirect(place.url_of("item_page", gen=gen))
