"""An item that comes back: when, as what, once, and why it stops by itself."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounts import workspaces
from accounts.ledger import credits, reports
from accounts.models import AuditEntry, LedgerEntry, Notice, Workspace
from config.core.errors import Conflict, Invalid
from config.core.states import Overtaken
from pipeline import limits
from pipeline.holds.source_changes import withdraw
from pipeline.ingest import erase_raw_item
from pipeline.models import GeneratedItem, Recurrence, RecurrenceTurn, Source
from pipeline.review import decisions as review
from pipeline.schedule import recurring
from pipeline.schedule.recurring import crud
from pipeline.text.local_time import zone_named
from tests.pipeline.steps import NOON, claimed, make_items, promise, reread, run_generations, send

pytestmark = pytest.mark.usefixtures("anthropic_sdk")

BY = "alice@example.test"
DAY = timedelta(days=1)


@pytest.fixture
def published(rich, stage):
    """An item that went out at noon of the first of March."""
    item = make_items(rich)[0]
    send(promise(item, stage))
    return reread(item)


def begin(item, every_days=30, **more):
    return recurring.begin(item, every_days=every_days, by=BY, now=datetime.now(UTC), **more)


def change(row, **values):
    return recurring.change(row, values, by=BY, now=datetime.now(UTC))


def work(row, clock, at=None):
    clock.move_to(at or reread(row).due_at)
    recurring.run_recurrence(claimed(row))
    return reread(row)


def turns(row):
    return list(RecurrenceTurn.everywhere.filter(recurrence=row).order_by("id"))


def decisions(row):
    return [one.decision for one in turns(row)]


def finish(item):
    """What came back is made, and decided on."""
    run_generations(item.raw_item)
    if reread(item).status == "ready":
        review.reject(reread(item), reason="Not now", by=BY, now=datetime.now(UTC))
    return reread(item)


# --- When ------------------------------------------------------------------------------------------------------------


def test_it_comes_back_that_many_days_after_it_was_published(published, clock):
    clock.shift(3 * DAY)
    row = begin(published, 30)
    assert (row.anchor, row.due_at) == (date(2027, 3, 1), datetime(2027, 3, 31, 9, 0, tzinfo=UTC))
    # It looks daily whether its source is still there.
    assert row.wake_at == NOON + 4 * DAY
    assert AuditEntry.everywhere.get(action="recurrence.begun").actor == BY


def test_one_that_was_published_long_ago_comes_back_at_its_next_round(published, clock):
    clock.shift(100 * DAY)
    assert begin(published, 30).due_at == datetime(2027, 6, 29, 9, 0, tzinfo=UTC)


def test_one_that_waits_counts_from_its_promise_and_else_from_today(rich, stage):
    item, other = (
        make_items(rich, engines=("Short Post", "Short Post"))[0],
        make_items(rich, external_id="b")[0],
    )
    promise(item, stage, publish_at=NOON + 10 * DAY)
    assert begin(reread(item), 7).anchor == date(2027, 3, 11)
    assert begin(other, 7).anchor == date(2027, 3, 1)


@pytest.mark.parametrize(
    ("clock_time", "expected"),
    [
        # Berlin's clocks skip the hour from 02:00 on 28 March 2027, and have that of 31 October twice.
        ("09:00", ["2027-03-27T08:00", "2027-03-28T07:00", "2027-03-29T07:00"]),
        ("02:30", ["2027-03-27T01:30", "2027-03-28T01:30", "2027-03-29T00:30"]),
    ],
)
def test_days_are_those_of_the_clocks_in_spring(clock_time, expected):
    row = Recurrence(every_days=1, time=clock_time, anchor=date(2027, 3, 20))
    assert times(row, datetime(2027, 3, 26, 12, tzinfo=UTC), 3) == expected


def test_a_time_that_comes_twice_is_taken_once():
    row = Recurrence(every_days=1, time="02:30", anchor=date(2027, 10, 20))
    after = datetime(2027, 10, 30, 12, tzinfo=UTC)
    assert times(row, after, 2) == ["2027-10-31T00:30", "2027-11-01T01:30"]


def times(row, after, count, zone="Europe/Berlin"):
    found = []
    for _ in range(count):
        after = crud.next_moment(row, zone, after=after)
        found.append(after.strftime("%Y-%m-%dT%H:%M"))
    return found


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    every=st.integers(1, 366),
    minute=st.integers(0, 24 * 60 - 1),
    hours=st.integers(0, 3 * 366 * 24),
    zone=st.sampled_from(["Europe/Berlin", "America/New_York", "Pacific/Apia", "Australia/Lord_Howe", "UTC"]),
)
def test_the_next_time_is_after_now_whole_days_from_the_anchor_and_the_first_such(every, minute, hours, zone):
    anchor = date(2026, 11, 20)
    row = Recurrence(every_days=every, time=f"{minute // 60:02}:{minute % 60:02}", anchor=anchor)
    after = datetime(2026, 11, 20, tzinfo=UTC) + timedelta(hours=hours)
    found = crud.next_moment(row, zone, after=after)
    days = (found.astimezone(zone_named(zone)).date() - anchor).days
    assert found > after
    assert days % every == 0
    assert days >= every
    # A gap may move a time by less than a day; nothing lies between.
    assert found - after <= timedelta(days=every + 1) or days == every


def test_looks_in_between_make_nothing_and_keep_the_promise(published, clock):
    row = begin(published)
    row = work(row, clock, NOON + DAY)
    assert (row.due_at, row.wake_at, row.attempts) == (
        datetime(2027, 3, 31, 9, 0, tzinfo=UTC),
        NOON + 2 * DAY,
        0,
    )
    assert turns(row) == []


def test_its_times_follow_the_workspaces_zone(published, clock, rich):
    workspaces_zone(rich, "America/New_York")
    row = begin(published, 30, time="20:00")
    # The clocks there change on 14 March.
    assert row.due_at == datetime(2027, 4, 1, 0, 0, tzinfo=UTC)
    workspaces_zone(rich, "Asia/Tokyo")
    assert work(row, clock).due_at == datetime(2027, 4, 30, 11, 0, tzinfo=UTC)


def workspaces_zone(workspace, zone):
    Workspace.everywhere.filter(pk=workspace.pk).update(timezone=zone)


# --- What comes back -------------------------------------------------------------------------------------------------


def test_a_fresh_variant_waits_for_review_and_is_paid_once(published, rich, clock):
    row = work(begin(published), clock)
    (turn,) = turns(row)
    made = turn.item
    assert (turn.decision, turn.due_at) == ("made", datetime(2027, 3, 31, 9, 0, tzinfo=UTC))
    assert (made.status, made.parent_id, made.variant_index) == ("queued", published.pk, 1)
    assert made.variant_group != published.variant_group
    assert (row.due_at, row.version) == (datetime(2027, 4, 30, 9, 0, tzinfo=UTC), 1)
    run_generations(published.raw_item)
    made = reread(made)
    assert (made.status, made.approved_at, made.publish_at) == ("ready", None, None)
    assert made.body != published.body
    assert [one.kind for one in LedgerEntry.everywhere.filter(subject=made.generation_id).order_by("id")] == [
        "reserve",
        "settle",
    ]
    # The one before stays as it was.
    assert reread(published).status == "published"


def test_autopilot_sends_it_only_through_its_gates(published, clock):
    Source.everywhere.filter(pk=published.source_id).update(autopilot=True)
    row = work(begin(published), clock)
    run_generations(published.raw_item)
    made = turns(row)[0].item
    is_open = all(one["outcome"] == "passed" for one in made.checks if one["code"].startswith("gate_"))
    assert [one for one in made.checks if one["code"].startswith("gate_")]
    assert (made.status == "ready") is not is_open


def test_it_takes_another_angle_each_time_and_begins_anew_where_the_source_is_empty(published, clock):
    row, indexes, codes = begin(published, 1), [], []
    for _ in range(6):
        row = work(row, clock)
        made = finish(turns(row)[-1].item)
        indexes.append(made.variant_index)
        codes.append((made.error or {}).get("code"))
    first_empty = codes.index("no_more_variants")
    assert indexes[: first_empty + 2] == [*range(1, first_empty + 2), 0]
    assert {one.kind for one in LedgerEntry.everywhere.all()} >= {"settle", "release"}


def test_nothing_is_made_beside_one_that_still_waits(published, clock):
    row = work(begin(published), clock)
    run_generations(published.raw_item)
    row = work(row, clock)
    assert decisions(row) == ["made", "still_waiting"]
    assert "still in review" in turns(row)[1].message
    review.reject(turns(row)[0].item, reason="", by=BY, now=datetime.now(UTC))
    assert decisions(work(row, clock)) == ["made", "still_waiting", "made"]


def test_nothing_is_made_of_an_item_that_nobody_has_decided_on(rich, clock):
    row = work(begin(make_items(rich)[0]), clock)
    assert decisions(row) == ["still_waiting"]


def test_what_was_missed_is_made_up_for_once(published, clock):
    row = work(begin(published, 7), clock, NOON + 40 * DAY)
    assert decisions(row) == ["made"]
    assert row.due_at == datetime(2027, 4, 12, 9, 0, tzinfo=UTC)


def test_without_credits_it_says_so_and_comes_back_at_its_next_time(published, rich, clock):
    clock.shift(DAY)
    row = begin(published, 7)
    left = reports.usage(rich, NOON).available
    credits.adjust(rich, -left, "for the tests", "operator", now=NOON)
    row = work(row, clock)
    assert decisions(row) == ["no_credits"]
    assert GeneratedItem.everywhere.count() == 1
    assert row.due_at == datetime(2027, 3, 15, 9, 0, tzinfo=UTC)


def test_a_delisted_workspace_waits_and_keeps_its_time(published, rich, clock):
    row = begin(published)
    workspaces.delist(rich, "operator")
    promised = row.due_at
    row = work(row, clock)
    assert (row.due_at, row.wake_at, turns(row)) == (promised, promised + limits.LANE_DELISTED_WAIT, [])
    workspaces.whitelist(rich, "operator")
    assert decisions(work(row, clock, promised + DAY)) == ["made"]


# --- Once ------------------------------------------------------------------------------------------------------------


def test_the_same_time_is_worked_once_however_many_hands(published, clock):
    row = begin(published)
    clock.move_to(row.due_at)
    first, second = claimed(row), claimed(row)
    recurring.run_recurrence(first)
    assert turns(row) == []
    recurring.run_recurrence(second)
    again = claimed(row)
    Recurrence.everywhere.filter(pk=row.pk).update(due_at=row.due_at)
    again.due_at = row.due_at
    recurring.run_recurrence(again)
    assert decisions(row) == ["made"]


def test_a_hand_whose_process_is_behind_does_not_go_back_to_the_same_time(published, clock):
    row = begin(published)
    promised = row.due_at
    row = work(row, clock, promised - timedelta(seconds=2))
    assert (row.due_at, row.wake_at) == (promised, promised)


def test_what_a_person_does_takes_it_from_the_hand(published, clock):
    row = begin(published)
    clock.move_to(row.due_at)
    held = claimed(row)
    stopped = change(row, status="stopped")
    recurring.run_recurrence(held)
    assert (reread(row).status, reread(row).version, turns(row)) == ("stopped", stopped.version, [])


def test_one_that_breaks_goes_on_at_its_next_time(published, clock):
    row = begin(published)
    clock.move_to(row.due_at)
    recurring.give_up(claimed(row))
    row = reread(row)
    assert (row.due_at, row.attempts) == (datetime(2027, 4, 30, 9, 0, tzinfo=UTC), 0)


# --- It stops itself -------------------------------------------------------------------------------------------------


def erase_raw(item, stage):
    erase_raw_item.erase(item.raw_item, now=datetime.now(UTC))


def withdraw_raw(item, stage):
    withdraw(item.raw_item_id, now=datetime.now(UTC))


def lose_source(item, stage):
    Source.everywhere.filter(pk=item.source_id).update(status="gone")


def delete_source(item, stage):
    Source.everywhere.filter(pk=item.source_id).update(deleted_at=datetime.now(UTC))


def erase_item(item, stage):
    review.erase(item, now=datetime.now(UTC))


def reject_item(item, stage):
    GeneratedItem.everywhere.filter(pk=item.pk).update(status="rejected", rejection={"code": "by_person"})


def choose_another(item, stage):
    GeneratedItem.everywhere.filter(pk=item.pk).update(status="rejected", rejection={"code": "superseded"})


CAUSES = {
    "content_erased": erase_raw,
    "source_withdrawn": withdraw_raw,
    "source_gone": lose_source,
    "source_deleted": delete_source,
    "item_erased": erase_item,
    "item_rejected": reject_item,
    "item_superseded": choose_another,
}


@pytest.mark.parametrize("code", CAUSES)
def test_it_stops_itself_within_a_day_and_says_why(published, stage, clock, code):
    row = begin(published)
    CAUSES[code](reread(published), stage)
    row = work(row, clock, NOON + DAY)
    assert (row.status, row.due_at, row.wake_at) == ("stopped", None, None)
    assert (row.reason["code"], row.reason["by"]) == (code, "")
    notice = Notice.everywhere.get(kind="recurrence_stopped")
    assert notice.text == row.reason["message"]
    assert notice.title.startswith("Repeat of “")
    assert notice.title.endswith("” stopped")
    assert GeneratedItem.everywhere.count() == 1
    # And it isn't let go on before that is mended.
    with pytest.raises(Conflict) as refused:
        change(row, status="active")
    assert refused.value.detail[0].code == code


def test_a_source_that_rests_is_waited_for_and_given_up_at_the_third_time(published, clock):
    Source.everywhere.filter(pk=published.source_id).update(status="paused")
    row = begin(published, 7)
    for _ in range(2):
        row = work(row, clock)
    assert (row.status, decisions(row)) == ("active", ["source_paused"] * 2)
    row = work(row, clock)
    assert (row.status, row.reason["code"], row.wake_at) == ("stopped", "source_paused", None)
    assert "3 of its times" in row.reason["message"]


def test_a_source_that_goes_on_again_is_forgiven(published, clock):
    row = begin(published, 7)
    for status in ("paused", "paused", "active", "paused"):
        Source.everywhere.filter(pk=published.source_id).update(status=status)
        row = work(row, clock)
    assert (row.status, decisions(row)) == (
        "active",
        ["source_paused", "source_paused", "made", "source_paused"],
    )


def test_nobody_is_told_of_a_test_item(published, clock):
    row = begin(published)
    Recurrence.everywhere.filter(pk=row.pk).update(test=True)
    lose_source(published, None)
    work(row, clock, NOON + DAY)
    assert Notice.everywhere.filter(kind="recurrence_stopped").count() == 0


# --- What people do --------------------------------------------------------------------------------------------------


def test_it_is_stopped_and_goes_on_in_step(published, clock):
    row = begin(published)
    promised = row.due_at
    stopped = change(row, status="stopped")
    assert (stopped.status, stopped.due_at, stopped.reason["by"]) == ("stopped", None, BY)
    clock.shift(DAY)
    again = change(stopped, status="active")
    assert (again.status, again.due_at, again.reason, again.version) == ("active", promised, None, 3)


def test_its_days_are_changed_from_the_same_day(published, clock):
    row = change(begin(published), every_days=10, time="18:30")
    assert row.due_at == datetime(2027, 3, 11, 18, 30, tzinfo=UTC)


def test_saying_the_same_again_keeps_what_is_due(published, clock):
    row = begin(published, 7)
    clock.shift(20 * DAY)
    same = change(row, every_days=7, time="09:00", status="active")
    assert (same.due_at, same.version) == (row.due_at, 1)
    assert decisions(work(row, clock, NOON + 20 * DAY)) == ["made"]


def test_one_that_has_stopped_begins_anew(published, clock):
    row = begin(published)
    change(row, status="stopped")
    again = begin(published, 3)
    assert (again.pk, again.status, again.every_days, again.reason) == (row.pk, "active", 3, None)


def test_who_looked_at_an_older_version_is_refused(published):
    row = begin(published)
    change(row, every_days=5)
    with pytest.raises(Overtaken):
        recurring.change(row, {"every_days": 6}, now=NOON, expected_version=1)
    assert reread(row).every_days == 5


@pytest.mark.parametrize(
    ("values", "field"),
    [({"every_days": 0}, "every_days"), ({"every_days": 367}, "every_days"), ({"time": "9"}, "time")],
)
def test_what_makes_no_sense_is_refused(published, values, field):
    with pytest.raises(Invalid) as refused:
        begin(published, **values)
    assert refused.value.detail[0].field == field


def refusal(item):
    with pytest.raises(Conflict) as refused:
        begin(item)
    return refused.value.detail[0].code


def test_what_can_not_come_back_is_refused(published, rich, clock):
    row = begin(published)
    assert refusal(published) == "already_recurring"
    returned = turns(work(row, clock))[0].item
    assert refusal(returned) == "not_made_yet"
    run_generations(published.raw_item)
    assert refusal(reread(returned)) == "comes_back_already"
    digest = make_items(rich, external_id="digest")[0]
    GeneratedItem.everywhere.filter(pk=digest.pk).update(raw_item=None, raw_items=["0" * 32])
    assert refusal(reread(digest)) == "not_of_one_entry"


def test_a_workspace_has_so_many_at_most(published, rich, monkeypatch):
    monkeypatch.setattr(limits, "RECURRENCES_MOST", 1)
    other = make_items(rich, external_id="b")[0]
    row = begin(published)
    assert refusal(other) == "too_many"
    change(row, status="stopped")
    begin(other)
    with pytest.raises(Conflict):
        change(row, status="active")


def test_those_that_stopped_long_ago_are_forgotten(published, clock):
    row = work(begin(published), clock)
    change(row, status="stopped")
    now = datetime.now(UTC)
    assert recurring.forget(now + recurring.KEPT) == 0
    assert recurring.forget(now + recurring.KEPT + DAY) == 1
    assert (Recurrence.everywhere.count(), RecurrenceTurn.everywhere.count()) == (0, 0)
    # What it made stays.
    assert GeneratedItem.everywhere.count() == 2
