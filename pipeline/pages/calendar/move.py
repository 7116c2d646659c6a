"""Moves one post to another time: by dragging it, by a key, or by a form that works without a script."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

from django import forms
from django.contrib import messages
from django.core import signing
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.pages import kept_forms
from accounts.pages.act_messages import offer_undo, report_errors
from accounts.pages.page_access import Place, workspace_page
from config.core.clock import utc_now
from config.core.datetimes import read_moment
from config.core.errors import AppError, Invalid
from config.core.ids import encode
from config.core.states import Overtaken
from pipeline import publish
from pipeline.models import Publication, PublicationStatus
from pipeline.publish.timing.queue_slots import find_next_free_slot
from pipeline.schedule import planning
from pipeline.text.local_time import WallClock, moment_of, shift_of

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest

SLOTS_OFFERED: Final = 3
"""The most free slots that are offered before the post's time, and after it."""
_MAX_VERSION_DIGITS: Final = 9
_SIGNING_SALT: Final = "calendar.move"
_UNDO_MAX_AGE_SECONDS: Final = 24 * 3600


class MoveForm(forms.Form):
    """The post's new time on the workspace's clocks, and the version that the person looked at."""

    local_time = forms.DateTimeField(
        label=gettext_lazy("New time"),
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"],
    )
    version = forms.IntegerField(widget=forms.HiddenInput, required=False)


@workspace_page("edit")
def calendar_move(request: HttpRequest, place: Place, pub: UUID) -> HttpResponse:
    """Show the form that moves a post, and move the post on POST.

    A POST holds `at`, a moment, or `local_time`, a time on the workspace's clocks. A script gets 204, or 409 with
    the reason as text; a form gets a page. Nothing is moved without the version that the person looked at.
    """
    row = _find_publication(place, pub)
    now, zone = utc_now(), ZoneInfo(place.workspace.timezone)
    is_script = request.headers.get("X-Calendar") == "1"
    initial = {
        "local_time": row.due_at.astimezone(zone).replace(tzinfo=None) if row.due_at else None,
        "version": row.version,
    }
    form = kept_forms.form_for(request, MoveForm, initial=initial)
    if request.method == "POST":
        try:
            moved = _move_and_report(request, place, row, form, now)
        except AppError as error:
            reason = _why_not_moved(error)
        else:
            if is_script:
                return HttpResponse(status=204)
            return redirect(_week_url(place, moved.publication, zone))
        if is_script:
            return HttpResponse(reason, status=409, content_type="text/plain; charset=utf-8")
        form.add_error(None, reason)
        row = _find_publication(place, pub)
        form.data = {"local_time": request.POST.get("local_time", ""), "version": str(row.version)}
    slots: list[tuple[str, list[datetime]]] = []
    if row.status == PublicationStatus.SCHEDULED:
        sooner, later = _nearest_free_slots(row, now)
        slots = [(name, moments) for name, moments in ((_("Sooner"), sooner), (_("Later"), later)) if moments]
    context: dict[str, Any] = {
        "row": row,
        "form": form,
        "zone": place.workspace.timezone,
        "slots": slots,
        "back": _week_url(place, row, zone),
    }
    return render(request, "pages/calendar/move.html", context)


def _move_and_report(
    request: HttpRequest, place: Place, row: Publication, form: MoveForm, now: datetime
) -> planning.Moved:
    """Move the post to the requested time, and add a message about it.

    Raises `Invalid` if the request holds no valid time or no version, and each error of `planning.move`.
    """
    at, clock = _read_requested_time(request, place, form)
    version = _read_version(request)
    if at is None:
        raise Invalid.one("at", "required", _("Enter a date and time."))
    if version is None:
        raise Invalid.one("version", "required", _("Reload the page, then move it again."))
    moved = planning.move(row, at=at, clock=clock, by=place.user.email, now=now, expected_version=version)
    _report_moved(request, place, moved, shift_of(clock) if clock is not None else "", now)
    return moved


def _why_not_moved(error: AppError) -> str:
    """Return the sentence about an error for the form and the script."""
    if isinstance(error, Overtaken):
        return _("Changed since you opened it. Reload to continue.")
    return error.detail[0].message if error.detail else str(error)


def _report_moved(
    request: HttpRequest, place: Place, moved: planning.Moved, shift: str, now: datetime
) -> None:
    """Add a message about the move; it has an undo unless the former time has passed.

    `shift` is a sentence about a time that the clocks skip, or empty.
    """
    row = moved.publication
    message = _("Moved to %(time)s. Needs approval.") if row.item.held else _("Moved to %(time)s.")
    time = _format_due_at(row, ZoneInfo(place.workspace.timezone))
    sentence = f"{message % {'time': time}} {shift}".rstrip()
    if datetime.fromisoformat(moved.former["due_at"]) < now:
        messages.success(request, sentence)
        return
    note = {"pub": encode("pub", row.pk), "version": row.version, "former": moved.former}
    fields = {"undo": signing.dumps(note, salt=_SIGNING_SALT, compress=True)}
    offer_undo(request, sentence, place.url_of("calendar_move_back", pub=row.pk), fields)


@workspace_page("edit", methods=("POST",))
def calendar_move_back(request: HttpRequest, place: Place, pub: UUID) -> HttpResponse:
    """Move a post back to the time in the signed note `undo`, unless the post was changed since."""
    row, zone = _find_publication(place, pub), ZoneInfo(place.workspace.timezone)
    try:
        note = signing.loads(request.POST.get("undo", ""), salt=_SIGNING_SALT, max_age=_UNDO_MAX_AGE_SECONDS)
    except signing.BadSignature:
        note = {}
    if note.get("pub") != encode("pub", row.pk):
        messages.error(request, _("This can't be undone any more."))
        return redirect(_week_url(place, row, zone))
    with report_errors(request, overtaken=_("Changed since it was moved, so it stays where it is.")):
        row = planning.move_back(row, note["former"], now=utc_now(), expected_version=note["version"])
        messages.success(request, _("Moved back to %(time)s.") % {"time": _format_due_at(row, zone)})
    return redirect(_week_url(place, row, zone))


def _find_publication(place: Place, pub: UUID) -> Publication:
    """Return the publication with its item, outlet, workspace and queue.

    Raises `Http404` if the workspace has no such publication, or if it is a test's or its item was deleted.
    """
    rows = Publication.objects.of(place.workspace).select_related("item", "outlet", "workspace", "queue")
    row: Publication = get_object_or_404(rows, pk=pub, test=False, item__deleted_at=None)
    return row


def _read_requested_time(
    request: HttpRequest, place: Place, form: MoveForm
) -> tuple[datetime | None, WallClock | None]:
    """Return the moment that the request names, and the local time if it names one.

    Both are `None` if the request holds no valid time.
    """
    if "at" in request.POST:
        return read_moment(request.POST["at"]), None
    if not form.is_valid():
        return None, None
    local = form.cleaned_data["local_time"]
    clock = WallClock(local.replace(tzinfo=None), place.workspace.timezone)
    try:
        return moment_of(clock), clock
    except (ValueError, OverflowError):
        return None, None


def _read_version(request: HttpRequest) -> int | None:
    """Return the version that the person looked at, or `None` if the form names no valid one."""
    text = request.POST.get("version", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MAX_VERSION_DIGITS else None


def _nearest_free_slots(row: Publication, now: datetime) -> tuple[list[datetime], list[datetime]]:
    """Return the next free slots of the post's outlet before its time, and those after it."""
    at = row.due_at or now
    sooner = [moment for moment in _free_slots_after(row, after=now) if moment < at] if at > now else []
    return sooner, _free_slots_after(row, after=max(at, now))


def _free_slots_after(row: Publication, *, after: datetime) -> list[datetime]:
    """Return up to `SLOTS_OFFERED` free slots of the post's outlet after a moment."""
    queue = publish.find_publish_queue(row.outlet, row.workspace)
    moments: list[datetime] = []
    while len(moments) < SLOTS_OFFERED:
        slot = find_next_free_slot(row.outlet, queue, after=moments[-1] if moments else after, own=row)
        if slot is None:
            break
        moments.append(slot.moment)
    return moments


def _format_due_at(row: Publication, zone: ZoneInfo) -> str:
    """Return when the post is due in the zone, as `09:00, 5 March`, or an empty text if it has no time."""
    local = row.due_at.astimezone(zone) if row.due_at else None
    return f"{local:%H:%M}, {local.day} {local:%B}" if local else ""


def _week_url(place: Place, row: Publication, zone: ZoneInfo) -> str:
    """Return the address of the week in which the post is due, or of this week if it has no time."""
    day = row.due_at.astimezone(zone).date() if row.due_at else utc_now().date()
    return f"{place.url_of('calendar')}?view=week&on={day.isoformat()}"
