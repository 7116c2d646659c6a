"""What is done with a series by a click: pause it, go on, make a digest now, end it, take that back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from accounts.pages import form_recovery
from accounts.pages.feedback import offer_undo, report_errors
from accounts.pages.workspace_view import Place, page
from config.core.clock import utc_now
from config.core.errors import NotFound
from pipeline.models import Series
from pipeline.pages.items.forms import version_in
from pipeline.pages.series.listing import find_series
from pipeline.schedule import series

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse


@page("edit", methods=("POST",))
def series_pause(request: HttpRequest, place: Place, ser: UUID) -> HttpResponse:
    """Pauses, and goes on with `on=yes`."""
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
            messages.success(request, _("%(name)s goes on at its next time.") % {"name": row.name})
        else:
            said = _("%(name)s is paused: nothing of it is made.") % {"name": row.name}
            fields = {"on": "yes", "version": str(changed.version)}
            offer_undo(request, said, place.address("series_pause", ser=ser), fields)
    return redirect(place.address("series_one", ser=ser))


@page("edit", methods=("POST",))
def series_make(request: HttpRequest, place: Place, ser: UUID) -> HttpResponse:
    """Makes a digest beside those of its times; a double click makes one."""
    row = find_series(place, ser)
    if not form_recovery.is_first(request):
        return redirect(place.address("series_one", ser=ser))
    with report_errors(request):
        series.make_now(row, by=place.user.email)
        messages.success(request, _("A digest is being made."))
    return redirect(place.address("series_one", ser=ser))


@page("edit", methods=("POST",))
def series_delete(request: HttpRequest, place: Place, ser: UUID) -> HttpResponse:
    row = find_series(place, ser)
    with report_errors(request):
        series.delete(row, by=place.user.email, now=utc_now(), expected_version=version_in(request.POST))
        said = _("%(name)s is deleted; what it has made stays.") % {"name": row.name}
        offer_undo(request, said, place.address("series_restore", ser=ser))
        return redirect(place.address("series_page"))
    return redirect(place.address("series_one", ser=ser))


@page("edit", methods=("POST",))
def series_restore(request: HttpRequest, place: Place, ser: UUID) -> HttpResponse:
    row = Series.objects.of(place.workspace).filter(test=False, pk=ser).first()
    if row is None or row.deleted_at is None:
        # Taken back already, or never there: its page says which.
        return redirect(place.address("series_one", ser=ser))
    with report_errors(request):
        try:
            series.restore(row, by=place.user.email, now=utc_now())
        except NotFound:
            messages.error(request, _("It was deleted too long ago; begin a new one."))
        else:
            messages.success(request, _("%(name)s is back.") % {"name": row.name})
            return redirect(place.address("series_one", ser=ser))
    return redirect(place.address("series_page"))
