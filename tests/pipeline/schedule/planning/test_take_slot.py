"""One item put into a slot: the slot becomes a promise, rules refuse it in words, and two at once don't share one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from accounts import workspaces
from config.core.errors import AppError, Conflict, Invalid
from config.core.ids import encode, uuid7
from config.core.states import Overtaken
from pipeline import limits, publish
from pipeline.models import GeneratedItem, Outlet, Publication, PublishQueue
from pipeline.review import decisions
from pipeline.review import undo as undoing
from pipeline.schedule import planning, queues
from tests.pipeline.schedule.planning.test_planning import items
from tests.pipeline.steps import NOON, make_stage, promise, reread

# NOON is Monday, 1 March 2027, 12:00 UTC. The default queue has weekdays at 9, 12 and 17.
SLOT = datetime(2027, 3, 2, 9, tzinfo=UTC)
TUESDAY = (datetime(2027, 3, 2, tzinfo=UTC), datetime(2027, 3, 3, tzinfo=UTC))


@pytest.fixture(autouse=True)
def no_end_of_credits(workspace):
    workspaces.lift_limits(workspace, "operator")


def take(item, outlet, at=SLOT, *, now=NOON, **changes):
    given = {"by": "alice", "now": now, "expected_version": item.version, **changes}
    return planning.take_slot(item, outlet.pk, at, **given)


def take_day(item, *outlets, between=TUESDAY, now=NOON):
    keys = [one.pk for one in outlets]
    return planning.take_day(item, keys, between, by="alice", now=now, expected_version=item.version)


def scheduled():
    rows = Publication.everywhere.scheduled().order_by("due_at", "id")
    return [(row.outlet_id, row.due_at) for row in rows]


def refusal(call, *arguments, **named):
    with pytest.raises(Conflict) as refused:
        call(*arguments, **named)
    (detail,) = refused.value.detail
    return detail.code, detail.message


def test_a_slot_becomes_a_promise_of_its_queue_and_is_taken_back(workspace, feed):
    (item,) = items(workspace, 1)
    done = take(item, feed)
    row = Publication.everywhere.get()
    assert (row.status, row.outlet_id, row.due_at, row.queue.is_default, row.local_time) == (
        "scheduled",
        feed.pk,
        SLOT,
        True,
        "2027-03-02T09:00:00",
    )
    assert (reread(item).status, reread(item).approved_by) == ("scheduled", "alice")
    undoing.undo(done.item, done.former, by="alice", now=NOON)
    assert (scheduled(), reread(item).status, reread(item).approved_by) == ([], "ready", "")


def test_a_moment_that_is_no_slot_is_a_time_of_its_own(workspace, feed):
    (item,) = items(workspace, 1)
    take(item, feed, SLOT + timedelta(minutes=7))
    row = Publication.everywhere.get()
    assert (row.due_at, row.queue_id) == (SLOT + timedelta(minutes=7), None)


def test_a_day_gives_each_outlet_its_first_free_slot(workspace, feed):
    stage = make_stage(workspace)
    one, other = items(workspace, 2)
    take(one, feed)
    take_day(other, feed, stage)
    found = [(feed.pk, SLOT), (stage.pk, SLOT), (feed.pk, SLOT + timedelta(hours=3))]
    assert sorted(scheduled()) == sorted(found)


def test_of_today_only_what_is_to_come_is_given(workspace, feed):
    (item,) = items(workspace, 1)
    now = NOON + timedelta(minutes=1)
    take_day(item, feed, between=(NOON - timedelta(hours=12), NOON + timedelta(hours=12)), now=now)
    assert scheduled() == [(feed.pk, datetime(2027, 3, 1, 17, tzinfo=UTC))]


def test_refusals_say_why_and_write_nothing(workspace, feed):
    other, item = items(workspace, 2)
    promise(other, feed, publish_at=SLOT)
    Outlet.everywhere.filter(pk=feed.pk).update(gap_minutes=60)
    usual = PublishQueue.everywhere.get(workspace=workspace, is_default=True)
    queues.change(
        usual, {"blackouts": [{"from": "2027-03-04T00:00", "until": "2027-03-05T00:00"}]}, by="alice"
    )
    before = scheduled()
    feed.refresh_from_db()
    assert [
        refusal(take, item, feed),
        refusal(take, item, feed, SLOT + timedelta(minutes=30)),
        refusal(take, item, feed, datetime(2027, 3, 4, 9, tzinfo=UTC)),
        refusal(take, item, feed, NOON - timedelta(minutes=1)),
        refusal(take, item, feed, NOON + limits.PUBLISH_AHEAD + timedelta(days=1)),
    ] == [
        ("taken", "Another post is scheduled there at that time."),
        ("gap", "That is closer to another post than the outlet's gap allows."),
        ("closed", "The outlet is paused at that time, or its queue has no slots then."),
        ("past", "Choose a time from now on, and at most 366 days ahead."),
        ("too_far", "Choose a time from now on, and at most 366 days ahead."),
    ]
    Outlet.everywhere.filter(pk=feed.pk).update(gap_minutes=None, per_day=1)
    assert refusal(take, item, feed, SLOT + timedelta(hours=3)) == (
        "daily_cap",
        "That would be one more than the outlet takes in 24 hours.",
    )
    assert (scheduled(), reread(item).version) == (before, item.version)


def test_a_day_says_why_it_has_no_slot(workspace, feed):
    item, *others = items(workspace, 4)
    days = [TUESDAY, *((start + timedelta(days=5), end + timedelta(days=5)) for start, end in [TUESDAY])]
    for hour, other in zip((9, 12, 17), others, strict=True):
        promise(other, feed, publish_at=SLOT.replace(hour=hour))
    assert [refusal(take_day, item, feed, between=day) for day in days] == [
        ("no_slot", "Workspace feed has no free slot on that day.")
    ] * 2
    assert refusal(take_day, item, feed, between=(NOON - timedelta(days=2), NOON - timedelta(days=1)))[0] == (
        "past"
    )
    Outlet.everywhere.filter(pk=feed.pk).update(gap_minutes=25 * 60)
    wednesday = tuple(moment + timedelta(days=1) for moment in TUESDAY)
    assert refusal(take_day, item, feed, between=wednesday) == (
        "gap",
        "Workspace feed: That is closer to another post than the outlet's gap allows.",
    )
    usual = PublishQueue.everywhere.get(workspace=workspace, is_default=True)
    blackout = {"from": "2027-03-05T00:00", "until": "2027-03-06T00:00"}
    queues.change(usual, {"blackouts": [blackout]}, by="alice")
    friday = tuple(moment + timedelta(days=3) for moment in TUESDAY)
    assert refusal(take_day, item, feed, between=friday)[0] == "closed"
    queues.change(reread(usual), {"is_paused": True}, by="alice")
    assert refusal(take_day, item, feed, between=friday) == (
        "queue_paused",
        "The queue of Workspace feed is paused.",
    )


def test_one_outlet_without_a_slot_leaves_the_others_alone(workspace, feed):
    stage = make_stage(workspace)
    item, *others = items(workspace, 4)
    for hour, other in zip((9, 12, 17), others, strict=True):
        promise(other, feed, publish_at=SLOT.replace(hour=hour))
    before = scheduled()
    assert refusal(take_day, item, feed, stage)[0] == "no_slot"
    assert scheduled() == before


def test_the_rules_of_publishing_hold(workspace, feed):
    (item,) = items(workspace, 1)
    GeneratedItem.everywhere.filter(pk=item.pk).update(held="source_changed")
    assert refusal(take, item, feed)[0] == "held"
    GeneratedItem.everywhere.filter(pk=item.pk).update(held="")
    type(workspace).everywhere.filter(pk=workspace.pk).update(requires_approval=True)
    item = GeneratedItem.everywhere.select_related("workspace").get(pk=item.pk)
    assert refusal(take, item, feed)[0] == "approval_required"
    letters = Outlet.everywhere.create(workspace=workspace, platform="email_newsletter", name="Letter")
    decisions.approve(item, by="bob", now=NOON)
    item = GeneratedItem.everywhere.select_related("workspace").get(pk=item.pk)
    with pytest.raises(AppError) as refused:
        take(item, letters)
    assert [one.code for one in refused.value.detail] == ["bucket_not_taken"]
    Outlet.everywhere.filter(pk=feed.pk).update(status="disabled")
    with pytest.raises(AppError) as refused:
        take(item, feed)
    assert [one.code for one in refused.value.detail] == ["outlet_disabled"]
    assert scheduled() == []


def test_who_looked_at_an_older_version_is_told_before_anything_else(workspace, feed):
    (item,) = items(workspace, 1)
    take(item, feed)
    with pytest.raises(Overtaken):
        take(item, feed, SLOT + timedelta(hours=3))
    assert scheduled() == [(feed.pk, SLOT)]


def test_an_outlet_of_others_or_none_is_not_there(workspace, feed):
    (item,) = items(workspace, 1)
    Outlet.everywhere.filter(pk=feed.pk).update(deleted_at=NOON)
    for keys in ([feed.pk], [uuid7()], []):
        with pytest.raises(Invalid):
            planning.take_day(item, keys, TUESDAY, by="a", now=NOON, expected_version=item.version)
    assert scheduled() == []


def test_killed_in_the_middle_it_wrote_nothing(workspace, feed, monkeypatch):
    (item,) = items(workspace, 1)
    real = publish.request

    def dies(*arguments, **named):
        real(*arguments, **named)
        raise SystemExit

    monkeypatch.setattr(publish, "request", dies)
    with pytest.raises(SystemExit), transaction.atomic():
        take(item, feed)
    assert (scheduled(), reread(item).status, reread(item).version) == ([], "ready", item.version)


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite has one writer at a time anyway")
def test_two_at_once_do_not_share_a_slot(workspace, feed, together):
    one, other = items(workspace, 2)
    results = together(lambda: take(one, feed), lambda: take(other, feed))
    assert sorted(type(found).__name__ for found in results) == ["Conflict", "Decided"]
    assert scheduled() == [(feed.pk, SLOT)]
    assert sorted(reread(item).status for item in (one, other)) == ["ready", "scheduled"]
    # And two who put the same item into two slots.
    again = reread(one) if reread(one).status == "ready" else reread(other)
    again = GeneratedItem.everywhere.select_related("workspace").get(pk=again.pk)
    moments = [SLOT + timedelta(hours=3), SLOT + timedelta(hours=8)]
    results = together(*(lambda at=at: take(again, feed, at) for at in moments))
    assert sorted(type(found).__name__ for found in results) == ["Decided", "Overtaken"]
    assert len(scheduled()) == 2


def test_the_second_of_two_is_told_and_keeps_the_item(workspace, feed):
    one, other = items(workspace, 2)
    take(one, feed)
    assert refusal(take, other, feed)[0] == "taken"
    assert (reread(other).status, reread(other).version) == ("ready", other.version)
    take(other, feed, SLOT + timedelta(hours=3))
    assert scheduled() == [(feed.pk, SLOT), (feed.pk, SLOT + timedelta(hours=3))]


def test_the_next_slots_keep_the_rules_and_cost_a_few_statements(workspace, feed):
    (item,) = items(workspace, 1)
    promise(item, feed, publish_at=datetime(2027, 3, 1, 17, tzinfo=UTC))
    outlets = [feed]

    def found():
        with CaptureQueriesContext(connection) as seen:
            slots = planning.next_slots(workspace, outlets, now=NOON)
        return len(seen), [
            (one.outlet.name, [f"{at:%d %H}" for at in one.moments], one.is_paused) for one in slots
        ]

    few, slots = found()
    assert slots == [("Workspace feed", ["02 09", "02 12", "02 17"], False)]
    paused = PublishQueue.everywhere.create(
        workspace=workspace, name="Later", timezone="UTC", slots=[], is_paused=True
    )
    outlets += [make_stage(workspace, name=f"Stage {number}") for number in range(3)]
    Outlet.everywhere.filter(pk=outlets[1].pk).update(queue=paused)
    outlets[1].refresh_from_db()
    many, slots = found()
    assert (many, slots[1], len(slots), encode("out", outlets[1].pk)) == (
        few,
        ("Stage 0", [], True),
        4,
        planning.next_slots(workspace, outlets, now=NOON)[1].public_id,
    )
