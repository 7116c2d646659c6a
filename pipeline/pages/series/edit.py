"""A series made and changed by page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from accounts.pages import form_recovery
from accounts.pages.feedback import report_errors, show_at_fields
from accounts.pages.workspace_view import Place, page
from config.core.clock import utc_now
from config.core.errors import AppError
from config.core.states import Overtaken
from pipeline.pages.series.forms import SeriesForm, values_of
from pipeline.pages.series.listing import find_series
from pipeline.schedule import series

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse


@page("edit")
def series_add(request: HttpRequest, place: Place) -> HttpResponse:
    initial = {"timezone": place.workspace.timezone, "day_4": "09:00"}
    form = form_recovery.form_for(request, SeriesForm, workspace=place.workspace, initial=initial)
    if request.method == "POST" and form.is_valid():
        if not form_recovery.is_first(request):
            return redirect(place.address("series_page"))
        with report_errors(request, form):
            by = place.user.email
            made = series.create(place.workspace, form.values(), test=False, now=utc_now(), by=by)
            messages.success(request, _("%(name)s is saved.") % {"name": made.name})
            return redirect(place.address("series_one", ser=made.pk))
    return render(request, "pages/series/edit.html", {"place": place, "form": form})


@page("edit")
def series_edit(request: HttpRequest, place: Place, ser: UUID) -> HttpResponse:
    row = find_series(place, ser)
    form = form_recovery.form_for(
        request, SeriesForm, workspace=place.workspace, series=row, initial=values_of(row)
    )
    if request.method == "POST" and form.is_valid():
        try:
            series.change(
                row,
                form.changes(row),
                now=utc_now(),
                by=place.user.email,
                expected_version=form.cleaned_data["version"],
            )
        except Overtaken:
            form.take_newest(find_series(place, ser).version)
        except AppError as error:
            show_at_fields(form, error)
        else:
            messages.success(request, _("Saved."))
            return redirect(place.address("series_one", ser=ser))
    return render(request, "pages/series/edit.html", {"place": place, "form": form, "series": row})
