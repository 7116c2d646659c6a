"""A week planned: proposed without a write, scheduled as it was shown, refused line by line, taken back whole."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from accounts.models import AuditEntry
from config.core.errors import Conflict, Invalid
from config.core.ids import encode, uuid7
from pipeline import limits, publish
from pipeline.models import GeneratedItem, Outlet, Publication, PublishQueue, WeekPlan
from pipeline.review import decisions
from pipeline.schedule import planning, queues
from tests.pipeline.steps import NOON, make_items, make_stage, promise, reread, to

# NOON is Monday, 1 March 2027, 12:00 UTC. The default queue has weekdays at 9, 12 and 17.


@pytest.fixture(autouse=True)
def no_end_of_credits(workspace):
    from accounts import workspaces

    workspaces.lift_limits(workspace, "operator")


def items(workspace, count, **changes):
    return [
        make_items(
            workspace,
            title=f"News {n}",
            body=f"News number {n} of the day. " * 6,
            url=f"https://n.example/{n}",
            **changes,
        )[0]
        for n in range(count)
    ]


def propose(workspace, *, now=NOON, **asked):
    return planning.propose(workspace, planning.PlanRequest(now, **asked), test=False, now=now)


def commit(workspace, found, *, now=NOON, by="alice"):
    entries = [one.entry if hasattr(one, "entry") else one for one in found]
    return planning.commit(workspace, entries, test=False, by=by, now=now)


def everything():
    return [
        list(model.everywhere.order_by("pk").values())
        for model in (GeneratedItem, Publication, WeekPlan, AuditEntry)
    ]


def whens(found):
    return [one.slot.moment for one in found.entries]


def test_a_proposal_writes_nothing_and_fills_the_days_evenly(workspace):
    made = items(workspace, 4)
    before = everything()
    found = propose(workspace)
    assert everything() == before
    assert {one.item.pk for one in found.entries} == {one.pk for one in made}
    # Monday's noon is the moment itself; three more weekdays, each at nine.
    assert [moment.isoformat() for moment in whens(found)] == [
        "2027-03-01T12:00:00+00:00",
        "2027-03-02T09:00:00+00:00",
        "2027-03-03T09:00:00+00:00",
        "2027-03-04T09:00:00+00:00",
    ]
    assert found.left == ()
    assert found.free == 15 - 4


def test_the_statements_do_not_grow_with_what_is_scheduled(workspace, feed):
    ready = items(workspace, 6)

    def counted():
        with CaptureQueriesContext(connection) as seen:
            propose(workspace)
        return len(seen)

    first = counted()
    for number, item in enumerate(ready[:3]):
        promise(item, feed, publish_at=NOON + timedelta(hours=20 + number))
    # Three items fewer are looked at; what stands costs none.
    assert counted() <= first


def test_the_statements_do_not_grow_with_the_candidates_nor_the_outlets(workspace, feed):
    def counted(count):
        with CaptureQueriesContext(connection) as seen:
            found = propose(workspace)
        told = {one.item.pk for one in found.entries} | {one.item.pk for one in found.left}
        assert len(told) == count
        return len(seen)

    items(workspace, 1)
    few = counted(1)
    make_stage(workspace, name="Another")
    GeneratedItem.everywhere.update(
        outlets=[encode("out", one.pk) for one in Outlet.everywhere.filter(workspace=workspace)]
    )
    alone = counted(1)
    for number in range(1, 4):
        (item,) = make_items(
            workspace,
            title=f"News {number}",
            body=f"News number {number} of the day. " * 6,
            url=f"https://n.example/{number}",
        )
        GeneratedItem.everywhere.filter(pk=item.pk).update(
            outlets=[encode("out", one.pk) for one in Outlet.everywhere.filter(workspace=workspace)]
        )
    assert (alone, counted(4)) == (few, few)


def test_what_was_shown_is_scheduled(workspace, feed):
    items(workspace, 2)
    found = propose(workspace)
    done = commit(workspace, found.entries)
    assert done.refused == ()
    rows = list(Publication.everywhere.order_by("due_at"))
    assert [(row.status, row.item_id, row.outlet_id, row.due_at) for row in rows] == [
        ("scheduled", one.item.pk, feed.pk, one.slot.moment) for one in found.entries
    ]
    usual = PublishQueue.everywhere.get(is_default=True)
    assert {(row.queue_id, row.zone) for row in rows} == {(usual.pk, usual.timezone)}
    assert [row.local_time for row in rows] == [one.slot.clock.text for one in found.entries]
    assert {row.status for row in GeneratedItem.everywhere.all()} == {"scheduled"}
    assert [entry["publication"] for entry in done.plan.entries] == [encode("pub", row.pk) for row in rows]
    assert AuditEntry.everywhere.filter(action="plan.committed").count() == 1


def test_one_undo_takes_everything_back(workspace):
    made = items(workspace, 3)
    before = {
        row.pk: (row.status, row.approved_by, row.approved_revision) for row in GeneratedItem.everywhere.all()
    }
    done = commit(workspace, propose(workspace).entries)
    undone = planning.undo(done.plan, by="alice", now=NOON)
    assert (len(undone.taken_back), undone.kept) == (3, ())
    assert {row.status for row in Publication.everywhere.all()} == {"cancelled"}
    after = {
        row.pk: (row.status, row.approved_by, row.approved_revision) for row in GeneratedItem.everywhere.all()
    }
    assert after == before
    assert len(propose(workspace).entries) == len(made)
    with pytest.raises(Conflict):
        planning.undo(done.plan, by="alice", now=NOON)


def test_an_undo_keeps_what_a_person_had_approved_before(workspace):
    (item,) = items(workspace, 1)
    decisions.approve(item, by="bob", now=NOON - timedelta(hours=1))
    done = commit(workspace, propose(workspace).entries)
    planning.undo(done.plan, by="alice", now=NOON)
    assert (reread(item).status, reread(item).approved_by) == ("ready", "bob")


def test_an_undo_brings_back_the_variants_that_were_set_aside(workspace):
    pair = make_items(workspace, variants=2)
    found = propose(workspace)
    assert len(found.entries) == 1
    assert [one.code for one in found.left] == ["variant"]
    done = commit(workspace, found.entries)
    assert sorted(reread(one).status for one in pair) == ["rejected", "scheduled"]
    planning.undo(done.plan, by="alice", now=NOON)
    assert [reread(one).status for one in pair] == ["ready", "ready"]


def test_an_undo_leaves_what_was_changed_since(workspace, feed):
    ready = items(workspace, 4)
    done = commit(workspace, propose(workspace).entries)
    later = NOON + timedelta(days=20)
    publish.request(ready[0], to(feed, publish_at=later), by="bob")
    decisions.edit(reread(ready[1]), {"body": "Other words."}, by="bob", now=NOON)
    publish.cancel(reread(ready[2]), now=NOON)
    undone = planning.undo(done.plan, by="alice", now=NOON)
    told = {entry["item"]: why for entry, why in undone.kept}
    assert told == {
        encode("gen", ready[0].pk): "changed",
        encode("gen", ready[1].pk): "changed",
        encode("gen", ready[2].pk): "gone",
    }
    assert [entry["item"] for entry in undone.taken_back] == [encode("gen", ready[3].pk)]
    assert reread(ready[0]).publish_at == later


def test_each_line_that_changed_meanwhile_is_refused_by_itself(workspace, feed):
    ready = items(workspace, 5)
    found = propose(workspace)
    by_item = {one.item.pk: one for one in found.entries}
    decisions.edit(ready[0], {"body": "Other words."}, by="bob", now=NOON)
    decisions.reject(ready[1], reason="", by="bob", now=NOON)
    taken = by_item[ready[2].pk].slot.moment
    other = make_items(
        workspace,
        title="Breaking",
        body="The bridge was closed within the hour. " * 6,
        url="https://n.example/b",
    )[0]
    promise(other, feed, publish_at=taken)
    done = commit(workspace, found.entries)
    assert {one.entry.item_id: one.code for one in done.refused} == {
        ready[0].pk: "version_conflict",
        ready[1].pk: "version_conflict",
        ready[2].pk: "taken",
    }
    assert {row.item_id for row in done.scheduled} == {ready[3].pk, ready[4].pk}


def test_rules_that_were_made_meanwhile_hold(workspace, feed):
    items(workspace, 3)
    found = propose(workspace)
    Outlet.everywhere.filter(pk=feed.pk).update(per_day=1)
    usual = PublishQueue.everywhere.get(is_default=True)
    queues.change(
        usual,
        {"blackouts": [{"from": "2027-03-02T00:00", "until": "2027-03-03T00:00", "reason": "A holiday"}]},
        by="bob",
    )
    done = commit(workspace, found.entries)
    # Tuesday has no slots any more; Wednesday's is more than a day from Monday's.
    assert [one.code for one in done.refused] == ["no_such_slot"]
    assert len(done.scheduled) == 2


def test_where_nothing_stands_there_is_no_plan(workspace):
    (item,) = items(workspace, 1)
    found = propose(workspace)
    decisions.reject(item, reason="", by="bob", now=NOON)
    with pytest.raises(Conflict) as error:
        commit(workspace, found.entries)
    assert [(one.field, one.code) for one in error.value.detail] == [("entries[0]", "version_conflict")]
    assert WeekPlan.everywhere.count() == 0


def test_an_item_that_a_plan_names_twice_is_told(workspace, feed):
    items(workspace, 1)
    (one,) = propose(workspace).entries
    later = planning.PlanEntry(one.item.pk, one.item.version, feed.pk, NOON + timedelta(hours=5))
    done = commit(workspace, [one.entry, one.entry, later])
    assert [(row.item_id, row.due_at) for row in done.scheduled] == [(one.item.pk, one.slot.moment)]
    assert [(told.entry, told.code) for told in done.refused] == [
        (one.entry, "duplicate"),
        (later, "duplicate"),
    ]


def test_each_refused_line_is_named_by_its_place_where_it_was_given(workspace):
    (item,) = items(workspace, 1)
    (one,) = propose(workspace).entries
    decisions.reject(item, reason="", by="bob", now=NOON)
    with pytest.raises(Conflict) as error:
        commit(workspace, [one.entry, one.entry])
    assert [told.field for told in error.value.detail] == ["entries[0]", "entries[1]"]
    with pytest.raises(Conflict) as error:
        planning.commit(workspace, [one.entry], test=False, by="bob", now=NOON, is_proposed=True)
    assert [(told.field, told.code) for told in error.value.detail] == [(None, "version_conflict")]


def test_nobody_schedules_what_is_anothers(workspace, charlies, feed):
    items(workspace, 1)
    (one,) = propose(workspace).entries
    with pytest.raises(Conflict) as error:
        planning.commit(charlies, [one.entry], test=False, by="charlie", now=NOON)
    assert [one.code for one in error.value.detail] == ["not_found"]
    with pytest.raises(Conflict) as error:
        planning.commit(workspace, [one.entry], test=True, by="alice", now=NOON)
    assert [one.code for one in error.value.detail] == ["not_found"]
    assert propose(charlies).entries == ()


def test_too_many_or_no_entries(workspace):
    entry = planning.PlanEntry(uuid7(), 1, uuid7(), NOON)
    for entries in ([], [entry] * (limits.PLAN_ENTRIES + 1)):
        with pytest.raises(Invalid):
            commit(workspace, entries)


def test_what_is_left_out_says_why(workspace, stage):
    held, far, fine, unwanted = items(workspace, 4)
    GeneratedItem.everywhere.filter(pk=held.pk).update(held="source_changed")
    GeneratedItem.everywhere.filter(pk=far.pk).update(outlets=[])
    GeneratedItem.everywhere.filter(pk=unwanted.pk).update(outlets=[encode("out", uuid7())])
    found = propose(workspace)
    assert [one.item.pk for one in found.entries] == [fine.pk]
    assert {one.item.pk: one.code for one in found.left} == {
        held.pk: "held",
        far.pk: "no_outlet",
        unwanted.pk: "no_outlet",
    }
    assert all(one.message for one in found.left)


def test_a_workspace_that_asks_for_approvals_plans_only_what_is_approved(workspace):
    waiting, approved = items(workspace, 2)
    type(workspace).everywhere.filter(pk=workspace.pk).update(requires_approval=True)
    workspace.refresh_from_db()
    decisions.approve(reread(approved), by="bob", now=NOON)
    found = propose(workspace)
    assert [one.item.pk for one in found.entries] == [approved.pk]
    assert [(one.item.pk, one.code) for one in found.left] == [(waiting.pk, "approval_required")]


def test_a_paused_queue_gives_no_slots(workspace):
    items(workspace, 1)
    usual = PublishQueue.everywhere.get(is_default=True)
    queues.change(usual, {"is_paused": True}, by="bob")
    found = propose(workspace)
    assert (found.entries, found.free) == ((), 0)
    assert [one.code for one in found.left] == ["no_slot"]


def test_a_resting_outlet_gets_nothing_before_it_has_rested(workspace, feed):
    items(workspace, 1)
    Outlet.everywhere.filter(pk=feed.pk).update(rests_until=NOON + timedelta(days=1))
    assert [moment.day for moment in whens(propose(workspace))] == [2]
    assert whens(propose(workspace))[0] >= NOON + timedelta(days=1)


def test_an_unknown_outlet_is_named(workspace, charlies):
    theirs = Outlet.everywhere.filter(workspace=charlies).first()
    with pytest.raises(Invalid) as error:
        propose(workspace, outlets=[theirs.pk])
    assert error.value.detail[0].field == "outlets[0]"


def test_a_promise_in_a_blackout_goes_to_the_slot_after_it(workspace, feed):
    usual = PublishQueue.everywhere.get(is_default=True)
    queues.change(usual, {"blackouts": [{"from": "2027-03-01T00:00", "until": "2027-03-04T00:00"}]}, by="bob")
    (item,) = items(workspace, 1)
    row = promise(item, feed, is_queued=True)
    assert row.due_at.isoformat() == "2027-03-04T09:00:00+00:00"


@pytest.mark.parametrize(
    "blackout",
    [
        {"from": "soon", "until": "2027-03-04T00:00"},
        {"from": "2027-03-04T00:00", "until": "2027-03-04T00:00"},
    ],
)
def test_a_stretch_that_is_none_is_refused(workspace, blackout):
    usual = PublishQueue.everywhere.get(is_default=True)
    with pytest.raises(Invalid) as error:
        queues.change(usual, {"blackouts": [blackout]}, by="bob")
    assert error.value.detail[0].field == "blackouts"


def test_old_plans_are_forgotten(workspace):
    items(workspace, 1)
    done = commit(workspace, propose(workspace).entries)
    # Ids tell when they were made, by a clock that no test stops.
    made = datetime.fromtimestamp((done.plan.pk.int >> 80) / 1000, UTC)
    assert planning.forget(made + limits.PLANS_KEPT - timedelta(minutes=1)) == 0
    assert planning.forget(made + limits.PLANS_KEPT + timedelta(minutes=1)) == 1
    assert Publication.everywhere.filter(status="scheduled").count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_plans_at_once_never_share_a_slot(workspace, together):
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has one writer.")
    items(workspace, 3)
    stage = make_stage(workspace)
    del stage
    found = propose(workspace).entries
    results = together(*[lambda: commit(workspace, found)] * 2)
    rows = Publication.everywhere.filter(status="scheduled")
    assert sorted(type(one).__name__ for one in results) == ["Conflict", "PlanCommit"]
    assert rows.count() == 3
    assert len(set(rows.values_list("due_at", flat=True))) == 3


def test_a_plan_that_is_killed_in_the_middle_wrote_nothing(workspace, monkeypatch):
    items(workspace, 2)
    found = propose(workspace)
    real, calls = publish.request, []

    def dies(*arguments, **named):
        calls.append(1)
        if len(calls) == 2:
            raise SystemExit
        return real(*arguments, **named)

    monkeypatch.setattr(publish, "request", dies)
    with pytest.raises(SystemExit), transaction.atomic():
        commit(workspace, found.entries)
    assert Publication.everywhere.count() == 0
    assert WeekPlan.everywhere.count() == 0
