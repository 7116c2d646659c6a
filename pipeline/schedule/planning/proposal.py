"""Proposes a plan: which ready items would be published where and when; nothing is written."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from django.db.models import Value

from config.core.errors import Invalid
from config.core.ids import decode, encode
from pipeline import limits, publish
from pipeline.models import GeneratedItem, GeneratedItemStatus, Outlet
from pipeline.outlets.outlet_client import buckets_of
from pipeline.schedule.planning import fill_slots, left_out
from pipeline.schedule.planning.commit_plan import PlanEntry
from pipeline.schedule.planning.outlet_slots import OutletTimeline, read_timelines, traits_of_row

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from uuid import UUID

    from accounts.models import Workspace
    from pipeline.models import Asset
    from pipeline.text.local_time import Slot

DAYS: Final = 7
FRESHNESS_SPAN: Final = timedelta(days=14)
"""The age at which an item has no freshness left."""


@dataclass(frozen=True)
class PlanRequest:
    """The days and outlets to fill: `outlets` is `None` for all that are open.

    `a_day` is the most posts of one outlet on a day, or `None` for as many as there are slots.
    """

    starts_at: datetime
    days: int = DAYS
    outlets: Sequence[UUID] | None = None
    a_day: int | None = None

    @property
    def ends_at(self) -> datetime:
        """The end of the period, which isn't part of it."""
        return self.starts_at + timedelta(days=self.days)


@dataclass(frozen=True)
class Proposed:
    """An item in a slot of an outlet."""

    item: GeneratedItem
    outlet: Outlet
    slot: Slot
    alike: tuple[str, ...]
    """The names of the traits that it shares with a neighbour."""

    @property
    def entry(self) -> PlanEntry:
        """The entry in the form that is committed."""
        return PlanEntry(self.item.pk, self.item.version, self.outlet.pk, self.slot.moment)


@dataclass(frozen=True)
class LeftOut:
    """An item that isn't in the plan.

    `code` is `held`, `approval_required`, `variant`, `no_outlet`, `cannot_take` or `no_slot`.
    """

    item: GeneratedItem
    code: str
    message: str


@dataclass(frozen=True)
class Proposal:
    """A plan that isn't committed; `left` are the ready items without a slot."""

    asked: PlanRequest
    entries: tuple[Proposed, ...]
    left: tuple[LeftOut, ...]
    free: int
    """The number of slots that stay free, without those of simulated outlets that the plan doesn't use."""


APPROVE_FIRST: Final = "This workspace publishes only what is approved. Approve it first."
_MESSAGES: Final = {
    "held": "It is on hold. Approve it first.",
    "approval_required": APPROVE_FIRST,
    "variant": "Another variant of it goes first.",
    "no_outlet": "None of its outlets is in this plan and takes its format.",
}


def propose(workspace: Workspace, asked: PlanRequest, *, test: bool, now: datetime) -> Proposal:
    """Return a plan with the best of the newest ready items in the period's free slots.

    Raises `Invalid` if a named outlet doesn't exist.
    """
    outlets = find_outlets(workspace, asked.outlets, test=test)
    timelines = {
        timeline.planner_outlet.key: timeline
        for timeline in read_timelines(
            workspace, outlets, starts_at=asked.starts_at, ends_at=asked.ends_at, now=now
        )
    }
    items, left_items = _choose_candidates(workspace, test=test, now=now)
    by_key = {encode("gen", item.pk): item for item in items}
    pool: list[fill_slots.PlanCandidate] = []
    refused: list[LeftOut] = []
    assets = publish.read_assets_by_item(items)
    for key, item in by_key.items():
        accepting, reason = _outlets_for(item, assets.get(item.pk, []), timelines)
        if reason is not None:
            refused.append(reason)
        else:
            pool.append(
                fill_slots.PlanCandidate(key, _compute_worth(item, now), traits_of_row(item), accepting)
            )
    placement_plan = fill_slots.fill(
        pool,
        [timeline.planner_outlet for timeline in timelines.values()],
        max_per_calendar_day=asked.a_day,
        max_placements=limits.PLAN_ENTRIES,
    )
    left_items += [*refused, *_explain_unplaced(placement_plan, pool, by_key, timelines, asked.a_day)]
    return Proposal(
        asked,
        _build_entries(placement_plan, by_key, timelines),
        tuple(left_items),
        _count_free_slots(timelines, placement_plan),
    )


def find_outlets(workspace: Workspace, wanted: Sequence[UUID] | None, *, test: bool) -> list[Outlet]:
    """Return the outlets named, in that order, or else the first `limits.PLAN_LANES` open ones, by id.

    Raises `Invalid` if one that was named doesn't exist.
    """
    rows = Outlet.objects.of(workspace).filter(deleted_at=None).defer("credentials").order_by("id")
    allowed = [row for row in rows if row.is_simulated or not test]
    if wanted is None:
        return [row for row in allowed if publish.why_closed(row) is None][: limits.PLAN_LANES]
    known = {row.pk: row for row in allowed}
    for index, key in enumerate(wanted):
        if key not in known:
            raise Invalid.one(
                field=f"outlets[{index}]", code="unknown_outlet", message="This workspace has no such outlet."
            )
    return [known[key] for key in dict.fromkeys(wanted)]


def _choose_candidates(
    workspace: Workspace, *, test: bool, now: datetime
) -> tuple[list[GeneratedItem], list[LeftOut]]:
    """Return the best ready variant of each group in which none is scheduled or published.

    The second list has the other ready items, with the reasons. Only the newest `limits.PLAN_CANDIDATES` ready
    items are considered.
    """
    rows = (
        GeneratedItem.objects.of(workspace)
        .select_related("workspace", "raw_item")
        .filter(status=GeneratedItemStatus.READY, deleted_at=None)
    )
    newest = list(rows.filter(test=Value(test)).order_by("-id")[: limits.PLAN_CANDIDATES])
    groups = {row.variant_group for row in newest}
    siblings = GeneratedItem.objects.of(workspace).filter(variant_group__in=groups, deleted_at=None)
    published_groups = set(
        siblings.filter(status__in=publish.PUBLISHING_STATUSES - {GeneratedItemStatus.REMOVED}).values_list(
            "variant_group", flat=True
        )
    )
    best_by_group: dict[UUID, GeneratedItem] = {}
    left_items = []
    for item in sorted(newest, key=lambda candidate: (-_compute_worth(candidate, now), candidate.pk)):
        reason = publish.why_not_publishable(item)
        if item.held or reason is not None:
            left_items.append(_leave_out(item, "held" if item.held or reason is None else reason.code))
        elif item.variant_group in published_groups or item.variant_group in best_by_group:
            left_items.append(_leave_out(item, "variant"))
        else:
            best_by_group[item.variant_group] = item
    return list(best_by_group.values()), left_items


def _compute_worth(item: GeneratedItem, now: datetime) -> float:
    """Return a value from 0 to 1, from approval (0.4), the share of checks passed (0.3) and freshness (0.3).

    An item without checks counts as having passed them.
    """
    passed = [check["outcome"] == "passed" for check in item.present_checks]
    quality = sum(passed) / len(passed) if passed else 1.0
    age = now - (item.ready_at or item.created_at)
    freshness = 1 - min(max(age / FRESHNESS_SPAN, 0.0), 1.0)
    return 0.4 * item.is_approved_as_it_is + 0.3 * quality + 0.3 * freshness


def _outlets_for(
    item: GeneratedItem, assets: Sequence[Asset], timelines: Mapping[str, OutletTimeline]
) -> tuple[frozenset[str], LeftOut | None]:
    """Return the planned outlets that take the item, and the first outlet's reason if all refuse its content."""
    own_timelines = [
        timelines[key] for key in item.outlets if key in timelines and decode("out", key) is not None
    ]
    accepting = [
        timeline for timeline in own_timelines if item.bucket in buckets_of(timeline.outlet.platform)
    ]
    problems = {
        timeline.planner_outlet.key: publish.problems_of(item, timeline.outlet, assets)
        for timeline in accepting
    }
    without_problems = frozenset(key for key, outlet_problems in problems.items() if not outlet_problems)
    if accepting and not without_problems:
        timeline = accepting[0]
        message = f"{timeline.outlet.name}: {problems[timeline.planner_outlet.key][0].message}"
        return without_problems, LeftOut(item, "cannot_take", message)
    return without_problems, None


def _leave_out(item: GeneratedItem, code: str) -> LeftOut:
    return LeftOut(item, code, _MESSAGES.get(code, "It can't be published as it is."))


def _explain_unplaced(
    placement_plan: fill_slots.PlacementPlan,
    pool: Sequence[fill_slots.PlanCandidate],
    items: Mapping[str, GeneratedItem],
    timelines: Mapping[str, OutletTimeline],
    a_day: int | None,
) -> Iterator[LeftOut]:
    """Yield the candidates without a slot, each with the rule that left it out."""
    candidates = {candidate.key: candidate for candidate in pool}
    traits = {candidate.key: candidate.traits for candidate in pool}
    filled = left_out.filled_outlets(timelines, placement_plan, traits, max_per_calendar_day=a_day)
    is_full = len(placement_plan.placements) >= limits.PLAN_ENTRIES
    for key, code in placement_plan.unplaced:
        if code != "no_slot":
            yield _leave_out(items[key], code)
            continue
        own_outlets = [
            filled_outlet for outlet, filled_outlet in filled.items() if outlet in candidates[key].outlets
        ]
        message = left_out.message_of(own_outlets, traits[key], max_per_calendar_day=a_day, is_full=is_full)
        yield LeftOut(items[key], code, message)


def _build_entries(
    placement_plan: fill_slots.PlacementPlan,
    items: Mapping[str, GeneratedItem],
    timelines: Mapping[str, OutletTimeline],
) -> tuple[Proposed, ...]:
    """Return the plan's placements with their items, outlets and slots."""
    return tuple(
        Proposed(
            items[placement.candidate],
            timelines[placement.outlet].outlet,
            timelines[placement.outlet].slots[placement.moment],
            placement.alike,
        )
        for placement in placement_plan.placements
    )


def _count_free_slots(
    timelines: Mapping[str, OutletTimeline], placement_plan: fill_slots.PlacementPlan
) -> int:
    used_slots = {(placement.outlet, placement.moment) for placement in placement_plan.placements}
    return sum(
        1
        for slot in _untaken_slots(timelines, {outlet for outlet, _ in used_slots})
        if slot not in used_slots
    )


def _untaken_slots(
    timelines: Mapping[str, OutletTimeline], used: Collection[str]
) -> Iterator[tuple[str, datetime]]:
    for key, timeline in timelines.items():
        if timeline.outlet.is_simulated and key not in used:
            # Nobody sees posts of a simulated outlet, so its free slots don't count.
            continue
        occupied = {post.moment for post in timeline.planner_outlet.posts}
        yield from ((key, moment) for moment in timeline.slots if moment not in occupied)
