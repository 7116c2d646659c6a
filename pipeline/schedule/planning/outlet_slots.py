"""Reads each outlet for the planner: free slots, scheduled and published posts, rate limits and blackouts."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, timedelta
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Q

from config.core.ids import encode
from pipeline import publish
from pipeline.models import Outlet, Publication, PublishQueue
from pipeline.publish.timing.rate_caps import is_resting, rules_of
from pipeline.schedule.planning.fill_slots import DAY, FreeSlot, PlannerOutlet, PlannerPost, Traits
from pipeline.states import OPEN_PUBLICATIONS
from pipeline.text.local_time import zone_named

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from accounts.models import Workspace
    from pipeline.text.local_time import Slot

NEIGHBOUR_REACH: Final = timedelta(days=7)
"""The time before and after the plan's period in which neighbouring posts are read."""
_TRAIT_COLUMNS: Final = ("variant_group", "raw_item_id", "source_id", "topic_id", "engine_output", "bucket")


@dataclass(frozen=True)
class OutletTimeline:
    """An outlet as the planner takes it, with the rows and slots needed for scheduling."""

    planner_outlet: PlannerOutlet
    outlet: Outlet
    queue: PublishQueue
    slots: Mapping[datetime, Slot]
    """The queue's slots in the period by their moments, whether they are free or not."""


def traits_of(item: Mapping[str, Any]) -> Traits:
    """Return the traits in an item's columns; an item without a raw item shares its story with its variants."""
    return Traits(
        story=str(item["raw_item_id"] or item["variant_group"]),
        source=str(item["source_id"] or ""),
        topic=str(item["topic_id"] or ""),
        engine=item["engine_output"],
        bucket=item["bucket"],
    )


def traits_of_row(item: Any) -> Traits:
    """Return the traits of an item's instance."""
    return traits_of({name: getattr(item, name) for name in _TRAIT_COLUMNS})


def read_timelines(
    workspace: Workspace, outlets: Sequence[Outlet], *, starts_at: datetime, ends_at: datetime, now: datetime
) -> list[OutletTimeline]:
    """Return the timelines in the order of the outlets, read with a fixed number of queries.

    An outlet has no slots if its queue is paused or the queue's time zone isn't known.
    """
    queues = {row.pk: row for row in PublishQueue.objects.of(workspace)}
    default_queue = next((row for row in queues.values() if row.is_default), None)
    if default_queue is None:
        default_queue = publish.ensure_default_queue(workspace)
    posts = _read_posts(outlets, starts_at, ends_at)
    timelines = []
    for outlet in outlets:
        queue = (queues.get(outlet.queue_id) if outlet.queue_id else None) or default_queue
        is_open = not queue.is_paused and publish.has_zone(queue)
        slots = _compute_slots(queue, max(starts_at, now), ends_at) if is_open else {}
        planner_outlet = _build_planner_outlet(outlet, queue, slots, posts[outlet.pk], now)
        timelines.append(OutletTimeline(planner_outlet, outlet, queue, slots))
    return timelines


def _compute_slots(queue: PublishQueue, starts_at: datetime, ends_at: datetime) -> dict[datetime, Slot]:
    # `after` is exclusive, but a slot exactly at the beginning counts.
    slots = publish.moments_of(queue, after=starts_at - timedelta(microseconds=1))
    return {slot.moment: slot for slot in takewhile(lambda slot: slot.moment < ends_at, slots)}


def _build_planner_outlet(
    outlet: Outlet,
    queue: PublishQueue,
    slots: Mapping[datetime, Slot],
    posts: Iterable[PlannerPost],
    now: datetime,
) -> PlannerOutlet:
    """Return the outlet as the planner takes it: a pause that its platform asked for counts as closed."""
    rules, has_zone = rules_of(outlet), publish.has_zone(queue)
    zone = zone_named(queue.timezone) if has_zone else UTC
    closed = publish.blackouts_of(queue) if has_zone else ()
    if outlet.rests_until is not None and is_resting(outlet, now):
        closed = (*closed, (now, outlet.rests_until))
    return PlannerOutlet(
        key=encode("out", outlet.pk),
        slots=tuple(FreeSlot(moment, moment.astimezone(zone).date()) for moment in slots),
        posts=tuple(sorted(posts)),
        cap_per_24_hours=rules.per_day,
        gap=rules.gap,
        closed=closed,
        zone=zone,
    )


def _read_posts(
    outlets: Sequence[Outlet], starts_at: datetime, ends_at: datetime
) -> defaultdict[UUID, list[PlannerPost]]:
    """Return the posts scheduled or published in the period or within reach of it, by outlet."""
    # An outlet's gap may be longer than a week.
    reach = max([NEIGHBOUR_REACH, DAY, *(rules_of(outlet).gap or DAY for outlet in outlets)])
    between = (starts_at - reach, ends_at + reach)
    rows = Publication.everywhere.filter(outlet__in=outlets).filter(
        Q(status__in=sorted(OPEN_PUBLICATIONS), due_at__range=between) | Q(published_at__range=between)
    )
    columns = [f"item__{name}" for name in _TRAIT_COLUMNS]
    posts_by_outlet: defaultdict[UUID, list[PlannerPost]] = defaultdict(list)
    for row in rows.values("pk", "outlet_id", "due_at", "published_at", *columns):
        traits = traits_of({name: row[f"item__{name}"] for name in _TRAIT_COLUMNS})
        posts_by_outlet[row["outlet_id"]].append(
            PlannerPost(row["published_at"] or row["due_at"], str(row["pk"]), traits)
        )
    return posts_by_outlet
