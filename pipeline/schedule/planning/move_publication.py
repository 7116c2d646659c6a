"""Moves one publication to another time, within the rules of its outlet."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction

from config.core import states
from config.core.errors import Conflict
from config.core.ids import encode
from pipeline import limits, publish
from pipeline.models import GeneratedItem, Publication, PublicationStatus
from pipeline.publish.timing.queue_slots import choose_next_slot
from pipeline.schedule.planning import fill_slots
from pipeline.schedule.planning.outlet_slots import OutletTimeline, read_timelines

if TYPE_CHECKING:
    from pipeline.text.local_time import WallClock

REFUSAL_MESSAGES: Final = {
    "closed": "The outlet is paused at that time, or its queue has no slots then.",
    "taken": "Another post is scheduled there at that time.",
    "gap": "That is closer to another post than the outlet's gap allows.",
    "daily_cap": "That would be one more than the outlet takes in 24 hours.",
}


@dataclass(frozen=True)
class Moved:
    """The publication at its new time; `former` is its snapshot from before the move, for `move_back`."""

    publication: Publication
    former: dict[str, Any]


def move(
    publication: Publication,
    *,
    at: datetime,
    clock: WallClock | None,
    by: str,
    now: datetime,
    expected_version: int,
) -> Moved:
    """Reschedule the publication for another time; a moment that is a slot of its outlet's queue takes that slot.

    This approves nothing: an item on hold stays on hold, and the approver stays the same. Raises `Conflict`
    with the reason if a rule of the outlet forbids it, the publication is no longer scheduled, or the time is
    past or too far ahead, and `states.Overtaken` if the publication isn't the expected version.
    """
    with transaction.atomic():
        row = _lock_publication(publication, expected_version)
        refuse_unless_ahead(at, now)
        timeline = _read_timeline(row, at, now)
        code = fill_slots.why_not(
            timeline.planner_outlet,
            at,
            [post for post in timeline.planner_outlet.posts if post.key != str(row.pk)],
        )
        if code:
            raise Conflict.because(code=code, message=REFUSAL_MESSAGES[code])
        slot = timeline.slots.get(at)
        former = publish.take_snapshot(row.item)[encode("pub", row.pk)]
        moved = publish.retime(
            row,
            due_at=slot.moment if slot else at,
            clock=slot.clock if slot else clock,
            queue=timeline.queue if slot else None,
            by=by,
            now=now,
        )
        return Moved(moved, former)


def move_back(
    publication: Publication, former: dict[str, Any], *, now: datetime, expected_version: int
) -> Publication:
    """Restore the publication exactly as it was before a move.

    Raises `Conflict` if its former time is past or it is no longer scheduled, and `states.Overtaken` if it
    isn't the expected version.
    """
    with transaction.atomic():
        row = _lock_publication(publication, expected_version)
        if datetime.fromisoformat(former["due_at"]) < now:
            raise Conflict.because(code="past", message="Its former time has passed.")
        publish.restore_snapshot(row.item, {encode("pub", row.pk): former}, now=now)
        restored: Publication = Publication.everywhere.select_related("item", "outlet").get(pk=row.pk)
        return restored


def to_next_slot(publication: Publication, *, by: str, now: datetime, expected_version: int) -> Publication:
    """Reschedule the publication for the next free slot of its outlet's queue; this approves nothing.

    Raises `Conflict` if there is no free slot or the publication is no longer scheduled, and
    `states.Overtaken` if it isn't the expected version.
    """
    with transaction.atomic():
        row = _lock_publication(publication, expected_version)
        slot, queue = choose_next_slot(row.outlet, row.workspace, after=now, own=row)
        return publish.retime(row, due_at=slot.moment, clock=slot.clock, queue=queue, by=by, now=now)


def refuse_unless_ahead(at: datetime, now: datetime) -> None:
    """Raise `Conflict` if the time is past, or more than `limits.PUBLISH_AHEAD` ahead."""
    if not now <= at <= now + limits.PUBLISH_AHEAD:
        message = f"Choose a time from now on, and at most {limits.PUBLISH_AHEAD.days} days ahead."
        raise Conflict.because(code="past" if at < now else "too_far", message=message)


def _lock_publication(publication: Publication, expected_version: int) -> Publication:
    """Lock the item's variants, the outlet and the publication, in the common order; return the publication.

    Raises `Conflict` if it is no longer scheduled, and `states.Overtaken` if it isn't the expected version.
    """
    items = GeneratedItem.everywhere.filter(pk=publication.item_id)
    publish.lock_groups(list(items.values_list("variant_group", flat=True)))
    publish.lock_outlets([publication.outlet])
    row: Publication = (
        Publication.everywhere.select_for_update(of=("self",))
        .select_related("outlet", "workspace", "item__workspace")
        .get(pk=publication.pk)
    )
    states.refuse_other_version(row.version, expected_version)
    if row.status != PublicationStatus.SCHEDULED:
        raise Conflict.because(
            code="not_scheduled", message=f"It is {row.status}; it can no longer be moved."
        )
    return row


def _read_timeline(row: Publication, at: datetime, now: datetime) -> OutletTimeline:
    """Return the outlet's timeline at that moment."""
    (timeline,) = read_timelines(
        row.workspace, [row.outlet], starts_at=at, ends_at=at + timedelta(seconds=1), now=now
    )
    return timeline
