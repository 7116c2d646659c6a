"""Lists, shows, creates, edits, pauses, deletes and restores the series of a workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from accounts.pages import kept_forms
from accounts.pages.act_messages import offer_undo, report_errors
from accounts.pages.page_access import Place, workspace_page
from config.core.clock import utc_now
from config.core.errors import NotFound
from pipeline import labels, limits
from pipeline.models import GeneratedItem, Series
from pipeline.pages.items import recurrence_display
from pipeline.pages.items.forms import version_in
from pipeline.pages.queues.display import describe_week
from pipeline.pages.series.forms import SeriesForm, values_of
from pipeline.schedule import series
from pipeline.text.local_time import UnknownZone

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse

    from pipeline.models import SeriesIssue

SLOTS_SHOWN: Final = 5
"""The number of next times that a series' page shows."""


def find_series(place: Place, ser: UUID) -> Series:
    """Return the series. Raises `Http404` if the workspace has none with that id, or it was deleted."""
    rows = Series.objects.of(place.workspace).filter(test=False, deleted_at=None)
    return get_object_or_404(rows.select_related("workspace", "persona"), pk=ser)


@workspace_page("look", methods=("GET",))
def series_page(request: HttpRequest, place: Place) -> HttpResponse:
    """List the series by name, and the items that are posted repeatedly."""
    now = utc_now()
    series_of_workspace = (
        Series.objects.of(place.workspace).filter(test=False, deleted_at=None).order_by("name", "id")
    )
    rows = [_series_row(row, now) for row in series_of_workspace]
    context = {"rows": rows, "returns": recurrence_display.list_recurrences(place)}
    return render(request, "pages/series/list.html", context)


def _series_row(shown_series: Series, now: datetime) -> dict[str, Any]:
    """Return a row of the list: the series with its week, its next time and its last issue."""
    last_issue = shown_series.issues.order_by("-id").first()
    return {
        "series": shown_series,
        "week": describe_week(shown_series),
        "next": next_times(shown_series, now)[:1],
        "last": last_issue,
        "decision": labels.SERIES_ISSUES[last_issue.decision] if last_issue is not None else None,
    }


@workspace_page("look", methods=("GET",))
def series_one(request: HttpRequest, place: Place, ser: UUID) -> HttpResponse:
    """Show a series: its next times, what a digest made now would have, and its last issues."""
    row, now = find_series(place, ser), utc_now()
    selection = series.select_items(row, now=now)
    context = {
        "series": row,
        "week": describe_week(row),
        "next": next_times(row, now),
        "choice": selection,
        "is_enough": len(selection.raw_items) >= row.items_least,
        "issues": _issue_rows(place, list(row.issues.order_by("-id")[: limits.SERIES_SHOWN])),
    }
    return render(request, "pages/series/one.html", context)


def next_times(row: Series, now: datetime) -> list[datetime]:
    """Return the next times, or none if the series is paused or its time zone no longer exists."""
    try:
        return [slot.moment for slot in series.next_slots(row, after=now, most=SLOTS_SHOWN)]
    except UnknownZone:
        return []


def _issue_rows(place: Place, rows: Sequence[SeriesIssue]) -> list[dict[str, Any]]:
    """Return issues, each with the decision on it and its digest, which is `None` if there is none."""
    run_ids = [row.generation_id for row in rows if row.generation_id is not None]
    items = GeneratedItem.objects.of(place.workspace).filter(generation_id__in=run_ids, deleted_at=None)
    # In this order the first variant comes last, so it is the one that the dictionary keeps of each run.
    digests: dict[UUID | None, GeneratedItem] = {
        item.generation_id: item for item in items.order_by("-variant_index")
    }
    return [
        {"issue": row, "decision": labels.SERIES_ISSUES[row.decision], "item": digests.get(row.generation_id)}
        for row in rows
    ]


@workspace_page("edit")
def series_add(request: HttpRequest, place: Place) -> HttpResponse:
    """Create a series; a double click creates one."""
    initial = {"timezone": place.workspace.timezone, "day_4": "09:00"}
    form = kept_forms.form_for(request, SeriesForm, workspace=place.workspace, initial=initial)
    if request.method == "POST" and form.is_valid():
        if not kept_forms.is_first_sending(request):
            return redirect(place.url_of("series_page"))
        with report_errors(request, form):
            by = place.user.email
            created = series.create(place.workspace, form.values(), test=False, now=utc_now(), by=by)
            messages.success(request, _("%(name)s saved.") % {"name": created.name})
            return redirect(place.url_of("series_one", ser=created.pk))
    return render(request, "pages/series/edit.html", {"form": form})


@workspace_page("edit")
def series_edit(request: HttpRequest, place: Place, ser: UUID) -> HttpResponse:
    """Edit a series; only what was changed is saved."""
    row = find_series(place, ser)
    form = kept_forms.form_for(
        request, SeriesForm, workspace=place.workspace, series=row, initial=values_of(row)
    )
    if request.method == "POST" and form.is_valid():
        with report_errors(
            request, form, on_overtaken=lambda: form.take_newest(find_series(place, ser).version)
        ):
            series.change(
                row,
                form.changes(row),
                now=utc_now(),
                by=place.user.email,
                expected_version=form.cleaned_data["version"],
            )
            messages.success(request, _("Saved."))
            return redirect(place.url_of("series_one", ser=ser))
    return render(request, "pages/series/edit.html", {"form": form, "series": row})


@workspace_page("edit", methods=("POST",))
def series_pause(request: HttpRequest, place: Place, ser: UUID) -> HttpResponse:
    """Pause the series with an undo, or resume it with `on=yes`."""
    row, is_on = find_series(place, ser), request.POST.get("on") == "yes"
    with report_errors(request):
        changed = series.change(
            row,
            {"is_paused": not is_on},
            now=utc_now(),
            by=place.user.email,
            expected_version=version_in(request.POST),
        )
        if is_on:
            messages.success(request, _("%(name)s resumed.") % {"name": row.name})
        else:
            message = _("%(name)s paused.") % {"name": row.name}
            fields = {"on": "yes", "version": str(changed.version)}
            offer_undo(request, message, place.url_of("series_pause", ser=ser), fields)
    return redirect(place.url_of("series_one", ser=ser))


@workspace_page("edit", methods=("POST",))
def series_make(request: HttpRequest, place: Place, ser: UUID) -> HttpResponse:
    """Make a digest now, in addition to those at the set times; a double click makes one."""
    row = find_series(place, ser)
    if not kept_forms.is_first_sending(request):
        return redirect(place.url_of("series_one", ser=ser))
    with report_errors(request):
        series.make_now(row, by=place.user.email)
        messages.success(request, _("Creating a digest."))
    return redirect(place.url_of("series_one", ser=ser))


@workspace_page("edit", methods=("POST",))
def series_delete(request: HttpRequest, place: Place, ser: UUID) -> HttpResponse:
    """Delete a series, with an undo; its items stay."""
    row = find_series(place, ser)
    with report_errors(request):
        series.delete(row, by=place.user.email, now=utc_now(), expected_version=version_in(request.POST))
        message = _("%(name)s deleted. Existing items stay.") % {"name": row.name}
        offer_undo(request, message, place.url_of("series_restore", ser=ser))
        return redirect(place.url_of("series_page"))
    return redirect(place.url_of("series_one", ser=ser))


@workspace_page("edit", methods=("POST",))
def series_restore(request: HttpRequest, place: Place, ser: UUID) -> HttpResponse:
    """Restore a deleted series; if it isn't kept any more, say so."""
    row = Series.objects.of(place.workspace).filter(test=False, pk=ser).first()
    if row is None or row.deleted_at is None:
        # Restored already, or it never existed: its own page shows which.
        return redirect(place.url_of("series_one", ser=ser))
    with report_errors(request):
        try:
            series.restore(row, by=place.user.email, now=utc_now())
        except NotFound:
            messages.error(request, _("Can't be restored any more. Create a new series."))
        else:
            messages.success(request, _("%(name)s restored.") % {"name": row.name})
            return redirect(place.url_of("series_one", ser=ser))
    return redirect(place.url_of("series_page"))
