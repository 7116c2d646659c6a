"""A free slot of an outlet: the items that are ready for it, each a click away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple
from zoneinfo import ZoneInfo

from django.contrib import messages
from django.http import Http404
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from accounts.pages import form_recovery
from accounts.pages.page_access import Place, page
from config.core.clock import utc_now
from config.core.datetimes import read_moment
from config.core.errors import AppError
from config.core.ids import decode, encode
from config.core.states import Overtaken
from pipeline import labels, publish
from pipeline.models import GeneratedItem, Outlet
from pipeline.outlets.outlet_client import buckets_of
from pipeline.pages.items import display, next_actions, slot_times
from pipeline.pages.items.detail import find_item
from pipeline.pages.items.forms import version_in
from pipeline.pages.review.actions import offer_undo_of
from pipeline.review import bulk_review

if TYPE_CHECKING:
    from datetime import datetime

    from django.http import HttpRequest, HttpResponse

OFFERED: Final = 20
"""The newest items that are ready; the others are found in Content."""


class OfferedItem(NamedTuple):
    item: GeneratedItem
    public_id: str
    title: str
    badge: labels.Badge
    is_approved: bool


@page("edit")
def free_slot(request: HttpRequest, place: Place) -> HttpResponse:
    """`outlet` and `at` say which slot; POST with `item` schedules that item for it."""
    if not request.GET:
        return redirect(place.address("calendar"))
    outlet = _outlet(request, place)
    at = read_moment(request.GET.get("at", ""))
    if at is None:
        raise Http404
    has_passed = at <= utc_now()
    why = _("This slot has passed. Choose another one.") if has_passed else ""
    if request.method == "POST" and not has_passed and form_recovery.is_first_sending(request):
        try:
            return _schedule(request, place, outlet, at)
        except Overtaken:
            why = _("Changed since you opened it. Choose again.")
        except AppError as error:
            why = error.detail[0].message if error.detail else str(error)
        form_recovery.allow_sending_again(request)
    offered = [] if has_passed else _offered(place, outlet)
    context = {
        "outlet": outlet,
        "at": at,
        "zone": place.workspace.timezone,
        "address": f"{place.address('calendar_slot')}?{request.GET.urlencode()}",
        "why": why,
        "offered": offered,
        "has_unapproved": not all(one.is_approved for one in offered),
        "back": _back(place, at),
    }
    return render(request, "pages/calendar/free_slot.html", context)


def _outlet(request: HttpRequest, place: Place) -> Outlet:
    rows = Outlet.objects.of(place.workspace).filter(deleted_at=None).defer("credentials")
    row: Outlet = get_object_or_404(rows, pk=decode("out", request.GET.get("outlet", "")))
    return row


def _offered(place: Place, outlet: Outlet) -> list[OfferedItem]:
    """Those that are approved first, then the newest."""
    rows = GeneratedItem.objects.of(place.workspace).live().ready().filter(held="")
    taken = rows.filter(bucket__in=buckets_of(outlet.platform)).order_by("-id")
    found = [
        OfferedItem(
            row,
            encode("gen", row.pk),
            display.title_of(row),
            labels.of_promise(row),
            row.is_approved_as_it_is,
        )
        for row in taken.select_related("generation", "raw_item")[:OFFERED]
    ]
    return sorted(found, key=lambda one: not one.is_approved)


def _schedule(request: HttpRequest, place: Place, outlet: Outlet, at: datetime) -> HttpResponse:
    key = decode("gen", request.POST.get("item", ""))
    if key is None:
        raise Http404
    row = find_item(place, key)
    version = version_in(request.POST)
    wish = publish.PublishWish(outlets=[encode("out", outlet.pk)], publish_at=at)
    given = bulk_review.BulkReviewInput(place.workspace, by=place.user.email, now=utc_now(), wish=wish)
    chosen = (row, row.version if version is None else version)
    (done,) = bulk_review.decide(bulk_review.PUBLISH, [chosen], given)
    if done.error is not None or done.former is None:
        raise done.error or Overtaken()
    promised = slot_times.publications_in(place.workspace, done.former)
    said = slot_times.scheduled_sentence(promised, place.workspace.timezone)
    for line in next_actions.waits_of(place, promised, now=utc_now()).lines:
        messages.warning(request, line)
    offer_undo_of(request, place, said, done)
    return redirect(_back(place, at))


def _back(place: Place, at: datetime) -> str:
    on = at.astimezone(ZoneInfo(place.workspace.timezone)).date()
    return f"{place.address('calendar')}?view=week&on={on.isoformat()}"
