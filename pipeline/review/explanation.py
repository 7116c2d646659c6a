"""Explains why an item isn't published, by all its blockers with the API calls that clear them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from config.core.datetimes import read_moment
from config.core.ids import encode
from pipeline.generate import recoverable_failures
from pipeline.models import GeneratedItemStatus, Publication, PublicationStatus, PublicationStep
from pipeline.outlets.outlet_client import account_of, platform_of
from pipeline.publish.blockers import Blocker, ClearingCall, find_blockers, is_too_late, too_late_blocker
from pipeline.publish.payload import effective_overrides, fit_payload, payload_of, read_content
from pipeline.publish.timing.rate_caps import wait_of
from pipeline.publish.validation import why_closed, why_not_publishable
from pipeline.states import OPEN_PUBLICATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from pipeline.models import GeneratedItem

ENDED: Final = frozenset({"published", "cancelled", "removed"})
"""The statuses of publications that nothing is done for any more."""


@dataclass(frozen=True)
class Explained:
    """The blockers of the item itself, and those of each publication that isn't published yet."""

    blockers: tuple[Blocker, ...]
    publications: tuple[tuple[Publication, tuple[Blocker, ...]], ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing blocks the item or a publication."""
        return not self.blockers and not any(blockers_found for _, blockers_found in self.publications)


def explain(item: GeneratedItem, *, now: datetime) -> Explained:
    """Return the item's blockers; there are none if and only if the next task publishes all waiting publications.

    An item without a waiting publication has a blocker of its own.
    """
    rows = (
        Publication.everywhere.select_related("item__raw_item", "outlet", "workspace", "queue")
        .filter(item=item)
        .order_by("due_at", "id")
    )
    waiting = [row for row in rows if row.status not in ENDED]
    if waiting:
        return Explained((), tuple((row, tuple(blockers_of(row, now))) for row in waiting))
    if any(row.status == PublicationStatus.PUBLISHED for row in rows):
        return Explained(
            (Blocker("already_published", "It is published to every outlet it was scheduled for."),), ()
        )
    return Explained(tuple(_unscheduled_blockers(item)), ())


def _unscheduled_blockers(item: GeneratedItem) -> Iterator[Blocker]:
    """Yield the blockers of an item that nobody has scheduled."""
    path = f"/generated/{encode('gen', item.pk)}"
    is_final = recoverable_failures.is_final(recoverable_failures.current_error(item.workspace, item))
    calls = {
        "status": ClearingCall("POST", f"{path}/restore")
        if item.status == GeneratedItemStatus.REJECTED
        else None,
        "failed": None if is_final else ClearingCall("POST", f"{path}/retry"),
        "held": ClearingCall("POST", f"{path}/approve"),
        "approval": ClearingCall("POST", f"{path}/approve"),
    }
    refusal = why_not_publishable(item)
    if refusal is not None:
        key = "failed" if item.status == GeneratedItemStatus.FAILED else refusal.field or "status"
        yield Blocker(refusal.code, refusal.message, clears=calls.get(key))
        if refusal.field == "status":
            return
    publish_call = ClearingCall("POST", f"{path}/publish", {})
    for reason in _autopilot_reasons(item):
        yield Blocker("autopilot_waits", reason, item.ready_at, clears=publish_call)
    message = "It isn't scheduled or published yet."
    yield Blocker("not_requested", message, item.ready_at, clears=publish_call)


def _autopilot_reasons(item: GeneratedItem) -> Iterator[str]:
    """Yield the reasons why autopilot didn't publish the item: closed gates, and the error of scheduling."""
    for check in item.present_checks:
        if check["code"].startswith("gate_") and check["outcome"] != "passed":
            yield check["message"]
    error = item.error or {}
    if error.get("code") == "autopilot":
        yield f"Autopilot couldn't schedule it: {error['message']}"


def blockers_of(row: Publication, now: datetime) -> Iterator[Blocker]:
    """Yield the blockers of a publication that hasn't ended, in order.

    The row comes with its item, outlet, workspace and queue.
    """
    if row.status in OPEN_PUBLICATIONS - {PublicationStatus.SCHEDULED}:
        yield _in_flight_blocker(row)
        return
    if row.status == PublicationStatus.FAILED:
        message = (row.error or {}).get("message", "It failed.")
        call = ClearingCall("POST", f"/publications/{encode('pub', row.pk)}/retry")
        yield Blocker("failed", message, row.updated_at, clears=call)
        return
    blockers_found = [*_time_blockers(row, now), *find_blockers(row, now), *_outlet_blockers(row, now)]
    yield from blockers_found
    if not blockers_found and row.wake_at is not None and row.wake_at > now:
        message = "In progress, or retried soon."
        yield Blocker("next_look", message, until=row.wake_at)


def _in_flight_blocker(row: Publication) -> Blocker:
    """Return the blocker of a publication that the platform may have by now."""
    if row.status == PublicationStatus.PUBLISHING:
        return Blocker("in_flight", "Publishing: the platform hasn't answered yet.", row.updated_at)
    call = ClearingCall("POST", f"/publications/{encode('pub', row.pk)}/reconcile")
    message = "The platform's answer is unknown. Its status is checked before anything is sent again."
    return Blocker("outcome_unknown", message, row.unknown_since, row.next_attempt_at, call)


def _time_blockers(row: Publication, now: datetime) -> Iterator[Blocker]:
    """Yield the blocker of a publication that isn't due yet, or waits for its next try."""
    if row.next_attempt_at is not None and row.next_attempt_at > now:
        message = (row.error or {}).get("message", "The last attempt failed.")
        yield Blocker("retry_wait", message, row.updated_at, row.next_attempt_at, _publish_call(row))
    elif row.next_attempt_at is None and row.due_at is not None and row.due_at > now:
        yield Blocker("not_due", "It is scheduled for later.", row.created_at, row.due_at, _publish_call(row))


def _publish_call(row: Publication) -> ClearingCall:
    """Return the call that publishes at once."""
    path = f"/generated/{encode('gen', row.item_id)}/publish"
    return ClearingCall("POST", path, {"outlets": [encode("out", row.outlet_id)]})


def _outlet_blockers(row: Publication, now: datetime) -> Iterator[Blocker]:
    """Yield the blockers of the outlet: it is too late, closed, at its cap, or its platform refuses the content."""
    if row.late_policy == "next_slot" and is_too_late(row, now):
        yield too_late_blocker(row)
    outlet = row.outlet
    closed = why_closed(outlet)
    if closed is not None:
        at = (outlet.last_error or {}).get("at")
        yield Blocker(closed.code, closed.message, read_moment(at) if at else outlet.updated_at)
        return
    is_due = row.due_at is not None and row.due_at <= now
    wait = wait_of(row, outlet, now) if is_due and not row.item.held else None
    if wait is not None:
        yield Blocker(wait.code, wait.message, row.due_at, wait.until)
    content_source = row.item if row.revision != row.item.revision else read_content(row)
    account = account_of(outlet)
    platform = platform_of(outlet.platform)
    payload = payload_of(
        content_source, effective_overrides(content_source, outlet, row.overrides), parent_item=row.item
    )
    if row.step == PublicationStep.PREPARE or row.revision != row.item.revision:
        for problem in platform.validate(account, fit_payload(payload, outlet, platform, account)):
            clears = ClearingCall("PATCH", f"/generated/{encode('gen', row.item_id)}")
            yield Blocker(problem.code, problem.message, clears=clears)
