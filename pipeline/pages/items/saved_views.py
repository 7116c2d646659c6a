"""Saved views of the list of items: shown above it, saved, renamed, deleted and taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _

from accounts.pages.act_messages import offer_undo, report_errors
from accounts.pages.page_access import Place, page
from pipeline.models import SavedView
from pipeline.pages.items.forms import ItemFilter
from pipeline.workspace import saved_views

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse


def filters_of(form: ItemFilter) -> dict[str, str]:
    """What is chosen; nothing of a filter that isn't understood."""
    return {name: value for name, value in form.cleaned_data.items() if value} if form.is_valid() else {}


def views_context(place: Place, form: ItemFilter) -> dict[str, Any]:
    """The views in order of their names, and which of them is shown. One statement."""
    filters = filters_of(form)
    rows = list(SavedView.objects.of(place.workspace).order_by("name"))
    return {
        "views": [{"view": one, "query": urlencode(one.filters)} for one in rows],
        "current": next((one for one in rows if one.filters == filters), None),
        "filters": urlencode(filters),
    }


def _list(place: Place, filters: Mapping[str, str]) -> HttpResponse:
    return redirect(f"{place.address('items_page')}?{urlencode(filters)}")


@page("edit", methods=("POST",))
def item_view_save(request: HttpRequest, place: Place) -> HttpResponse:
    form = ItemFilter(QueryDict(request.POST.get("filters", "")), workspace=place.workspace)
    filters = filters_of(form)
    with report_errors(request):
        view = saved_views.create(place.workspace, request.POST.get("name", ""), filters)
        messages.success(request, _("%(name)s saved.") % {"name": view.name})
    return _list(place, filters)


@page("edit", methods=("POST",))
def item_view_rename(request: HttpRequest, place: Place, viw: UUID) -> HttpResponse:
    view = get_object_or_404(SavedView.objects.of(place.workspace), pk=viw)
    with report_errors(request):
        saved_views.rename(view, request.POST.get("name", ""))
        messages.success(request, _("Renamed to %(name)s.") % {"name": view.name})
    return _list(place, view.filters)


@page("edit", methods=("POST",))
def item_view_delete(request: HttpRequest, place: Place, viw: UUID) -> HttpResponse:
    view = get_object_or_404(SavedView.objects.of(place.workspace), pk=viw)
    saved_views.delete(view)
    fields = {"name": view.name, "filters": urlencode(view.filters)}
    said = _("%(name)s deleted.") % {"name": view.name}
    offer_undo(request, said, place.address("item_view_save"), fields)
    return _list(place, view.filters)
