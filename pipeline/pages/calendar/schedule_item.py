"""Schedules an unscheduled item for a free slot: one that it is dragged to, or one chosen from a list."""

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
    """Show the next free slots of the item's outlets, and schedule the item on POST.

    A POST with `outlet` and `at` takes that slot. A POST with `day` takes the first free slot of that day: of
    `outlet` or, without `outlet`, of each outlet of the item. A script gets 204, or 409 with the reason as text;
    a form gets a page.
    """
    item = find_item(place, gen)
    now = utc_now()
    is_script = request.headers.get("X-Calendar") == "1"
    reason = ""
    if request.method == "POST":
        if not kept_forms.is_first_sending(request):
            return redirect(place.url_of("calendar"))
        try:
            week_url = schedule_and_report(
                request, place, item, lambda version: _take_slot(request, place, item, version)
            )
        except AppError as error:
            kept_forms.allow_sending_again(request)
            reason = why_not_scheduled(error)
            item = find_item(place, gen)
        else:
            return HttpResponse(status=204) if is_script else redirect(week_url)
    if is_script:
        return HttpResponse(reason, status=409, content_type="text/plain; charset=utf-8")
    return render(request, "pages/calendar/schedule_item.html", _page_context(place, item, reason, now))


def schedule_and_report(
    request: HttpRequest, place: Place, item: GeneratedItem, take_slot: Callable[[int], bulk_review.Decided]
) -> str:
    """Schedule the item, add messages with an undo, and return the address of the week in which it is due now.

    `take_slot` takes the version that the person looked at and schedules that version of the item. Raises
    `Invalid` if the form names no version, and each error that `take_slot` raises.
    """
    version = version_in(request.POST)
    if version is None:
        raise Invalid.one("version", "required", _("Reload the page, then choose again."))
    decided = take_slot(version)
    publications = slot_times.publications_in(place.workspace, decided.former or {})
    for line in next_actions.find_waits(place, publications, now=utc_now()).lines:
        messages.warning(request, line)
    message = slot_times.scheduled_sentence(publications, place.workspace.timezone)
    other_outlets = _unscheduled_outlet_names(
        place, item, {publication.outlet_id for publication in publications}
    )
    if other_outlets:
        message = f"{message} " + _("Not scheduled for %(outlets)s.") % {"outlets": ", ".join(other_outlets)}
    first_due_at = min(publication.due_at for publication in publications if publication.due_at)
    first_day = first_due_at.astimezone(ZoneInfo(place.workspace.timezone)).date()
    offer_undo_of(request, place, message, decided, week=first_day)
    return week_address(place, first_day)


def why_not_scheduled(error: AppError) -> str:
    """Return the sentence about an error for the calendar's pages."""
    if isinstance(error, Overtaken):
        return _("Changed since you opened it. Choose again.")
    if any(detail.code == "approval_required" for detail in error.detail):
        return planning.APPROVE_FIRST
    return error.detail[0].message if error.detail else str(error)


def week_address(place: Place, on: date) -> str:
    """Return the address of the week that holds a date."""
    return f"{place.url_of('calendar')}?view=week&on={on.isoformat()}"


def _take_slot(request: HttpRequest, place: Place, item: GeneratedItem, version: int) -> bulk_review.Decided:
    """Schedule the item for the slot or the day that the request names.

    Raises `Invalid` if the request names neither an outlet with a moment nor a day, `Conflict` if no default
    outlet takes the item, and each error of `planning.take_slot`.
    """
    options: dict[str, Any] = {"by": place.user.email, "now": utc_now(), "expected_version": version}
    outlet_key = decode("out", request.POST.get("outlet", ""))
    at = read_moment(request.POST.get("at", ""))
    if outlet_key is not None and at is not None:
        return planning.take_slot(item, outlet_key, at, **options)
    day = parse_date(request.POST.get("day", ""))
    if day is None:
        raise Invalid.one("at", "required", _("Choose a free slot."))
    zone = ZoneInfo(place.workspace.timezone)
    bounds = start_of(day, zone), start_of(day + timedelta(days=1), zone)
    if outlet_key is not None:
        outlet_keys = [outlet_key]
    else:
        outlet_keys = [outlet.pk for outlet in tray.default_outlets_of(item, outlets_of(place))]
    if not outlet_keys:
        message = _("This item has no outlet that takes it. Choose a slot of an outlet.")
        raise Conflict.because(code="no_outlet", message=message, field="outlet")
    return planning.take_day(item, outlet_keys, bounds, **options)


def _unscheduled_outlet_names(place: Place, item: GeneratedItem, scheduled_keys: set[UUID]) -> list[str]:
    """Return the names of the item's default outlets for which it wasn't scheduled.

    They are named to the user, because the item leaves the tray although nothing goes to them.
    """
    remaining_ids = {
        public_id for public_id in item.outlets if decode("out", public_id) not in scheduled_keys
    }
    if not remaining_ids:
        return []
    return [
        outlet.name
        for outlet in tray.default_outlets_of(item, outlets_of(place))
        if encode("out", outlet.pk) in remaining_ids
    ]


def _page_context(place: Place, item: GeneratedItem, refusal: str, now: datetime) -> dict[str, Any]:
    """Return the template's context.

    `closed` says why the item can't be scheduled at all; there are no slots then. `why` is `refusal`, unless that
    is the same sentence.
    """
    tray_item = tray.build_tray_item(place, item, (), now=now)
    blocker = publish.why_not_publishable(item)
    closed_reason = ""
    if item.status != GeneratedItemStatus.READY:
        closed_reason = _("This item isn't waiting to be scheduled any more: %(status)s.") % {
            "status": str(labels.of_item(item).label).lower()
        }
    elif blocker is not None:
        closed_reason = why_not_scheduled(Conflict(blocker))
    slots: Sequence[planning.NextSlots] = ()
    if not closed_reason:
        slots = planning.next_slots(place.workspace, _offered_outlets(place, item), now=now)
    return {
        "one": tray_item,
        "why": refusal if refusal != closed_reason else "",
        "closed": closed_reason,
        "slots": slots,
        "zone": place.workspace.timezone,
        "back": place.url_of("calendar"),
    }


def _offered_outlets(place: Place, item: GeneratedItem) -> Sequence[Outlet]:
    """Return the first `OUTLETS_OFFERED` open outlets that take the item, its default outlets first."""
    default_ids = set(item.outlets)
    open_outlets = [
        outlet
        for outlet in outlets_of(place)
        if item.bucket in buckets_of(outlet.platform) and publish.why_closed(outlet) is None
    ]
    return sorted(open_outlets, key=lambda outlet: encode("out", outlet.pk) not in default_ids)[
        :OUTLETS_OFFERED
    ]
