"""Propose a plan: which ready items would go where and when; nothing is written."""

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
from pipeline.schedule.planning.outlet_slots import OutletTimeline, timelines_of, traits_of_row

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from uuid import UUID

    from accounts.models import Workspace
    from pipeline.models import Asset
    from pipeline.text.local_time import Slot

DAYS: Final = 7
FRESH: Final = timedelta(days=14)
"""An item that has waited for longer than that isn't fresher than any other."""
OUT: Final = publish.PUBLISHING_STATUSES


@dataclass(frozen=True)
class PlanRequest:
    """What a plan fills: `outlets` None for all; `a_day` None for as many as there are slots."""

    starts_at: datetime
    days: int = DAYS
    outlets: Sequence[UUID] | None = None
    a_day: int | None = None

    @property
    def ends_at(self) -> datetime:
        return self.starts_at + timedelta(days=self.days)


@dataclass(frozen=True)
class Proposed:
    item: GeneratedItem
    outlet: Outlet
    slot: Slot
    alike: tuple[str, ...]
    """What it has in common with a neighbour: names of traits."""

    @property
    def entry(self) -> PlanEntry:
        """As it is scheduled."""
        return PlanEntry(self.item.pk, self.item.version, self.outlet.pk, self.slot.moment)


@dataclass(frozen=True)
class LeftOut:
    """An item that isn't in the plan; `code` is `held`, `approval_required`, `variant`, `no_outlet`, `cannot_take` or
    `no_slot`.
    """

    item: GeneratedItem
    code: str
    message: str


@dataclass(frozen=True)
class Proposal:
    asked: PlanRequest
    entries: tuple[Proposed, ...]
    left: tuple[LeftOut, ...]
    free: int
    """Slots that stay free."""


APPROVE_FIRST: Final = "This workspace publishes only what is approved. Approve it first."
_WHY: Final = {
    "held": "It is on hold. Approve it first.",
    "approval_required": APPROVE_FIRST,
    "variant": "Another variant of it goes first.",
    "no_outlet": "None of its outlets is in this plan and takes its format.",
}


def propose(workspace: Workspace, asked: PlanRequest, *, test: bool, now: datetime) -> Proposal:
    """The best of the newest ready items for the free slots of the stretch. Raises `Invalid` on an unknown outlet."""
    outlets = outlets_of(workspace, asked.outlets, test=test)
    timelines = {
        timeline.planner_outlet.key: timeline
        for timeline in timelines_of(
            workspace, outlets, starts_at=asked.starts_at, ends_at=asked.ends_at, now=now
        )
    }
    items, left = _candidates(workspace, test=test, now=now)
    by_key = {encode("gen", item.pk): item for item in items}
    pool: list[fill_slots.PlanCandidate] = []
    refused: list[LeftOut] = []
    assets = publish.assets_of(items)
    for key, item in by_key.items():
        taking, why = _outlets_for(item, assets.get(item.pk, []), timelines)
        if why is not None:
            refused.append(why)
        else:
            pool.append(fill_slots.PlanCandidate(key, _worth(item, now), traits_of_row(item), taking))
    made = fill_slots.fill(
        pool,
        [timeline.planner_outlet for timeline in timelines.values()],
        max_per_calendar_day=asked.a_day,
        max_placements=limits.PLAN_ENTRIES,
    )
    left += [*refused, *_unplaced(made, pool, by_key, timelines, asked.a_day)]
    return Proposal(asked, _entries(made, by_key, timelines), tuple(left), _free(timelines, made))


def outlets_of(workspace: Workspace, wanted: Sequence[UUID] | None, *, test: bool) -> list[Outlet]:
    """Those that are open, in order. Raises `Invalid` where one that was named isn't there."""
    rows = Outlet.objects.of(workspace).filter(deleted_at=None).defer("credentials").order_by("id")
    there = [row for row in rows if row.is_simulated or not test]
    if wanted is None:
        return [row for row in there if publish.why_closed(row) is None][: limits.PLAN_LANES]
    known = {row.pk: row for row in there}
    for place, key in enumerate(wanted):
        if key not in known:
            raise Invalid.one(
                field=f"outlets[{place}]",
                code="unknown_outlet",
                message="This workspace has no such outlet.",
            )
    return [known[key] for key in dict.fromkeys(wanted)]


def _candidates(
    workspace: Workspace, *, test: bool, now: datetime
) -> tuple[list[GeneratedItem], list[LeftOut]]:
    """One of each group of variants, of which none is on its way yet; and why others aren't."""
    rows = (
        GeneratedItem.objects.of(workspace)
        .select_related("workspace", "raw_item")
        .filter(status=GeneratedItemStatus.READY, deleted_at=None)
    )
    newest = list(rows.filter(test=Value(test)).order_by("-id")[: limits.PLAN_CANDIDATES])
    groups = {row.variant_group for row in newest}
    siblings = GeneratedItem.objects.of(workspace).filter(variant_group__in=groups, deleted_at=None)
    on_its_way = set(
        siblings.filter(status__in=OUT - {GeneratedItemStatus.REMOVED}).values_list(
            "variant_group", flat=True
        )
    )
    found: dict[UUID, GeneratedItem] = {}
    left = []
    for item in sorted(newest, key=lambda one: (-_worth(one, now), one.pk)):
        why = publish.why_not_publishable(item)
        if item.held or why is not None:
            left.append(_left(item, "held" if item.held or why is None else why.code))
        elif item.variant_group in on_its_way or item.variant_group in found:
            left.append(_left(item, "variant"))
        else:
            found[item.variant_group] = item
    return list(found.values()), left


def _worth(item: GeneratedItem, now: datetime) -> float:
    """From 0 to 1: approved before unapproved, then what passed its checks, then what is fresh."""
    passed = [check["outcome"] == "passed" for check in item.present_checks]
    quality = sum(passed) / len(passed) if passed else 1.0
    age = now - (item.ready_at or item.created_at)
    freshness = 1 - min(max(age / FRESH, 0.0), 1.0)
    return 0.4 * item.is_approved_as_it_is + 0.3 * quality + 0.3 * freshness


def _outlets_for(
    item: GeneratedItem, assets: Sequence[Asset], timelines: Mapping[str, OutletTimeline]
) -> tuple[frozenset[str], LeftOut | None]:
    """The outlets that are filled and take it; where its own rules refuse it everywhere, what the first of them says."""
    wanted = [timelines[key] for key in item.outlets if key in timelines and decode("out", key) is not None]
    taking = [timeline for timeline in wanted if item.bucket in buckets_of(timeline.outlet.platform)]
    problems = {
        timeline.planner_outlet.key: publish.problems_of(item, timeline.outlet, assets) for timeline in taking
    }
    fine = frozenset(key for key, found in problems.items() if not found)
    if taking and not fine:
        timeline = taking[0]
        message = f"{timeline.outlet.name}: {problems[timeline.planner_outlet.key][0].message}"
        return fine, LeftOut(item, "cannot_take", message)
    return fine, None


def _left(item: GeneratedItem, code: str) -> LeftOut:
    return LeftOut(item, code, _WHY.get(code, "It can't be published as it is."))


def _unplaced(
    made: fill_slots.PlacementPlan,
    pool: Sequence[fill_slots.PlanCandidate],
    items: Mapping[str, GeneratedItem],
    timelines: Mapping[str, OutletTimeline],
    a_day: int | None,
) -> Iterator[LeftOut]:
    """The candidates that got no place, each with the rule that left it out."""
    candidates = {one.key: one for one in pool}
    traits = {one.key: one.traits for one in pool}
    filled = left_out.filled_outlets(timelines, made, traits, max_per_calendar_day=a_day)
    is_full = len(made.placements) >= limits.PLAN_ENTRIES
    for key, code in made.unplaced:
        if code != "no_slot":
            yield _left(items[key], code)
            continue
        own = [one for outlet, one in filled.items() if outlet in candidates[key].outlets]
        message = left_out.message_of(own, traits[key], max_per_calendar_day=a_day, is_full=is_full)
        yield LeftOut(items[key], code, message)


def _entries(
    made: fill_slots.PlacementPlan,
    items: Mapping[str, GeneratedItem],
    timelines: Mapping[str, OutletTimeline],
) -> tuple[Proposed, ...]:
    return tuple(
        Proposed(
            items[one.candidate],
            timelines[one.outlet].outlet,
            timelines[one.outlet].slots[one.moment],
            one.alike,
        )
        for one in made.placements
    )


def _free(timelines: Mapping[str, OutletTimeline], made: fill_slots.PlacementPlan) -> int:
    taken = {(one.outlet, one.moment) for one in made.placements}
    return sum(1 for slot in _untaken(timelines, {outlet for outlet, _ in taken}) if slot not in taken)


def _untaken(
    timelines: Mapping[str, OutletTimeline], used: Collection[str]
) -> Iterator[tuple[str, datetime]]:
    for key, timeline in timelines.items():
        if timeline.outlet.is_simulated and key not in used:
            # It reaches nobody: nobody wants it filled.
            continue
        there = {post.moment for post in timeline.planner_outlet.posts}
        yield from ((key, moment) for moment in timeline.slots if moment not in there)
