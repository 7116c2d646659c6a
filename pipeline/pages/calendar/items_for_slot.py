"""Shows an outlet's free slot with the items that fit there, each of which one click schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

from django.http import Http404, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from accounts.pages import kept_forms
from accounts.pages.page_access import Place, workspace_page
from config.core.clock import utc_now
from config.core.datetimes import read_moment
from config.core.errors import AppError
from config.core.ids import decode, encode
from pipeline import publish
from pipeline.models import Outlet
from pipeline.outlets.outlet_client import buckets_of
from pipeline.pages.calendar import tray
from pipeline.pages.calendar.schedule_item import schedule_and_report, week_address, why_not_scheduled
from pipeline.pages.items.detail import find_item
from pipeline.schedule import planning

if TYPE_CHECKING:
    from datetime import datetime

    from django.http import HttpRequest, HttpResponse

    from pipeline.models import GeneratedItem

ROWS: Final = 20
"""Items per page."""


@workspace_page("edit")
def free_slot(request: HttpRequest, place: Place) -> HttpResponse:
    """Show the slot that `outlet` and `at` name; a POST with `item` and its `version` schedules that item for it.

    An address without parameters redirects to the calendar, and a slot that has passed takes no item. Raises
    `Http404` if the address names no outlet or no moment, or the form no item.
    """
    if not request.GET:
        return redirect(place.url_of("calendar"))
    outlet = _find_outlet(request, place)
    at = read_moment(request.GET.get("at", ""))
    if at is None:
        raise Http404
    now = utc_now()
    has_passed = at <= now
    message = _("This slot has passed. Choose another one.") if has_passed else ""
    chosen_item = None
    back = week_address(place, at.astimezone(ZoneInfo(place.workspace.timezone)).date())
    if request.method == "POST" and not has_passed:
        if not kept_forms.is_first_sending(request):
            return redirect(back)
        item_key = decode("gen", request.POST.get("item", ""))
        if item_key is None:
            raise Http404
        chosen_item = find_item(place, item_key)
        try:
            return redirect(_schedule_item(request, place, chosen_item, outlet, at))
        except AppError as error:
            message = why_not_scheduled(error)
        kept_forms.allow_sending_again(request)
    context = {
        "outlet": outlet,
        "at": at,
        "zone": place.workspace.timezone,
        "address": f"{place.url_of('calendar_slot')}?{request.GET.urlencode()}",
        "why": message,
        "chosen": chosen_item,
        "back": back,
        **({} if has_passed else _offered_items(request.GET, place, outlet, now)),
    }
    return render(request, "pages/calendar/free_slot.html", context)


def _find_outlet(request: HttpRequest, place: Place) -> Outlet:
    """Return the outlet that the address names; raises `Http404` if the workspace has no such outlet."""
    rows = Outlet.objects.of(place.workspace).filter(deleted_at=None).defer("credentials")
    row: Outlet = get_object_or_404(rows, pk=decode("out", request.GET.get("outlet", "")))
    return row


def _offered_items(query: QueryDict, place: Place, outlet: Outlet, now: datetime) -> dict[str, Any]:
    """Return the context of a page of the newest items: those that the outlet's rules allow, approved ones first.

    `unfit` counts the items of this page that the rules don't allow; `older` is the query string of the next
    page, or empty on the last one.
    """
    rows = tray.unscheduled(place).filter(bucket__in=buckets_of(outlet.platform))
    before = decode("gen", query.get("before", ""))
    if before is not None:
        rows = rows.filter(pk__lt=before)
    candidates = list(rows.select_related("workspace", "raw_item").defer("workspace__model_key")[: ROWS + 1])
    page_rows = candidates[:ROWS]
    assets = publish.read_assets_by_item(page_rows)
    fitting = [item for item in page_rows if not publish.problems_of(item, outlet, assets.get(item.pk, []))]
    offered = [tray.build_tray_item(place, item, [outlet], now=now) for item in fitting]
    older_query = query.copy()
    if len(candidates) > ROWS:
        older_query["before"] = encode("gen", page_rows[-1].pk)
    return {
        "offered": sorted(offered, key=lambda item: not item.is_approved),
        "has_unapproved": any(not item.is_approved and not item.has_to_be_approved for item in offered),
        "unfit": len(page_rows) - len(fitting),
        "older": older_query.urlencode() if len(candidates) > ROWS else "",
    }


def _schedule_item(
    request: HttpRequest, place: Place, item: GeneratedItem, outlet: Outlet, at: datetime
) -> str:
    """Schedule the item for the slot and return the address of its week."""
    return schedule_and_report(
        request,
        place,
        item,
        lambda version: planning.take_slot(
            item, outlet.pk, at, by=place.user.email, now=utc_now(), expected_version=version
        ),
    )
