"""Taking a post back from its platform."""

from __future__ import annotations

from datetime import timedelta

import pytest

from config.core.errors import Conflict
from pipeline import limits, publish
from pipeline.models import Publication, SimulatedPost
from pipeline.platforms.simulated import Simulated
from pipeline.plugins import NeedsReconnect, OutcomeUnknown, Refused, TryLater
from pipeline.publish import removal
from pipeline.publish import steps as publish_steps
from tests.pipeline.steps import MINUTE, NOON, claimed, make_items, promise, reread, send, state


@pytest.fixture
def out(ready, stage):
    return send(promise(ready, stage))


def test_what_is_taken_back_is_gone_and_its_item_says_so(workspace, ready, out):
    asked = publish.request_removal(out, now=NOON)
    assert (asked.status, asked.wake_at, asked.step, asked.version) == (
        "published",
        NOON,
        "remove",
        out.version + 1,
    )
    row = send(out)
    assert state(row, "status", "wake_at", "step", "error", "url", "published_at") == {
        "status": "removed",
        "wake_at": None,
        "step": "done",
        "error": None,
        "url": out.url,
        "published_at": NOON,
    }
    assert (reread(ready).status, SimulatedPost.everywhere.get().removed_at) == ("removed", NOON)


def test_it_can_be_published_there_again(ready, stage, out):
    publish.request_removal(out, now=NOON)
    send(out)
    again = promise(ready, stage)
    assert (again.pk != out.pk, send(again).status) == (True, "published")


def test_an_entry_of_the_own_feed_is_taken_back(ready, feed):
    row = send(promise(ready, feed))
    publish.request_removal(row, now=NOON)
    assert send(row).status == "removed"


@pytest.mark.parametrize("error", [TryLater("Busy."), OutcomeUnknown("It broke off.")])
def test_what_may_work_later_is_tried_some_times_and_stays_published(ready, out, clock, monkeypatch, error):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(Simulated, "remove", fail)
    publish.request_removal(out, now=NOON)
    looks = []
    for wait in (*limits.REMOVAL_RETRIES, None):
        row = send(out)
        looks.append(row.next_attempt_at)
        assert (row.status, row.error["code"], row.error["retryable"]) == (
            "published",
            error.code,
            wait is not None,
        )
        if wait is not None:
            assert row.wake_at == row.next_attempt_at
            clock.move_to(row.wake_at)
    assert looks == [NOON + MINUTE, NOON + 6 * MINUTE, NOON + 36 * MINUTE, None]
    assert (row.wake_at, row.step, reread(ready).status) == (None, "done", "published")
    monkeypatch.undo()
    publish.request_removal(row, now=NOON)
    assert (send(row).status, reread(row).error) == ("removed", None)


def test_a_platform_that_names_a_time_is_heeded(out, monkeypatch):
    def fail(*_, **__):
        raise TryLater("Busy.", after=timedelta(seconds=7))

    monkeypatch.setattr(Simulated, "remove", fail)
    publish.request_removal(out, now=NOON)
    assert send(out).wake_at == NOON + timedelta(seconds=7)


def test_a_refusal_ends_it(out, monkeypatch):
    def fail(*_, **__):
        raise Refused("It is part of a thread.", code="in_thread")

    monkeypatch.setattr(Simulated, "remove", fail)
    publish.request_removal(out, now=NOON)
    row = send(out)
    assert (row.status, row.step, row.wake_at, row.error["code"]) == ("published", "done", None, "in_thread")


def test_an_account_that_is_refused_has_to_be_reconnected(stage, out, monkeypatch):
    def fail(*_, **__):
        raise NeedsReconnect("Revoked.")

    monkeypatch.setattr(Simulated, "remove", fail)
    publish.request_removal(out, now=NOON)
    assert (send(out).error["class"], reread(stage).status) == ("account", "needs_reconnect")


def test_what_cannot_be_taken_back_is_refused(workspace, ready, stage, out, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(Simulated, "can_remove", False)
        with pytest.raises(Conflict) as refused:
            publish.request_removal(out, now=NOON)
    assert [(one.code, one.message) for one in refused.value.detail] == [
        (
            "cannot_remove",
            f"Test channel doesn't let apps delete a post. Delete it there by hand at {out.url}.",
        )
    ]
    other = promise(
        make_items(workspace, body="The other road is closed for a week. " * 9, url="https://n.example/2")[0],
        stage,
    )
    with pytest.raises(Conflict) as refused:
        publish.request_removal(other, now=NOON)
    assert [one.code for one in refused.value.detail] == ["not_published"]


def test_a_post_that_a_person_said_was_sent_is_not_called_removed(ready, stage):
    """Nobody knows which it is, and a platform that is asked to delete nothing says that it has."""
    row = promise(ready, stage)
    Publication.everywhere.filter(pk=row.pk).update(status="unknown", unknown_since=NOON)
    sent = publish.settle_publication(reread(row), was_sent=True, by="alice", now=NOON)
    assert (sent.status, sent.external_id) == ("published", "")
    with pytest.raises(Conflict) as refused:
        publish.request_removal(sent, now=NOON)
    assert [(one.code, one.message) for one in refused.value.detail] == [
        ("cannot_remove", "Test channel hasn't named the post. Delete it there by hand.")
    ]
    assert reread(row).step != "remove"
    # Where it had been asked for before that was refused, it stays published and says why.
    Publication.everywhere.filter(pk=row.pk).update(step="remove", wake_at=NOON)
    publish_steps.advance_publication(claimed(reread(row)))
    kept = reread(row)
    assert (kept.status, kept.step, kept.error["code"]) == ("published", "done", "cannot_remove")


def test_an_entry_of_the_own_feed_is_known_whoever_settled_it(ready, feed):
    row = promise(ready, feed)
    Publication.everywhere.filter(pk=row.pk).update(status="unknown", unknown_since=NOON)
    sent = publish.settle_publication(reread(row), was_sent=True, by="alice", now=NOON)
    assert publish.request_removal(sent, now=NOON).step == "remove"


def test_asking_twice_asks_once(out):
    first = publish.request_removal(out, now=NOON)
    assert publish.request_removal(out, now=NOON).version == first.version


def test_hands_that_break_leave_it_published(out):
    publish.request_removal(out, now=NOON)
    publish_steps.give_up(claimed(out))
    row = reread(out)
    assert (row.status, row.step, row.wake_at, row.error["code"]) == ("published", "done", None, "gave_up")


def test_a_kill_between_the_call_and_its_record_takes_it_back_again(out, monkeypatch):
    """The platform is asked a second time, and finds it gone already."""
    publish.request_removal(out, now=NOON)

    class Killed(BaseException):
        pass

    def die(name):
        if name == "publish.removed":
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(removal, "crash_point", die)
        with pytest.raises(Killed):
            publish_steps.advance_publication(claimed(out))
    assert (reread(out).status, reread(out).step) == ("published", "remove")
    assert send(out).status == "removed"
