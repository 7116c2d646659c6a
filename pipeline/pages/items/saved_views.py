"""Shows, saves, renames, deletes and restores the saved filters of the list of items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _

from accounts.pages.act_messages import offer_undo, report_errors
from accounts.pages.page_access import Place, workspace_page
from pipeline.models import SavedView
from pipeline.pages.items.forms import ItemFilter
from pipeline.workspace import saved_views

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse


def chosen_filters(form: ItemFilter) -> dict[str, str]:
    """Return the chosen filters, or none if a filter is invalid."""
    return {name: value for name, value in form.cleaned_data.items() if value} if form.is_valid() else {}


def views_context(place: Place, form: ItemFilter) -> dict[str, Any]:
    """Return the saved views by name, and the one that has the chosen filters, with one SQL query."""
    filters = chosen_filters(form)
    rows = list(SavedView.objects.of(place.workspace).order_by("name"))
    return {
        "views": [{"view": view, "query": urlencode(view.filters)} for view in rows],
        "current": next((view for view in rows if view.filters == filters), None),
        "filters": urlencode(filters),
    }


def _redirect_to_list(place: Place, filters: Mapping[str, str]) -> HttpResponse:
    """Redirect to the list of items, narrowed by the filters."""
    return redirect(f"{place.url_of('items_page')}?{urlencode(filters)}")


@workspace_page("edit", methods=("POST",))
def item_view_save(request: HttpRequest, place: Place) -> HttpResponse:
    """Save the filters as a view; the undo of a deletion calls this view too."""
    form = ItemFilter(QueryDict(request.POST.get("filters", "")), workspace=place.workspace)
    filters = chosen_filters(form)
    with report_errors(request):
        view = saved_views.create(place.workspace, request.POST.get("name", ""), filters)
        messages.success(request, _("%(name)s saved.") % {"name": view.name})
    return _redirect_to_list(place, filters)


@workspace_page("edit", methods=("POST",))
def item_view_rename(request: HttpRequest, place: Place, viw: UUID) -> HttpResponse:
    """Rename a saved view."""
    view = get_object_or_404(SavedView.objects.of(place.workspace), pk=viw)
    with report_errors(request):
        saved_views.rename(view, request.POST.get("name", ""))
        messages.success(request, _("Renamed to %(name)s.") % {"name": view.name})
    return _redirect_to_list(place, view.filters)


@workspace_page("edit", methods=("POST",))
def item_view_delete(request: HttpRequest, place: Place, viw: UUID) -> HttpResponse:
    """Delete a saved view, with an undo."""
    view = get_object_or_404(SavedView.objects.of(place.workspace), pk=viw)
    saved_views.delete(view)
    fields = {"name": view.name, "filters": urlencode(view.filters)}
    message = _("%(name)s deleted.") % {"name": view.name}
    offer_undo(request, message, place.url_of("item_view_save"), fields)
    return _redirect_to_list(place, view.filters)
