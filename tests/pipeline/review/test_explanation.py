"""Why it isn't published: everything in the way; and nothing if and only if the next look publishes it."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest

from accounts import workspaces
from accounts.models import Workspace
from config.core import task_runner
from config.core.errors import Conflict, Invalid, NotFound
from config.core.ids import encode
from pipeline import publish
from pipeline.models import GeneratedItem, Outlet, Publication, PublishQueue, SimulatedPost, Switch
from pipeline.platforms.simulated import Simulated
from pipeline.publish import blockers as standing
from pipeline.publish import send as sending
from pipeline.publish import workspace_hold
from pipeline.review import decisions, explanation
from pipeline.schedule import queues
from pipeline.switches import kill_switch
from tests.pipeline.steps import (
    MINUTE,
    NOON,
    OTHER_TEXT,
    make_items,
    make_stage,
    promise,
    push_raw,
    reread,
    send,
)

HOUR = 60 * MINUTE


def fresh(item):
    return GeneratedItem.everywhere.select_related("workspace", "raw_item").get(pk=item.pk)


def blockers(item, now=NOON):
    found = explanation.explain(fresh(item), now=now)
    return [*found.blockers, *(one for _, own in found.publications for one in own)]


def codes(item, now=NOON):
    return [one.code for one in blockers(item, now)]


def call(item, act, **body):
    return standing.ClearingCall(
        "POST", f"/generated/{encode('gen', item.pk)}/{act}", *([body] if body else [])
    )


def test_an_item_that_nobody_asked_for(workspace, ready):
    (one,) = blockers(ready)
    assert (one.code, one.since, one.clears.method, one.clears.path, one.clears.body) == (
        "not_requested",
        ready.ready_at,
        "POST",
        f"/generated/{encode('gen', ready.pk)}/publish",
        {},
    )


def test_an_item_that_cannot_be_asked_for(workspace, ready):
    decisions.reject(ready, reason="", by="alice", now=NOON)
    (one,) = blockers(ready)
    assert (one.code, one.clears) == ("not_publishable", call(ready, "restore"))


def test_an_approval_that_is_missing_or_stale(workspace, ready, stage):
    Workspace.everywhere.filter(pk=workspace.pk).update(requires_approval=True)
    first, _ = blockers(ready)
    assert (first.code, first.clears) == ("approval_required", call(ready, "approve"))
    Workspace.everywhere.filter(pk=workspace.pk).update(requires_approval=False)
    promise(ready, stage)
    decisions.edit(ready, {"body": "New words."}, by="alice", now=NOON)
    (one,) = blockers(ready)
    assert (one.code, one.since, one.clears) == ("approval_stale", NOON, call(ready, "approve"))
    decisions.approve(ready, by="alice", now=NOON)
    assert blockers(ready) == []


def test_a_source_that_has_changed(workspace, ready, stage, clock):
    promise(ready, stage)
    clock.shift(HOUR)
    push_raw(workspace, body=OTHER_TEXT)
    (one,) = blockers(ready, NOON + HOUR)
    assert (one.code, one.since) == ("source_changed", NOON + HOUR)


def test_everything_in_the_way_is_told_in_the_order_of_its_reach(workspace, ready, stage):
    promise(ready, stage)
    workspaces.delist(workspace, "operator")
    workspace_hold.hold_workspace(workspace, reason="A crisis.", by="alice")
    kill_switch.stop("publishing", reason="An outage.", actor="op")
    decisions.edit(ready, {"body": "New words."}, by="alice", now=NOON)
    queue = PublishQueue.everywhere.get(workspace=workspace)
    queues.change(queue, {"is_paused": True}, by="alice@example.test")
    Publication.everywhere.update(queue=queue, late_policy="hold", max_lateness_minutes=5)
    found = blockers(ready, NOON + HOUR)
    assert [(one.code, one.since) for one in found] == [
        ("workspace_hold", NOON),
        ("workspace_hold", NOON),
        ("publishing_stopped", NOON),
        ("approval_stale", NOON),
        ("queue_paused", NOON),
        ("too_late", NOON + 5 * MINUTE),
    ]
    assert (found[1].message, found[1].clears.method, found[1].clears.path) == (
        "All publishing of the workspace is on hold: A crisis.",
        "DELETE",
        "/hold",
    )


def test_time_that_has_not_come(workspace, ready, stage):
    row = promise(ready, stage, publish_at=NOON + HOUR)
    (one,) = blockers(ready)
    assert (one.code, one.until, one.clears.body) == (
        "not_due",
        NOON + HOUR,
        {"outlets": [encode("out", row.outlet_id)]},
    )
    assert codes(ready, NOON + HOUR) == []


def test_a_try_that_failed(workspace, ready, clock):
    row = send(promise(ready, make_stage(workspace, "429")))
    (one,) = blockers(ready)
    assert (one.code, one.message, one.until) == (
        "retry_wait",
        row.error["message"],
        NOON + timedelta(seconds=1),
    )


def test_an_end_that_a_person_has_to_look_at(workspace, ready):
    row = send(promise(ready, make_stage(workspace, "reject")))
    (one,) = blockers(ready)
    assert (one.code, one.clears.path) == ("failed", f"/publications/{encode('pub', row.pk)}/retry")


def test_an_outcome_that_nobody_knows(workspace, ready):
    row = send(promise(ready, make_stage(workspace, "error")))
    (one,) = blockers(ready)
    assert (one.code, one.since, one.clears.path) == (
        "outcome_unknown",
        NOON,
        f"/publications/{encode('pub', row.pk)}/reconcile",
    )


def test_a_call_under_way(workspace, ready, stage, monkeypatch):
    row = promise(ready, stage)
    monkeypatch.setattr(sending, "_commit", lambda *_: None)
    send(row)
    assert codes(ready) == ["in_flight"]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"status": "disabled"}, "outlet_disabled"),
        ({"deleted_at": NOON}, "outlet_deleted"),
        ({"rests_until": NOON + HOUR}, "outlet_rests"),
    ],
)
def test_an_outlet_that_takes_nothing(workspace, ready, stage, changes, code):
    promise(ready, stage)
    Outlet.everywhere.filter(pk=stage.pk).update(**changes)
    assert codes(ready) == [code]


def test_words_that_the_platform_refuses(workspace, ready, stage):
    promise(ready, stage)
    decisions.edit(ready, {"body": "x" * 5001}, by="alice", now=NOON)
    decisions.approve(ready, by="alice", now=NOON)
    assert codes(ready) == ["too_long"]


def test_what_is_out_everywhere_says_so(workspace, ready, stage, feed):
    send(promise(ready, stage))
    assert codes(ready) == ["already_published"]
    promise(ready, feed, publish_at=NOON + HOUR)
    assert codes(ready) == ["not_due"]


def test_the_next_look_is_told_where_nothing_else_stands_in_the_way(workspace, ready, stage):
    row = promise(ready, stage)
    workspaces.delist(workspace, "operator")
    send(row)
    workspaces.whitelist(workspace, "operator")
    (one,) = blockers(ready)
    assert (one.code, one.until) == ("next_look", NOON + publish.HELD_WAIT)


# --- Empty if and only if --------------------------------------------------------------------------------------------


def _hold(workspace, item, row, dice):
    workspace_hold.hold_workspace(workspace, reason="A crisis.", by="alice")


def _release(workspace, item, row, dice):
    workspace_hold.hold_workspace(workspace, reason="A crisis.", by="alice")
    send(row)
    workspace_hold.release_workspace(workspace, by="alice", now=NOON)


def _delist(workspace, item, row, dice):
    workspaces.delist(workspace, "operator")


def _stop(workspace, item, row, dice):
    kill_switch.stop("publishing", platform=dice.choice(["", "simulated", "feed"]), reason="Why.", actor="op")


def _edit(workspace, item, row, dice):
    decisions.edit(item, {"body": dice.choice(["New words.", "x" * 5001])}, by="alice", now=NOON)
    if dice.random() < 0.6:
        decisions.approve(item, by="alice", now=NOON)


def _change_outlet(workspace, item, row, dice):
    changes = dice.choice(
        [
            {"status": "disabled"},
            {"status": "needs_reconnect"},
            {"deleted_at": NOON},
            {"rests_until": NOON + HOUR},
            {"rests_until": NOON - HOUR},
            {"gap_minutes": 10},
            {"per_day": 1},
            {"per_day": 9},
        ]
    )
    Outlet.everywhere.filter(pk=row.outlet_id).update(**changes)


def _late(workspace, item, row, dice):
    Publication.everywhere.filter(pk=row.pk).update(
        late_policy=dice.choice(["hold", "next_slot", "publish"]),
        max_lateness_minutes=dice.choice([1, 600]),
        due_at=NOON - HOUR,
    )


def _later(workspace, item, row, dice):
    promise(item, row.outlet, publish_at=NOON + HOUR)


def _pause(workspace, item, row, dice):
    queue = PublishQueue.everywhere.get(workspace=workspace)
    Publication.everywhere.filter(pk=row.pk).update(queue=queue)
    queues.change(queue, {"is_paused": dice.random() < 0.5}, by="alice@example.test")


def _try(workspace, item, row, dice):
    Outlet.everywhere.filter(pk=row.outlet_id).update(
        config={"script": [dice.choice(["429", "reject", "error"])]}
    )
    send(row)


def _cancel(workspace, item, row, dice):
    if reread(row).status == "scheduled":
        publish.cancel(item, now=NOON)


def _another(workspace, item, row, dice):
    made = make_items(
        workspace, body="The other road is closed on the same day. " * 9, url="https://n.example/other"
    )[0]
    other = promise(made, row.outlet)
    if dice.random() < 0.5:
        send(other)


def _claim(workspace, item, row, dice):
    Publication.everywhere.filter(pk=row.pk).update(attempts=1, wake_at=NOON + MINUTE)


ACTS = (
    _hold, _release, _delist, _stop, _edit, _change_outlet, _late, _later, _pause, _try, _cancel, _another, _claim,
)  # fmt: skip


@pytest.mark.parametrize("seed", range(60))
def test_nothing_stands_in_the_way_if_and_only_if_the_next_look_publishes(workspace, ready, seed):
    dice = random.Random(seed)
    row = promise(ready, make_stage(workspace))
    for act in dice.sample(ACTS, dice.choice([0, 1, 1, 2, 2, 3])):
        try:
            act(workspace, fresh(ready), reread(row), dice)
        except (Invalid, publish.CannotPublish, Conflict):
            continue
    SimulatedPost.everywhere.filter(ref=encode("pub", row.pk)).delete()
    is_clear = explanation.explain(fresh(ready), now=NOON).is_empty
    told = codes(ready)
    task_runner.work_all_due("publish.send_publication")
    is_sent = SimulatedPost.everywhere.filter(ref=encode("pub", row.pk)).exists()
    assert (is_clear, told == []) == (is_sent, is_sent), told
    assert Switch.everywhere.count() <= 1


# --- The hold of a workspace -----------------------------------------------------------------------------------------


def test_a_hold_keeps_everything_back_and_letting_go_sends_it_at_once(
    workspace, charlies, ready, stage, woken
):
    row = promise(ready, stage)
    workspace_hold.hold_workspace(workspace, reason="A crisis.", by="alice")
    held = send(row)
    assert (held.status, held.wake_at, SimulatedPost.everywhere.count()) == (
        "scheduled",
        NOON + publish.HELD_WAIT,
        0,
    )
    assert workspace_hold.read_hold(charlies) is None
    woken.clear()
    workspace_hold.release_workspace(workspace, by="alice", now=NOON)
    assert (reread(row).wake_at, woken) == (NOON, [])
    assert send(row).status == "published"
    with pytest.raises(NotFound):
        workspace_hold.release_workspace(workspace, by="alice", now=NOON)


def test_a_hold_that_comes_while_it_is_prepared_stops_the_call(workspace, ready, stage, monkeypatch):
    row = promise(ready, stage)
    prepare = Simulated.prepare

    def meanwhile(self, *args, **kwargs):
        workspace_hold.hold_workspace(workspace, reason="A crisis.", by="alice")
        return prepare(self, *args, **kwargs)

    monkeypatch.setattr(Simulated, "prepare", meanwhile)
    assert (send(row).status, SimulatedPost.everywhere.count()) == ("scheduled", 0)


def test_a_hold_says_what_would_go_out_when(workspace, stage, feed):
    made = [
        make_items(
            workspace, body=f"News number {number} of the day. " * 6, url=f"https://n.example/{number}"
        )[0]
        for number in range(5)
    ]
    now_row = promise(made[0], stage)
    later = promise(made[1], stage, publish_at=NOON + 9 * HOUR)
    slotted = promise(made[2], stage, late_policy="next_slot", max_lateness_minutes=5)
    kept = promise(made[3], stage, late_policy="hold", max_lateness_minutes=5)
    stale = promise(made[4], stage)
    decisions.edit(made[4], {"body": "New words."}, by="alice", now=NOON)
    found, has_more = workspace_hold.coming_publications(workspace, test=False, now=NOON + HOUR)
    assert {one.publication.pk: one.what for one in found} == {
        now_row.pk: "publishes",
        slotted.pk: "next_slot",
        kept.pk: "held",
        stale.pk: "held",
        later.pk: "waits",
    }
    assert (found[-1].publication.pk, has_more) == (later.pk, False)


def test_a_hold_needs_its_reason(workspace):
    with pytest.raises(Invalid) as refused:
        workspace_hold.hold_workspace(workspace, reason="  ", by="alice")
    assert [(one.field, one.code) for one in refused.value.detail] == [("reason", "required")]
