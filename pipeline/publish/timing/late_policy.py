"""What is too late by its own rule goes to the next free slot of its outlet's queue, and says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db import transaction

from config.core.datetimes import as_z
from pipeline.publish.blockers import is_too_late
from pipeline.publish.item_status import locked, refresh_item
from pipeline.publish.results import is_overdue, tell, write_scheduled
from pipeline.publish.timing.queue_slots import lock_outlets, next_free, queue_of

if TYPE_CHECKING:
    from datetime import datetime

    from pipeline.models import Publication
    from pipeline.text.wall_clock import WallClock

NO_CLOCK: Final = {"local_time": "", "zone": "", "on_gap": "", "on_overlap": ""}


def has_to_move(row: Publication, now: datetime) -> bool:
    return row.late_policy == "next_slot" and is_too_late(row, now)


def move(row: Publication, now: datetime) -> bool:
    """Promise it anew for the next free slot; False where its queue has none, or is paused."""
    with transaction.atomic():
        item = locked(row.item)
        lock_outlets([row.outlet])
        queue = queue_of(row.outlet, row.workspace)
        slot = next_free(row.outlet, queue, after=now, own=row)
        if slot is None or row.due_at is None:
            return False
        is_told = is_overdue(row, now)
        late = int((now - row.due_at).total_seconds() // 60)
        message = (
            f"It was {late} minutes late, which its late policy doesn't allow: it goes to the next free slot."
        )
        write_scheduled(
            row,
            {
                "due_at": slot.moment,
                "wake_at": slot.moment,
                "next_attempt_at": None,
                "attempts": 0,
                "overdue_told_at": None,
                "queue": queue,
                "waits_for": {"code": "moved_to_slot", "message": message, "until": as_z(slot.moment)},
                "updated_at": now,
                **columns_of(slot.clock),
            },
        )
        refresh_item(item, now=now)
        if is_told:
            # The promise that was missed is told; the new one is told of its own, should it be missed too.
            tell(row, item, "published.overdue", now)
    return True


def columns_of(clock: WallClock) -> dict[str, Any]:
    return {
        "local_time": clock.text,
        "zone": clock.timezone,
        "on_gap": clock.on_gap,
        "on_overlap": clock.on_overlap,
    }
