"""How fast an outlet posts: gaps, daily caps, rests, and the line of those that wait."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import F

from config.core.datetimes import format_utc
from pipeline import outlets
from pipeline.models import Outlet, Publication
from pipeline.platforms.base import Pace, Prepared
from pipeline.platforms.simulated import Simulated
from pipeline.plugins import TryLater
from pipeline.publish import steps as publish_steps
from pipeline.publish.timing import rate_caps
from tests.pipeline.steps import (
    MINUTE,
    NOON,
    accepted,
    claimed,
    make_items,
    make_stage,
    promise,
    push_raw,
    reread,
    send,
    told,
)

DAY = timedelta(days=1)


def paced(workspace, *script, **rules):
    outlet = make_stage(workspace, *script)
    Outlet.everywhere.filter(pk=outlet.pk).update(**rules)
    return reread(outlet)


def promises(workspace, outlet, count, *, at=NOON):
    """Of one moment, in the order of their ids."""
    rows = []
    for number in range(count):
        item = make_items(
            workspace, body=f"News number {number} of the day. " * 6, url=f"https://n.example/{number}"
        )[0]
        rows.append(promise(item, outlet, publish_at=at))
    return rows


def waits(row):
    kept = reread(row).waits_for
    return kept and (kept["code"], kept["until"])


def test_a_gap_keeps_two_posts_apart_and_says_so(workspace, clock):
    outlet = paced(workspace, gap_minutes=10)
    one, other = promises(workspace, outlet, 2)
    assert send(one).status == "published"
    row = send(other)
    assert (row.status, row.wake_at, row.due_at, row.attempts) == ("scheduled", NOON + 10 * MINUTE, NOON, 0)
    assert row.waits_for == {
        "code": "gap",
        "message": "Stage takes one post every 10 minutes. This one is published when its turn comes.",
        "until": format_utc(NOON + 10 * MINUTE),
    }
    assert row.version == other.version + 1
    clock.shift(10 * MINUTE - timedelta(seconds=1))
    assert send(other).status == "scheduled"
    clock.shift(timedelta(seconds=1))
    sent = send(other)
    assert (sent.status, sent.waits_for, len(accepted(workspace))) == ("published", None, 2)


def test_the_same_wait_is_said_once(workspace):
    outlet = paced(workspace, gap_minutes=10)
    one, other = promises(workspace, outlet, 2)
    send(one)
    first, second = send(other), send(other)
    assert (first.version, first.wake_at) == (second.version, second.wake_at)


def test_each_that_waits_has_a_turn_of_its_own_in_the_order_of_promises(workspace, clock):
    outlet = paced(workspace, gap_minutes=10)
    rows = promises(workspace, outlet, 4)
    # Whoever is looked at first, the turns are dealt by the promises.
    for row in reversed(rows):
        send(row)
    assert [waits(row) for row in rows] == [
        None,
        ("gap", format_utc(NOON + 10 * MINUTE)),
        ("gap", format_utc(NOON + 20 * MINUTE)),
        ("gap", format_utc(NOON + 30 * MINUTE)),
    ]
    for number in (1, 2, 3):
        clock.move_to(NOON + 10 * number * MINUTE)
        for row in reversed(rows):
            if reread(row).status == "scheduled":
                send(row)
        assert [reread(row).status for row in rows] == ["published"] * (number + 1) + ["scheduled"] * (
            3 - number
        )


def test_the_cap_counts_any_24_hours(workspace, clock):
    outlet = paced(workspace, per_day=2)
    one, two, three, four = promises(workspace, outlet, 4)
    send(one)
    clock.shift(60 * MINUTE)
    send(two)
    assert [waits(send(row)) for row in (three, four)] == [
        ("daily_cap", format_utc(NOON + DAY)),
        ("daily_cap", format_utc(NOON + DAY + 60 * MINUTE)),
    ]
    assert reread(three).waits_for["message"] == (
        "Stage takes 2 posts in 24 hours. This one is published when its turn comes."
    )
    clock.move_to(NOON + DAY)
    assert [send(row).status for row in (three, four)] == ["published", "scheduled"]
    clock.move_to(NOON + DAY + 60 * MINUTE)
    assert send(four).status == "published"


def test_a_changed_pace_is_asked_at_once(workspace, clock):
    """Whoever lifts a cap doesn't wait for a day until the posts of the old one have had their turns."""
    outlet = paced(workspace, per_day=2)
    rows = promises(workspace, outlet, 6)
    waiting = [send(row) for row in rows][2:]
    retried, polled = waiting.pop(), waiting.pop()
    Publication.everywhere.filter(pk=retried.pk).update(next_attempt_at=NOON + DAY)
    # What it waited for before is still said while its platform works on it.
    Publication.everywhere.filter(pk=polled.pk).update(step="poll")
    unchanged = {"name": outlet.name, "config": {}, "discloses_ai": True, "by": "alice"}
    clock.shift(MINUTE)
    outlets.change(outlet, **unchanged, per_day=2, gap_minutes=None, now=NOON + MINUTE)
    assert {reread(row).wake_at for row in waiting} == {NOON + 15 * MINUTE}
    outlets.change(outlet, **unchanged, per_day=3, gap_minutes=None, now=NOON + MINUTE)
    assert {reread(row).wake_at for row in waiting} == {NOON + MINUTE}
    assert [reread(row).wake_at for row in (retried, polled)] == [retried.wake_at, polled.wake_at]
    assert [send(row).status for row in waiting] == ["published", "scheduled"]
    assert waits(waiting[1]) == ("daily_cap", format_utc(NOON + DAY))


def test_what_was_taken_back_counts_and_what_failed_does_not(workspace):
    outlet = paced(workspace, "ok", per_day=1)
    one, two = promises(workspace, outlet, 2)
    send(one)
    Publication.everywhere.filter(pk=one.pk).update(status="removed")
    assert waits(send(two)) == ("daily_cap", format_utc(NOON + DAY))
    Publication.everywhere.filter(pk=one.pk).update(status="failed", published_at=None)
    assert send(two).status == "published"


def test_a_call_whose_outcome_is_open_counts(workspace, clock):
    outlet = paced(workspace, gap_minutes=10)
    one, two = promises(workspace, outlet, 2)
    Outlet.everywhere.filter(pk=outlet.pk).update(config={"script": ["error"]})
    assert send(one).status == "unknown"
    clock.shift(MINUTE)
    assert waits(send(two)) == ("gap", format_utc(NOON + 10 * MINUTE))


def test_the_tighter_of_the_platforms_and_the_workspaces_rules_holds(workspace, monkeypatch):
    monkeypatch.setattr(Simulated, "pace", Pace(per_day=5, gap=timedelta(minutes=3)))
    outlet = paced(workspace, per_day=9, gap_minutes=2)
    assert rate_caps.rules_of(outlet) == rate_caps.RateRules(5, timedelta(minutes=3))
    outlet.per_day, outlet.gap_minutes = 4, 7
    assert rate_caps.rules_of(outlet) == rate_caps.RateRules(4, timedelta(minutes=7))
    outlet.per_day = outlet.gap_minutes = None
    assert rate_caps.rules_of(outlet) == rate_caps.RateRules(5, timedelta(minutes=3))


def test_an_outlet_that_wants_rest_is_left_alone_by_everything(workspace, clock, monkeypatch):
    outlet = paced(workspace)
    rows = promises(workspace, outlet, 4)

    def busy(*_, **__):
        raise TryLater("Slow down.", code="rate_limited", after=30 * MINUTE, is_of_account=True)

    with monkeypatch.context() as patch:
        patch.setattr(Simulated, "commit", busy)
        first = send(rows[0])
    assert (first.status, first.next_attempt_at) == ("scheduled", NOON + 30 * MINUTE)
    assert (reread(outlet).rests_until, reread(outlet).version) == (NOON + 30 * MINUTE, outlet.version + 1)
    found = [waits(send(row)) for row in rows[1:]]
    assert found == [
        ("outlet_rests", format_utc(NOON + 30 * MINUTE + timedelta(seconds=seconds))) for seconds in (0, 1, 2)
    ]
    assert accepted(workspace) == []
    clock.move_to(NOON + 30 * MINUTE)
    assert [send(row).status for row in rows] == ["published"] * 4


def test_a_shorter_rest_does_not_end_a_longer_one(workspace, monkeypatch):
    outlet = paced(workspace, rests_until=NOON - MINUTE)
    row = promises(workspace, outlet, 1)[0]
    Outlet.everywhere.filter(pk=outlet.pk).update(rests_until=None)

    def busy(*_, **__):
        Outlet.everywhere.filter(pk=outlet.pk).update(rests_until=NOON + 60 * MINUTE)
        raise TryLater("Slow down.", after=MINUTE, is_of_account=True)

    monkeypatch.setattr(Simulated, "commit", busy)
    send(row)
    assert reread(outlet).rests_until == NOON + 60 * MINUTE


def test_who_is_held_or_too_late_keeps_nobody_waiting(workspace, clock):
    outlet = paced(workspace, gap_minutes=10)
    held = promise(make_items(workspace)[0], outlet)
    push_raw(workspace, body="Another text of this source altogether, and long enough to be one. " * 3)
    late, row = promises(workspace, outlet, 2, at=NOON)
    Publication.everywhere.filter(pk=late.pk).update(late_policy="hold", max_lateness_minutes=1)
    clock.shift(2 * MINUTE)
    assert [send(one).status for one in (held, late)] == ["scheduled", "scheduled"]
    assert send(row).status == "published"


def test_a_later_promise_does_not_wait_for_one_that_takes_long_to_prepare(workspace):
    outlet = paced(workspace, gap_minutes=10)
    slow, row = promises(workspace, outlet, 2)
    Publication.everywhere.filter(pk=slow.pk).update(step="poll")
    assert send(row).status == "published"
    # It comes to its call and finds the turn taken.
    assert waits(send(slow)) == ("gap", format_utc(NOON + 10 * MINUTE))


def test_a_turn_that_another_took_while_it_prepared_is_waited_for(workspace, monkeypatch):
    outlet = paced(workspace, gap_minutes=10)
    other, row = promises(workspace, outlet, 2)
    Publication.everywhere.filter(pk=other.pk).update(step="commit")

    def prepare(self, account, post, state, **_):
        assert send(other).status == "published"
        return Prepared({})

    monkeypatch.setattr(Simulated, "prepare", prepare)
    late = send(row)
    assert (late.status, late.wake_at, late.attempts) == ("scheduled", NOON + 10 * MINUTE, 0)
    assert waits(late) == ("gap", format_utc(NOON + 10 * MINUTE))
    assert len(accepted(workspace)) == 1


def test_a_wait_beyond_the_promise_is_told_once_with_its_reason(workspace, clock):
    outlet = paced(workspace, gap_minutes=60)
    one, other = promises(workspace, outlet, 2)
    send(one)
    assert send(other).wake_at == NOON + 15 * MINUTE
    clock.shift(15 * MINUTE)
    assert send(other).wake_at == NOON + 60 * MINUTE
    (event,) = told(workspace, "published.overdue")
    assert event["data"]["publication"]["waits_for"]["code"] == "gap"
    assert event["data"]["publication"]["overdue_seconds"] == 900
    clock.move_to(NOON + 60 * MINUTE)
    assert (send(other).status, len(told(workspace, "published.overdue"))) == ("published", 1)


def test_an_outlet_without_rules_asks_nothing(workspace, ready, stage, django_assert_num_queries):
    row = claimed(promise(ready, stage))
    with django_assert_num_queries(0):
        assert rate_caps.wait_of(row, stage, NOON) is None


@pytest.mark.parametrize("rules", [{"gap_minutes": 10}, {"per_day": 1}])
def test_a_post_that_ends_while_others_are_counted_is_counted(workspace, monkeypatch, rules):
    """What was under way as the count began, and is out as it ends, has been posted; and once."""
    outlet = paced(workspace, **rules)
    first, second = promises(workspace, outlet, 2)
    send(first)
    out = Publication.everywhere.filter(pk=first.pk)
    values = out.values("status", "published_at").get()
    out.update(status="publishing", published_at=None)
    asked = []

    def ends_meanwhile(execute, sql, params, many, context):
        answer = execute(sql, params, many, context)
        # Whichever of the two is looked at first: what is under way, or what is out.
        if ("publishing" in str(params) or 'published_at" >' in sql) and not asked:
            asked.append(sql)
            out.update(**values)
        return answer

    with connection.execute_wrapper(ends_meanwhile):
        wait = rate_caps.wait_of(claimed(second), outlet, NOON)
    assert asked
    assert wait is not None
    assert len(rate_caps._post_times(outlet, rate_caps.rules_of(outlet), NOON)) == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite has one writer at a time anyway")
@pytest.mark.parametrize("rules", [{"gap_minutes": 10}, {"per_day": 1}])
def test_of_two_hands_at_once_one_has_the_turn(workspace, together, monkeypatch, rules):
    outlet = paced(workspace, **rules)
    rows = [claimed(row) for row in promises(workspace, outlet, 2)]
    # Both have passed the first look: neither saw the other.
    Publication.everywhere.filter(outlet=outlet).update(step="commit", attempts=F("attempts"))
    found = together(*(lambda row=row: publish_steps.advance_publication(row) for row in rows))
    assert found == [None, None]
    assert sorted(reread(row).status for row in rows) == ["published", "scheduled"]
    assert len(accepted(workspace)) == 1
    assert connection.vendor == "postgresql"
