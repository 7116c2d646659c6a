"""publish: to each outlet once, with every outcome told; each word of the simulated platform's script."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import accumulate, pairwise

import pytest
from django.utils import timezone

from accounts import workspaces
from accounts.models import Notice
from config.core.errors import Conflict, Invalid
from config.core.ids import encode
from pipeline import limits, publish
from pipeline.models import Outlet, Publication, SimulatedPost
from pipeline.platforms.base import Absent, CannotTell, Found, Pending, Prepared, Ready, Sent
from pipeline.platforms.simulated import Simulated
from pipeline.plugins import NeedsReconnect, OutcomeUnknown, Refused, TryLater
from pipeline.publish import send as sending
from pipeline.publish import steps as publish_steps
from pipeline.review import decisions
from pipeline.workspace import defaults
from tests.pipeline import steps
from tests.pipeline.steps import (
    LEASE,
    MINUTE,
    NOON,
    accepted,
    attempts,
    calls,
    claimed,
    codes,
    facts,
    failures,
    make_items,
    make_stage,
    promise,
    reread,
    send,
    state,
    to,
    told,
)

LATER = NOON + timedelta(days=1)
RETRIES = limits.PUBLISH_RETRIES
PUBLICATION = ("status", "attempt_count", "next_attempt_at", "wake_at", "published_at")


def z(moment):
    return moment.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def key(publication):
    return encode("pub", publication.pk)


def published_types(workspace):
    return [one for one in facts(workspace) if one.startswith(("published.", "outlet."))]


# --- Asking ----------------------------------------------------------------------------------------------------------


def test_publish_now_promises_every_outlet_of_the_item(workspace, ready, feed, woken):
    row, publications = publish.request(ready, publish.PublishWish(), by="alice")
    assert [(one.outlet_id, one.status, one.due_at, one.wake_at, one.revision) for one in publications] == [
        (feed.pk, "scheduled", NOON, NOON, 1)
    ]
    assert state(row, "status", "publish_at", "approved_by", "approved_at", "approved_revision") == {
        "status": "scheduled",
        "publish_at": NOON,
        "approved_by": "alice",
        "approved_at": NOON,
        "approved_revision": 1,
    }
    assert facts(workspace) == ["raw.ingested", "generated.ready"]


def test_publish_now_is_sent_and_told(workspace, ready, stage):
    publication = send(promise(ready, stage))
    post = SimulatedPost.everywhere.get()
    assert state(publication, *PUBLICATION, "url", "external_id", "error", "revision", "attempts") == {
        "status": "published",
        "attempt_count": 1,
        "next_attempt_at": None,
        "wake_at": None,
        "published_at": NOON,
        "url": f"https://simulated.invalid/posts/{encode('sim', post.pk)}",
        "external_id": encode("sim", post.pk),
        "error": None,
        "revision": 1,
        "attempts": 0,
    }
    assert state(ready, "status", "published_at", "publish_at") == {
        "status": "published",
        "published_at": NOON,
        "publish_at": None,
    }
    assert attempts(publication) == [(1, 1, "succeeded")]
    assert accepted(workspace) == [(key(publication), ready.body)]
    (event,) = told(workspace, "published.success")
    assert event["data"]["publication"]["status"] == "published"
    assert event["data"]["generated_item"]["status"] == "published"
    assert event["data"]["generated_item"]["version"] == reread(ready).version
    assert event["data"]["publication"]["version"] == publication.version


def test_schedule_waits_for_its_moment(workspace, ready, stage, clock):
    publication = promise(ready, stage, publish_at=LATER)
    assert state(publication, "due_at", "wake_at") == {"due_at": LATER, "wake_at": LATER}
    early = send(publication)
    assert (early.status, early.wake_at, early.attempts, calls(workspace)) == ("scheduled", LATER, 0, [])
    clock.move_to(LATER)
    assert (send(publication).status, calls(workspace)) == ("published", ["ok"])


def test_retime_overtakes_the_hand_that_is_at_it(workspace, ready, stage, clock):
    publication = promise(ready, stage)
    hand = claimed(publication)
    again = promise(ready, stage, publish_at=LATER)
    assert again.pk == publication.pk
    publish_steps.advance_publication(hand)
    assert (calls(workspace), attempts(publication)) == ([], [])
    assert state(publication, "status", "due_at", "wake_at", "attempts") == {
        "status": "scheduled",
        "due_at": LATER,
        "wake_at": LATER,
        "attempts": 0,
    }
    assert reread(ready).publish_at == LATER


def test_retime_of_one_that_waits_for_its_next_try_starts_anew(workspace, ready, clock):
    publication = send(promise(ready, make_stage(workspace, "429", "ok")))
    assert publication.next_attempt_at == NOON + timedelta(seconds=1)
    again = promise(ready, publication.outlet, publish_at=LATER)
    assert (again.next_attempt_at, again.error, again.attempt_count, again.wake_at) == (None, None, 0, LATER)
    clock.shift(60)
    assert (send(again).status, calls(workspace)) == ("scheduled", ["429"])


def test_retime_without_overrides_keeps_those_there_are(workspace, ready, stage):
    public = encode("out", stage.pk)
    promise(ready, stage, publish_at=LATER, overrides={public: {"body": "For the stage."}})
    promise(ready, stage)
    publication = promise(ready, stage, overrides={public: {"publish_at": LATER}})
    assert (publication.overrides, publication.due_at) == ({"body": "For the stage."}, LATER)
    publication = promise(ready, stage, overrides={public: {"title": "Another"}})
    assert publication.overrides == {"title": "Another"}


def test_overrides_hold_for_their_outlet_alone(workspace, ready, stage, feed):
    public = encode("out", stage.pk)
    decisions.edit(ready, {"overrides": {public: {"title": "T", "body": "Item's."}}}, by="alice", now=NOON)
    wish = to(stage, feed, overrides={public: {"body": "Mine.", "publish_at": LATER}}, publish_at=NOON)
    _, (one, other) = publish.request(ready, wish, by="alice")
    assert (one.due_at, one.overrides, other.due_at, other.overrides) == (LATER, {"body": "Mine."}, NOON, {})
    Publication.everywhere.filter(pk=one.pk).update(due_at=NOON)
    sent = send(one)
    assert accepted(workspace) == [(key(one), "Mine.")]
    assert SimulatedPost.everywhere.get().title == "T"
    assert sent.overrides == {"title": "T", "body": "Mine."}


def test_overrides_of_the_item_that_change_while_scheduled_are_sent(workspace, ready, stage):
    public = encode("out", stage.pk)
    decisions.edit(ready, {"overrides": {public: {"body": "First."}}}, by="alice", now=NOON)
    publication = promise(ready, stage)
    decisions.edit(ready, {"overrides": {public: {"body": "Second."}}}, by="alice", now=NOON)
    decisions.approve(ready, by="alice", now=NOON)
    assert reread(publication).revision == 3
    send(publication)
    assert accepted(workspace) == [(key(publication), "Second.")]


def test_overrides_for_an_outlet_that_is_not_named_are_refused(workspace, ready, stage, feed):
    strange = encode("out", feed.pk)
    with pytest.raises(Invalid) as refused:
        publish.request(ready, to(stage, overrides={strange: {"body": "x"}}), by="alice")
    assert codes(refused) == [(f"overrides.{strange}", "unknown_outlet")]


def test_dry_run_says_what_would_be_sent_and_stores_nothing(workspace, ready, stage, feed):
    public = encode("out", stage.pk)
    wish = to(stage, feed, overrides={public: {"body": "x" * 5001}})
    before = reread(ready).version
    judged = publish.dry_run(ready, wish, now=NOON)
    assert [(one.outlet.pk, [(p.field, p.code) for p in one.problems]) for one in judged] == [
        (stage.pk, [("outlets[0].body", "too_long")]),
        (feed.pk, []),
    ]
    assert [one.post.payload.body for one in judged] == ["x" * 5001, ready.body]
    assert (Publication.everywhere.count(), reread(ready).version, reread(ready).status) == (
        0,
        before,
        "ready",
    )


def test_dry_run_tells_where_it_is_already(workspace, ready, stage):
    send(promise(ready, stage))
    judged = publish.dry_run(steps.items_of(ready.raw_item)[0], to(stage), now=NOON)
    assert [[one.code for one in outlet.problems] for outlet in judged] == [["already_published"]]


@pytest.mark.parametrize("outlets", [None, []])
def test_dry_run_without_an_outlet_left_is_refused_as_the_real_call(workspace, ready, feed, outlets):
    Outlet.everywhere.filter(pk=feed.pk).update(deleted_at=NOON)
    wish = publish.PublishWish(outlets=outlets)
    answers = []
    for ask in (
        lambda: publish.dry_run(ready, wish, now=NOON),
        lambda: publish.request(ready, wish, by="alice"),
    ):
        with pytest.raises(publish.CannotPublish) as refused:
            ask()
        answers.append(refused.value.detail)
    assert answers[0] == answers[1]
    assert codes(refused) == [("outlets", "no_outlet")]


def test_outlet_that_is_named_and_cannot_take_it_refuses_the_call(workspace, ready, stage, feed):
    public = encode("out", stage.pk)
    with pytest.raises(publish.CannotPublish) as refused:
        publish.request(ready, to(feed, stage, overrides={public: {"body": "x" * 5001}}), by="alice")
    assert codes(refused) == [("outlets[1].body", "too_long")]
    assert (Publication.everywhere.count(), reread(ready).status) == (0, "ready")


def test_outlets_that_are_not_there_are_named(workspace, ready, charlies, feed):
    his = Outlet.everywhere.get(workspace=charlies, platform="simulated")
    mine = make_stage(workspace)
    Outlet.everywhere.filter(pk=mine.pk).update(deleted_at=NOON)
    wish = publish.PublishWish(
        outlets=[encode("out", feed.pk), encode("out", his.pk), "out_x", encode("out", mine.pk)]
    )
    with pytest.raises(Invalid) as refused:
        publish.request(ready, wish, by="alice")
    assert codes(refused) == [(f"outlets[{place}]", "unknown_outlet") for place in (1, 2, 3)]
    with pytest.raises(publish.CannotPublish) as refused:
        publish.request(ready, publish.PublishWish(outlets=[]), by="alice")
    assert codes(refused) == [("outlets", "no_outlet")]


def test_item_without_an_outlet_left_is_refused(workspace, ready, feed):
    Outlet.everywhere.filter(pk=feed.pk).update(deleted_at=NOON)
    with pytest.raises(publish.CannotPublish) as refused:
        publish.request(ready, publish.PublishWish(), by="alice")
    assert codes(refused) == [("outlets", "no_outlet")]


def test_outlet_that_was_not_named_and_cannot_take_it_is_left_out(workspace, ready, stage, feed):
    decisions.edit(
        ready,
        {
            "outlets": [encode("out", stage.pk), encode("out", feed.pk)],
            "body": "x" * 5001,
        },
        by="alice",
        now=NOON,
    )
    _, publications = publish.request(ready, publish.PublishWish(), by="alice")
    assert [one.outlet_id for one in publications] == [feed.pk]


def test_test_item_reaches_only_simulated_outlets(workspace, stage, feed):
    item = make_items(workspace, test=True)[0]
    with pytest.raises(Invalid) as refused:
        publish.request(item, to(feed), by="alice")
    assert codes(refused) == [("outlets[0]", "not_simulated")]
    _, publications = publish.request(item, publish.PublishWish(), by="alice")
    assert [(one.outlet_id, one.test) for one in publications] == [(stage.pk, True)]
    send(publications[0])
    assert [one["test"] for one in Publication.everywhere.values("test")] == [True]


def test_item_that_is_published_there_is_refused(workspace, ready, stage, feed):
    send(promise(ready, stage))
    with pytest.raises(Conflict) as refused:
        publish.request(ready, to(stage, feed), by="alice")
    assert codes(refused) == [("outlets", "already_published")]
    assert Publication.everywhere.count() == 1
    _, (other,) = publish.request(ready, to(feed), by="alice")
    assert (send(other).status, reread(ready).status) == ("published", "published")
    with pytest.raises(Conflict) as refused:
        publish.request(ready, publish.PublishWish(), by="alice")
    assert codes(refused) == [("outlets", "already_published")]


def test_item_that_may_be_there_is_not_sent_again(workspace, ready, feed):
    doubtful = make_stage(workspace, "error")
    decisions.edit(
        ready, {"outlets": [encode("out", one.pk) for one in (doubtful, feed)]}, by="alice", now=NOON
    )
    assert send(promise(ready, doubtful)).status == "unknown"
    with pytest.raises(Conflict) as refused:
        publish.request(ready, to(doubtful), by="alice")
    assert codes(refused) == [("outlets", "in_flight")]
    # Not named, it is left out, and the other outlet gets the item.
    _, publications = publish.request(ready, publish.PublishWish(), by="alice")
    assert [one.outlet_id for one in publications] == [feed.pk]


@pytest.mark.parametrize("status", ["rejected", "deleted", "held", "unapproved"])
def test_item_that_may_not_be_published_is_refused(workspace, ready, stage, status):
    if status == "rejected":
        decisions.reject(ready, reason="", by="alice", now=NOON)
    elif status == "deleted":
        decisions.erase(ready, now=NOON)
    elif status == "held":
        steps.push_raw(workspace, body=steps.OTHER_TEXT)
    else:
        workspace.requires_approval = True
        workspace.save(update_fields=["requires_approval"])
    expected = {
        "rejected": ("status", "not_publishable"),
        "deleted": ("status", "not_publishable"),
        "held": ("held", "held"),
        "unapproved": ("approval", "approval_required"),
    }
    with pytest.raises(Conflict) as refused:
        publish.request(ready, to(stage), by="alice")
    assert codes(refused) == [expected[status]]
    assert Publication.everywhere.count() == 0


def test_publishing_one_variant_supersedes_its_siblings(workspace, stage):
    first, second, third = make_items(workspace, variants=3)
    decisions.reject(third, reason="dull", by="alice", now=NOON)
    promise(second, stage)
    assert [
        (reread(one).status, (reread(one).rejection or {}).get("code")) for one in (first, second, third)
    ] == [
        ("rejected", "superseded"),
        ("scheduled", None),
        ("rejected", "by_person"),
    ]
    decisions.restore(first, now=NOON)
    promise(first, stage, keep_siblings=True)
    assert [reread(one).status for one in (first, second)] == ["scheduled", "scheduled"]


def test_cancel_takes_back_what_is_scheduled(workspace, ready, stage, feed):
    _, (one, other) = publish.request(ready, to(stage, feed, publish_at=LATER), by="alice")
    hand = claimed(one)
    publish.cancel(ready, now=NOON)
    assert [state(row, "status", "wake_at", "next_attempt_at") for row in (one, other)] == [
        {"status": "cancelled", "wake_at": None, "next_attempt_at": None}
    ] * 2
    assert state(ready, "status", "publish_at") == {"status": "ready", "publish_at": None}
    publish_steps.advance_publication(hand)
    assert (calls(workspace), reread(one).status, reread(one).wake_at) == ([], "cancelled", None)
    with pytest.raises(Conflict) as refused:
        publish.cancel(ready, now=NOON)
    assert codes(refused) == [("status", "nothing_scheduled")]
    again = promise(ready, stage)
    assert (again.pk != one.pk, send(again).status) == (True, "published")


# --- Word by word ----------------------------------------------------------------------------------------------------


def test_slow_is_published(workspace, ready, monkeypatch):
    monkeypatch.setattr("pipeline.outlets.simulated_server.SLOW_SECONDS", 0.0)
    assert (send(promise(ready, make_stage(workspace, "slow"))).status, calls(workspace)) == (
        "published",
        ["slow"],
    )


def test_429_is_tried_again_when_the_platform_says(workspace, ready, clock):
    publication = send(promise(ready, make_stage(workspace, "429")))
    again = NOON + timedelta(seconds=1)
    assert state(publication, *PUBLICATION, "error") == {
        "status": "scheduled",
        "attempt_count": 1,
        "next_attempt_at": again,
        "wake_at": again,
        "published_at": None,
        "error": {
            "code": "rate_limited",
            "class": "retry",
            "message": "The platform asks to wait: Too many posts; slow down.",
            "action": TryLater.default_action,
            "retryable": True,
            "platform_status": 429,
            "platform_message": "Too many posts; slow down.",
        },
    }
    assert state(ready, "status", "publish_at") == {"status": "scheduled", "publish_at": NOON}
    assert attempts(publication) == [(1, 1, "failed")]
    assert failures(workspace) == [("rate_limited", True, z(again))]
    assert send(publication).wake_at == again
    clock.move_to(again)
    assert send(publication).status == "published"
    assert attempts(publication) == [(1, 1, "failed"), (2, 1, "succeeded")]
    assert (published_types(workspace), calls(workspace)) == (
        ["published.failed", "published.success"],
        ["429", "ok"],
    )


def test_reject_is_final(workspace, ready):
    publication = send(promise(ready, make_stage(workspace, "reject")))
    assert state(publication, *PUBLICATION) == {
        "status": "failed",
        "attempt_count": 1,
        "next_attempt_at": None,
        "wake_at": None,
        "published_at": None,
    }
    assert publication.error["class"] == "content"
    assert publication.error["retryable"] is False
    assert (reread(ready).status, failures(workspace)) == ("publish_failed", [("refused", False, None)])
    assert attempts(publication) == [(1, 1, "failed")]


def test_expired_disconnects_the_outlet_and_tells_of_both(workspace, ready, clock):
    stage = make_stage(workspace, "expired")
    publication = send(promise(ready, stage))
    assert state(publication, *PUBLICATION) == {
        "status": "scheduled",
        "attempt_count": 1,
        "next_attempt_at": NOON + RETRIES[0],
        "wake_at": NOON + RETRIES[0],
        "published_at": None,
    }
    assert state(stage, "status", "version") == {"status": "needs_reconnect", "version": 2}
    assert reread(stage).last_error["at"] == z(NOON)
    assert published_types(workspace) == ["outlet.needs_reconnect", "published.failed"]
    assert failures(workspace) == [("needs_reconnect", True, z(NOON + RETRIES[0]))]
    clock.shift(60)
    assert (send(publication).status, reread(stage).status, reread(stage).last_error) == (
        "published",
        "ok",
        None,
    )


def notices(workspace):
    rows = Notice.everywhere.filter(workspace=workspace).order_by("id")
    return list(rows.values_list("kind", "title", "path"))


def test_people_hear_of_the_outlet_once_and_of_the_post_when_it_ends(workspace, ready, clock):
    stage = make_stage(workspace, "expired", "expired", "reject")
    publication = promise(ready, stage)
    send(publication)
    reconnect = ("outlet_reconnect", "Stage needs reconnecting", f"outlets/{encode('out', stage.pk)}")
    assert notices(workspace) == [reconnect]
    clock.shift(60)
    send(publication)
    # It was not reconnected meanwhile, so nothing new has happened.
    assert notices(workspace) == [reconnect]
    clock.move_to(reread(publication).next_attempt_at)
    assert send(publication).status == "failed"
    title = f"“{ready.title or ready.excerpt}” was not published on Stage"
    assert notices(workspace) == [reconnect, ("post_failed", title, "#failed")]


def test_a_post_that_is_sent_anew_and_fails_again_is_told_again(workspace, ready, clock):
    publication = send(promise(ready, make_stage(workspace, "reject", "reject")))
    publish.retry(publication, by="alice", now=NOON)
    assert send(publication).status == "failed"
    assert [kind for kind, _, _ in notices(workspace)] == ["post_failed", "post_failed"]


def test_people_hear_nothing_of_a_test_s_posts(workspace, clock):
    [item] = make_items(workspace, test=True)
    send(promise(item, make_stage(workspace, "reject")))
    assert notices(workspace) == []


def test_nothing_goes_through_an_outlet_that_has_to_be_connected_again(workspace, ready, clock):
    """Each due try is told as a failure without a call, until the tries are used up or somebody reconnected it."""
    stage = make_stage(workspace)
    publication = promise(ready, stage)
    Outlet.everywhere.filter(pk=stage.pk).update(status="needs_reconnect", is_simulated=False)
    for _ in range(5):
        assert reread(publication).status == "scheduled"
        send(publication)
        clock.move_to(reread(publication).next_attempt_at or NOON)
    assert (reread(publication).status, calls(workspace), attempts(publication)) == ("failed", [], [])
    assert [(code, again) for code, again, _ in failures(workspace)] == [("needs_reconnect", True)] * 4 + [
        ("needs_reconnect", False)
    ]
    assert published_types(workspace).count("outlet.needs_reconnect") == 0
    with pytest.raises(publish.CannotPublish) as refused:
        publish.request(ready, to(stage), by="alice")
    assert codes(refused) == [("outlets[0]", "needs_reconnect")]


@pytest.mark.parametrize(
    ("change", "code"),
    [({"deleted_at": NOON}, "outlet_deleted"), ({"status": "disabled"}, "outlet_disabled")],
)
def test_nothing_goes_through_an_outlet_that_is_gone(workspace, ready, change, code):
    stage = make_stage(workspace)
    publication = promise(ready, stage)
    Outlet.everywhere.filter(pk=stage.pk).update(**change)
    assert (send(publication).status, calls(workspace), failures(workspace)) == (
        "failed",
        [],
        [(code, False, None)],
    )


def test_error_is_unknown_until_the_look_up_proves_that_it_is_not_there(workspace, ready, clock):
    publication = send(promise(ready, make_stage(workspace, "error")))
    look = NOON + timedelta(seconds=5)
    assert state(publication, *PUBLICATION, "unknown_since", "lookups") == {
        "status": "unknown",
        "attempt_count": 1,
        "next_attempt_at": look,
        "wake_at": look,
        "published_at": None,
        "unknown_since": NOON,
        "lookups": 0,
    }
    assert (reread(ready).status, attempts(publication), published_types(workspace)) == (
        "publishing",
        [(1, 1, "unknown")],
        [],
    )
    clock.move_to(look)
    ends = NOON + sending.LONGEST_CALL
    assert state(send(publication), "status", "wake_at") == {"status": "unknown", "wake_at": ends}
    clock.move_to(ends)
    publication = send(publication)
    assert state(publication, *PUBLICATION, "unknown_since") == {
        "status": "scheduled",
        "attempt_count": 1,
        "next_attempt_at": ends + RETRIES[0],
        "wake_at": ends + RETRIES[0],
        "published_at": None,
        "unknown_since": None,
    }
    assert (reread(ready).status, attempts(publication)) == ("scheduled", [(1, 1, "failed")])
    assert failures(workspace) == [("not_accepted", True, z(ends + RETRIES[0]))]
    clock.move_to(ends + RETRIES[0])
    assert (send(publication).status, calls(workspace)) == ("published", ["error", "ok"])


@pytest.mark.parametrize(
    ("absent", "code", "message"),
    [
        (Absent(), "not_accepted", "The platform doesn't have it, so it is sent again."),
        (Absent(2, 5), "thread_unfinished", "2 of 5 posts of the thread are public. The rest follow."),
    ],
)
def test_look_up_says_what_is_public(workspace, ready, clock, monkeypatch, absent, code, message):
    publication = send(promise(ready, make_stage(workspace, "error")))
    monkeypatch.setattr(Simulated, "reconcile", lambda *_, **__: absent)
    clock.move_to(NOON + sending.LONGEST_CALL)
    publication = send(publication)
    told_of = {name: publication.error[name] for name in ("code", "message", "retryable")}
    assert (publication.status, told_of) == (
        "scheduled",
        {"code": code, "message": message, "retryable": True},
    )


def test_timeout_after_accept_is_found_and_never_posted_again(workspace, ready, clock):
    publication = send(promise(ready, make_stage(workspace, "timeout_after_accept")))
    assert publication.status == "unknown"
    clock.shift(5)
    publication = send(publication)
    post = SimulatedPost.everywhere.get()
    assert state(publication, *PUBLICATION, "external_id", "unknown_since", "error") == {
        "status": "published",
        "attempt_count": 1,
        "next_attempt_at": None,
        "wake_at": None,
        "published_at": NOON + timedelta(seconds=5),
        "external_id": encode("sim", post.pk),
        "unknown_since": None,
        "error": None,
    }
    assert (attempts(publication), published_types(workspace), calls(workspace)) == (
        [(1, 1, "succeeded")],
        ["published.success"],
        ["timeout_after_accept"],
    )


def test_timeout_before_accept_is_tried_again(workspace, ready, clock):
    publication = send(promise(ready, make_stage(workspace, "timeout_before_accept")))
    assert state(publication, *PUBLICATION) == {
        "status": "scheduled",
        "attempt_count": 1,
        "next_attempt_at": NOON + RETRIES[0],
        "wake_at": NOON + RETRIES[0],
        "published_at": None,
    }
    clock.shift(RETRIES[0])
    assert (send(publication).status, attempts(publication)) == (
        "published",
        [(1, 1, "failed"), (2, 1, "succeeded")],
    )


def test_retries_come_after_a_minute_five_half_an_hour_and_two_hours_and_then_no_more(
    workspace, ready, clock
):
    # Promised in docs/api/publishing.md.
    assert [wait.total_seconds() / 60 for wait in RETRIES] == [1, 5, 30, 120]
    publication = promise(ready, make_stage(workspace, *["timeout_before_accept"] * 6))
    moments = [NOON]
    while (row := send(publication)).status == "scheduled":
        moments.append(row.next_attempt_at)
        clock.move_to(row.next_attempt_at)
    assert tuple(after - before for before, after in pairwise(moments)) == RETRIES
    assert (row.status, row.wake_at, row.attempt_count) == ("failed", None, len(moments))
    assert failures(workspace) == [("temporary", True, z(moment)) for moment in moments[1:]] + [
        ("temporary", False, None)
    ]
    assert reread(ready).status == "publish_failed"
    assert attempts(publication) == [(number, 1, "failed") for number in range(1, len(moments) + 1)]


def test_unknown_outcomes_use_the_same_schedule(workspace, ready, clock):
    """A call whose outcome a look-up told counts once."""
    publication = promise(ready, make_stage(workspace, "error", "error", "error"))
    waits = []
    for _ in range(3):
        row = send(publication)
        looked = timezone.now() + sending.LONGEST_CALL
        clock.move_to(looked)
        row = send(publication)
        waits.append(row.next_attempt_at - looked)
        clock.move_to(row.next_attempt_at)
    assert waits == [*RETRIES[:3]]
    assert row.attempt_count == 3


@pytest.mark.parametrize(
    ("asked", "wait"), [(timedelta(hours=3), timedelta(hours=3)), (timedelta(days=9), timedelta(days=1))]
)
def test_platform_that_names_a_time_is_believed_up_to_a_day(workspace, ready, monkeypatch, asked, wait):
    def busy(*_, **__):
        raise TryLater("Busy.", after=asked)

    monkeypatch.setattr(Simulated, "commit", busy)
    assert send(promise(ready, make_stage(workspace))).next_attempt_at == NOON + wait


# --- Unknown ---------------------------------------------------------------------------------------------------------


def test_our_own_bug_in_the_call_is_an_unknown_outcome(workspace, ready, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr(Simulated, "commit", broken)
    publication = send(promise(ready, make_stage(workspace)))
    assert (publication.status, publication.error["code"], attempts(publication)) == (
        "unknown",
        "outcome_unknown",
        [(1, 1, "unknown")],
    )


def test_unknown_outcome_keeps_what_the_platform_answered(workspace, ready, monkeypatch):
    def gateway(*_, **__):
        raise OutcomeUnknown("The platform answered 502.", platform_status=502)

    monkeypatch.setattr(Simulated, "commit", gateway)
    assert send(promise(ready, make_stage(workspace))).error == {
        "code": "outcome_unknown",
        "class": "unknown",
        "message": "The platform answered 502.",
        "action": OutcomeUnknown.default_action,
        "retryable": False,
        "platform_status": 502,
        "platform_message": None,
    }


def cannot_tell(*_, **__):
    return CannotTell("The platform is down.")


def test_unknown_is_told_once_after_an_hour_and_success_follows(workspace, ready, clock, monkeypatch):
    publication = send(promise(ready, make_stage(workspace, "timeout_after_accept")))
    monkeypatch.setattr(Simulated, "reconcile", cannot_tell)
    looks = []
    while clock_now() < NOON + timedelta(hours=2):
        clock.move_to(reread(publication).wake_at)
        looks.append(clock_now() - NOON)
        send(publication)
        moment = clock_now()
        assert len(failures(workspace)) == (1 if moment - NOON >= timedelta(hours=1) else 0)
    assert looks[:3] == [timedelta(seconds=5), timedelta(seconds=35), timedelta(seconds=335)]
    assert timedelta(hours=1) in looks
    assert failures(workspace) == [("outcome_unknown", False, None)]
    assert state(publication, "status", "unknown_told_at", "attempt_count") == {
        "status": "unknown",
        "unknown_told_at": NOON + timedelta(hours=1),
        "attempt_count": 1,
    }
    monkeypatch.undo()
    assert send(publication).status == "published"
    assert (published_types(workspace), calls(workspace)) == (
        ["published.failed", "published.success"],
        ["timeout_after_accept"],
    )


def clock_now():
    from django.utils import timezone

    return timezone.now()


def test_second_unknown_outcome_is_told_again(workspace, ready, clock, monkeypatch):
    publication = send(promise(ready, make_stage(workspace, "error", "error")))
    monkeypatch.setattr(Simulated, "reconcile", cannot_tell)
    clock.shift(timedelta(hours=1))
    send(publication)
    monkeypatch.setattr(Simulated, "reconcile", lambda *_, **__: Absent())
    again = send(publication)
    clock.move_to(again.next_attempt_at)
    assert (send(publication).status, reread(publication).unknown_told_at) == ("unknown", None)
    monkeypatch.setattr(Simulated, "reconcile", cannot_tell)
    clock.shift(timedelta(hours=1))
    send(publication)
    assert [code for code, _, _ in failures(workspace)] == [
        "outcome_unknown",
        "not_accepted",
        "outcome_unknown",
    ]


@pytest.mark.parametrize("error", [TryLater("Down."), NeedsReconnect("Expired."), Refused("No.")])
def test_look_up_that_fails_is_made_again(workspace, ready, clock, monkeypatch, error):
    def failing(*_, **__):
        raise error

    publication = send(promise(ready, make_stage(workspace, "error")))
    monkeypatch.setattr(Simulated, "reconcile", failing)
    clock.shift(5)
    send(publication)
    assert state(publication, "status", "wake_at", "lookups") == {
        "status": "unknown",
        "wake_at": NOON + timedelta(seconds=35),
        "lookups": 1,
    }


def test_look_up_that_breaks_again_and_again_is_told_too(workspace, ready, clock):
    publication = send(promise(ready, make_stage(workspace, "error")))
    clock.shift(timedelta(hours=2))
    publish_steps.give_up(claimed(publication))
    assert failures(workspace) == [("outcome_unknown", False, None)]
    assert state(publication, "status", "attempts", "wake_at") == {
        "status": "unknown",
        "attempts": 0,
        "wake_at": NOON + timedelta(hours=2, seconds=30),
    }


def test_reconcile_now_looks_at_once(workspace, ready, clock):
    publication = send(promise(ready, make_stage(workspace, "timeout_after_accept")))
    hand = claimed(publication)
    clock.shift(1)
    before = (reread(publication).version, reread(ready).version)
    publish.reconcile_now(publication, now=clock_now())
    assert state(publication, "wake_at", "attempts") == {"wake_at": clock_now(), "attempts": 0}
    # Both show it, in `next_attempt_at`.
    assert (reread(publication).version, reread(ready).version) == (before[0] + 1, before[1] + 1)
    publish_steps.advance_publication(hand)
    assert reread(publication).status == "unknown"
    assert send(publication).status == "published"
    stale = reread(publication)
    stale.status = "unknown"
    with pytest.raises(Conflict) as refused:
        publish.reconcile_now(stale, now=NOON)
    assert codes(refused) == [("status", "not_unknown")]


# --- Kills and races -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["ok", "error"])
def test_kill_between_the_call_and_its_record_is_reconciled(workspace, ready, clock, monkeypatch, word):
    """The next hand finds `publishing`: it asks, and never posts a second time what is there."""
    publication = promise(ready, make_stage(workspace, word))

    def killed(*_, **__):
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(sending, "record_success", killed)
        patch.setattr(sending, "record_unknown", killed)
        with pytest.raises(SystemExit):
            publish_steps.advance_publication(claimed(publication))
    assert (reread(publication).status, reread(ready).status) == ("publishing", "publishing")
    clock.shift(LEASE)
    row = send(publication)
    if word == "error":
        assert (row.status, failures(workspace)[0][0]) == ("scheduled", "not_accepted")
        clock.move_to(row.next_attempt_at)
        row = send(publication)
    assert row.status == "published"
    assert len(accepted(workspace)) == 1
    assert facts(workspace).count("published.success") == 1


def test_kill_before_the_call_is_sent_once(workspace, ready, clock, monkeypatch):
    publication = promise(ready, make_stage(workspace))

    def killed(*_, **__):
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(sending, "_commit", killed)
        with pytest.raises(SystemExit):
            publish_steps.advance_publication(claimed(publication))
    clock.shift(LEASE)
    row = send(publication)
    assert (row.status, attempts(publication), calls(workspace)) == ("scheduled", [(1, 1, "failed")], [])
    clock.move_to(row.next_attempt_at)
    assert (send(publication).status, calls(workspace)) == ("published", ["ok"])


def test_hand_that_lost_its_lease_during_the_call_writes_nothing(workspace, ready, clock, monkeypatch):
    publication = promise(ready, make_stage(workspace))
    commit = Simulated.commit

    def slow(self, *args, **kwargs):
        sent = commit(self, *args, **kwargs)
        # Meanwhile another hand claims the row and finds the item on the platform.
        monkeypatch.setattr(Simulated, "commit", commit)
        publish_steps.advance_publication(claimed(publication))
        return sent

    monkeypatch.setattr(Simulated, "commit", slow)
    publish_steps.advance_publication(claimed(publication))
    assert (reread(publication).status, attempts(publication)) == ("published", [(1, 1, "succeeded")])
    assert published_types(workspace) == ["published.success"]
    assert len(accepted(workspace)) == 1


def test_hand_that_lost_its_lease_keeps_the_platforms_word_that_it_is_there(
    workspace, ready, stage, monkeypatch
):
    publication = promise(ready, stage)
    commit = Simulated.commit

    def slow(self, *args, **kwargs):
        claimed(publication)
        return commit(self, *args, **kwargs)

    monkeypatch.setattr(Simulated, "commit", slow)
    publish_steps.advance_publication(claimed(publication))
    assert (reread(publication).status, attempts(publication)) == ("published", [(1, 1, "succeeded")])
    assert published_types(workspace) == ["published.success"]


@pytest.mark.parametrize("word", ["429", "reject", "expired", "error"])
def test_hand_that_lost_its_lease_records_no_outcome(workspace, ready, monkeypatch, word):
    stage = make_stage(workspace, word)
    publication = promise(ready, stage)
    commit = Simulated.commit

    def slow(self, *args, **kwargs):
        claimed(publication)
        return commit(self, *args, **kwargs)

    monkeypatch.setattr(Simulated, "commit", slow)
    publish_steps.advance_publication(claimed(publication))
    assert (reread(publication).status, reread(stage).status) == ("publishing", "ok")
    assert (attempts(publication), published_types(workspace)) == ([(1, 1, "started")], [])


def test_edit_between_claim_and_call_is_not_sent(workspace, ready, stage, monkeypatch):
    publication = promise(ready, stage)
    prepare = Simulated.prepare

    def meanwhile(self, *args, **kwargs):
        decisions.edit(ready, {"body": "New words."}, by="alice", now=NOON)
        return prepare(self, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(Simulated, "prepare", meanwhile)
        publish_steps.advance_publication(claimed(publication))
    assert (calls(workspace), reread(publication).status, reread(ready).held) == (
        [],
        "scheduled",
        "approval_stale",
    )
    decisions.approve(ready, by="alice", now=NOON)
    assert (reread(publication).wake_at, reread(publication).revision) == (NOON, 2)
    assert send(publication).revision == 2
    assert accepted(workspace) == [(key(publication), "New words.")]


def test_what_was_prepared_with_former_words_is_prepared_again(workspace, ready, stage, monkeypatch, clock):
    """A container that the platform made before the edit must not be published as the new revision."""
    prepared = []

    def prepare(self, account, post, state, *, http, key, now):
        prepared.append(post.payload.body)
        return Prepared({"container": post.payload.body})

    answers = iter([Pending(timedelta(seconds=7)), Ready()])
    seen = []

    def commit(self, account, post, state, *, http, key, now):
        seen.append((dict(state), post.payload.body, post.payload.revision))
        return Sent("1")

    monkeypatch.setattr(Simulated, "prepare", prepare)
    monkeypatch.setattr(Simulated, "poll", lambda *_, **__: next(answers))
    monkeypatch.setattr(Simulated, "commit", commit)
    publication = send(promise(ready, stage))
    assert state(publication, "status", "step", "wake_at") == {
        "status": "scheduled",
        "step": "poll",
        "wake_at": NOON + timedelta(seconds=7),
    }
    decisions.edit(ready, {"body": "New words."}, by="alice", now=NOON)
    decisions.approve(ready, by="alice", now=NOON)
    assert send(publication).status == "published"
    assert prepared == [ready.body, "New words."]
    assert seen == [({"container": "New words."}, "New words.", 2)]


def test_preparing_that_fails_uses_the_schedule_without_an_attempt(workspace, ready, stage, monkeypatch):
    def failing(*_, **__):
        raise TryLater("Upload failed.")

    monkeypatch.setattr(Simulated, "prepare", failing)
    publication = send(promise(ready, stage))
    assert state(publication, *PUBLICATION) == {
        "status": "scheduled",
        "attempt_count": 1,
        "next_attempt_at": NOON + RETRIES[0],
        "wake_at": NOON + RETRIES[0],
        "published_at": None,
    }
    assert (attempts(publication), failures(workspace)) == ([], [("temporary", True, z(NOON + RETRIES[0]))])


def test_hands_that_break_again_and_again_end_as_failed(workspace, ready, stage):
    publication = promise(ready, stage)
    publish_steps.give_up(claimed(publication))
    assert state(publication, "status", "wake_at", "attempt_count") == {
        "status": "failed",
        "wake_at": None,
        "attempt_count": 0,
    }
    assert (reread(ready).status, failures(workspace)) == ("publish_failed", [("gave_up", False, None)])


def test_give_up_after_an_interrupted_call_asks_the_platform(workspace, ready, stage, monkeypatch):
    publication = promise(ready, stage)
    monkeypatch.setattr(sending, "_commit", lambda *_: None)
    publish_steps.advance_publication(claimed(publication))
    publish_steps.give_up(claimed(publication))
    assert (reread(publication).status, reread(publication).attempts) == ("unknown", 0)


# --- Holds -----------------------------------------------------------------------------------------------------------


def test_delisted_workspace_publishes_nothing_until_it_is_back(workspace, ready, stage, clock):
    publication = promise(ready, stage)
    workspaces.delist(workspace, "operator")
    row = send(publication)
    assert (row.status, row.wake_at, row.attempts, calls(workspace)) == (
        "scheduled",
        NOON + publish.HELD_WAIT,
        0,
        [],
    )
    workspaces.whitelist(workspace, "operator")
    assert send(publication).status == "published"


def test_held_item_is_sent_when_it_is_approved(workspace, ready, clock):
    publication = send(promise(ready, make_stage(workspace, "timeout_before_accept")))
    steps.push_raw(workspace, body=steps.OTHER_TEXT)
    clock.shift(RETRIES[0])
    row = send(publication)
    assert (row.wake_at, calls(workspace)) == (
        NOON + RETRIES[0] + publish.HELD_WAIT,
        ["timeout_before_accept"],
    )
    decisions.approve(ready, by="alice", now=clock_now())
    assert reread(publication).wake_at == NOON + RETRIES[0]
    assert (send(publication).status, reread(ready).held) == ("published", "")


def test_hold_between_claim_and_call_stops_it(workspace, ready, stage, monkeypatch):
    publication = promise(ready, stage)
    prepare = Simulated.prepare

    def meanwhile(self, *args, **kwargs):
        steps.push_raw(workspace, body=steps.OTHER_TEXT)
        return prepare(self, *args, **kwargs)

    monkeypatch.setattr(Simulated, "prepare", meanwhile)
    publish_steps.advance_publication(claimed(publication))
    assert (reread(publication).status, calls(workspace), attempts(publication)) == ("scheduled", [], [])


def test_publishing_again_lets_go_of_a_stale_approval_everywhere(workspace, ready, stage, feed):
    _, (one, other) = publish.request(ready, to(stage, feed), by="alice")
    decisions.edit(ready, {"body": "New words."}, by="alice", now=NOON)
    assert [send(row).wake_at for row in (one, other)] == [NOON + publish.HELD_WAIT] * 2
    publish.request(ready, to(stage), by="alice")
    assert state(ready, "held", "approved_revision") == {"held": "", "approved_revision": 2}
    assert [reread(row).wake_at for row in (one, other)] == [NOON] * 2


def test_late_policy_hold_keeps_back_what_is_too_late(workspace, ready, stage, clock):
    publication = promise(ready, stage, late_policy="hold", max_lateness_minutes=10)
    clock.shift(timedelta(minutes=10, seconds=1))
    row = send(publication)
    assert (row.status, row.wake_at, calls(workspace)) == ("scheduled", clock_now() + publish.HELD_WAIT, [])
    promise(ready, stage, late_policy="hold", max_lateness_minutes=10)
    assert send(publication).status == "published"


def test_what_a_request_does_not_say_the_workspace_does(workspace, ready, stage, clock):
    """A change holds for what is promised from then on; a request that says it has its own way."""
    before = promise(ready, stage)
    wanted = replace(defaults.read(workspace), late_policy="hold", max_lateness_minutes=10)
    assert defaults.change(workspace, wanted, actor="alice") is True
    assert (reread(before).late_policy, reread(before).max_lateness_minutes) == ("publish", None)
    publication = promise(ready, stage)
    assert (publication.late_policy, publication.max_lateness_minutes) == ("hold", 10)
    clock.shift(timedelta(minutes=11))
    assert send(publication).status == "scheduled"
    own = promise(ready, stage, late_policy="publish")
    assert (own.late_policy, own.max_lateness_minutes, send(own).status) == ("publish", None, "published")


def test_late_policy_publish_sends_however_late(workspace, ready, stage, clock):
    publication = promise(ready, stage)
    clock.shift(timedelta(days=3))
    assert send(publication).status == "published"


# --- Retry by a person -----------------------------------------------------------------------------------------------


def test_retry_sends_a_failed_one_again_at_once(workspace, ready, clock):
    publication = send(promise(ready, make_stage(workspace, "reject")))
    clock.shift(60)
    row = publish.retry(publication, by="alice", now=clock_now())
    assert state(row, *PUBLICATION, "due_at", "error") == {
        "status": "scheduled",
        "attempt_count": 0,
        "next_attempt_at": None,
        "wake_at": clock_now(),
        "published_at": None,
        "due_at": clock_now(),
        "error": None,
    }
    assert reread(ready).status == "scheduled"
    assert (send(publication).status, attempts(publication)) == (
        "published",
        [(1, 1, "failed"), (2, 1, "succeeded")],
    )


def test_publishing_again_sends_a_failed_one_again(workspace, ready):
    stage = make_stage(workspace, "reject")
    first = send(promise(ready, stage))
    again = promise(ready, stage)
    assert (again.pk, again.status, again.error, again.attempt_count) == (first.pk, "scheduled", None, 0)
    assert send(again).status == "published"


def test_retry_refuses_everything_that_has_not_failed(workspace, ready, stage, monkeypatch):
    """Above all what is under way: a second call beside the first would publish twice."""
    publication = promise(ready, stage)
    found = {}

    def ask():
        with pytest.raises(Conflict) as refused:
            publish.retry(publication, by="alice", now=NOON)
        found[reread(publication).status] = codes(refused)

    ask()
    with monkeypatch.context() as patch:
        patch.setattr(sending, "_commit", lambda *_: None)
        publish_steps.advance_publication(claimed(publication))
    ask()
    publish_steps.give_up(claimed(publication))
    ask()
    with monkeypatch.context() as patch:
        patch.setattr(Simulated, "reconcile", lambda *_, **__: Found(Sent("1")))
        send(publication)
    ask()
    assert found == {
        "scheduled": [("status", "not_failed")],
        "publishing": [("status", "in_flight")],
        "unknown": [("status", "outcome_unknown")],
        "published": [("status", "not_failed")],
    }


# --- Overdue ---------------------------------------------------------------------------------------------------------


def busy(*_, **__):
    raise TryLater("Busy.")


def test_what_is_held_back_is_told_once_when_it_is_overdue(workspace, ready, stage, clock):
    publication = promise(ready, stage)
    workspaces.delist(workspace, "operator")
    send(publication)
    clock.shift(15 * MINUTE - timedelta(seconds=10))
    # Its people are told when the time is up, not at the next look after that.
    assert send(publication).wake_at == NOON + 15 * MINUTE
    assert told(workspace, "published.overdue") == []
    clock.move_to(NOON + 15 * MINUTE)
    row = send(publication)
    assert state(row, "status", "overdue_told_at", "wake_at", "attempts", "version") == {
        "status": "scheduled",
        "overdue_told_at": NOON + 15 * MINUTE,
        "wake_at": NOON + 15 * MINUTE + publish.HELD_WAIT,
        "attempts": 0,
        "version": publication.version,
    }
    (event,) = told(workspace, "published.overdue")
    assert sorted(event["data"]) == ["generated_item", "publication"]
    assert event["data"]["publication"]["id"] == key(publication)
    assert event["data"]["generated_item"]["overdue_seconds"] == 900
    clock.shift(publish.HELD_WAIT)
    send(publication)
    workspaces.whitelist(workspace, "operator")
    assert send(publication).status == "published"
    assert published_types(workspace) == ["published.overdue", "published.success"]


def test_retries_that_take_too_long_are_told_between_two_tries(workspace, ready, stage, clock, monkeypatch):
    monkeypatch.setattr(Simulated, "commit", busy)
    publication = promise(ready, stage)
    seen = []
    for _ in range(5):
        row = send(publication)
        seen.append((clock_now() - NOON, row.attempt_count, row.wake_at - NOON, row.next_attempt_at - NOON))
        clock.move_to(row.wake_at)
    tries = [timedelta(0), *accumulate(RETRIES)]
    assert seen == [
        (tries[0], 1, tries[1], tries[1]),
        (tries[1], 2, tries[2], tries[2]),
        (tries[2], 3, 15 * MINUTE, tries[3]),
        (15 * MINUTE, 3, tries[3], tries[3]),
        (tries[3], 4, tries[4], tries[4]),
    ]
    assert published_types(workspace) == [*["published.failed"] * 3, "published.overdue", "published.failed"]


def test_failure_that_comes_late_already_is_told_with_it(workspace, ready, stage, clock, monkeypatch):
    monkeypatch.setattr(Simulated, "commit", busy)
    publication = promise(ready, stage)
    clock.shift(20 * MINUTE)
    row = send(publication)
    assert (row.overdue_told_at, row.wake_at) == (clock_now(), clock_now() + MINUTE)
    assert published_types(workspace) == ["published.failed", "published.overdue"]


@pytest.mark.parametrize(
    ("word", "status"), [("ok", "published"), ("reject", "failed"), ("error", "unknown")]
)
def test_what_no_longer_waits_is_not_told_as_overdue(workspace, ready, clock, word, status):
    publication = promise(ready, make_stage(workspace, word))
    clock.shift(timedelta(days=1))
    row = send(publication)
    assert (row.status, row.overdue_told_at, told(workspace, "published.overdue")) == (status, None, [])


def test_processing_that_takes_too_long_is_told(workspace, ready, stage, clock, monkeypatch):
    monkeypatch.setattr(Simulated, "poll", lambda *_, **__: Pending(timedelta(minutes=10)))
    publication = send(promise(ready, stage))
    clock.move_to(publication.wake_at)
    assert send(publication).wake_at == NOON + 15 * MINUTE
    clock.move_to(NOON + 15 * MINUTE)
    assert send(publication).wake_at == NOON + 25 * MINUTE
    assert published_types(workspace) == ["published.overdue"]


def test_processing_without_end_fails_and_is_not_tried_by_itself(workspace, ready, stage, clock, monkeypatch):
    """Nothing is public before `commit`: it has failed, and a retry hands everything over anew."""
    answers, prepared = [Pending(timedelta(hours=4))], []

    def prepare(*_, **__):
        prepared.append(clock_now())
        return Prepared({"container": "c1"})

    def poll(self, account, post, state, **_):
        assert state == {"container": "c1"}
        return answers[-1]

    monkeypatch.setattr(Simulated, "prepare", prepare)
    monkeypatch.setattr(Simulated, "poll", poll)
    publication = send(promise(ready, stage))
    clock.shift(timedelta(hours=4))
    # Not beyond its time, whatever the platform says.
    assert send(publication).wake_at == NOON + limits.PROCESSING_MOST
    clock.move_to(NOON + limits.PROCESSING_MOST)
    row = send(publication)
    assert (row.status, row.wake_at, row.next_attempt_at, attempts(row)) == ("failed", None, None, [])
    assert (row.error["code"], row.error["retryable"]) == ("processing_too_long", False)
    assert row.error["message"] == (
        "After 6 hours Test channel was still processing the files; nothing was published."
    )
    assert row.error["action"].startswith("Retry it to upload everything again.")
    assert (reread(ready).status, accepted(workspace)) == ("publish_failed", [])
    assert published_types(workspace)[-1] == "published.failed"

    publish.retry(row, by="alice", now=clock_now())
    assert send(publication).status == "scheduled"
    answers.append(Ready())
    clock.shift(timedelta(hours=4))
    assert (send(publication).status, len(prepared), len(accepted(workspace))) == ("published", 2, 1)


def test_hand_that_lost_its_lease_tells_of_no_lateness(workspace, ready, stage, clock):
    publication = promise(ready, stage)
    workspaces.delist(workspace, "operator")
    clock.shift(20 * MINUTE)
    hand = claimed(publication)
    claimed(publication)
    publish_steps.advance_publication(hand)
    assert (reread(publication).overdue_told_at, told(workspace, "published.overdue")) == (None, [])


@pytest.mark.parametrize("anew", ["retime", "retry"])
def test_each_promise_that_is_missed_is_told(workspace, ready, stage, clock, monkeypatch, anew):
    publication = promise(ready, stage)
    workspaces.delist(workspace, "operator")
    clock.shift(15 * MINUTE)
    assert send(publication).overdue_told_at == clock_now()
    if anew == "retry":
        publish_steps.give_up(claimed(publication))
        publish.retry(publication, by="alice", now=clock_now())
    else:
        promise(ready, stage)
    assert reread(publication).overdue_told_at is None
    send(publication)
    clock.shift(15 * MINUTE)
    send(publication)
    assert facts(workspace).count("published.overdue") == 2


def test_approval_keeps_the_look_that_tells_of_lateness(workspace, ready, stage, clock, monkeypatch):
    monkeypatch.setattr(Simulated, "commit", busy)
    publication = promise(ready, stage)
    for minutes in (0, 1, 6):
        clock.move_to(NOON + minutes * MINUTE)
        send(publication)
    decisions.approve(ready, by="alice", now=clock_now())
    assert reread(publication).wake_at == NOON + 15 * MINUTE


# --- Derived ---------------------------------------------------------------------------------------------------------


def test_item_says_what_its_publications_came_to(workspace, ready, feed):
    refusing, doubtful = make_stage(workspace, "reject"), make_stage(workspace, "timeout_after_accept")
    _, (one, two, three) = publish.request(ready, to(feed, refusing, doubtful), by="alice")
    seen = [reread(ready).status]
    for publication in (one, two, three, three):
        send(publication)
        seen.append(reread(ready).status)
    assert seen == ["scheduled", "scheduled", "scheduled", "publishing", "partially_published"]
    publish.retry(two, by="alice", now=NOON)
    send(two)
    assert reread(ready).status == "published"


def test_cancel_leaves_what_is_out_alone(workspace, ready, stage, feed):
    _, (one, other) = publish.request(ready, to(stage, feed), by="alice")
    send(one)
    assert (reread(ready).status, publish.cancel(ready, now=NOON).status) == ("scheduled", "published")
    assert [reread(row).status for row in (one, other)] == ["published", "cancelled"]


def test_metrics_are_kept_beside_the_publication(workspace, ready, stage):
    publication = send(promise(ready, stage))
    publish.note_metrics(publication.pk, {"views": 3, "likes": None}, now=NOON)
    assert state(publication, "metrics", "version") == {
        "metrics": {"views": 3, "likes": None},
        "version": publication.version + 1,
    }


# --- At once ---------------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_two_publications_that_finish_together_see_each_other(workspace, together):
    item = make_items(workspace)[0]
    stages = [make_stage(workspace) for _ in range(4)]
    _, publications = publish.request(item, to(*stages), by="alice")
    hands = [claimed(one) for one in publications]
    assert (
        together(*[lambda hand=hand: publish_steps.advance_publication(hand) for hand in hands]) == [None] * 4
    )
    assert [reread(one).status for one in publications] == ["published"] * 4
    assert state(item, "status", "publish_at") == {"status": "published", "publish_at": None}
    assert facts(workspace).count("published.success") == 4


@pytest.mark.django_db(transaction=True)
def test_two_that_find_the_credential_expired_together_both_record_it(workspace, together):
    stage = make_stage(workspace, "expired")
    items = make_items(workspace, variants=3)
    hands = [claimed(promise(item, stage, keep_siblings=True)) for item in items]
    assert (
        together(*[lambda hand=hand: publish_steps.advance_publication(hand) for hand in hands]) == [None] * 3
    )
    assert [reread(hand).status for hand in hands] == ["scheduled"] * 3
    assert facts(workspace).count("outlet.needs_reconnect") == 1
    assert facts(workspace).count("published.failed") == 3


@pytest.mark.django_db(transaction=True)
def test_two_variants_that_are_published_together_do_not_wait_in_a_circle(workspace, stage, together):
    for number in range(5):
        one, other = make_items(workspace, external_id=f"{number}", variants=2, test=True)
        results = together(
            lambda one=one: publish.request(one, to(stage), by="alice"),
            lambda other=other: publish.request(other, to(stage), by="bob"),
        )
        refused = [result for result in results if isinstance(result, Conflict)]
        assert [[detail.code for detail in error.detail] for error in refused] == [["not_publishable"]]
        assert sorted(reread(item).status for item in (one, other)) == ["rejected", "scheduled"]


@pytest.mark.django_db(transaction=True)
def test_two_requests_at_once_make_one_publication(workspace, stage, together):
    item = make_items(workspace)[0]
    results = together(*[lambda: publish.request(item, to(stage), by="alice")] * 4)
    assert [one for one in results if isinstance(one, Exception)] == []
    assert Publication.everywhere.count() == 1
    assert state(item, "status") == {"status": "scheduled"}


@pytest.mark.django_db(transaction=True)
def test_cancel_and_send_at_once_agree(workspace, together):
    for number in range(6):
        item = make_items(workspace, external_id=f"{number}", url="", test=True)[0]
        publication = promise(item, make_stage(workspace))
        hand = claimed(publication)
        together(
            lambda hand=hand: publish_steps.advance_publication(hand),
            lambda item=item: publish.cancel(item, now=NOON),
        )
        row = reread(publication)
        posts = SimulatedPost.everywhere.filter(ref=key(publication)).count()
        assert (row.status, posts, reread(item).status) in [
            ("published", 1, "published"),
            ("cancelled", 0, "ready"),
        ]
        assert row.wake_at is None
