"""The slots of a week as moments, and the next one of an outlet that nothing else takes."""

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

STARTING_TIMES: Final = ("09:00", "12:00", "17:00")
STARTING_SLOTS: Final = tuple({"weekday": day, "time": at} for day in range(5) for at in STARTING_TIMES)
LOOKED_AT_ONCE: Final = 100


def moments_of(queue: PublishQueue | Series, *, after: datetime) -> Iterator[Slot]:
    """The queue's slots later than that, in order, each moment once; as far ahead as anything can be scheduled."""
    zone = zone_named(queue.timezone)
    day = after.astimezone(zone).date()
    last = after + limits.PUBLISH_AHEAD
    told: datetime = after
    closed = blackouts_of(queue) if isinstance(queue, PublishQueue) else ()
    times = [(slot["weekday"], time.fromisoformat(slot["time"])) for slot in queue.slots]
    while times:
        found = slots_on([day], times, queue.timezone, on_gap=queue.on_gap, on_overlap=queue.on_overlap)
        for slot in sorted(found, key=lambda slot: slot.moment):
            if slot.moment > last:
                return
            if any(start <= slot.moment < end for start, end in closed):
                continue
            # Two times of a day become one moment where the clocks skip an hour.
            if slot.moment > told:
                told = slot.moment
                yield slot
        day += timedelta(days=1)
        if datetime.combine(day, datetime.min.time(), tzinfo=zone) > last + timedelta(days=1):
            return


def has_zone(queue: PublishQueue | Series) -> bool:
    """False where its time zone was dropped from the tables: nobody knows when its times are."""
    try:
        zone_named(queue.timezone)
    except UnknownZone:
        return False
    return True


def blackouts_of(queue: PublishQueue) -> tuple[tuple[datetime, datetime], ...]:
    """The stretches in which it gives no slots, as moments; of a time that comes twice they take both."""
    return tuple(
        (_moment(queue, one["from"], "first"), _moment(queue, one["until"], "second"))
        for one in queue.blackouts
    )


def _moment(queue: PublishQueue, local_time: str, on_overlap: str) -> datetime:
    """At the ends of the calendar, where a zone's offset leads out of it, the last moment that there is, or the first."""
    local = datetime.fromisoformat(local_time)
    try:
        return moment_of(WallClock(local, queue.timezone, on_overlap=on_overlap))
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC) if local.year > 1 else datetime.min.replace(tzinfo=UTC)


def lock_outlets(outlets: Sequence[Outlet]) -> None:
    """Whoever takes a slot or a turn of these outlets waits for its own; the caller is in a transaction."""
    keys = [outlet.pk for outlet in outlets]
    list(
        Outlet.everywhere.select_for_update(no_key=True)
        .filter(pk__in=keys)
        .order_by("id")
        .values_list("pk", flat=True)
    )


def publish_queue_of(outlet: Outlet, workspace: Workspace) -> PublishQueue:
    """The outlet's own queue, or its workspace's default one."""
    if outlet.queue_id is not None:
        own: PublishQueue | None = PublishQueue.everywhere.filter(pk=outlet.queue_id).first()
        if own is not None:
            return own
    return default_queue(workspace)


def default_queue(workspace: Workspace) -> PublishQueue:
    """Made where there is none yet: a workspace of the release before this one."""
    found: PublishQueue | None = PublishQueue.objects.of(workspace).filter(is_default=True).first()
    if found is not None:
        return found
    with transaction.atomic():
        made: PublishQueue = PublishQueue.everywhere.get_or_create(
            workspace=workspace,
            is_default=True,
            defaults={"name": _("Weekdays"), "timezone": workspace.timezone, "slots": list(STARTING_SLOTS)},
        )[0]
    return made


def next_free_slot(
    outlet: Outlet, queue: PublishQueue, *, after: datetime, own: Publication | None = None
) -> Slot | None:
    """The first slot that no other scheduled publication of the outlet takes; None where there is none in a year.

    To keep it, the caller holds the outlet's lock.
    """
    if queue.is_paused or not has_zone(queue):
        return None
    slots = moments_of(queue, after=after)
    while some := list(islice(slots, LOOKED_AT_ONCE)):
        rows = Publication.everywhere.scheduled().filter(
            outlet=outlet, due_at__in=[slot.moment for slot in some]
        )
        if own is not None:
            rows = rows.exclude(pk=own.pk)
        taken = set(rows.values_list("due_at", flat=True))
        for slot in some:
            if slot.moment not in taken:
                return slot
    return None


def next_slot_or_refuse(
    outlet: Outlet, workspace: Workspace, *, after: datetime, own: Publication | None
) -> tuple[Slot, PublishQueue]:
    """Raises `Conflict` where the queue is paused or has no slot left."""
    queue = publish_queue_of(outlet, workspace)
    if queue.is_paused:
        message = f"The queue {queue.name} of {outlet.name} is paused; go on with it, or name a time."
        raise Conflict.because(code="queue_paused", message=message, field="queue")
    slot = next_free_slot(outlet, queue, after=after, own=own)
    if slot is None:
        message = f"The queue {queue.name} of {outlet.name} has no free slot; add some, or name a time."
        raise Conflict.because(code="no_slot", message=message, field="queue")
    return slot, queue
