"""Free slots are filled with items: data in, a plan out; nothing is read from the database and nothing written.

For each outlet `fill` chooses slots, then the best item for each, then lets items change places.
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
# Each weighs more than all below it together, and the least of them more than the whole range of worths, 0 to 1.
SIMILARITY_WEIGHTS: Final = {"source": 16.0, "topic": 8.0, "engine": 4.0, "bucket": 2.0}
"""What two posts next to each other should not have in common, and how bad it is; one story is never told twice in a row."""
SWAP_ROUNDS: Final = 3
"""How often all pairs of an outlet's new posts are tried at most; a round that changes nothing is the last."""
_POOL_PER_SLOT: Final = 3
"""How many candidates there are to choose from for each slot: the best only, but enough that neighbours can differ."""
_PRESSING_BONUS: Final = 1.0
"""What an item gains that has to be told now: less than any likeness costs, so that it decides between equals."""


@dataclass(frozen=True)
class Traits:
    """What an item tells and how; an empty one is like no other."""

    story: str = ""
    source: str = ""
    topic: str = ""
    engine: str = ""
    bucket: str = ""


@dataclass(frozen=True)
class PlanCandidate:
    """An item that may go to these outlets, to each once; `worth` is from 0 to 1."""

    key: str
    worth: float
    traits: Traits
    outlets: frozenset[str]


@dataclass(frozen=True)
class FreeSlot:
    """A slot that an outlet's queue has, and the day that its clocks show there."""

    moment: datetime
    day: date


@dataclass(frozen=True, order=True)
class PlannerPost:
    """One that was made, or is promised."""

    moment: datetime
    key: str = ""
    traits: Traits = field(default=Traits(), compare=False)


@dataclass(frozen=True)
class PlannerOutlet:
    """One outlet. `closed` are half-open stretches in which nothing is planned."""

    key: str
    slots: tuple[FreeSlot, ...]
    posts: tuple[PlannerPost, ...] = ()
    cap_per_24_hours: int | None = None
    gap: timedelta | None = None
    closed: tuple[tuple[datetime, datetime], ...] = ()
    zone: tzinfo = UTC
    """Of the queue's clocks, by which its posts stand on their days."""


@dataclass(frozen=True)
class Placement:
    candidate: str
    outlet: str
    moment: datetime
    alike: tuple[str, ...]
    """What it has in common with the post before or after it, by name of the trait."""


@dataclass(frozen=True)
class PlacementPlan:
    """`unplaced` are the candidates that got no place at all, and why: `no_outlet` or `no_slot`."""

    placements: tuple[Placement, ...]
    unplaced: tuple[tuple[str, str], ...]


def why_not(outlet: PlannerOutlet, moment: datetime, posts: Sequence[PlannerPost]) -> str:
    """The rule that a further post at that moment would break, among these, which are sorted: `closed`, `taken`,
    `gap` or `daily_cap`; empty where it breaks none.
    """
    if any(start <= moment < end for start, end in outlet.closed):
        return "closed"
    at = bisect_left(posts, moment, key=lambda post: post.moment)
    after = posts[at] if at < len(posts) else None
    if after is not None and after.moment == moment:
        return "taken"
    if outlet.gap is not None:
        before = posts[at - 1] if at else None
        if before is not None and moment - before.moment < outlet.gap:
            return "gap"
        if after is not None and after.moment - moment < outlet.gap:
            return "gap"
    if outlet.cap_per_24_hours is not None and _breaks_cap(outlet.cap_per_24_hours, moment, posts, at):
        return "daily_cap"
    return ""


def _breaks_cap(cap: int, moment: datetime, posts: Sequence[PlannerPost], at: int) -> bool:
    """Whether some stretch of 24 hours with the moment in it would hold more than that many."""
    around = [post.moment for post in posts[max(0, at - cap) : at + cap]]
    insort(around, moment)
    own = around.index(moment)
    starts = range(max(0, own - cap), min(own, len(around) - cap - 1) + 1)
    return any(around[start + cap] - around[start] < DAY for start in starts)


def fill(
    candidates: Iterable[PlanCandidate],
    outlets: Iterable[PlannerOutlet],
    *,
    max_per_calendar_day: int | None = None,
    max_placements: int = 100,
) -> PlacementPlan:
    """Fill the outlets' free slots with the best, so that neighbours differ and the days fill evenly.

    `max_per_calendar_day` is how many posts a day of the queue's clocks may have on one outlet, with those that stand
    there. The same input gives the same plan.
    """
    pool = sorted(candidates, key=lambda one: (-one.worth, one.key))
    traits = {one.key: one.traits for one in pool}
    placements: list[Placement] = []
    for outlet in sorted(outlets, key=lambda one: one.key):
        found = _fill(
            outlet,
            [one for one in pool if outlet.key in one.outlets],
            max_per_calendar_day,
            max_placements - len(placements),
        )
        _swap_alike(outlet, found, traits)
        placements += _placements_of(outlet, found, traits)
    placed = {one.candidate for one in placements}
    unplaced = tuple(
        (one.key, "no_slot" if one.outlets else "no_outlet") for one in pool if one.key not in placed
    )
    return PlacementPlan(tuple(sorted(placements, key=lambda one: (one.moment, one.outlet))), unplaced)


def _fill(
    outlet: PlannerOutlet, pool: list[PlanCandidate], max_per_calendar_day: int | None, most: int
) -> list[PlannerPost]:
    """The new posts of one outlet, in order of time."""
    chosen = _choose_slots(outlet, min(len(pool), most), max_per_calendar_day)
    rest = pool[: _POOL_PER_SLOT * len(chosen)]
    standing = list(outlet.posts)
    bucket_counts: Counter[str] = Counter()
    new: list[PlannerPost] = []
    for slot in chosen:
        best = _best_for(slot.moment, standing, rest, bucket_counts)
        if best is None:
            continue
        rest.remove(best)
        bucket_counts[best.traits.bucket] += 1
        post = PlannerPost(slot.moment, best.key, best.traits)
        insort(standing, post)
        new.append(post)
    return new


def _choose_slots(outlet: PlannerOutlet, count: int, max_per_calendar_day: int | None) -> list[FreeSlot]:
    """So many slots that no rule forbids, in order of time: the emptiest days are filled first."""
    on_day = Counter(post.moment.astimezone(outlet.zone).date() for post in outlet.posts)
    free: defaultdict[date, list[FreeSlot]] = defaultdict(list)
    moments = {post.moment for post in outlet.posts}
    for slot in sorted(outlet.slots, key=lambda one: one.moment):
        if slot.moment not in moments:
            free[slot.day].append(slot)
    posts = sorted(outlet.posts)
    chosen: list[FreeSlot] = []
    while len(chosen) < count:
        following = _next_slot(outlet, posts, free, on_day, max_per_calendar_day)
        if following is None:
            break
        chosen.append(following)
        on_day[following.day] += 1
        insort(posts, PlannerPost(following.moment))
    return sorted(chosen, key=lambda one: one.moment)


def _next_slot(
    outlet: PlannerOutlet,
    posts: Sequence[PlannerPost],
    free: dict[date, list[FreeSlot]],
    on_day: Counter[date],
    max_per_calendar_day: int | None,
) -> FreeSlot | None:
    for day in sorted(free, key=lambda one: (on_day[one], one)):
        if max_per_calendar_day is not None and on_day[day] >= max_per_calendar_day:
            continue
        while free[day]:
            # What breaks a rule now breaks it later too: posts are only added.
            slot = free[day].pop(0)
            if not why_not(outlet, slot.moment, posts):
                return slot
    return None


def _best_for(
    moment: datetime,
    standing: Sequence[PlannerPost],
    rest: Sequence[PlanCandidate],
    bucket_counts: Counter[str],
) -> PlanCandidate | None:
    neighbours = list(neighbours_at(moment, standing))
    sources = Counter(one.traits.source for one in rest if one.traits.source)
    total = sum(bucket_counts.values()) or 1

    def badness(one: PlanCandidate) -> tuple[float, float, str]:
        cost = sum(_cost(one.traits, other.traits) for other in neighbours)
        share = bucket_counts[one.traits.bucket] / total
        # A source that has more than half of what is left has to be told now, or it stands beside itself in the end.
        is_pressing = 2 * sources[one.traits.source] > len(rest)
        bonus = _PRESSING_BONUS if is_pressing else 0.0
        return cost - bonus, share - one.worth, one.key

    apart = [one for one in rest if not any(is_same_story(one.traits, other.traits) for other in neighbours)]
    return min(apart, key=badness, default=None)


def neighbours_at(moment: datetime, posts: Sequence[PlannerPost]) -> Iterator[PlannerPost]:
    """The posts before and after a moment in which something may be put; `posts` are sorted."""
    at = bisect_left(posts, moment, key=lambda post: post.moment)
    if at:
        yield posts[at - 1]
    after = at + 1 if at < len(posts) and posts[at].moment == moment else at
    if after < len(posts):
        yield posts[after]


def _common(one: Traits, other: Traits) -> Iterator[str]:
    """The names of the traits that two posts share."""
    for name in SIMILARITY_WEIGHTS:
        value = getattr(one, name)
        if value and value == getattr(other, name):
            yield name


def _cost(one: Traits, other: Traits) -> float:
    """How bad it is that two posts stand next to each other."""
    return sum(SIMILARITY_WEIGHTS[name] for name in _common(one, other))


def is_same_story(one: Traits, other: Traits) -> bool:
    return bool(one.story) and one.story == other.story


def _swap_alike(outlet: PlannerOutlet, new: list[PlannerPost], traits: dict[str, Traits]) -> None:
    """Let two new posts change places wherever that makes neighbours differ more; their moments stay as they are."""
    for _round in range(SWAP_ROUNDS):
        has_swapped = False
        for first in range(len(new)):
            for second in range(first + 1, len(new)):
                before = _cost_around(outlet, new, (first, second))
                if before == 0:
                    continue
                _exchange(new, first, second, traits)
                if _cost_around(outlet, new, (first, second)) < before:
                    has_swapped = True
                else:
                    _exchange(new, first, second, traits)
        if not has_swapped:
            return


def _exchange(new: list[PlannerPost], first: int, second: int, traits: dict[str, Traits]) -> None:
    one, other = new[first], new[second]
    new[first] = PlannerPost(one.moment, other.key, traits[other.key])
    new[second] = PlannerPost(other.moment, one.key, traits[one.key])


def _cost_around(outlet: PlannerOutlet, new: Sequence[PlannerPost], places: Iterable[int]) -> float:
    total = 0.0
    for place in places:
        post = new[place]
        for other in _neighbours_of(outlet, new, place):
            total += (
                float("inf") if is_same_story(post.traits, other.traits) else _cost(post.traits, other.traits)
            )
    return total


def _neighbours_of(outlet: PlannerOutlet, new: Sequence[PlannerPost], place: int) -> Iterator[PlannerPost]:
    """The posts before and after a new one, among the new ones and those that stand, which are sorted."""
    moment = new[place].moment
    at = bisect_left(outlet.posts, moment, key=lambda post: post.moment)
    before = [*outlet.posts[max(0, at - 1) : at], *new[max(0, place - 1) : place]]
    after = [*outlet.posts[at : at + 1], *new[place + 1 : place + 2]]
    if before:
        yield max(before)
    if after:
        yield min(after)


def _placements_of(
    outlet: PlannerOutlet, new: Sequence[PlannerPost], traits: dict[str, Traits]
) -> Iterator[Placement]:
    for place, post in enumerate(new):
        found = {
            name
            for other in _neighbours_of(outlet, new, place)
            for name in _common(traits[post.key], other.traits)
        }
        yield Placement(
            post.key, outlet.key, post.moment, tuple(name for name in SIMILARITY_WEIGHTS if name in found)
        )
