"""Computes the moments of a queue's weekly slots, and the next one that is free at an outlet."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Final

from django.db import transaction
from django.utils.translation import gettext as _

from config.core.errors import Conflict
from pipeline import limits
from pipeline.models import Outlet, Publication, PublishQueue
from pipeline.text.local_time import Slot, UnknownZone, WallClock, moment_of, slots_on, zone_named

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from accounts.models import Workspace
    from pipeline.models import Series

DEFAULT_SLOT_TIMES: Final = ("09:00", "12:00", "17:00")
DEFAULT_SLOTS: Final = tuple({"weekday": day, "time": at} for day in range(5) for at in DEFAULT_SLOT_TIMES)
SLOTS_PER_QUERY: Final = 100
"""The number of slots that one query compares with the outlet's publications."""


def moments_of(queue: PublishQueue | Series, *, after: datetime) -> Iterator[Slot]:
    """Yield the queue's slots after that moment, in order, up to `limits.PUBLISH_AHEAD`.

    Each moment occurs once, and none is in a blackout. Raises `UnknownZone` if the time zone isn't known.
    """
    zone = zone_named(queue.timezone)
    day = after.astimezone(zone).date()
    last = after + limits.PUBLISH_AHEAD
    last_yielded: datetime = after
    blackouts = blackouts_of(queue) if isinstance(queue, PublishQueue) else ()
    times = [(slot["weekday"], time.fromisoformat(slot["time"])) for slot in queue.slots]
    while times:
        day_slots = slots_on([day], times, queue.timezone, on_gap=queue.on_gap, on_overlap=queue.on_overlap)
        for slot in sorted(day_slots, key=lambda slot: slot.moment):
            if slot.moment > last:
                return
            if any(start <= slot.moment < end for start, end in blackouts):
                continue
            # Two times of a day become one moment if the clocks skip an hour.
            if slot.moment > last_yielded:
                last_yielded = slot.moment
                yield slot
        day += timedelta(days=1)
        if datetime.combine(day, datetime.min.time(), tzinfo=zone) > last + timedelta(days=1):
            return


def has_zone(queue: PublishQueue | Series) -> bool:
    """Return whether the time zone is known; without it, the slots' moments aren't."""
    try:
        zone_named(queue.timezone)
    except UnknownZone:
        return False
    return True


def blackouts_of(queue: PublishQueue) -> tuple[tuple[datetime, datetime], ...]:
    """Return the periods without slots as pairs of moments; a local time that occurs twice is covered twice."""
    return tuple(
        (
            _blackout_moment(queue, blackout["from"], "first"),
            _blackout_moment(queue, blackout["until"], "second"),
        )
        for blackout in queue.blackouts
    )


def _blackout_moment(queue: PublishQueue, local_time: str, on_overlap: str) -> datetime:
    """Return the moment of a local time, or the calendar's first or last if it is beyond them."""
    local = datetime.fromisoformat(local_time)
    try:
        return moment_of(WallClock(local, queue.timezone, on_overlap=on_overlap))
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC) if local.year > 1 else datetime.min.replace(tzinfo=UTC)


def lock_outlets(outlets: Sequence[Outlet]) -> None:
    """Lock the outlets in the order of ids, so that only one transaction at a time takes a slot or turn."""
    keys = [outlet.pk for outlet in outlets]
    list(
        Outlet.everywhere.select_for_update(no_key=True)
        .filter(pk__in=keys)
        .order_by("id")
        .values_list("pk", flat=True)
    )


def find_publish_queue(outlet: Outlet, workspace: Workspace) -> PublishQueue:
    """Return the outlet's own queue, or its workspace's default one."""
    if outlet.queue_id is not None:
        own_queue: PublishQueue | None = PublishQueue.everywhere.filter(pk=outlet.queue_id).first()
        if own_queue is not None:
            return own_queue
    return ensure_default_queue(workspace)


def ensure_default_queue(workspace: Workspace) -> PublishQueue:
    """Return the workspace's default queue; create it if the workspace has none."""
    existing: PublishQueue | None = PublishQueue.objects.of(workspace).filter(is_default=True).first()
    if existing is not None:
        return existing
    with transaction.atomic():
        queue: PublishQueue = PublishQueue.everywhere.get_or_create(
            workspace=workspace,
            is_default=True,
            defaults={"name": _("Weekdays"), "timezone": workspace.timezone, "slots": list(DEFAULT_SLOTS)},
        )[0]
    return queue


def find_next_free_slot(
    outlet: Outlet, queue: PublishQueue, *, after: datetime, own: Publication | None = None
) -> Slot | None:
    """Return the first slot after that moment that no scheduled publication of the outlet takes.

    The slot of `own` counts as free. Returns `None` if the queue is paused, its time zone isn't known, or it
    has no free slot until `limits.PUBLISH_AHEAD`. To keep the slot, the caller holds the outlet's lock.
    """
    if queue.is_paused or not has_zone(queue):
        return None
    slots = moments_of(queue, after=after)
    while batch := list(islice(slots, SLOTS_PER_QUERY)):
        rows = Publication.everywhere.scheduled().filter(
            outlet=outlet, due_at__in=[slot.moment for slot in batch]
        )
        if own is not None:
            rows = rows.exclude(pk=own.pk)
        taken_moments = set(rows.values_list("due_at", flat=True))
        for slot in batch:
            if slot.moment not in taken_moments:
                return slot
    return None


def choose_next_slot(
    outlet: Outlet, workspace: Workspace, *, after: datetime, own: Publication | None
) -> tuple[Slot, PublishQueue]:
    """Return the next free slot and its queue. Raises `Conflict` if the queue is paused or has no free slot."""
    queue = find_publish_queue(outlet, workspace)
    if queue.is_paused:
        message = f"The queue {queue.name} of {outlet.name} is paused. Resume it, or choose a time."
        raise Conflict.because(code="queue_paused", message=message, field="queue")
    slot = find_next_free_slot(outlet, queue, after=after, own=own)
    if slot is None:
        message = f"The queue {queue.name} of {outlet.name} has no free slot. Add one, or choose a time."
        raise Conflict.because(code="no_slot", message=message, field="queue")
    return slot, queue
