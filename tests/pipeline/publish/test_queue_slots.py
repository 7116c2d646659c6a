"""Queues: slots of a week as moments, and each outlet's next free one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest
from django.db import connection

from accounts import workspaces
from accounts.models import AuditEntry
from config.core import states
from config.core.errors import Conflict, Invalid
from pipeline import publish
from pipeline.models import Outlet, Publication, PublishQueue
from pipeline.publish.timing import queue_slots, reschedule
from pipeline.schedule import queues
from pipeline.text.local_time import WallClock, is_skipped, moment_of, zone_named
from tests.pipeline.steps import MINUTE, NOON, accepted, make_items, promise, reread, send, to, told

# NOON is Monday, 1 March 2027, 12:00 UTC.


def at(*parts):
    return datetime(*parts, tzinfo=UTC)


def wall(text):
    """A time on some clock."""
    return datetime.fromisoformat(text)


def queue_of(zone, *slots, **rules):
    return PublishQueue(
        timezone=zone, slots=[{"weekday": weekday, "time": time} for weekday, time in slots], **rules
    )


def moments(queue, after, count):
    return [slot.moment for slot in islice(queue_slots.moments_of(queue, after=after), count)]


def items(workspace, count):
    return [
        make_items(
            workspace, body=f"News number {number} of the day. " * 6, url=f"https://n.example/{number}"
        )[0]
        for number in range(count)
    ]


# --- Clocks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("zone", "local", "is_gap", "shifted"),
    [
        ("Europe/Berlin", wall("2027-03-28T02:30"), True, at(2027, 3, 28, 1, 30)),
        ("America/New_York", wall("2027-03-14T02:30"), True, at(2027, 3, 14, 7, 30)),
        # The clocks move by half an hour only: 02:00 to 02:30.
        ("Australia/Lord_Howe", wall("2027-10-03T02:10"), True, at(2027, 10, 2, 15, 40)),
        ("Australia/Lord_Howe", wall("2027-10-03T02:30"), False, at(2027, 10, 2, 15, 30)),
        ("Asia/Kathmandu", wall("2027-03-28T02:30"), False, at(2027, 3, 27, 20, 45)),
    ],
)
def test_a_time_that_the_clocks_skip_moves_on_by_the_gap(zone, local, is_gap, shifted):
    assert is_skipped(local, zone_named(zone)) is is_gap
    assert moment_of(WallClock(local, zone)) == shifted
    # Which of two is meant says nothing of one that isn't there.
    assert moment_of(WallClock(local, zone, on_overlap="second")) == shifted


@pytest.mark.parametrize(
    ("zone", "local", "first", "second"),
    [
        ("Europe/Berlin", wall("2027-10-31T02:30"), at(2027, 10, 31, 0, 30), at(2027, 10, 31, 1, 30)),
        ("America/New_York", wall("2027-11-07T01:30"), at(2027, 11, 7, 5, 30), at(2027, 11, 7, 6, 30)),
        ("Australia/Lord_Howe", wall("2027-04-04T01:45"), at(2027, 4, 3, 14, 45), at(2027, 4, 3, 15, 15)),
        ("Asia/Kathmandu", wall("2027-10-31T02:30"), at(2027, 10, 30, 20, 45), at(2027, 10, 30, 20, 45)),
    ],
)
def test_a_time_that_comes_twice_is_the_one_that_is_meant(zone, local, first, second):
    assert [moment_of(WallClock(local, zone, on_overlap=which)) for which in ("first", "second")] == [
        first,
        second,
    ]


def test_slots_keep_their_time_of_day_over_a_change_of_the_clocks():
    queue = queue_of("Europe/Berlin", (6, "09:00"))
    assert moments(queue, at(2027, 3, 20), 3) == [
        at(2027, 3, 21, 8),
        at(2027, 3, 28, 7),
        at(2027, 4, 4, 7),
    ]


@pytest.mark.parametrize(("on_gap", "expected"), [("shift", [1, 2]), ("skip", [2])])
def test_a_slot_in_the_hour_that_is_skipped(on_gap, expected):
    queue = queue_of("Europe/Berlin", (6, "02:30"), (6, "04:00"), on_gap=on_gap)
    assert [moment.hour for moment in moments(queue, at(2027, 3, 28), len(expected))] == expected


def test_two_slots_that_become_one_moment_are_one():
    queue = queue_of("Europe/Berlin", (6, "02:30"), (6, "03:30"))
    assert moments(queue, at(2027, 3, 28), 2) == [at(2027, 3, 28, 1, 30), at(2027, 4, 4, 0, 30)]


@pytest.mark.parametrize(
    ("on_overlap", "expected"), [("first", at(2027, 10, 31, 0, 30)), ("second", at(2027, 10, 31, 1, 30))]
)
def test_a_slot_in_the_hour_that_comes_twice_is_taken_once(on_overlap, expected):
    queue = queue_of("Europe/Berlin", (6, "02:30"), on_overlap=on_overlap)
    assert moments(queue, at(2027, 10, 31), 2) == [expected, at(2027, 11, 7, 1, 30)]
    assert moments(queue, at(2027, 10, 31, 0, 30), 1) == [
        at(2027, 11, 7, 1, 30) if on_overlap == "first" else expected
    ]


def test_slots_end_where_scheduling_does_and_a_queue_without_any_has_none():
    assert list(queue_slots.moments_of(queue_of("UTC"), after=NOON)) == []
    found = list(queue_slots.moments_of(queue_of("UTC", (0, "09:00")), after=NOON))
    assert (found[0].moment, found[-1].moment) == (at(2027, 3, 8, 9), at(2028, 2, 28, 9))


# --- Taking slots ----------------------------------------------------------------------------------------------------


def test_a_fresh_workspace_has_a_queue_in_its_own_zone(charlies):
    queue = PublishQueue.everywhere.get(workspace=charlies)
    assert (queue.name, queue.timezone, queue.is_default, queue.slots) == (
        "Weekdays",
        charlies.timezone,
        True,
        [{"weekday": day, "time": at} for day in range(5) for at in ("09:00", "12:00", "17:00")],
    )


def test_each_item_takes_the_next_free_slot_of_its_outlet(workspace, stage, feed):
    one, two, three = items(workspace, 3)
    first = promise(one, stage, is_queued=True)
    second = promise(two, stage, is_queued=True)
    elsewhere = promise(three, feed, is_queued=True)
    assert [row.due_at for row in (first, second, elsewhere)] == [
        at(2027, 3, 1, 17),
        at(2027, 3, 2, 9),
        at(2027, 3, 1, 17),
    ]
    assert (first.local_time, first.zone, first.queue.is_default) == ("2027-03-01T17:00:00", "UTC", True)


def test_asking_again_keeps_the_slot_and_what_is_cancelled_frees_it(workspace, stage):
    one, two = items(workspace, 2)
    first = promise(one, stage, is_queued=True)
    assert promise(one, stage, is_queued=True).due_at == first.due_at
    publish.cancel(one, now=NOON)
    assert promise(two, stage, is_queued=True).due_at == first.due_at


def test_a_moment_that_somebody_named_takes_the_slot_too(workspace, stage):
    one, two = items(workspace, 2)
    promise(one, stage, publish_at=at(2027, 3, 1, 17))
    assert promise(two, stage, is_queued=True).due_at == at(2027, 3, 2, 9)


def test_a_dry_run_names_the_slot_and_takes_none(workspace, ready, stage):
    wish = to(stage, is_queued=True)
    assert [one.due_at for one in publish.dry_run(ready, wish, now=NOON)] == [at(2027, 3, 1, 17)]
    assert promise(ready, stage, is_queued=True).due_at == at(2027, 3, 1, 17)


def test_an_outlet_uses_its_own_queue(workspace, ready, stage):
    own = queues.create(
        workspace,
        {
            "name": "Nights",
            "timezone": "Asia/Kathmandu",
            "slots": [{"weekday": 2, "time": "00:15"}],
            "outlets": [stage.pk],
        },
        by="alice@example.test",
    )
    row = promise(ready, stage, is_queued=True)
    assert (row.due_at, row.queue, row.zone) == (at(2027, 3, 2, 18, 30), own, "Asia/Kathmandu")
    queues.delete(own, by="alice@example.test")
    assert (reread(stage).queue, reread(row).queue, reread(row).due_at) == (None, None, row.due_at)


def test_a_queue_without_a_slot_or_that_is_paused_refuses(workspace, ready, stage):
    queue = PublishQueue.everywhere.get(workspace=workspace)
    for changes, code in (
        ({"is_paused": True}, "queue_paused"),
        ({"is_paused": False, "slots": []}, "no_slot"),
    ):
        queues.change(queue, changes, by="alice@example.test")
        with pytest.raises(Conflict) as refused:
            promise(ready, stage, is_queued=True)
        assert [(one.field, one.code) for one in refused.value.detail] == [("queue", code)]
    assert Publication.everywhere.count() == 0


def test_what_a_paused_queue_promised_waits_until_it_goes_on(workspace, ready, stage, clock):
    row = promise(ready, stage, is_queued=True)
    queue = queues.change(row.queue, {"is_paused": True}, by="alice@example.test")
    clock.move_to(row.due_at)
    assert (send(row).status, reread(row).wake_at) == ("scheduled", row.due_at + publish.HELD_WAIT)
    queues.change(queue, {"is_paused": False}, by="alice@example.test")
    assert reread(row).wake_at == row.due_at
    assert send(row).status == "published"


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"name": " "}, "name"),
        ({"timezone": "Europe/Bonn"}, "timezone"),
        ({"slots": [{"weekday": 7, "time": "09:00"}]}, "slots"),
        ({"slots": [{"weekday": 0, "time": "24:00"}]}, "slots"),
        ({"on_gap": "reject"}, "on_gap"),
        ({"on_overlap": "third"}, "on_overlap"),
    ],
)
def test_what_makes_no_queue_is_refused(workspace, values, field):
    with pytest.raises(Invalid) as refused:
        queues.change(PublishQueue.everywhere.get(workspace=workspace), values, by="alice@example.test")
    assert [one.field for one in refused.value.detail] == [field]


def test_slots_are_kept_once_and_in_order_and_outlets_of_others_are_left_out(workspace, charlies, stage):
    his = Outlet.everywhere.get(workspace=charlies, platform="simulated")
    slots = [
        {"weekday": 1, "time": "09:00"},
        {"weekday": 0, "time": "10:00"},
        {"weekday": 1, "time": "09:00"},
    ]
    made = queues.create(
        workspace,
        {"name": "A", "timezone": "UTC", "slots": slots, "outlets": [his.pk, stage.pk]},
        by="alice@example.test",
    )
    assert made.slots == [{"weekday": 0, "time": "10:00"}, {"weekday": 1, "time": "09:00"}]
    assert (reread(stage).queue, reread(his).queue) == (made, None)


def test_two_that_change_a_queue_do_not_write_over_each_other(workspace):
    queue = PublishQueue.everywhere.get(workspace=workspace)
    read = queue.version
    queues.change(queue, {"name": "Mornings"}, by="alice@example.test", expected_version=read)
    with pytest.raises(states.Overtaken) as refused:
        queues.change(queue, {"name": "Nights"}, by="bob@example.test", expected_version=read)

    assert refused.value.code == "version_conflict"
    assert reread(queue).name == "Mornings"
    (entry,) = AuditEntry.everywhere.filter(action__startswith="queue.")
    assert (entry.action, entry.actor, entry.details["changed"]) == (
        "queue.changed",
        "alice@example.test",
        ["name"],
    )


def test_the_audit_log_has_who_made_and_deleted_a_queue(workspace):
    slots = [{"weekday": 0, "time": "10:00"}]
    made = queues.create(workspace, {"name": "A", "timezone": "UTC", "slots": slots}, by="alice@example.test")
    queues.delete(made, by="bob@example.test")

    entries = AuditEntry.everywhere.filter(workspace=workspace, action__startswith="queue.").order_by("id")
    assert [(one.action, one.actor, one.details.get("slots")) for one in entries] == [
        ("queue.created", "alice@example.test", None),
        ("queue.deleted", "bob@example.test", slots),
    ]


def test_the_default_queue_stays(workspace):
    with pytest.raises(Conflict) as refused:
        queues.delete(PublishQueue.everywhere.get(workspace=workspace), by="alice@example.test")
    assert [one.code for one in refused.value.detail] == ["default_queue"]


def test_a_workspace_of_the_release_before_gets_its_queue_when_it_is_asked_for(workspace, ready, stage):
    PublishQueue.everywhere.all().delete()
    assert promise(ready, stage, is_queued=True).queue == PublishQueue.everywhere.get(is_default=True)


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite has one writer at a time anyway")
def test_two_at_once_never_take_the_same_slot(workspace, stage, together):
    made = items(workspace, 4)
    found = together(*(lambda item=item: promise(item, stage, is_queued=True).due_at for item in made))
    assert sorted(found) == [at(2027, 3, 1, 17), *(at(2027, 3, 2, hour) for hour in (9, 12, 17))]
    assert connection.vendor == "postgresql"


# --- Late ------------------------------------------------------------------------------------------------------------


def test_what_is_too_late_goes_to_the_next_slot_and_says_so(workspace, ready, stage, clock):
    row = promise(ready, stage, late_policy="next_slot", max_lateness_minutes=30)
    workspaces.delist(workspace, "operator")
    clock.shift(31 * MINUTE)
    assert send(row).due_at == NOON
    workspaces.whitelist(workspace, "operator")
    moved = send(row)
    slot = at(2027, 3, 1, 17)
    assert (moved.status, moved.due_at, moved.wake_at, moved.attempts, moved.overdue_told_at) == (
        "scheduled",
        slot,
        slot,
        0,
        None,
    )
    assert moved.waits_for == {
        "code": "moved_to_slot",
        "message": "It was 31 minutes late, more than its late policy allows. It moves to the next free slot.",
        "until": "2027-03-01T17:00:00.000Z",
    }
    assert reread(ready).publish_at == slot
    assert len(told(workspace, "published.overdue")) == 1
    clock.move_to(slot)
    assert (send(row).status, len(accepted(workspace)), reread(row).waits_for) == ("published", 1, None)


def test_what_is_not_too_late_is_published_late(workspace, ready, stage, clock):
    row = promise(ready, stage, late_policy="next_slot", max_lateness_minutes=30)
    clock.shift(30 * MINUTE)
    assert send(row).status == "published"


def test_without_a_slot_what_is_too_late_waits(workspace, ready, stage, clock):
    row = promise(ready, stage, late_policy="next_slot", max_lateness_minutes=30)
    PublishQueue.everywhere.update(slots=[])
    clock.shift(31 * MINUTE)
    found = send(row)
    assert (found.status, found.wake_at, found.due_at) == (
        "scheduled",
        NOON + 31 * MINUTE + publish.HELD_WAIT,
        NOON,
    )


# --- Rules of zones change -------------------------------------------------------------------------------------------


def test_a_time_on_a_clock_follows_the_rules_of_its_zone(workspace, ready, stage, feed, monkeypatch):
    clock = WallClock(wall("2027-07-01T09:00"), "Europe/Berlin")
    row = promise(ready, stage, feed, publish_at=moment_of(clock), clock=clock)
    other = promise(
        make_items(workspace, body="The other road is closed for a week. " * 9, url="https://n.example/x")[0],
        stage,
        publish_at=row.due_at,
    )
    assert (row.due_at, row.local_time, row.zone) == (
        at(2027, 7, 1, 7),
        "2027-07-01T09:00:00",
        "Europe/Berlin",
    )
    assert reschedule.apply_zone_changes(now=NOON) == 0
    # Berlin gives up its summer time.
    monkeypatch.setattr(
        reschedule, "moment_of", lambda found: moment_of(WallClock(found.local_time, "Africa/Lagos"))
    )
    assert reschedule.apply_zone_changes(now=NOON) == 2
    fresh = reread(row)
    assert (fresh.due_at, fresh.wake_at, fresh.lease_token, fresh.version) == (
        at(2027, 7, 1, 8),
        at(2027, 7, 1, 8),
        row.lease_token + 1,
        row.version + 1,
    )
    assert (reread(ready).publish_at, reread(other).due_at) == (at(2027, 7, 1, 8), at(2027, 7, 1, 7))
    assert reschedule.apply_zone_changes(now=NOON) == 0


def test_a_zone_that_is_gone_leaves_the_promise(workspace, ready, stage):
    clock = WallClock(wall("2027-07-01T09:00"), "Europe/Berlin")
    row = promise(ready, stage, publish_at=moment_of(clock), clock=clock)
    Publication.everywhere.filter(pk=row.pk).update(zone="Europe/Bonn")
    assert (reschedule.apply_zone_changes(now=NOON), reread(row).due_at) == (0, at(2027, 7, 1, 7))


def test_a_moment_that_was_named_forgets_the_clock(workspace, ready, stage):
    clock = WallClock(wall("2027-07-01T09:00"), "Europe/Berlin")
    promise(ready, stage, publish_at=moment_of(clock), clock=clock)
    row = promise(ready, stage, publish_at=NOON + timedelta(days=1))
    assert (row.local_time, row.zone, row.on_gap, row.on_overlap, row.queue) == ("", "", "", "", None)


@pytest.mark.parametrize(
    "blackout",
    [
        {"from": "2027-12-24T00:00", "until": "9999-12-31T23:59"},
        {"from": "2027-12-24T00:00", "until": "2101-01-01T00:01"},
        {"from": "0001-01-01T00:00", "until": "2027-12-24T00:00"},
    ],
)
def test_a_stretch_without_slots_lies_in_this_century(workspace, blackout):
    usual = PublishQueue.everywhere.get(workspace=workspace, is_default=True)
    with pytest.raises(Invalid) as error:
        queues.change(usual, {"timezone": "America/New_York", "blackouts": [blackout]}, by="bob")
    assert [one.field for one in error.value.detail] == ["blackouts"]
    queues.change(usual, {"blackouts": [{"from": "2000-01-01T00:00", "until": "2101-01-01T00:00"}]}, by="bob")


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kathmandu", "UTC"])
def test_a_stretch_to_the_end_of_the_calendar_that_is_there_already_closes(zone):
    queue = queue_of(zone, (0, "09:00"))
    queue.blackouts = [{"from": "2027-03-09T00:00", "until": "9999-12-31T23:59", "reason": ""}]
    assert [moment.day for moment in moments(queue, at(2027, 3, 2), 9)] == [8]
    queue.blackouts = [{"from": "0001-01-01T00:00", "until": "2027-03-09T00:00", "reason": ""}]
    assert [moment.day for moment in moments(queue, NOON, 1)] == [15]


def test_a_queue_whose_zone_was_dropped_has_no_free_slot(workspace, feed):
    PublishQueue.everywhere.filter(workspace=workspace).update(timezone="Europe/Atlantis")
    (item,) = items(workspace, 1)
    with pytest.raises(Conflict) as error:
        promise(item, feed, is_queued=True)
    assert error.value.detail[0].code == "no_slot"
