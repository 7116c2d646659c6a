"""Schedules one item into a slot or day that a person chose, within its outlet's rules, with an undo."""

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
from pipeline.schedule.planning.move_publication import REFUSAL_MESSAGES, refuse_unless_ahead
from pipeline.schedule.planning.outlet_slots import read_timelines

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from uuid import UUID

    from accounts.models import Workspace
    from pipeline.models import GeneratedItem, PublishQueue
    from pipeline.schedule.planning.outlet_slots import OutletTimeline
    from pipeline.text.local_time import Slot

MOMENT: Final = timedelta(seconds=1)
"""The period in which a single slot is read; shorter than the time between two slots."""
OFFERED_DAYS: Final = 28
"""The number of days in which `next_slots` finds slots."""
OFFERED_SLOTS: Final = 3
"""The number of slots that `next_slots` returns for an outlet."""


@dataclass(frozen=True)
class NextSlots:
    """The next free slots of an outlet; there are none if `is_paused`, which is the queue's."""

    outlet: Outlet
    moments: tuple[datetime, ...]
    is_paused: bool

    @property
    def public_id(self) -> str:
        return encode("out", self.outlet.pk)


def take_slot(
    item: GeneratedItem, outlet: UUID, at: datetime, *, by: str, now: datetime, expected_version: int
) -> bulk_review.Decided:
    """Schedule the item for that moment, and take the slot of the outlet's queue if the moment is one.

    Raises `Conflict` with the reason if a rule of the outlet forbids it, the slot is taken, or the time is past
    or too far ahead; `Invalid` if the workspace has no such outlet; `states.Overtaken` if the item isn't the
    expected version; and `CannotPublish` or `Conflict` as `publish.request` does.
    """

    def choose(timelines: Sequence[OutletTimeline]) -> publish.PublishWish:
        (timeline,) = timelines
        code = _blocking_rule(timeline, at)
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
    """Schedule the item for the first free slot of each of these outlets between two moments.

    Raises `Conflict` with the reason if an outlet has no free slot then; other errors are those of `take_slot`.
    """

    def choose(timelines: Sequence[OutletTimeline]) -> publish.PublishWish:
        slots = {timeline.planner_outlet.key: _first_free_slot(timeline, between) for timeline in timelines}
        return publish.PublishWish(outlets=list(slots), slots=slots)

    return _schedule(item, outlets, between, choose, by=by, now=now, expected_version=expected_version)


def next_slots(workspace: Workspace, outlets: Sequence[Outlet], *, now: datetime) -> list[NextSlots]:
    """Return up to `OFFERED_SLOTS` free slots of each outlet, in the order of `outlets`."""
    ends_at = now + timedelta(days=OFFERED_DAYS)
    next_slots_by_outlet = []
    for timeline in read_timelines(workspace, outlets, starts_at=now, ends_at=ends_at, now=now):
        free = [moment for moment in timeline.slots if moment > now and not _blocking_rule(timeline, moment)]
        moments = tuple(free[:OFFERED_SLOTS])
        next_slots_by_outlet.append(NextSlots(timeline.outlet, moments, timeline.queue.is_paused))
    return next_slots_by_outlet


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
    """Schedule the item as `choose` decides from the outlets' timelines, under locks, in one transaction.

    The locks are taken in the common order: the item with its variants, then the outlets.
    """
    # A period that has begun is allowed as long as its end is ahead.
    refuse_unless_ahead(max(between[0], min(now, between[1] - MOMENT)), now)
    with transaction.atomic():
        versions = {variant.pk: variant.version for variant in publish.lock_groups([item.variant_group])}
        states.refuse_other_version(versions.get(item.pk, 0), expected_version)
        rows = _find_outlets(item.workspace, outlets)
        publish.lock_outlets(rows)
        timelines = read_timelines(item.workspace, rows, starts_at=between[0], ends_at=between[1], now=now)
        review_input = bulk_review.BulkReviewInput(item.workspace, by=by, now=now, wish=choose(timelines))
        (decision,) = bulk_review.decide(bulk_review.PUBLISH, [(item, expected_version)], review_input)
        if decision.error is not None:
            raise decision.error
    return decision


def _find_outlets(workspace: Workspace, keys: Collection[UUID]) -> list[Outlet]:
    """Return the outlets in the order of their ids. Raises `Invalid` if one is missing, or none is named."""
    rows = Outlet.objects.of(workspace).filter(pk__in=keys, deleted_at=None)
    outlets = list(rows.defer("credentials").order_by("id"))
    if not outlets or len(outlets) < len(set(keys)):
        raise Invalid.one("outlets", "unknown_outlet", "This outlet no longer exists.")
    return outlets


def _blocking_rule(timeline: OutletTimeline, moment: datetime) -> str:
    """Return the code of the rule that forbids a post at this moment, or an empty string if none does."""
    return fill_slots.why_not(timeline.planner_outlet, moment, timeline.planner_outlet.posts)


def _first_free_slot(
    timeline: OutletTimeline, between: tuple[datetime, datetime]
) -> tuple[Slot, PublishQueue]:
    """Return the first free slot between two moments, with its queue.

    Raises `Conflict` with the rule that forbids the slots that aren't taken, or with `no_slot`, or
    `queue_paused`.
    """
    first_moment_by_code: dict[str, datetime] = {}
    for moment, slot in timeline.slots.items():
        code = _blocking_rule(timeline, moment)
        if not code:
            return slot, timeline.queue
        first_moment_by_code.setdefault(code, moment)
    name = timeline.outlet.name
    if timeline.queue.is_paused:
        raise Conflict.because(code="queue_paused", message=f"The queue of {name} is paused.", field="queue")
    closed = timeline.planner_outlet.closed
    if not timeline.slots and any(start < between[1] and end > between[0] for start, end in closed):
        first_moment_by_code["closed"] = between[0]
    rule = next((code for code in first_moment_by_code if code != "taken"), "")
    message = f"{name}: {REFUSAL_MESSAGES[rule]}" if rule else f"{name} has no free slot on that day."
    raise Conflict.because(code=rule or "no_slot", message=message, field="queue")
