"""Gives publications another time: by a person, by the late policy, by a changed time zone."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

import structlog
from django.db import transaction
from django.db.models import F

from config.core import dispatcher, work_queue
from config.core.clock import utc_now
from config.core.datetimes import format_utc
from config.core.middleware import request_id
from pipeline.models import Publication
from pipeline.publish.item_status_and_events import lock_item, record_publication_event, refresh_item
from pipeline.publish.payload import key_of
from pipeline.publish.timing.postpone import is_overdue, next_wake_at, write_scheduled
from pipeline.publish.timing.queue_slots import lock_outlets, next_free_slot, publish_queue_of
from pipeline.text.local_time import UnknownZone, WallClock, moment_of
from pipeline.text.prose.verbatim_edits import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.models import PublishQueue

NO_CLOCK: Final = {"local_time": "", "zone": "", "on_gap": "", "on_overlap": ""}
log = structlog.get_logger(__name__)

ZONES_EVERY_SECONDS: Final = 600.0
BATCH_SIZE: Final = 500


def move_to_next_slot(row: Publication, now: datetime) -> bool:
    """Move the publication to the next free slot; return False if its queue has none, or is paused."""
    with transaction.atomic():
        item = lock_item(row.item)
        lock_outlets([row.outlet])
        queue = publish_queue_of(row.outlet, row.workspace)
        slot = next_free_slot(row.outlet, queue, after=now, own=row)
        if slot is None or row.due_at is None:
            return False
        was_overdue = is_overdue(row, now)
        minutes_late = int((now - row.due_at).total_seconds() // 60)
        message = (
            f"It was {counted(minutes_late, 'minute')} late, more than its late policy allows. It moves to "
            "the next free slot."
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
                "waits_for": {"code": "moved_to_slot", "message": message, "until": format_utc(slot.moment)},
                "updated_at": now,
                **columns_of(slot.clock),
            },
        )
        refresh_item(item, now=now)
        if was_overdue:
            # The missed time is reported; the new one is reported separately, should it be missed too.
            record_publication_event(row, item, "published.overdue", now)
    return True


def columns_of(clock: WallClock) -> dict[str, Any]:
    """Return a local time as the columns of a publication."""
    return {
        "local_time": clock.text,
        "zone": clock.timezone,
        "on_gap": clock.on_gap,
        "on_overlap": clock.on_overlap,
    }


def retime(
    row: Publication,
    *,
    due_at: datetime,
    clock: WallClock | None,
    queue: PublishQueue | None,
    by: str,
    now: datetime,
) -> Publication:
    """Reschedule the publication for that moment.

    A task that holds its lease loses it, and its tries start over.

    The caller has locked the item, the outlet and the row, which is scheduled, in one transaction.
    """
    Publication.everywhere.scheduled().filter(pk=row.pk).update(
        due_at=due_at,
        wake_at=due_at,
        next_attempt_at=None,
        **(NO_CLOCK if clock is None else columns_of(clock)),
        queue=queue,
        waits_for=None,
        overdue_told_at=None,
        error=None,
        attempt_count=0,
        requested_by=by,
        request_id=request_id(),
        version=F("version") + 1,
        updated_at=now,
        **work_queue.overtake(),
    )
    refresh_item(row.item, now=now)
    dispatcher.wake()
    moved: Publication = Publication.everywhere.select_related("item", "outlet").get(pk=row.pk)
    return moved


def follow_zones() -> int:
    """Run `apply_zone_changes`; returns 0, for nothing is left to do then. The job runs every `ZONES_EVERY_SECONDS`."""
    apply_zone_changes(now=utc_now())
    return 0


def apply_zone_changes(*, now: datetime) -> int:
    """Move publications whose local time is now at another moment; return how many."""
    # This process may have cached zones that are older than the installed files.
    ZoneInfo.clear_cache()
    return sum(_update_moment(row, now) for row in _with_local_time(now))


def _with_local_time(now: datetime) -> Iterator[Publication]:
    """Yield the coming publications that were scheduled for a local time, a batch at a time."""
    rows = Publication.everywhere.scheduled().filter(due_at__gt=now).exclude(local_time="")
    last = None
    while True:
        batch = list((rows.filter(id__gt=last) if last else rows).order_by("id")[:BATCH_SIZE])
        if not batch:
            return
        yield from batch
        last = batch[-1].pk


def _update_moment(row: Publication, now: datetime) -> bool:
    """Move the publication to the moment that its local time is at now; return whether that changed it."""
    clock = WallClock(datetime.fromisoformat(row.local_time), row.zone, row.on_gap, row.on_overlap)
    try:
        moment = moment_of(clock)
    except UnknownZone:
        # The zone was dropped from the tables: the scheduled moment stands.
        log.warning("zone_is_gone", publication=key_of(row), zone=row.zone)
        return False
    if moment == row.due_at:
        return False
    with transaction.atomic():
        item = lock_item(row.item)
        old_due_at, row.due_at = row.due_at, moment
        changed = (
            Publication.everywhere.scheduled()
            .filter(pk=row.pk, due_at=old_due_at)
            .update(
                due_at=moment,
                wake_at=next_wake_at(row),
                overdue_told_at=None,
                waits_for=None,
                version=F("version") + 1,
                updated_at=now,
                **work_queue.overtake(),
            )
        )
        if changed:
            refresh_item(item, now=now)
            log.info("clock_set", publication=key_of(row), was=str(old_due_at), moment=str(moment))
            dispatcher.wake()
    return bool(changed)
