"""Why an item got no slot: each rule is named, with its number and its outlets."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace

import pytest

from pipeline import limits
from pipeline.schedule.planning import left_out
from pipeline.schedule.planning.fill_slots import PlanCandidate, PlannerOutlet, PlannerPost, Traits, fill
from tests.pipeline.schedule.planning.test_fill_slots import MONDAY, daily


def messages(pool, *outlets, a_day=None, is_full=False, is_paused=False, most=100):
    """By candidate why it was left out."""
    timelines = {
        outlet.key: SimpleNamespace(
            planner_outlet=outlet,
            outlet=SimpleNamespace(name=f"Outlet {outlet.key}"),
            queue=SimpleNamespace(is_paused=is_paused),
        )
        for outlet in outlets
    }
    made = fill(pool, outlets, max_per_calendar_day=a_day, max_placements=most)
    traits = {one.key: one.traits for one in pool}
    filled = left_out.filled_outlets(timelines, made, traits, max_per_calendar_day=a_day)
    return {
        key: left_out.message_of(
            [filled[name] for name in sorted(filled)],
            traits[key],
            max_per_calendar_day=a_day,
            is_full=is_full,
        )
        for key, _code in made.unplaced
    }


def pair(**traits):
    return [PlanCandidate(key, 0.5, Traits(**traits), frozenset({"a", "b"})) for key in ("x", "y")]


@pytest.mark.parametrize(
    ("days", "rules", "said"),
    [
        (1, {}, "every slot is taken."),
        (3, {"gap": timedelta(days=5)}, "its other slots are less than 120 hours from another post, the gap that it keeps."),
        (3, {"gap": timedelta(days=5, minutes=1)}, "its other slots are less than 7201 minutes from another post, the gap that it keeps."),
        (1, {"cap_per_24_hours": 1}, "every slot is taken."),
    ],
)  # fmt: skip
def test_the_rule_of_an_outlet_is_named(days, rules, said):
    assert messages(pair(), PlannerOutlet("a", daily(days, 9), **rules)) == {"y": f"Outlet a: {said}"}


def test_the_limit_of_24_hours_is_named_with_its_number():
    outlet = PlannerOutlet("a", daily(1, 9, 12, 17), cap_per_24_hours=1)
    assert messages(pair(), outlet) == {"y": "Outlet a: its limit of 1 post in 24 hours is reached."}


def test_the_posts_a_day_that_were_asked_for_are_named():
    outlet = PlannerOutlet("a", daily(1, 9, 12))
    assert messages(pair(), outlet, a_day=1) == {
        "y": "Outlet a: each day has 1 post already, as many as you asked for."
    }


def test_one_story_beside_itself_is_named():
    said = messages(pair(story="fire"), PlannerOutlet("a", daily(2, 9)))
    assert said == {"y": "Outlet a: every free slot is next to a post of the same story."}


@pytest.mark.parametrize(
    ("is_paused", "said"), [(True, "its queue is paused."), (False, "its queue has no slot on these days.")]
)
def test_an_outlet_without_slots_says_which_kind(is_paused, said):
    assert set(messages(pair(), PlannerOutlet("a", ()), is_paused=is_paused).values()) == {
        f"Outlet a: {said}"
    }


def test_an_outlet_that_rests_says_so():
    outlet = PlannerOutlet("a", daily(2, 9), closed=((MONDAY, MONDAY + timedelta(days=9)),))
    assert set(messages(pair(), outlet).values()) == {
        "Outlet a: it takes no posts at its free slots: they are blocked, or the platform has asked for a pause."
    }


def test_a_plan_that_is_full_says_so():
    said = messages(pair(), PlannerOutlet("a", daily(3, 9)), is_full=True, most=1)
    assert said == {
        "y": f"Outlet a: a plan has {limits.PLAN_ENTRIES} posts at most. Fill the free slots again once these are scheduled."
    }


def test_outlets_with_one_rule_share_a_sentence():
    posts = (PlannerPost(daily(1, 9)[0].moment),)
    taken = PlannerOutlet("a", daily(1, 9), posts=posts), PlannerOutlet("b", daily(1, 9), posts=posts)
    assert set(messages(pair(), *taken).values()) == {"Outlet a, Outlet b: every slot is taken."}
    said = set(messages(pair(), taken[0], PlannerOutlet("b", ())).values())
    assert said == {"Outlet a: every slot is taken. Outlet b: its queue has no slot on these days."}
