"""Holds all publishing of a workspace at its own request, and shows what goes out once the hold is released."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.db import transaction
from django.db.models import Q

from accounts import audit
from config.core import dispatcher, work_queue
from config.core.errors import Invalid, NotFound
from pipeline.models import Publication, PublicationStatus, PublishHold
from pipeline.publish.blockers import find_hold, is_too_late

if TYPE_CHECKING:
    from datetime import datetime

    from accounts.models import Workspace

MAX_SHOWN: Final = 100
"""The number of coming publications that are listed."""
WAKE_BATCH_SIZE: Final = 500
"""The number of publications that one statement wakes."""
REASON_CHARACTERS: Final = 300
"""The number of characters to which a hold's reason is cut."""


@dataclass(frozen=True)
class ComingPublication:
    """A publication, and what a release does with it: `publishes`, `waits`, `next_slot` or `held`."""

    publication: Publication
    what: str


def hold_workspace(workspace: Workspace, *, reason: str, by: str) -> PublishHold:
    """Hold all publishing of the workspace from now on; what is being sent is finished.

    A workspace that is on hold already gets the new reason. Raises `Invalid` if the reason is blank.
    """
    reason = reason.strip()
    if not reason:
        raise Invalid.one(field="reason", code="required", message="Give a reason; your team sees it.")
    with transaction.atomic():
        row, is_new = PublishHold.everywhere.update_or_create(
            workspace=workspace, defaults={"reason": reason[:REASON_CHARACTERS], "set_by": by}
        )
        _audit("held" if is_new else "held_again", workspace, by, reason)
    hold: PublishHold = row
    return hold


def release_workspace(workspace: Workspace, *, by: str, now: datetime) -> None:
    """Release the hold and wake the publications that are due, which go out at each outlet's own pace.

    Publications that a task holds just now aren't woken. Raises `NotFound` if there is no hold.
    """
    with transaction.atomic():
        deleted, _ = PublishHold.objects.of(workspace).delete()
        if not deleted:
            raise NotFound
        _audit("released", workspace, by, "")
    is_due = Q(status=PublicationStatus.SCHEDULED, due_at__lte=now) & (
        Q(next_attempt_at=None) | Q(next_attempt_at__lte=now)
    )
    with transaction.atomic():
        rows = Publication.objects.of(workspace).select_for_update(skip_locked=True)
        waiting = rows.filter(is_due, wake_at__gt=now, attempts=0).order_by("pk")
        ids = list(waiting.values_list("pk", flat=True))
        for start in range(0, len(ids), WAKE_BATCH_SIZE):
            batch = ids[start : start + WAKE_BATCH_SIZE]
            Publication.everywhere.filter(pk__in=batch).update(wake_at=now, **work_queue.overtake())
        dispatcher.wake()


def read_hold(workspace: Workspace) -> PublishHold | None:
    """Return the workspace's hold, or `None`."""
    return find_hold(workspace.pk)


def coming_publications(
    workspace: Workspace, *, test: bool, now: datetime
) -> tuple[list[ComingPublication], bool]:
    """Return the first `MAX_SHOWN` scheduled publications, earliest first, and whether there are more."""
    rows = (
        Publication.objects.of(workspace)
        .scheduled()
        .select_related("item", "outlet", "queue")
        .filter(test=test)
        .order_by("due_at", "id")
    )
    publications = list(rows[: MAX_SHOWN + 1])
    coming = [ComingPublication(row, _effect_of_release(row, now)) for row in publications[:MAX_SHOWN]]
    return coming, len(publications) > MAX_SHOWN


def _effect_of_release(row: Publication, now: datetime) -> str:
    """Return what releasing the hold would do with the publication, as in `ComingPublication`."""
    if row.item.held or (row.queue is not None and row.queue.is_paused):
        return "held"
    if is_too_late(row, now):
        return "next_slot" if row.late_policy == "next_slot" else "held"
    next_at = row.next_attempt_at or row.due_at
    return "waits" if next_at is not None and next_at > now else "publishes"


def _audit(action: str, workspace: Workspace, by: str, reason: str) -> None:
    subject = workspace.public_id
    audit.note(
        f"publishing.{action}", workspace=workspace, actor=by, subject=subject, details={"reason": reason}
    )
