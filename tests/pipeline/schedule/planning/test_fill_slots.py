"""The planner: whatever it is handed, no cap, gap, blackout or zone rule is broken, and neighbours differ."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise, takewhile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import publish
from pipeline.models import PublishQueue
from pipeline.schedule.planning.fill_slots import (
    DAY,
    FreeSlot,
    PlanCandidate,
    PlannerOutlet,
    PlannerPost,
    Traits,
    fill,
    why_not,
)
from pipeline.text.local_time import is_skipped, zone_named
from tests.sizes import size

MONDAY = datetime(2027, 3, 1, tzinfo=UTC)
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "America/Sao_Paulo")
# Around the changes of the clocks in each of the zones, both ways, and a quiet week.
STARTS = (
    datetime(2027, 3, 25, 12, tzinfo=UTC),
    datetime(2027, 10, 28, 12, tzinfo=UTC),
    datetime(2027, 3, 11, 12, tzinfo=UTC),
    datetime(2027, 11, 4, 12, tzinfo=UTC),
    datetime(2027, 4, 1, 12, tzinfo=UTC),
    datetime(2027, 9, 30, 12, tzinfo=UTC),
    datetime(2027, 6, 7, tzinfo=UTC),
)


def slots(*moments):
    return tuple(FreeSlot(moment, moment.date()) for moment in moments)


def daily(days, *hours):
    return slots(*(MONDAY + timedelta(days=day, hours=hour) for day in range(days) for hour in hours))


def candidate(key, worth=0.5, outlets=("a",), **traits):
    return PlanCandidate(key, worth, Traits(**{"story": key, **traits}), frozenset(outlets))


def order(made):
    return [one.candidate for one in made.placements]


# --- By example ------------------------------------------------------------------------------------------------------


def test_few_items_are_spread_over_the_days():
    made = fill([candidate(str(n)) for n in range(3)], [PlannerOutlet("a", daily(3, 9, 12, 17))])
    assert [one.moment.day for one in made.placements] == [1, 2, 3]


def test_days_that_have_posts_are_filled_last():
    taken = PlannerPost(MONDAY + timedelta(hours=9))
    made = fill([candidate("x")], [PlannerOutlet("a", daily(2, 9, 12), posts=(taken,))])
    assert [one.moment for one in made.placements] == [MONDAY + timedelta(days=1, hours=9)]


@pytest.mark.parametrize("stands", [timedelta(hours=10, minutes=15), timedelta(hours=6)])
def test_a_post_outside_of_the_slots_is_one_of_its_day(stands):
    outlet = PlannerOutlet("a", daily(2, 9, 12), posts=(PlannerPost(MONDAY + stands),))
    made = fill([candidate("x"), candidate("y")], [outlet], max_per_calendar_day=1)
    assert [one.moment for one in made.placements] == [MONDAY + timedelta(days=1, hours=9)]


def test_a_post_stands_on_the_day_that_the_queues_clocks_show():
    # 23:30 in Berlin on Monday, and half past midnight on Tuesday.
    moments = [MONDAY + timedelta(days=days, hours=hours) for days, hours in ((0, 11), (1, 11))]
    slots = tuple(FreeSlot(moment, moment.date()) for moment in moments)
    for late, day in ((timedelta(hours=22, minutes=30), 1), (timedelta(hours=23, minutes=30), 0)):
        outlet = PlannerOutlet(
            "a", slots, posts=(PlannerPost(MONDAY + late),), zone=zone_named("Europe/Berlin")
        )
        made = fill([candidate("x"), candidate("y")], [outlet], max_per_calendar_day=1)
        assert [one.moment for one in made.placements] == [moments[day]]


def test_the_best_go_first_and_what_has_no_place_is_told():
    pool = [candidate("low", 0.1), candidate("high", 0.9), candidate("mid", 0.5)]
    made = fill(pool, [PlannerOutlet("a", daily(2, 9))])
    assert order(made) == ["high", "mid"]
    assert made.unplaced == (("low", "no_slot"),)


def test_an_item_without_a_lane_is_told_apart():
    made = fill([candidate("x", outlets=()), candidate("y")], [PlannerOutlet("a", daily(1, 9))])
    assert made.unplaced == (("x", "no_outlet"),)


@pytest.mark.parametrize("trait", ["source", "topic", "engine", "bucket"])
def test_neighbours_differ_where_they_can(trait):
    pool = [candidate(str(n), 1 - n / 10, **{trait: "one" if n < 3 else "other"}) for n in range(6)]
    made = fill(pool, [PlannerOutlet("a", daily(6, 9))])
    assert len(made.placements) == 6
    assert [one.alike for one in made.placements] == [()] * 6


def test_a_source_with_more_than_half_is_told_from_the_start():
    pool = [candidate(f"s{n}", 0.1, source="s") for n in range(3)] + [
        candidate(f"t{n}", 0.9, source="t") for n in range(2)
    ]
    made = fill(pool, [PlannerOutlet("a", daily(5, 9))])
    assert [key[0] for key in order(made)] == ["s", "t", "s", "t", "s"]


def test_what_can_not_differ_is_scheduled_and_says_so():
    made = fill([candidate(str(n), source="s") for n in range(2)], [PlannerOutlet("a", daily(2, 9))])
    assert [one.alike for one in made.placements] == [("source",), ("source",)]


def test_one_story_is_never_told_twice_in_a_row():
    pool = [candidate("x", story="fire"), candidate("y", story="fire")]
    made = fill(pool, [PlannerOutlet("a", daily(2, 9))])
    assert len(made.placements) == 1
    assert made.unplaced == (("y", "no_slot"),)


def test_what_stands_already_is_a_neighbour_too():
    before = PlannerPost(MONDAY - timedelta(hours=1), "p", Traits(source="s"))
    pool = [candidate("x", 0.9, source="s"), candidate("y", 0.1, source="t")]
    made = fill(pool, [PlannerOutlet("a", daily(2, 9), posts=(before,))])
    assert order(made) == ["y", "x"]


def test_an_item_goes_to_each_of_its_outlets():
    made = fill(
        [candidate("x", outlets=("a", "b"))],
        [PlannerOutlet("a", daily(1, 9)), PlannerOutlet("b", daily(1, 12))],
    )
    assert [(one.outlet, one.moment.hour) for one in made.placements] == [("a", 9), ("b", 12)]


def test_no_more_than_the_most():
    made = fill([candidate(str(n)) for n in range(9)], [PlannerOutlet("a", daily(9, 9))], max_placements=4)
    assert len(made.placements) == 4


@pytest.mark.parametrize(
    ("outlet", "expected"),
    [
        (PlannerOutlet("a", ()), ""),
        (PlannerOutlet("a", (), closed=((MONDAY, MONDAY + DAY),)), "closed"),
        (PlannerOutlet("a", (), closed=((MONDAY - DAY, MONDAY),)), ""),
        (PlannerOutlet("a", (), posts=(PlannerPost(MONDAY),)), "taken"),
        (
            PlannerOutlet("a", (), posts=(PlannerPost(MONDAY - timedelta(hours=1)),), gap=timedelta(hours=1)),
            "",
        ),
        (
            PlannerOutlet(
                "a", (), posts=(PlannerPost(MONDAY - timedelta(minutes=59)),), gap=timedelta(hours=1)
            ),
            "gap",
        ),
        (
            PlannerOutlet(
                "a", (), posts=(PlannerPost(MONDAY + timedelta(minutes=59)),), gap=timedelta(hours=1)
            ),
            "gap",
        ),
        (PlannerOutlet("a", (), posts=(PlannerPost(MONDAY - DAY),), cap_per_24_hours=1), ""),
        (
            PlannerOutlet("a", (), posts=(PlannerPost(MONDAY - timedelta(hours=23)),), cap_per_24_hours=1),
            "daily_cap",
        ),
        (
            PlannerOutlet("a", (), posts=(PlannerPost(MONDAY + timedelta(hours=23)),), cap_per_24_hours=1),
            "daily_cap",
        ),
        (
            PlannerOutlet(
                "a",
                (),
                posts=(PlannerPost(MONDAY - timedelta(hours=12)), PlannerPost(MONDAY + timedelta(hours=11))),
                cap_per_24_hours=2,
            ),
            "daily_cap",
        ),
        (
            PlannerOutlet(
                "a",
                (),
                posts=(PlannerPost(MONDAY - timedelta(hours=12)), PlannerPost(MONDAY + timedelta(hours=12))),
                cap_per_24_hours=2,
            ),
            "",
        ),
    ],
)
def test_each_rule_to_the_edge(outlet, expected):
    assert why_not(outlet, MONDAY, outlet.posts) == expected


# --- By chance -------------------------------------------------------------------------------------------------------

hours = st.integers(0, 23)
minutes = st.sampled_from((0, 15, 30, 45))


@st.composite
def queues(draw, start):
    slots = draw(
        st.lists(st.tuples(st.integers(0, 6), hours, minutes), min_size=1, max_size=40, unique=True).map(
            sorted
        )
    )
    blackouts = []
    for begins, lasts in draw(st.lists(st.tuples(st.integers(-24, 240), st.integers(1, 72)), max_size=3)):
        first = start.replace(tzinfo=None) + timedelta(hours=begins, minutes=draw(minutes))
        until = first + timedelta(hours=lasts)
        blackouts.append({"from": first.isoformat(), "until": until.isoformat(), "reason": ""})
    return PublishQueue(
        timezone=draw(st.sampled_from(ZONES)),
        slots=[{"weekday": day, "time": f"{hour:02}:{minute:02}"} for day, hour, minute in slots],
        blackouts=blackouts,
        on_gap=draw(st.sampled_from(("shift", "skip"))),
        on_overlap=draw(st.sampled_from(("first", "second"))),
    )


@st.composite
def weeks(draw):
    start = draw(st.sampled_from(STARTS))
    end = start + timedelta(days=draw(st.integers(1, 10)))
    filled, pool = [], []
    for name in draw(st.sampled_from(("a", "ab"))):
        queue = draw(queues(start))
        zone = zone_named(queue.timezone)
        slots = list(takewhile(lambda slot: slot.moment < end, publish.moments_of(queue, after=start)))
        stands = draw(st.lists(st.integers(-48 * 4, 240 * 4), max_size=8, unique=True))
        posts = sorted(PlannerPost(start + timedelta(minutes=15 * at), str(at)) for at in stands)
        outlet = PlannerOutlet(
            name,
            tuple(FreeSlot(slot.moment, slot.moment.astimezone(zone).date()) for slot in slots),
            tuple(posts),
            cap_per_24_hours=draw(st.none() | st.integers(1, 5)),
            gap=draw(st.none() | st.integers(1, 30 * 60).map(lambda found: timedelta(minutes=found))),
            closed=publish.blackouts_of(queue),
            zone=zone,
        )
        filled.append((outlet, queue))
    few = st.sampled_from(("", "x", "y", "z"))
    for number in range(draw(st.integers(0, 30))):
        traits = Traits(*(draw(few) for _ in range(5)))
        outlets = draw(st.frozensets(st.sampled_from("ab")))
        pool.append(PlanCandidate(f"{number:02}", draw(st.floats(0, 1)), traits, outlets))
    return start, end, filled, pool, draw(st.none() | st.integers(1, 3))


def breaks_a_cap(moments, new, cap_per_24_hours):
    """Counted anew, the slow way: every stretch of 24 hours that begins with a post and has a new one in it."""
    for start in moments:
        inside = [one for one in moments if start <= one < start + DAY]
        if len(inside) > cap_per_24_hours and any(one in new for one in inside):
            return True
    return False


@settings(max_examples=size(60, 600), deadline=None)
@given(weeks())
def test_no_plan_breaks_a_rule(week):
    start, end, filled, pool, a_day = week
    made = fill(pool, [outlet for outlet, _ in filled], max_per_calendar_day=a_day)
    by_key = {one.key: one for one in pool}
    assert len({(one.candidate, one.outlet) for one in made.placements}) == len(made.placements)
    assert {one.candidate for one in made.placements} | {key for key, _ in made.unplaced} == set(by_key)
    for outlet, queue in filled:
        own = sorted((one for one in made.placements if one.outlet == outlet.key), key=lambda one: one.moment)
        new = {one.moment for one in own}
        assert len(new) == len(own), "two in one slot"
        assert not new & {post.moment for post in outlet.posts}, "a slot that was taken"
        moments = sorted([*new, *(post.moment for post in outlet.posts)])
        zone = zone_named(queue.timezone)
        days: dict[date, int] = {}
        for placement in own:
            moment = placement.moment
            assert start <= moment < end
            assert outlet.key in by_key[placement.candidate].outlets
            assert_slot_of(queue, moment, zone)
            assert not any(within(moment, one, zone) for one in queue.blackouts), "in a blackout"
            day = moment.astimezone(zone).date()
            days[day] = days.get(day, 0) + 1
        stood = [post.moment.astimezone(zone).date() for post in outlet.posts]
        for one, other in pairwise(moments):
            if outlet.gap is not None and {one, other} & new:
                assert other - one >= outlet.gap, "nearer than the gap"
        assert outlet.cap_per_24_hours is None or not breaks_a_cap(moments, new, outlet.cap_per_24_hours), (
            "over the cap"
        )
        # What stood there counts, wherever it stands; a day that had too much already gets nothing more.
        assert a_day is None or all(count + stood.count(day) <= a_day for day, count in days.items())
        told = sorted(
            [
                *outlet.posts,
                *(PlannerPost(one.moment, one.candidate, by_key[one.candidate].traits) for one in own),
            ]
        )
        for one, other in pairwise(told):
            if {one.moment, other.moment} & new and one.traits.story:
                assert one.traits.story != other.traits.story, "one story twice in a row"
    assert fill(reversed(pool), [outlet for outlet, _ in filled], max_per_calendar_day=a_day) == made


def assert_slot_of(queue, moment, zone):
    """The clocks of its zone show a time of its week; or it was moved on over the hour that they skip."""
    shown = moment.astimezone(zone).replace(tzinfo=None, fold=0)
    times = {(slot["weekday"], slot["time"]) for slot in queue.slots}
    if (shown.weekday(), shown.strftime("%H:%M")) in times:
        return
    assert queue.on_gap == "shift"
    skipped = [
        datetime.combine(shown.date(), time.fromisoformat(at))
        for weekday, at in times
        if weekday == shown.weekday()
    ]
    assert any(
        is_skipped(one, zone) and one.replace(tzinfo=zone).astimezone(UTC) == moment for one in skipped
    )


def within(moment, blackout, zone):
    """By what the clocks show; in an hour that comes twice both are closed."""
    shown = moment.astimezone(zone).replace(tzinfo=None, fold=0)
    return datetime.fromisoformat(blackout["from"]) <= shown < datetime.fromisoformat(blackout["until"])
