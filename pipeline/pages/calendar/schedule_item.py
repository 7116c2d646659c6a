"""An unscheduled item put into a free slot: dragged there, or chosen from the next free slots of its outlets."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from accounts.pages import form_recovery
from accounts.pages.page_access import Place, page
from config.core.clock import utc_now
from config.core.datetimes import read_moment
from config.core.errors import AppError, Conflict, Invalid
from config.core.ids import decode, encode
from config.core.states import Overtaken
from pipeline import labels, publish
from pipeline.models import GeneratedItemStatus, Outlet
from pipeline.outlets.outlet_client import buckets_of
from pipeline.pages.calendar import tray
from pipeline.pages.calendar.date_range import YEARS, start_of
from pipeline.pages.items import next_actions, slot_times
from pipeline.pages.items.detail import find_item
from pipeline.pages.items.forms import version_in
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
"""Outlets whose free slots are listed; the form for another time has them all."""


@page("edit")
def calendar_schedule(request: HttpRequest, place: Place, gen: UUID) -> HttpResponse:
    """POST with `outlet` and `at` takes that slot, with `day` the first free one of that day: of `outlet`, or of each
    outlet of the item.

    To the script it answers 204, or 409 with the words of why not; to a form with a page.
    """
    row = find_item(place, gen)
    now = utc_now()
    is_script = request.headers.get("X-Calendar") == "1"
    why = ""
    if request.method == "POST":
        if not form_recovery.is_first_sending(request):
            return redirect(place.address("calendar"))
        try:
            week = schedule_into(request, place, row, lambda version: _take(request, place, row, version))
        except AppError as error:
            form_recovery.allow_sending_again(request)
            why = why_not_scheduled(error)
            row = find_item(place, gen)
        else:
            return HttpResponse(status=204) if is_script else redirect(week)
    if is_script:
        return HttpResponse(why, status=409, content_type="text/plain; charset=utf-8")
    return render(request, "pages/calendar/schedule_item.html", _context(place, row, why, now))


def schedule_into(
    request: HttpRequest, place: Place, item: GeneratedItem, take: Callable[[int], bulk_review.Decided]
) -> str:
    """Schedule it by `take`, which is given the version that was looked at, and say so with an undo.

    Returns the address of the week where it stands now; raises what `planning.take_slot` does.
    """
    version = version_in(request.POST)
    if version is None:
        raise Invalid.one("version", "required", _("Reload the page, then choose again."))
    done = take(version)
    promised = slot_times.publications_in(place.workspace, done.former or {})
    for line in next_actions.waits_of(place, promised, now=utc_now()).lines:
        messages.warning(request, line)
    said = slot_times.scheduled_sentence(promised, place.workspace.timezone)
    left = _not_scheduled(place, item, {one.outlet_id for one in promised})
    if left:
        said = f"{said} " + _("Not scheduled for %(outlets)s.") % {"outlets": ", ".join(left)}
    on = min(one.due_at for one in promised if one.due_at).astimezone(ZoneInfo(place.workspace.timezone))
    offer_undo_of(request, place, said, done, week=on.date())
    return week_address(place, on.date())


def why_not_scheduled(error: AppError) -> str:
    """In the words of the other pages of the calendar."""
    if isinstance(error, Overtaken):
        return _("Changed since you opened it. Choose again.")
    if any(detail.code == "approval_required" for detail in error.detail):
        return planning.APPROVE_FIRST
    return error.detail[0].message if error.detail else str(error)


def week_address(place: Place, on: date) -> str:
    return f"{place.address('calendar')}?view=week&on={on.isoformat()}"


def _take(request: HttpRequest, place: Place, row: GeneratedItem, version: int) -> bulk_review.Decided:
    """As the request asks. Raises `Invalid` where it names no outlet, or neither a moment nor a day."""
    given: dict[str, Any] = {"by": place.user.email, "now": utc_now(), "expected_version": version}
    outlet = decode("out", request.POST.get("outlet", ""))
    at = read_moment(request.POST.get("at", ""))
    if outlet is not None and at is not None:
        return planning.take_slot(row, outlet, at, **given)
    day = _day_in(request.POST.get("day", ""))
    if day is None:
        raise Invalid.one("at", "required", _("Choose a free slot."))
    zone = ZoneInfo(place.workspace.timezone)
    between = start_of(day, zone), start_of(day + timedelta(days=1), zone)
    outlets = [outlet] if outlet else [one.pk for one in tray.channels_of(row, _outlets(place))]
    if not outlets:
        message = _("This item has no outlet that takes it. Choose a slot of an outlet.")
        raise Conflict.because(code="no_outlet", message=message, field="outlet")
    return planning.take_day(row, outlets, between, **given)


def _day_in(text: str) -> date | None:
    try:
        found = date.fromisoformat(text)
    except ValueError:
        return None
    return found if found.year in YEARS else None


def _outlets(place: Place) -> list[Outlet]:
    rows = Outlet.objects.of(place.workspace).filter(deleted_at=None).defer("credentials")
    return list(rows.order_by("id"))


def _not_scheduled(place: Place, item: GeneratedItem, done: set[UUID]) -> list[str]:
    """Names of its other outlets: it leaves the tray, though nothing goes there."""
    rest = {name for name in item.outlets if decode("out", name) not in done}
    if not rest:
        return []
    return [one.name for one in tray.channels_of(item, _outlets(place)) if encode("out", one.pk) in rest]


def _context(place: Place, row: GeneratedItem, why: str, now: datetime) -> dict[str, Any]:
    shown = tray.as_shown(place, row, (), now=now)
    blocked = publish.why_not_publishable(row)
    closed = ""
    if row.status != GeneratedItemStatus.READY:
        closed = _("This item isn't waiting to be scheduled any more: %(status)s.") % {
            "status": str(labels.of_item(row).label).lower()
        }
    elif blocked is not None:
        closed = why_not_scheduled(Conflict(blocked))
    slots = () if closed else planning.next_slots(place.workspace, _offered(place, row), now=now)
    return {
        "one": shown,
        "why": why if why != closed else "",
        "closed": closed,
        "slots": slots,
        "zone": place.workspace.timezone,
        "back": place.address("calendar"),
    }


def _offered(place: Place, row: GeneratedItem) -> Sequence[Outlet]:
    """Those that take it and are open, its own first."""
    own = set(row.outlets)
    taking = [
        one
        for one in _outlets(place)
        if row.bucket in buckets_of(one.platform) and publish.why_closed(one) is None
    ]
    return sorted(taking, key=lambda one: encode("out", one.pk) not in own)[:OUTLETS_OFFERED]
