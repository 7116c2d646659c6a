"""A workspace's own halt of all its publishing, and what goes out when once it is let go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.db import transaction
from django.db.models import Q

from accounts import audit
from config.core import dispatcher, work_queue
from config.core.errors import Invalid, NotFound
from pipeline.models import Publication, PublicationStatus, PublishHold
from pipeline.publish.blockers import hold_of, is_too_late

if TYPE_CHECKING:
    from datetime import datetime

    from accounts.models import Workspace

SHOWN_MOST: Final = 100
WOKEN_AT_ONCE: Final = 500
REASON_CHARACTERS: Final = 300


@dataclass(frozen=True)
class ComingPublication:
    """A publication, and what letting go would do with it: `publishes`, `waits`, `next_slot` or `held`."""

    publication: Publication
    what: str


def hold_workspace(workspace: Workspace, *, reason: str, by: str) -> PublishHold:
    """Nothing of the workspace goes out from now on; what is under way comes to its end. Again renews the reason."""
    reason = reason.strip()
    if not reason:
        raise Invalid.one(field="reason", code="required", message="Say why; your people are shown it.")
    with transaction.atomic():
        row, is_new = PublishHold.everywhere.update_or_create(
            workspace=workspace, defaults={"reason": reason[:REASON_CHARACTERS], "set_by": by}
        )
        _note("held" if is_new else "held_again", workspace, by, reason)
    made: PublishHold = row
    return made


def release_workspace(workspace: Workspace, *, by: str, now: datetime) -> None:
    """Let go; what waited is looked at at once, and goes out at each outlet's own pace. Raises `NotFound`."""
    with transaction.atomic():
        deleted, _ = PublishHold.objects.of(workspace).delete()
        if not deleted:
            raise NotFound
        _note("released", workspace, by, "")
    waits = Q(status=PublicationStatus.SCHEDULED, due_at__lte=now) & (
        Q(next_attempt_at=None) | Q(next_attempt_at__lte=now)
    )
    with transaction.atomic():
        rows = Publication.objects.of(workspace).select_for_update(skip_locked=True)
        found = rows.filter(waits, wake_at__gt=now, attempts=0).order_by("pk")
        ids = list(found.values_list("pk", flat=True))
        for start in range(0, len(ids), WOKEN_AT_ONCE):
            some = ids[start : start + WOKEN_AT_ONCE]
            Publication.everywhere.filter(pk__in=some).update(wake_at=now, **work_queue.overtake())
        dispatcher.wake()


def read_hold(workspace: Workspace) -> PublishHold | None:
    return hold_of(workspace.pk)


def coming_publications(
    workspace: Workspace, *, test: bool, now: datetime
) -> tuple[list[ComingPublication], bool]:
    """What is scheduled, the earliest promise first, and whether there is more than is told."""
    rows = (
        Publication.objects.of(workspace)
        .scheduled()
        .select_related("item", "outlet", "queue")
        .filter(test=test)
        .order_by("due_at", "id")
    )
    found = list(rows[: SHOWN_MOST + 1])
    return [ComingPublication(row, _what(row, now)) for row in found[:SHOWN_MOST]], len(found) > SHOWN_MOST


def _what(row: Publication, now: datetime) -> str:
    if row.item.held or (row.queue is not None and row.queue.is_paused):
        return "held"
    if is_too_late(row, now):
        return "next_slot" if row.late_policy == "next_slot" else "held"
    moment = row.next_attempt_at or row.due_at
    return "waits" if moment is not None and moment > now else "publishes"


def _note(action: str, workspace: Workspace, by: str, reason: str) -> None:
    subject = workspace.public_id
    audit.note(
        f"publishing.{action}", workspace=workspace, actor=by, subject=subject, details={"reason": reason}
    )
