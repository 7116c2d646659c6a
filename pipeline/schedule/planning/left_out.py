"""Finds the rule that left an item without a slot at each outlet that takes it, once the plan is made."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline import limits
from pipeline.schedule.planning.fill_slots import PlannerPost, Traits, is_same_story, neighbours_at, why_not
from pipeline.text.prose.verbatim_edits import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime, timedelta

    from pipeline.schedule.planning.fill_slots import PlacementPlan
    from pipeline.schedule.planning.outlet_slots import OutletTimeline

_RULES: Final = ("a_day", "daily_cap", "gap", "closed")
"""The rules that can close an empty slot; if two close equally many, the first is named."""


@dataclass(frozen=True)
class FilledOutlet:
    """An outlet with the plan's posts, and the slots that are still open."""

    timeline: OutletTimeline
    posts: tuple[PlannerPost, ...]
    open_slots: tuple[datetime, ...]
    rule: str
    """The rule that closes most of the other slots."""

    def rule_against(self, traits: Traits, *, is_full: bool) -> str:
        """Return the rule that keeps these traits out of the outlet.

        `is_full` says that the plan has `limits.PLAN_ENTRIES` posts.
        """
        if not self.open_slots:
            return self.rule
        if is_full:
            return "plan"
        is_next_to_story = all(
            any(is_same_story(traits, neighbour.traits) for neighbour in neighbours_at(moment, self.posts))
            for moment in self.open_slots
        )
        return "story" if is_next_to_story else "outranked"


def filled_outlets(
    timelines: Mapping[str, OutletTimeline],
    plan: PlacementPlan,
    traits: Mapping[str, Traits],
    *,
    max_per_calendar_day: int | None,
) -> dict[str, FilledOutlet]:
    """Return the outlets as the plan leaves them, by key."""
    new_posts: defaultdict[str, list[PlannerPost]] = defaultdict(list)
    for placement in plan.placements:
        new_posts[placement.outlet].append(
            PlannerPost(placement.moment, placement.candidate, traits[placement.candidate])
        )
    return {
        key: _fill_outlet(timeline, new_posts[key], max_per_calendar_day)
        for key, timeline in timelines.items()
    }


def _fill_outlet(
    timeline: OutletTimeline, new_posts: Iterable[PlannerPost], max_per_day: int | None
) -> FilledOutlet:
    """Return the outlet with the new posts, its open slots, and the rule that closes most of the others."""
    outlet = timeline.planner_outlet
    posts = tuple(sorted([*outlet.posts, *new_posts]))
    posts_per_day = Counter(post.moment.astimezone(outlet.zone).date() for post in posts)
    closed_slots: Counter[str] = Counter()
    open_slots = []
    for slot in outlet.slots:
        rule = why_not(outlet, slot.moment, posts)
        if not rule and max_per_day is not None and posts_per_day[slot.day] >= max_per_day:
            rule = "a_day"
        closed_slots[rule] += 1
        if not rule:
            open_slots.append(slot.moment)
    closing_rule = max(_RULES, key=lambda rule: closed_slots[rule])
    if not outlet.slots:
        closing_rule = "paused" if timeline.queue.is_paused else "no_slots"
    elif not closed_slots[closing_rule]:
        closing_rule = "taken"
    return FilledOutlet(timeline, posts, tuple(open_slots), closing_rule)


def message_of(
    outlets: Sequence[FilledOutlet], traits: Traits, *, max_per_calendar_day: int | None, is_full: bool
) -> str:
    """Return why no outlet has a slot for these traits; outlets with the same rule share a sentence."""
    names: defaultdict[str, list[str]] = defaultdict(list)
    for outlet in outlets:
        rule = outlet.rule_against(traits, is_full=is_full)
        names[_sentence(outlet, rule, max_per_calendar_day)].append(outlet.timeline.outlet.name)
    return " ".join(f"{', '.join(outlet_names)}: {sentence}" for sentence, outlet_names in names.items())


def _sentence(filled: FilledOutlet, rule: str, max_per_calendar_day: int | None) -> str:
    outlet = filled.timeline.planner_outlet
    if rule == "a_day":
        return f"each day has {counted(max_per_calendar_day or 0, 'post')} already, as many as you asked for."
    if rule == "daily_cap":
        return f"its limit of {counted(outlet.cap_per_24_hours or 0, 'post')} in 24 hours is reached."
    if rule == "gap" and outlet.gap is not None:
        return f"its other slots are less than {_format_gap(outlet.gap)} from another post, the gap that it keeps."
    return _SENTENCES[rule]


def _format_gap(gap: timedelta) -> str:
    minutes = int(gap.total_seconds() // 60)
    return counted(minutes, "minute") if minutes % 60 else counted(minutes // 60, "hour")


_SENTENCES: Final = {
    "closed": "it takes no posts at its free slots: they are blocked, or the platform has asked for a pause.",
    "taken": "every slot is taken.",
    "paused": "its queue is paused.",
    "no_slots": "its queue has no slot on these days.",
    "story": "every free slot is next to a post of the same story.",
    "outranked": "other items go first. Fill the free slots again once they are scheduled.",
    "plan": f"a plan has {limits.PLAN_ENTRIES} posts at most. Fill the free slots again once these are scheduled.",
}
