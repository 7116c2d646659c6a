"""Names the rule that left an item without a slot: of each outlet that takes it, once the plan is made."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline import limits
from pipeline.schedule.planning.fill_slots import (
    PlannerPost,
    Traits,
    is_same_story,
    neighbours_at,
    why_not,
)
from pipeline.text.prose.verbatim_edits import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime, timedelta

    from pipeline.schedule.planning.fill_slots import PlacementPlan
    from pipeline.schedule.planning.outlet_slots import OutletTimeline

_RULES: Final = ("a_day", "daily_cap", "gap", "closed")
"""What bars a slot that nothing stands in; of two that bar as many the first is told."""


@dataclass(frozen=True)
class FilledOutlet:
    """An outlet with the plan's own posts: the slots that are open still, and else the rule that bars most others."""

    timeline: OutletTimeline
    posts: tuple[PlannerPost, ...]
    open_slots: tuple[datetime, ...]
    rule: str

    def rule_against(self, traits: Traits, *, is_full: bool) -> str:
        """The rule that keeps an item of these traits out of this outlet; `is_full` where the plan takes no more."""
        if not self.open_slots:
            return self.rule
        if is_full:
            return "plan"
        is_beside_itself = all(
            any(is_same_story(traits, other.traits) for other in neighbours_at(moment, self.posts))
            for moment in self.open_slots
        )
        return "story" if is_beside_itself else "outranked"


def filled_outlets(
    timelines: Mapping[str, OutletTimeline],
    made: PlacementPlan,
    traits: Mapping[str, Traits],
    *,
    max_per_calendar_day: int | None,
) -> dict[str, FilledOutlet]:
    """The outlets as the plan leaves them, by their keys."""
    new: defaultdict[str, list[PlannerPost]] = defaultdict(list)
    for one in made.placements:
        new[one.outlet].append(PlannerPost(one.moment, one.candidate, traits[one.candidate]))
    return {key: _filled(timeline, new[key], max_per_calendar_day) for key, timeline in timelines.items()}


def _filled(timeline: OutletTimeline, new: Iterable[PlannerPost], most: int | None) -> FilledOutlet:
    outlet = timeline.planner_outlet
    posts = tuple(sorted([*outlet.posts, *new]))
    on_day = Counter(post.moment.astimezone(outlet.zone).date() for post in posts)
    found: Counter[str] = Counter()
    open_slots = []
    for slot in outlet.slots:
        rule = why_not(outlet, slot.moment, posts)
        if not rule and most is not None and on_day[slot.day] >= most:
            rule = "a_day"
        found[rule] += 1
        if not rule:
            open_slots.append(slot.moment)
    barring = max(_RULES, key=lambda rule: found[rule])
    if not outlet.slots:
        barring = "paused" if timeline.queue.is_paused else "no_slots"
    elif not found[barring]:
        barring = "taken"
    return FilledOutlet(timeline, posts, tuple(open_slots), barring)


def message_of(
    outlets: Sequence[FilledOutlet], traits: Traits, *, max_per_calendar_day: int | None, is_full: bool
) -> str:
    """Why none of its outlets has a slot for an item of these traits; outlets with the same rule share a sentence."""
    names: defaultdict[str, list[str]] = defaultdict(list)
    for one in outlets:
        rule = one.rule_against(traits, is_full=is_full)
        names[_sentence(one, rule, max_per_calendar_day)].append(one.timeline.outlet.name)
    return " ".join(f"{', '.join(some)}: {sentence}" for sentence, some in names.items())


def _sentence(one: FilledOutlet, rule: str, max_per_calendar_day: int | None) -> str:
    outlet = one.timeline.planner_outlet
    if rule == "a_day":
        return f"each day has {counted(max_per_calendar_day or 0, 'post')} already, as many as you asked for."
    if rule == "daily_cap":
        return f"its limit of {counted(outlet.cap_per_24_hours or 0, 'post')} in 24 hours is reached."
    if rule == "gap" and outlet.gap is not None:
        return (
            f"its other slots are less than {_length(outlet.gap)} from another post, the gap that it keeps."
        )
    return _SENTENCES[rule]


def _length(gap: timedelta) -> str:
    minutes = int(gap.total_seconds() // 60)
    return counted(minutes, "minute") if minutes % 60 else counted(minutes // 60, "hour")


_SENTENCES: Final = {
    "closed": "it takes no posts at its free slots: they are blocked, or the platform has asked for a pause.",
    "taken": "every slot is taken.",
    "paused": "its queue is paused.",
    "no_slots": "its queue has no slot on these days.",
    "story": "every free slot is next to a post of the same story.",
    "outranked": "other items go first. Fill the week again once they are scheduled.",
    "plan": f"a plan has {limits.PLAN_ENTRIES} posts at most. Fill the week again once these are scheduled.",
}
