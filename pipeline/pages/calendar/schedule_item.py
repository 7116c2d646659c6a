"""Pages that put an unscheduled item into a free slot: dragged
there, or chosen from the next free slots of its outlets.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from accounts.pages import kept_forms
from accounts.pages.page_access import Place, workspace_page
from config.core.clock import utc_now
from config.core.datetimes import read_moment
from config.core.errors import AppError, Conflict, Invalid
from config.core.ids import decode, encode
from config.core.states import Overtaken
from pipeline import labels, publish
from pipeline.models import GeneratedItemStatus, Outlet
from pipeline.outlets.outlet_client import buckets_of
from pipeline.pages.calendar import tray
from pipeline.pages.calendar.date_range import parse_date, start_of
from pipeline.pages.items import next_actions, slot_times
from pipeline.pages.items.detail import find_item
from pipeline.pages.items.forms import version_in
from pipeline.pages.queues.views import outlets_of
from pipeline.pages.review.actions import offer_undo_of
from pipeline.schedule import planning

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from uuid import UUID

    from django.http import HttpRequest

    from pipeline.models import GeneratedItem
    from pipeline.review import bulk_review

OUTLETS_OFFERED: Final = 10
"""The most outlets whose free slots are listed; the form for another time has them all."""


@workspace_page("edit")
def calendar_schedule(request: HttpRequest, place: Place, gen: UUID) -> HttpResponse:
    """Schedule an item: POST with `outlet` and `at` takes
    that slot, with `day` the first free one of that day.

    A day's slot is one of `outlet`; without `outlet`, each outlet of the item gets
    one. A script gets 204, or 409 with the reason as text; a form gets a page.
    """
    row = find_item(place, gen)
    now = utc_now()
    is_script = request.headers.get("X-Calendar") == "1"
    reason = ""
    if request.method == "POST":
        if not kept_forms.is_first_sending(request):
            return redirect(place.url_of("calendar"))
        try:
            week_url = schedule_into(
                request, place, row, lambda version: _take_slot(request, place, row, version)
            )
        except AppError as error:
            kept_forms.allow_sending_again(request)
            reason = why_not_scheduled(error)
            row = find_item(place, gen)
        else:
            return HttpResponse(status=204) if is_script else redirect(week_url)
    if is_script:
        return HttpResponse(reason, status=409, content_type="text/plain; charset=utf-8")
    return render(request, "pages/calendar/schedule_item.html", _page_context(place, row, reason, now))


def schedule_into(
    request: HttpRequest, place: Place, item: GeneratedItem, take: Callable[[int], bulk_review.Decided]
) -> str:
    """Schedule the item by `take`, which is given the version that was looked at, and report it with an undo.

    Returns the address of the week where the item is due now. Raises what
    `planning.take_slot` does, and `Invalid` where the form names no version.
    """
    version = version_in(request.POST)
    if version is None:
        raise Invalid.one("version", "required", _("Reload the page, then choose again."))
    decided = take(version)
    publications = slot_times.publications_in(place.workspace, decided.former or {})
    for line in next_actions.waits_of(place, publications, now=utc_now()).lines:
        messages.warning(request, line)
    message = slot_times.scheduled_sentence(publications, place.workspace.timezone)
    other_outlets = _unscheduled_outlet_names(
        place, item, {publication.outlet_id for publication in publications}
    )
    if other_outlets:
        message = f"{message} " + _("Not scheduled for %(outlets)s.") % {"outlets": ", ".join(other_outlets)}
    first_due_at = min(publication.due_at for publication in publications if publication.due_at).astimezone(
        ZoneInfo(place.workspace.timezone)
    )
    offer_undo_of(request, place, message, decided, week=first_due_at.date())
    return week_address(place, first_due_at.date())


def why_not_scheduled(error: AppError) -> str:
    """Return the error in the words of the calendar's other pages."""
    if isinstance(error, Overtaken):
        return _("Changed since you opened it. Choose again.")
    if any(detail.code == "approval_required" for detail in error.detail):
        return planning.APPROVE_FIRST
    return error.detail[0].message if error.detail else str(error)


def week_address(place: Place, on: date) -> str:
    """Return the address of the week that holds a date."""
    return f"{place.url_of('calendar')}?view=week&on={on.isoformat()}"


def _take_slot(request: HttpRequest, place: Place, row: GeneratedItem, version: int) -> bulk_review.Decided:
    """Schedule the item as the request asks.

    Raises `Invalid` where it names neither an outlet with a moment
    nor a day, and `Conflict` where no outlet takes the item.
    """
    options: dict[str, Any] = {"by": place.user.email, "now": utc_now(), "expected_version": version}
    outlet_key = decode("out", request.POST.get("outlet", ""))
    at = read_moment(request.POST.get("at", ""))
    if outlet_key is not None and at is not None:
        return planning.take_slot(row, outlet_key, at, **options)
    day = parse_date(request.POST.get("day", ""))
    if day is None:
        raise Invalid.one("at", "required", _("Choose a free slot."))
    zone = ZoneInfo(place.workspace.timezone)
    bounds = start_of(day, zone), start_of(day + timedelta(days=1), zone)
    outlets = (
        [outlet_key] if outlet_key else [outlet.pk for outlet in tray.channels_of(row, outlets_of(place))]
    )
    if not outlets:
        message = _("This item has no outlet that takes it. Choose a slot of an outlet.")
        raise Conflict.because(code="no_outlet", message=message, field="outlet")
    return planning.take_day(row, outlets, bounds, **options)


def _unscheduled_outlet_names(place: Place, item: GeneratedItem, scheduled_keys: set[UUID]) -> list[str]:
    """Return the names of the item's other outlets: it leaves the tray, though nothing is sent to them."""
    remaining_ids = {
        public_id for public_id in item.outlets if decode("out", public_id) not in scheduled_keys
    }
    if not remaining_ids:
        return []
    return [
        outlet.name
        for outlet in tray.channels_of(item, outlets_of(place))
        if encode("out", outlet.pk) in remaining_ids
    ]


def _page_context(place: Place, row: GeneratedItem, refusal: str, now: datetime) -> dict[str, Any]:
    """Return what the template shows; `why` is the reason of
    a refusal, unless the page is closed for the same one.
    """
    tray_item = tray.as_shown(place, row, (), now=now)
    blocker = publish.why_not_publishable(row)
    closed_reason = ""
    if row.status != GeneratedItemStatus.READY:
        closed_reason = _("This item isn't waiting to be scheduled any more: %(status)s.") % {
            "status": str(labels.of_item(row).label).lower()
        }
    elif blocker is not None:
        closed_reason = why_not_scheduled(Conflict(blocker))
    slots = (
        () if closed_reason else planning.next_slots(place.workspace, _offered_outlets(place, row), now=now)
    )
    return {
        "one": tray_item,
        "why": refusal if refusal != closed_reason else "",
        "closed": closed_reason,
        "slots": slots,
        "zone": place.workspace.timezone,
        "back": place.url_of("calendar"),
    }


def _offered_outlets(place: Place, row: GeneratedItem) -> Sequence[Outlet]:
    """Return the open outlets that take the item, its own ones first."""
    own_ids = set(row.outlets)
    open_outlets = [
        outlet
        for outlet in outlets_of(place)
        if row.bucket in buckets_of(outlet.platform) and publish.why_closed(outlet) is None
    ]
    return sorted(open_outlets, key=lambda outlet: encode("out", outlet.pk) not in own_ids)[:OUTLETS_OFFERED]
