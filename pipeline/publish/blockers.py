"""Lists what keeps a due publication from being sent: tasks act by this list, and people are shown it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from django.db.models import Exists, OuterRef

from config.core.ids import encode
from pipeline.models import HoldReason, PublishHold, RawBody, Revision
from pipeline.outlets.outlet_client import platform_if_known
from pipeline.switches import kill_switch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from uuid import UUID

    from accounts.models import Workspace
    from pipeline.models import GeneratedItem, Publication


@dataclass(frozen=True)
class ClearingCall:
    """The API call that removes a blocker; `path` is relative to the API's base address."""

    method: str
    path: str
    body: Mapping[str, object] | None = None


@dataclass(frozen=True)
class Blocker:
    """One reason why a publication isn't sent.

    `since` and `until` are `None` if they aren't known, `clears` if no call of the API removes the blocker.
    `needs_access` is `True` if an operator's approval removes it.
    """

    code: str
    message: str
    since: datetime | None = None
    until: datetime | None = None
    clears: ClearingCall | None = None
    needs_access: bool = False


RELEASE_HOLD_CALL: Final = ClearingCall("DELETE", "/hold")
HOLD_MESSAGES: Final = {
    "approval_stale": "Edited after approval. Approve it to publish.",
    "source_changed": "Its source has changed. Approve it to publish.",
    "source_withdrawn": "Its source withdrew it. Approve it to publish anyway.",
    "instructions_in_source": "Possible prompt injection in its source. Check it, then approve it to publish.",
}


IS_ON_HOLD: Final = Exists(PublishHold.everywhere.filter(workspace_id=OuterRef("workspace_id")))
"""`True` if the workspace holds all publishing; annotated on another query, it spares a statement."""


def find_blockers(
    row: Publication, now: datetime, *, asks_switches: bool = True, may_be_on_hold: bool = True
) -> Iterator[Blocker]:
    """Yield what keeps a due publication from being sent until a person acts, widest scope first.

    The row must come with its item, workspace and queue. The operator's switches are cached for a second, but
    not during a transaction: a caller inside one can leave them out with `asks_switches=False`.
    `may_be_on_hold` is `False` if `IS_ON_HOLD` was just read and is false.
    """
    yield from workspace_blockers(row.workspace, row.platform, may_be_on_hold=may_be_on_hold)
    if asks_switches:
        yield from switch_blockers(row.workspace_id, row.platform)
    if row.item.held:
        yield item_blocker(row.item)
    if row.queue is not None and row.queue.is_paused:
        message = f"The queue {row.queue.name} is paused. Its scheduled posts wait."
        yield Blocker("queue_paused", message, row.queue.updated_at)
    if is_too_late(row, now) and row.late_policy == "hold":
        yield too_late_blocker(row)


def workspace_blockers(
    workspace: Workspace, platform: str = "", *, may_be_on_hold: bool = True
) -> Iterator[Blocker]:
    """Yield what keeps every publication of the workspace to this platform from being sent."""
    if workspace.deletes_at is not None:
        message = "The workspace is being deleted. An owner can undo that."
        yield Blocker("workspace_hold", message)
    if workspace.delisted_at is not None:
        message = (
            "The people who run this service have revoked the workspace's access. "
            "An owner can request it again under Settings, Access."
        )
        yield Blocker("workspace_hold", message, workspace.delisted_at, needs_access=True)
    elif not workspace.is_whitelisted and not (workspace.is_in_sandbox and _stays_within_service(platform)):
        message = (
            "The workspace isn't approved yet, so it publishes to its workspace feed and its test channel only. "
            "An owner can request access under Settings, Access."
        )
        yield Blocker("workspace_hold", message, needs_access=True)
    hold = find_hold(workspace.pk) if may_be_on_hold else None
    if hold is not None:
        message = f"All publishing of the workspace is on hold: {hold.reason}"
        yield Blocker("workspace_hold", message, hold.created_at, clears=RELEASE_HOLD_CALL)


def access_blockers(workspace: Workspace, platforms: Iterable[str]) -> Mapping[str, Blocker]:
    """Return, by platform, the blocker due to missing access or the workspace's deletion; no query.

    Holds and the operator's switches are left out: every page shows them at its top.
    """
    blockers = {}
    for platform in platforms:
        blocker = next(workspace_blockers(workspace, platform, may_be_on_hold=False), None)
        if blocker is not None:
            blockers[platform] = blocker
    return blockers


def _stays_within_service(kind: str) -> bool:
    """Return whether outlets of this kind reach no other service, so that they may be used before approval."""
    platform = platform_if_known(kind)
    return platform is not None and (platform.is_simulated or platform.is_own_feed)


def switch_blockers(workspace_id: UUID, platform: str) -> Iterator[Blocker]:
    """Yield the operator's kill switch, if it stops publishing for this workspace or platform."""
    switch = kill_switch.stopped("publishing", platform=platform, workspace_id=workspace_id)
    if switch is not None:
        message = f"The operator has paused publishing: {switch.reason}"
        yield Blocker("publishing_stopped", message, switch.created_at)


def find_hold(workspace_id: object) -> PublishHold | None:
    """Return the workspace's hold on all publishing, or `None`."""
    hold: PublishHold | None = PublishHold.everywhere.filter(workspace_id=workspace_id).first()
    return hold


def item_blocker(item: GeneratedItem) -> Blocker:
    """Return the blocker of an item that is on hold; approving the item clears it."""
    message = HOLD_MESSAGES.get(item.held, "The item is on hold. Approve it to publish.")
    clears = ClearingCall("POST", f"/generated/{encode('gen', item.pk)}/approve")
    return Blocker(item.held, message, _find_hold_start(item), clears=clears)


def _find_hold_start(item: GeneratedItem) -> datetime | None:
    """Return when the item was put on hold, or `None` if that isn't known."""
    if item.held == HoldReason.APPROVAL_STALE:
        rows = Revision.everywhere.filter(item=item, number=item.revision)
        return rows.values_list("created_at", flat=True).first()
    if item.held == HoldReason.INSTRUCTIONS_IN_SOURCE:
        return item.ready_at
    if item.raw_item is None:
        return None
    if item.held == HoldReason.SOURCE_WITHDRAWN:
        return item.raw_item.withdrawn_at
    bodies = RawBody.everywhere.filter(raw_item=item.raw_item, number=item.raw_item.content_version)
    return bodies.values_list("created_at", flat=True).first()


def is_too_late(row: Publication, now: datetime) -> bool:
    """Return whether the publication is later than its late policy allows."""
    latest = latest_of(row)
    return latest is not None and now > latest


def latest_of(row: Publication) -> datetime | None:
    """Return the latest moment at which the late policy allows sending; `None` without a limit or due time."""
    if row.late_policy == "publish" or row.max_lateness_minutes is None or row.due_at is None:
        return None
    return row.due_at + timedelta(minutes=row.max_lateness_minutes)


def too_late_blocker(row: Publication) -> Blocker:
    """Return the blocker of a publication that is too late; publishing again without a time clears it."""
    path = f"/generated/{encode('gen', row.item_id)}/publish"
    body = {"outlets": [encode("out", row.outlet_id)]}
    message = "It is later than its late policy allows. Reschedule or unschedule it."
    return Blocker("too_late", message, latest_of(row), clears=ClearingCall("POST", path, body))
