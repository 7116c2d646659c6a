"""A lane's open slot: laid when it starts to work, moved with its cadence, ended, followed by the next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.utils.translation import gettext as _

from config.core import dispatch, states, work_queue
from config.core.errors import Conflict
from config.core.middleware import request_id
from pipeline.models import BrandSlot, BrandSlotStatus, Source
from pipeline.sources.brand import next_slot
from pipeline.states import OPEN_SLOTS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from accounts.models import Workspace

KIND: Final = "brand"
AT_WORK: Final = frozenset({"active", "failing"})


def settle(source: Source, *, now: datetime) -> None:
    """Make the open slot of a source agree with its status and cadence; call it in the transaction that changed them.

    One of another kind than `brand` has none, and nothing is done. A cadence that was changed moves the slot; a lane
    that is switched off, or deleted, has none until it works again.
    """
    if source.type != KIND:
        return
    slot = open_slot(source)
    if source.status not in AT_WORK or source.deleted_at is not None:
        if slot is not None:
            _end_now(slot, "skipped", _note("switched_off", _("The source was switched off.")), now)
        promise(source, None)
        return
    due_at = next_slot(
        source.config, after=now, previous=last_worked(source), default_zone=source.workspace.timezone
    )
    if slot is None:
        lay(source, due_at, now=now)
    elif slot.status == BrandSlotStatus.WAITING:
        BrandSlot.everywhere.filter(pk=slot.pk).update(due_at=due_at, wake_at=due_at, **work_queue.overtake())
        promise(source, due_at)
    dispatch.wake()


def bring_forward(source: Source, *, now: datetime) -> Source:
    """Have the open slot worked at once, also one that waits for credits. Raises `Conflict` where the lane is off."""
    with transaction.atomic():
        Source.everywhere.select_for_update().get(pk=source.pk)
        woken = BrandSlot.everywhere.filter(source=source, status__in=OPEN_SLOTS).update(
            due_at=now, wake_at=now, request_id=request_id(), **work_queue.overtake()
        )
        source.refresh_from_db()
        if not woken:
            message = _("The source is %(status)s; set its status to active first.") % {
                "status": source.status
            }
            raise Conflict.because(code="not_active", message=message)
        promise(source, now)
        dispatch.wake()
    return source


def open_slot(source: Source) -> BrandSlot | None:
    slot: BrandSlot | None = (
        BrandSlot.objects.of(source.workspace_id).filter(source=source, status__in=OPEN_SLOTS).first()
    )
    return slot


def end(
    slot: BrandSlot, status: str, source: Source, workspace: Workspace, *, now: datetime, **changes: Any
) -> None:
    """End a claimed slot and lay the next, in the caller's transaction. What was missed meanwhile is left out."""
    states.move(slot, status, under_lease=True, wake_at=None, attempts=0, ended_at=now, **changes)
    if source.status not in AT_WORK or source.deleted_at is not None:
        promise(source, None)
        return
    following = next_slot(source.config, after=now, previous=slot.due_at, default_zone=workspace.timezone)
    lay(source, following, now=now)


def lay(source: Source, due_at: datetime, *, now: datetime) -> None:
    BrandSlot.everywhere.create(
        workspace_id=source.workspace_id,
        test=source.test,
        source=source,
        due_at=due_at,
        wake_at=due_at,
        request_id=request_id(),
        created_at=now,
    )
    promise(source, due_at)


def promise(source: Source, due_at: datetime | None) -> None:
    """The source shows when it makes the next piece; its `wake_at` stays empty, so that nobody polls it."""
    Source.everywhere.filter(pk=source.pk).update(due_at=due_at)
    source.due_at = due_at


def last_worked(source: Source) -> datetime | None:
    """When its newest slot that was worked was due: the hours of a cadence are counted from there."""
    worked = BrandSlot.objects.of(source.workspace_id).filter(
        source=source, status__in=[BrandSlotStatus.PICKED, BrandSlotStatus.EMPTY]
    )
    found: datetime | None = worked.order_by("-id").values_list("due_at", flat=True).first()
    return found


def _end_now(slot: BrandSlot, status: str, note: Mapping[str, str], now: datetime) -> None:
    """A person's change: whoever holds the lease has lost it."""
    states.move(slot, status, wake_at=None, note=note, ended_at=now, **work_queue.overtake())


def _note(code: str, message: str) -> dict[str, str]:
    return {"code": code, "message": message}
