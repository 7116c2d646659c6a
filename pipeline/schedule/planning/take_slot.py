"""One item scheduled into a slot that a person chose, within the rules of its outlet, with what takes it back."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from django.db import transaction

from config.core import states
from config.core.errors import Conflict, Invalid
from config.core.ids import encode
from pipeline import publish
from pipeline.models import Outlet
from pipeline.review import bulk_review
from pipeline.schedule.planning import fill_slots
from pipeline.schedule.planning.outlet_slots import timelines_of
from pipeline.schedule.planning.shift import REFUSAL_MESSAGES, refuse_unless_ahead

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from uuid import UUID

    from accounts.models import Workspace
    from pipeline.models import GeneratedItem, PublishQueue
    from pipeline.schedule.planning.outlet_slots import OutletTimeline
    from pipeline.text.local_time import Slot

MOMENT: Final = timedelta(seconds=1)
"""Shorter than the time between two slots."""
OFFERED_DAYS: Final = 28
OFFERED_SLOTS: Final = 3


@dataclass(frozen=True)
class NextSlots:
    """The next free slots of an outlet; `is_paused` where its queue gives none at present."""

    outlet: Outlet
    moments: tuple[datetime, ...]
    is_paused: bool

    @property
    def public_id(self) -> str:
        return encode("out", self.outlet.pk)


def take_slot(
    item: GeneratedItem, outlet: UUID, at: datetime, *, by: str, now: datetime, expected_version: int
) -> bulk_review.Decided:
    """Schedule the item for that moment; one that is a slot of the outlet's queue becomes that slot.

    Raises `Conflict` with why where a rule of the outlet is in the way, something else stands there, or the time is
    past or too far; `Invalid` where the workspace has no such outlet; `states.Overtaken` where the item isn't the
    version that was looked at; and what `publish.request` does.
    """

    def choose(timelines: Sequence[OutletTimeline]) -> publish.PublishWish:
        (timeline,) = timelines
        code = _why_not(timeline, at)
        if code:
            raise Conflict.because(code=code, message=REFUSAL_MESSAGES[code])
        slot = timeline.slots.get(at)
        slots = {timeline.planner_outlet.key: (slot, timeline.queue)} if slot else {}
        return publish.PublishWish(outlets=[timeline.planner_outlet.key], publish_at=at, slots=slots)

    return _schedule(
        item, {outlet}, (at, at + MOMENT), choose, by=by, now=now, expected_version=expected_version
    )


def take_day(
    item: GeneratedItem,
    outlets: Collection[UUID],
    between: tuple[datetime, datetime],
    *,
    by: str,
    now: datetime,
    expected_version: int,
) -> bulk_review.Decided:
    """Schedule the item for the first free slot of each of these outlets from one moment to another.

    Raises `Conflict` with why where one of them has none there; else as `take_slot` does.
    """

    def choose(timelines: Sequence[OutletTimeline]) -> publish.PublishWish:
        slots = {one.planner_outlet.key: _first_free(one, between) for one in timelines}
        return publish.PublishWish(outlets=list(slots), slots=slots)

    return _schedule(item, outlets, between, choose, by=by, now=now, expected_version=expected_version)


def next_slots(workspace: Workspace, outlets: Sequence[Outlet], *, now: datetime) -> list[NextSlots]:
    """In the order of the outlets; a few statements, however many there are."""
    ends_at = now + timedelta(days=OFFERED_DAYS)
    found = []
    for timeline in timelines_of(workspace, outlets, starts_at=now, ends_at=ends_at, now=now):
        free = [moment for moment in timeline.slots if moment > now and not _why_not(timeline, moment)]
        moments = tuple(free[:OFFERED_SLOTS])
        found.append(NextSlots(timeline.outlet, moments, timeline.queue.is_paused))
    return found


def _schedule(
    item: GeneratedItem,
    outlets: Collection[UUID],
    between: tuple[datetime, datetime],
    choose: Callable[[Sequence[OutletTimeline]], publish.PublishWish],
    *,
    by: str,
    now: datetime,
    expected_version: int,
) -> bulk_review.Decided:
    """Locks in the order in which everybody does: the item with its variants, then the outlets."""
    # Of a day that has begun the rest is left.
    refuse_unless_ahead(max(between[0], min(now, between[1] - MOMENT)), now)
    with transaction.atomic():
        versions = {one.pk: one.version for one in publish.lock_groups([item.variant_group])}
        states.refuse_other_version(versions.get(item.pk, 0), expected_version)
        rows = _find_outlets(item.workspace, outlets)
        publish.lock_outlets(rows)
        timelines = timelines_of(item.workspace, rows, starts_at=between[0], ends_at=between[1], now=now)
        given = bulk_review.BulkReviewInput(item.workspace, by=by, now=now, wish=choose(timelines))
        (done,) = bulk_review.decide(bulk_review.PUBLISH, [(item, expected_version)], given)
        if done.error is not None:
            raise done.error
    return done


def _find_outlets(workspace: Workspace, keys: Collection[UUID]) -> list[Outlet]:
    rows = Outlet.objects.of(workspace).filter(pk__in=keys, deleted_at=None)
    found = list(rows.defer("credentials").order_by("id"))
    if not found or len(found) < len(set(keys)):
        raise Invalid.one("outlets", "unknown_outlet", "This outlet isn't there any more.")
    return found


def _why_not(timeline: OutletTimeline, moment: datetime) -> str:
    return fill_slots.why_not(timeline.planner_outlet, moment, timeline.planner_outlet.posts)


def _first_free(timeline: OutletTimeline, between: tuple[datetime, datetime]) -> tuple[Slot, PublishQueue]:
    """Raises `Conflict` with the rule that bars the slots which nothing stands in, or that there is none."""
    barring: dict[str, datetime] = {}
    for moment, slot in timeline.slots.items():
        code = _why_not(timeline, moment)
        if not code:
            return slot, timeline.queue
        barring.setdefault(code, moment)
    name = timeline.outlet.name
    if timeline.queue.is_paused:
        raise Conflict.because(code="queue_paused", message=f"The queue of {name} is paused.", field="queue")
    closed = timeline.planner_outlet.closed
    if not timeline.slots and any(start < between[1] and end > between[0] for start, end in closed):
        barring["closed"] = between[0]
    rule = next((code for code in barring if code != "taken"), "")
    message = f"{name}: {REFUSAL_MESSAGES[rule]}" if rule else f"{name} has no free slot on that day."
    raise Conflict.because(code=rule or "no_slot", message=message, field="queue")
