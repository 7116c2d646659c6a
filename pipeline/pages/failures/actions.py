"""What is done about what failed or is late: tried again, given another time, cancelled, one or many, with an undo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.http import QueryDict
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.ledger.credits import QuotaExceeded
from accounts.pages.act_messages import changed_meanwhile_message, offer_undo
from accounts.pages.page_access import Place, page
from config.core.clock import utc_now
from config.core.ids import decode
from config.core.states import Overtaken
from pipeline.models import PublicationStatus
from pipeline.pages.failures.forms import ClearForm
from pipeline.pages.failures.page import filters_of
from pipeline.pages.failures.rows import SECTIONS
from pipeline.pages.items import next_actions, slot_times
from pipeline.pages.review.actions import GRACE, note_of, undo_all
from pipeline.review import bulk_review
from pipeline.schedule import recovery

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse

    from config.core.errors import AppError

_VERSION_DIGITS: Final = 9


@page("edit", methods=("POST",))
def failures_clear(request: HttpRequest, place: Place) -> HttpResponse:
    """`rows` are ids with versions, as `pub_…:3`; `one` is an act with one of them, `retry:pub_…:3`, and goes first."""
    act, _colon, row = request.POST.get("one", "").partition(":")
    given = request.POST.copy()
    if row:
        given["act"] = act
    chosen = _chosen([row] if row else given.getlist("rows"))
    form = ClearForm(given, zone=place.workspace.timezone)
    why = [str(line) for lines in form.errors.values() for line in lines]
    if not why and not chosen:
        why = [_("Select at least one row.")]
    if why:
        messages.error(request, " ".join(why))
        return redirect(_back(request, place, keeps_time=True))
    now, timing = utc_now(), form.timing()
    found = recovery.clear(
        form.cleaned_data["act"],
        chosen,
        recovery.BulkRecoveryInput(
            workspace=place.workspace,
            by=place.user.email,
            now=now,
            retry_at=now + GRACE,
            at=timing.publish_at,
            clock=timing.clock,
        ),
    )
    _tell(request, place, form.cleaned_data["act"], found, missing=len(chosen) - len(found))
    return redirect(_back(request, place, keeps_time=any(one.error for one in found)))


@page("edit", methods=("POST",))
def failures_undo(request: HttpRequest, place: Place) -> HttpResponse:
    """`undo` are signed notes of what was there before, with a space between them."""
    done, errors = undo_all(place, request.POST.get("undo", "").split())
    if done:
        messages.success(request, _("Undone."))
    for line in dict.fromkeys(errors):
        messages.error(request, line)
    if not done and not errors:
        messages.error(request, _("Nothing to undo."))
    return redirect(_back(request, place))


def _chosen(tokens: Sequence[str]) -> list[recovery.Chosen]:
    """Each once; what names nothing that can be cleared is left out."""
    found: dict[tuple[str, UUID], int] = {}
    for one in tokens:
        name, _colon, version = one.partition(":")
        prefix = name.partition("_")[0]
        key = decode(prefix, name) if prefix in recovery.PREFIXES else None
        if key is not None and version.isascii() and version.isdigit() and len(version) <= _VERSION_DIGITS:
            found[prefix, key] = int(version)
    return [(prefix, key, version) for (prefix, key), version in found.items()]


DISMISS: Final = "dismiss"
"""To cancel what has failed already."""
_SAID: Final[Mapping[str, tuple[Any, Any]]] = {
    recovery.RETRY: (
        gettext_lazy("Retrying."),
        gettext_lazy("Retrying %(count)d."),
    ),
    recovery.NEXT: (
        gettext_lazy("Scheduled for the next free slot."),
        gettext_lazy("%(count)d scheduled for the next free slots."),
    ),
    recovery.AT: (gettext_lazy("Rescheduled."), gettext_lazy("%(count)d rescheduled.")),
    recovery.CANCEL: (
        gettext_lazy("Unscheduled."),
        gettext_lazy("%(count)d unscheduled."),
    ),
    DISMISS: (
        gettext_lazy("Dismissed. It won't be published there."),
        gettext_lazy("%(count)d dismissed. They won't be published."),
    ),
}


def _tell(
    request: HttpRequest, place: Place, act: str, found: Sequence[recovery.Cleared], *, missing: int
) -> None:
    done = [one for one in found if one.error is None]
    if done:
        one, several = _SAID[DISMISS if act == recovery.CANCEL and _had_failed(done) else act]
        said = str(one) if len(done) == 1 else str(several) % {"count": len(done)}
        lines = [] if act == recovery.CANCEL else _waits(place, done)
        if lines:
            said = " ".join(lines if act == recovery.RETRY else [said, *lines])
        notes = [
            note_of(place, bulk_review.Decided(one.item, one.former)) for one in done if one.item is not None
        ]
        if notes:
            fields = {"undo": " ".join(notes), "query": request.POST.get("query", "")}
            offer_undo(request, said, place.address("failures_undo"), fields, is_good=not lines)
        else:
            (messages.warning if lines else messages.success)(request, said)
    why: dict[str, int] = {}
    for one in found:
        if one.error is not None:
            why[_why(one.error)] = why.get(_why(one.error), 0) + 1
    for line, count in why.items():
        messages.error(request, line if len(found) == 1 else f"{count} × {line}")
    if missing:
        messages.error(request, _("Deleted rows were skipped."))


def _waits(place: Place, done: Sequence[recovery.Cleared]) -> list[str]:
    """Why posts among them aren't sent, though they were asked for again."""
    keys = [one.key for one in done if one.prefix == "pub"]
    rows = slot_times.with_obstacles(place.workspace, keys) if keys else []
    return next_actions.waits_of(place, rows, now=utc_now()).lines


def _had_failed(done: Sequence[recovery.Cleared]) -> bool:
    """Whether nothing of it was still to be sent."""
    stood = [one for cleared in done if cleared.former for one in cleared.former["stood"].values()]
    return all(one["status"] == PublicationStatus.FAILED for one in stood)


def _why(error: AppError) -> str:
    if isinstance(error, Overtaken):
        return changed_meanwhile_message()
    if isinstance(error, QuotaExceeded):
        return _("Not enough credits. Retry next month or ask for more.")
    return error.detail[0].message if error.detail else str(error)


def _back(request: HttpRequest, place: Place, *, keeps_time: bool = False) -> str:
    """The same filters and the same section; after a refusal with the time that was typed."""
    given = QueryDict(request.POST.get("query", ""))
    query = QueryDict(filters_of(place, given)[1], mutable=True)
    if given.get("section") in SECTIONS:
        query["section"] = str(given["section"])
    if keeps_time and request.POST.get("local_time"):
        query["local_time"] = request.POST["local_time"][:20]
    return f"{place.address('failures')}?{query.urlencode()}"
