"""Retries, reschedules or cancels what failed or is late, one row or several, and undoes that."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.http import QueryDict
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.ledger.credits import QuotaExceeded
from accounts.pages.act_messages import changed_meanwhile_message, offer_undo
from accounts.pages.page_access import Place, workspace_page
from config.core.clock import utc_now
from config.core.ids import decode
from config.core.states import Overtaken
from pipeline.models import PublicationStatus
from pipeline.pages.failures.forms import FailureFilter, RecoveryForm
from pipeline.pages.failures.sections import SECTIONS
from pipeline.pages.items import next_actions, slot_times
from pipeline.pages.review.actions import UNDO_GRACE, note_of, undo_all
from pipeline.review import bulk_review
from pipeline.schedule import recovery

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse

    from config.core.errors import AppError

_MAX_VERSION_DIGITS: Final = 9
_MAX_TIME_CHARACTERS: Final = 20
"""The most characters of a typed time, such as `2027-03-28T14:30`, that are kept."""


@workspace_page("edit", methods=("POST",))
def failures_clear(request: HttpRequest, place: Place) -> HttpResponse:
    """Apply one act to the selected rows of the list.

    The POST field `rows` holds ids with versions, as `pub_…:3`. The field `one` holds an act on a single row,
    as `retry:pub_…:3`, and wins over `rows`.
    """
    act, _colon, single_row = request.POST.get("one", "").partition(":")
    form_data = request.POST.copy()
    if single_row:
        form_data["act"] = act
    selection = _parse_tokens([single_row] if single_row else form_data.getlist("rows"))
    form = RecoveryForm(form_data, zone=place.workspace.timezone)
    errors = [str(line) for lines in form.errors.values() for line in lines]
    if not errors and not selection:
        errors = [_("Select at least one row.")]
    if errors:
        messages.error(request, " ".join(errors))
        return redirect(_list_address(request, place, keeps_time=True))
    now, timing = utc_now(), form.timing()
    results = recovery.clear(
        form.cleaned_data["act"],
        selection,
        recovery.BulkRecoveryInput(
            workspace=place.workspace,
            by=place.user.email,
            now=now,
            retry_at=now + UNDO_GRACE,
            at=timing.publish_at,
            clock=timing.clock,
        ),
    )
    _report_results(request, place, form.cleaned_data["act"], results, missing=len(selection) - len(results))
    return redirect(_list_address(request, place, keeps_time=any(result.error for result in results)))


@workspace_page("edit", methods=("POST",))
def failures_undo(request: HttpRequest, place: Place) -> HttpResponse:
    """Undo acts; the POST field `undo` holds signed notes of the former states, separated by spaces."""
    restored_items, errors = undo_all(place, request.POST.get("undo", "").split())
    if restored_items:
        messages.success(request, _("Undone."))
    for error in dict.fromkeys(errors):
        messages.error(request, error)
    if not restored_items and not errors:
        messages.error(request, _("Nothing to undo."))
    return redirect(_list_address(request, place))


def _parse_tokens(tokens: Sequence[str]) -> list[recovery.Chosen]:
    """Parse tokens such as `pub_…:3`, each id once, and skip those that no act applies to."""
    versions: dict[tuple[str, UUID], int] = {}
    for token in tokens:
        public_id, _colon, version = token.partition(":")
        prefix = public_id.partition("_")[0]
        key = decode(prefix, public_id) if prefix in recovery.PREFIXES else None
        if (
            key is not None
            and version.isascii()
            and version.isdigit()
            and len(version) <= _MAX_VERSION_DIGITS
        ):
            versions[prefix, key] = int(version)
    return [(prefix, key, version) for (prefix, key), version in versions.items()]


DISMISS: Final = "dismiss"
"""The key of the messages about cancelling publications that have all failed already."""
# The message for one row, and for several.
_MESSAGES: Final[Mapping[str, tuple[Any, Any]]] = {
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


def _report_results(
    request: HttpRequest, place: Place, act: str, results: Sequence[recovery.Cleared], *, missing: int
) -> None:
    """Add a message about the rows that were handled, with an undo, and one for each reason of a refusal.

    `missing` counts the selected rows that were deleted meanwhile.
    """
    done = [result for result in results if result.error is None]
    if done:
        _report_done(request, place, act, done)
    counts_by_reason = Counter(_refusal_text(result.error) for result in results if result.error is not None)
    for reason, count in counts_by_reason.items():
        messages.error(request, reason if len(results) == 1 else f"{count} × {reason}")
    if missing:
        messages.error(request, _("Deleted rows were skipped."))


def _report_done(request: HttpRequest, place: Place, act: str, done: Sequence[recovery.Cleared]) -> None:
    """Add a message about the rows that were handled; it has an undo if they were publications."""
    singular, plural = _MESSAGES[DISMISS if act == recovery.CANCEL and _had_all_failed(done) else act]
    text = str(singular) if len(done) == 1 else str(plural) % {"count": len(done)}
    waits = [] if act == recovery.CANCEL else _describe_waits(place, done)
    if waits:
        text = " ".join(waits if act == recovery.RETRY else [text, *waits])
    notes = [
        note_of(place, bulk_review.Decided(result.item, result.former))
        for result in done
        if result.item is not None
    ]
    if notes:
        fields = {"undo": " ".join(notes), "query": request.POST.get("query", "")}
        offer_undo(request, text, place.url_of("failures_undo"), fields, is_good=not waits)
    else:
        (messages.warning if waits else messages.success)(request, text)


def _describe_waits(place: Place, results: Sequence[recovery.Cleared]) -> list[str]:
    """Return why some of these publications still wait, although they were retried or rescheduled."""
    keys = [result.key for result in results if result.prefix == "pub"]
    rows = slot_times.load_publications(place.workspace, keys) if keys else []
    return next_actions.find_waits(place, rows, now=utc_now()).lines


def _had_all_failed(results: Sequence[recovery.Cleared]) -> bool:
    """Return whether all of these publications had failed already, so that none was still going to be sent."""
    publications = [
        publication
        for cleared in results
        if cleared.former
        for publication in cleared.former["stood"].values()
    ]
    return all(publication["status"] == PublicationStatus.FAILED for publication in publications)


def _refusal_text(error: AppError) -> str:
    """Return the sentence about a refusal that this page shows."""
    if isinstance(error, Overtaken):
        return changed_meanwhile_message()
    if isinstance(error, QuotaExceeded):
        return _("Not enough credits. Retry next month or ask for more.")
    return error.detail[0].message if error.detail else str(error)


def _list_address(request: HttpRequest, place: Place, *, keeps_time: bool = False) -> str:
    """Return the address of the list with the same filters, section and, if `keeps_time`, the typed time."""
    query_data = QueryDict(request.POST.get("query", ""))
    query = QueryDict(FailureFilter.from_query(query_data, place.workspace).query, mutable=True)
    if query_data.get("section") in SECTIONS:
        query["section"] = str(query_data["section"])
    if keeps_time and request.POST.get("local_time"):
        query["local_time"] = request.POST["local_time"][:_MAX_TIME_CHARACTERS]
    return f"{place.url_of('failures')}?{query.urlencode()}"
