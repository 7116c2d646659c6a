"""Fills free slots with items, without the database: it takes data and returns a plan.

For each outlet, `fill` chooses slots, then the best item for each slot, then swaps items between slots.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import tzinfo

DAY: Final = timedelta(hours=24)
# Each weighs more than all below it together, and the smallest more than the whole range of worths, 0 to 1.
SIMILARITY_WEIGHTS: Final = {"source": 16.0, "topic": 8.0, "engine": 4.0, "bucket": 2.0}
"""The traits that neighbours should not share, with the cost of sharing; they never have the same story."""
MAX_SWAP_ROUNDS: Final = 3
"""The number of times that all pairs of an outlet's new posts are tried; a round without a change is the last."""
_POOL_PER_SLOT: Final = 3
"""The number of candidates for each slot: only the best, but enough that neighbours can differ."""
_PRESSING_BONUS: Final = 1.0
"""The bonus of an item that has to come now: less than any shared trait costs, so that it only breaks ties."""


@dataclass(frozen=True)
class Traits:
    """What an item is about and how it is made; an empty trait equals no other."""

    story: str = ""
    source: str = ""
    topic: str = ""
    engine: str = ""
    bucket: str = ""


@dataclass(frozen=True)
class PlanCandidate:
    """An item that may be published once at each of these outlets; `worth` is from 0 to 1."""

    key: str
    worth: float
    traits: Traits
    outlets: frozenset[str]


@dataclass(frozen=True)
class FreeSlot:
    """A slot of an outlet's queue, and its day in the queue's time zone."""

    moment: datetime
    day: date


@dataclass(frozen=True, order=True)
class PlannerPost:
    """A post that was published or is scheduled."""

    moment: datetime
    key: str = ""
    traits: Traits = field(default=Traits(), compare=False)


@dataclass(frozen=True)
class PlannerOutlet:
    """One outlet; `closed` are half-open periods in which nothing is planned."""

    key: str
    slots: tuple[FreeSlot, ...]
    posts: tuple[PlannerPost, ...] = ()
    cap_per_24_hours: int | None = None
    gap: timedelta | None = None
    closed: tuple[tuple[datetime, datetime], ...] = ()
    zone: tzinfo = UTC
    """The queue's time zone, which decides on which day a post is."""


@dataclass(frozen=True)
class Placement:
    """A candidate placed in an outlet's slot."""

    candidate: str
    outlet: str
    moment: datetime
    alike: tuple[str, ...]
    """The names of the traits that it shares with the post before or after it."""


@dataclass(frozen=True)
class PlacementPlan:
    """The plan; `unplaced` pairs each candidate that has no slot with `no_outlet` or `no_slot`."""

    placements: tuple[Placement, ...]
    unplaced: tuple[tuple[str, str], ...]


def why_not(outlet: PlannerOutlet, moment: datetime, posts: Sequence[PlannerPost]) -> str:
    """Return the rule that another post at that moment would break, or an empty string.

    The rules are `closed`, `taken`, `gap` and `daily_cap`; `posts` are sorted.
    """
    if any(start <= moment < end for start, end in outlet.closed):
        return "closed"
    index = bisect_left(posts, moment, key=lambda post: post.moment)
    after = posts[index] if index < len(posts) else None
    if after is not None and after.moment == moment:
        return "taken"
    if outlet.gap is not None:
        before = posts[index - 1] if index else None
        if before is not None and moment - before.moment < outlet.gap:
            return "gap"
        if after is not None and after.moment - moment < outlet.gap:
            return "gap"
    if outlet.cap_per_24_hours is not None and _breaks_cap(outlet.cap_per_24_hours, moment, posts, index):
        return "daily_cap"
    return ""


def _breaks_cap(cap: int, moment: datetime, posts: Sequence[PlannerPost], index: int) -> bool:
    """Return whether some period of 24 hours around the moment would have more posts than the cap.

    `index` is where the moment belongs among the posts.
    """
    # Only a run of `cap + 1` posts that includes the new one can break the cap.
    moments = [post.moment for post in posts[max(0, index - cap) : index + cap]]
    insort(moments, moment)
    own_index = moments.index(moment)
    starts = range(max(0, own_index - cap), min(own_index, len(moments) - cap - 1) + 1)
    return any(moments[start + cap] - moments[start] < DAY for start in starts)


def fill(
    candidates: Iterable[PlanCandidate],
    outlets: Iterable[PlannerOutlet],
    *,
    max_per_calendar_day: int | None = None,
    max_placements: int = 100,
) -> PlacementPlan:
    """Fill the free slots with the best candidates, so that neighbours differ and days fill evenly.

    `max_per_calendar_day` limits the posts of one outlet on a day of the queue's time zone, existing ones
    included; `max_placements` limits the whole plan. The same input gives the same plan.
    """
    pool = sorted(candidates, key=lambda candidate: (-candidate.worth, candidate.key))
    traits = {candidate.key: candidate.traits for candidate in pool}
    placements: list[Placement] = []
    for outlet in sorted(outlets, key=lambda planner_outlet: planner_outlet.key):
        new_posts = _fill_outlet(
            outlet,
            [candidate for candidate in pool if outlet.key in candidate.outlets],
            max_per_calendar_day,
            max_placements - len(placements),
        )
        _swap_alike(outlet, new_posts, traits)
        placements += _placements_of(outlet, new_posts, traits)
    placed = {placement.candidate for placement in placements}
    unplaced = tuple(
        (candidate.key, "no_slot" if candidate.outlets else "no_outlet")
        for candidate in pool
        if candidate.key not in placed
    )
    return PlacementPlan(
        tuple(sorted(placements, key=lambda placement: (placement.moment, placement.outlet))), unplaced
    )


def _fill_outlet(
    outlet: PlannerOutlet, pool: list[PlanCandidate], max_per_calendar_day: int | None, max_posts: int
) -> list[PlannerPost]:
    """Return the new posts of one outlet, in order of time."""
    chosen = _choose_slots(outlet, min(len(pool), max_posts), max_per_calendar_day)
    remaining = pool[: _POOL_PER_SLOT * len(chosen)]
    posts = list(outlet.posts)
    bucket_counts: Counter[str] = Counter()
    new_posts: list[PlannerPost] = []
    for slot in chosen:
        best = _choose_candidate(slot.moment, posts, remaining, bucket_counts)
        if best is None:
            continue
        remaining.remove(best)
        bucket_counts[best.traits.bucket] += 1
        post = PlannerPost(slot.moment, best.key, best.traits)
        insort(posts, post)
        new_posts.append(post)
    return new_posts


def _choose_slots(outlet: PlannerOutlet, count: int, max_per_calendar_day: int | None) -> list[FreeSlot]:
    """Return up to `count` slots that no rule forbids, in order of time; the emptiest days are filled first."""
    posts_per_day = Counter(post.moment.astimezone(outlet.zone).date() for post in outlet.posts)
    free: defaultdict[date, list[FreeSlot]] = defaultdict(list)
    moments = {post.moment for post in outlet.posts}
    for slot in sorted(outlet.slots, key=lambda slot: slot.moment):
        if slot.moment not in moments:
            free[slot.day].append(slot)
    posts = sorted(outlet.posts)
    chosen: list[FreeSlot] = []
    while len(chosen) < count:
        next_slot = _pop_next_slot(outlet, posts, free, posts_per_day, max_per_calendar_day)
        if next_slot is None:
            break
        chosen.append(next_slot)
        posts_per_day[next_slot.day] += 1
        insort(posts, PlannerPost(next_slot.moment))
    return sorted(chosen, key=lambda slot: slot.moment)


def _pop_next_slot(
    outlet: PlannerOutlet,
    posts: Sequence[PlannerPost],
    free: dict[date, list[FreeSlot]],
    posts_per_day: Counter[date],
    max_per_calendar_day: int | None,
) -> FreeSlot | None:
    """Take the first allowed slot of the day with the fewest posts out of `free`, and return it, or `None`."""
    for day in sorted(free, key=lambda candidate_day: (posts_per_day[candidate_day], candidate_day)):
        if max_per_calendar_day is not None and posts_per_day[day] >= max_per_calendar_day:
            continue
        while free[day]:
            # A slot that breaks a rule now breaks it later too, as posts are only added.
            slot = free[day].pop(0)
            if not why_not(outlet, slot.moment, posts):
                return slot
    return None


def _choose_candidate(
    moment: datetime,
    posts: Sequence[PlannerPost],
    remaining: Sequence[PlanCandidate],
    bucket_counts: Counter[str],
) -> PlanCandidate | None:
    """Return the candidate that differs most from the neighbours, or `None` if all have a neighbour's story.

    Between equals, the one whose bucket is rarer in the plan and whose worth is higher goes first.
    """
    neighbours = list(neighbours_at(moment, posts))
    sources = Counter(candidate.traits.source for candidate in remaining if candidate.traits.source)
    total = sum(bucket_counts.values()) or 1

    def rank(candidate: PlanCandidate) -> tuple[float, float, str]:
        cost = sum(_compute_cost(candidate.traits, neighbour.traits) for neighbour in neighbours)
        share = bucket_counts[candidate.traits.bucket] / total
        # A source with more than half of the remaining items has to come now, or its posts become neighbours.
        is_pressing = 2 * sources[candidate.traits.source] > len(remaining)
        bonus = _PRESSING_BONUS if is_pressing else 0.0
        return cost - bonus, share - candidate.worth, candidate.key

    allowed = [
        candidate
        for candidate in remaining
        if not any(is_same_story(candidate.traits, neighbour.traits) for neighbour in neighbours)
    ]
    return min(allowed, key=rank, default=None)


def neighbours_at(moment: datetime, posts: Sequence[PlannerPost]) -> Iterator[PlannerPost]:
    """Yield the posts before and after a moment, but none at the moment itself; `posts` are sorted."""
    index = bisect_left(posts, moment, key=lambda post: post.moment)
    if index:
        yield posts[index - 1]
    after = index + 1 if index < len(posts) and posts[index].moment == moment else index
    if after < len(posts):
        yield posts[after]


def _shared_traits(first: Traits, second: Traits) -> Iterator[str]:
    """Yield the names of the traits that two posts share."""
    for name in SIMILARITY_WEIGHTS:
        value = getattr(first, name)
        if value and value == getattr(second, name):
            yield name


def _compute_cost(first: Traits, second: Traits) -> float:
    """Return the cost of two posts being next to each other."""
    return sum(SIMILARITY_WEIGHTS[name] for name in _shared_traits(first, second))


def is_same_story(first: Traits, second: Traits) -> bool:
    """Return whether both have the same, known story."""
    return bool(first.story) and first.story == second.story


def _swap_alike(outlet: PlannerOutlet, new_posts: list[PlannerPost], traits: dict[str, Traits]) -> None:
    """Swap the items of two new posts if that makes neighbours differ more; the slots stay the same."""
    for _round in range(MAX_SWAP_ROUNDS):
        has_swapped = False
        for first in range(len(new_posts)):
            for second in range(first + 1, len(new_posts)):
                cost_before = _sum_costs(outlet, new_posts, (first, second))
                if cost_before == 0:
                    continue
                _exchange(new_posts, first, second, traits)
                if _sum_costs(outlet, new_posts, (first, second)) < cost_before:
                    has_swapped = True
                else:
                    _exchange(new_posts, first, second, traits)
        if not has_swapped:
            return


def _exchange(new_posts: list[PlannerPost], first: int, second: int, traits: dict[str, Traits]) -> None:
    first_post, second_post = new_posts[first], new_posts[second]
    new_posts[first] = PlannerPost(first_post.moment, second_post.key, traits[second_post.key])
    new_posts[second] = PlannerPost(second_post.moment, first_post.key, traits[first_post.key])


def _sum_costs(outlet: PlannerOutlet, new_posts: Sequence[PlannerPost], indexes: Iterable[int]) -> float:
    """Return the cost of the neighbours of these new posts; infinite if one is next to its own story."""
    total = 0.0
    for index in indexes:
        post = new_posts[index]
        for neighbour in _neighbours_of(outlet, new_posts, index):
            if is_same_story(post.traits, neighbour.traits):
                return float("inf")
            total += _compute_cost(post.traits, neighbour.traits)
    return total


def _neighbours_of(
    outlet: PlannerOutlet, new_posts: Sequence[PlannerPost], index: int
) -> Iterator[PlannerPost]:
    """Yield the posts before and after a new one, among the new and the existing ones, which are sorted."""
    moment = new_posts[index].moment
    position = bisect_left(outlet.posts, moment, key=lambda post: post.moment)
    before = [*outlet.posts[max(0, position - 1) : position], *new_posts[max(0, index - 1) : index]]
    after = [*outlet.posts[position : position + 1], *new_posts[index + 1 : index + 2]]
    if before:
        yield max(before)
    if after:
        yield min(after)


def _placements_of(
    outlet: PlannerOutlet, new_posts: Sequence[PlannerPost], traits: dict[str, Traits]
) -> Iterator[Placement]:
    for index, post in enumerate(new_posts):
        shared = {
            name
            for neighbour in _neighbours_of(outlet, new_posts, index)
            for name in _shared_traits(traits[post.key], neighbour.traits)
        }
        yield Placement(
            post.key, outlet.key, post.moment, tuple(name for name in SIMILARITY_WEIGHTS if name in shared)
        )
