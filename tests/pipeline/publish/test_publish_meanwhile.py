"""What changes between the preparation, the call and the look-up, and what a platform answers that no row can hold."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from pipeline import publish, resources
from pipeline.ingest import erase_raw_item
from pipeline.models import Asset, Attempt, Outlet, Publication, RawItem
from pipeline.platforms import fitting
from pipeline.platforms.base import Absent, CannotTell, Found, Pending, Prepared, Ready, Sent
from pipeline.platforms.rules import BucketRule
from pipeline.platforms.simulated import Simulated
from pipeline.plugins import OutcomeUnknown, Problem, Refused
from pipeline.publish import send as sending
from pipeline.publish import steps
from pipeline.publish import steps as publish_steps
from pipeline.resources import ERROR_CLASSES
from pipeline.review import decisions
from pipeline.switches import kill_switch
from tests.pipeline.steps import NOON, calls, claimed, make_stage, promise, reread, send

HALF = "\ud83d"
"""Of a surrogate pair, as servers send that cut a text."""


@pytest.fixture
def posted(monkeypatch):
    """A platform without a key, which is asked by the words; its first answer is lost."""
    found = []

    def commit(self, account, post, state, **_):
        found.append(post.parts[0])
        if len(found) == 1:
            raise OutcomeUnknown("Lost.")
        return Sent("x")

    def reconcile(self, account, post, state, **_):
        return Found(Sent("x")) if post.parts[0] in found else Absent()

    def adapt(self, account, payload):
        return fitting.fit_text(payload, BucketRule(2800), account.config)

    monkeypatch.setattr(Simulated, "commit", commit)
    monkeypatch.setattr(Simulated, "reconcile", reconcile)
    monkeypatch.setattr(Simulated, "adapt", adapt)
    return found


@pytest.mark.parametrize("change", ["setting", "source"])
def test_a_look_up_asks_for_the_words_that_were_sent(ready, stage, posted, clock, change):
    RawItem.everywhere.filter(pk=ready.raw_item_id).update(url="https://news.example/other")
    Outlet.everywhere.filter(pk=stage.pk).update(config={"link": "end"})
    publication = send(promise(reread(ready), reread(stage)))
    assert publication.status == "unknown"
    if change == "setting":
        Outlet.everywhere.filter(pk=stage.pk).update(config={"link": "none"})
    else:
        erase_raw_item.erase(RawItem.everywhere.get(pk=ready.raw_item_id), now=NOON)
    clock.move_to(publication.next_attempt_at)
    assert (send(publication).status, len(posted)) == ("published", 1)


def test_an_outlet_that_is_switched_off_while_it_prepares_gets_nothing(workspace, ready, stage, monkeypatch):
    def prepare(self, account, post, state, **_):
        Outlet.everywhere.filter(pk=stage.pk).update(status="disabled")
        return Prepared({})

    monkeypatch.setattr(Simulated, "prepare", prepare)
    publication = send(promise(ready, stage))
    assert (publication.status, publication.attempts, calls(workspace)) == ("scheduled", 0, [])
    failed = send(publication)
    assert (failed.status, failed.error["code"], calls(workspace)) == ("failed", "outlet_disabled", [])


def test_a_call_has_a_whole_lease_however_long_the_lock_took(ready, stage, monkeypatch, clock):
    whole, left = sending.lock_item, []

    def slow(item):
        clock.shift(timedelta(seconds=55))
        return whole(item)

    def commit(self, *_, **__):
        left.append(Publication.everywhere.get().wake_at > timezone.now() + timedelta(seconds=20))
        return Sent("x")

    monkeypatch.setattr(sending, "lock_item", slow)
    monkeypatch.setattr(Simulated, "commit", commit)
    send(promise(ready, stage))
    assert left == [True]


def test_what_the_platform_said_outlives_a_lost_lease(ready, stage, monkeypatch, clock):
    publication = promise(ready, stage)

    def commit(self, *_, **__):
        # A machine that was suspended, say: another hand has looked meanwhile.
        clock.shift(timedelta(seconds=61))
        publish_steps.advance_publication(claimed(publication))
        return Sent("a", url="https://platform.example/a")

    monkeypatch.setattr(Simulated, "commit", commit)
    monkeypatch.setattr(Simulated, "reconcile", lambda *_, **__: CannotTell("Nobody knows."))
    sent = send(publication)
    assert (sent.status, sent.url) == ("published", "https://platform.example/a")
    assert list(Attempt.everywhere.values_list("status", flat=True)) == ["succeeded"]


@pytest.fixture
def uploads(monkeypatch):
    """What was uploaded, for a platform that is ready when the list `is_ready` says so."""
    uploaded, is_ready = [], []

    def prepare(self, account, post, state, **_):
        if "media" in state:
            return Prepared(state)
        uploaded.append(tuple(one.alt_text for one in post.payload.assets))
        return Prepared({"media": "1"})

    monkeypatch.setattr(Simulated, "prepare", prepare)
    monkeypatch.setattr(
        Simulated, "poll", lambda *_, **__: Ready() if is_ready else Pending(timedelta(seconds=30))
    )
    return uploaded, is_ready


def test_what_was_prepared_with_a_former_alt_text_is_prepared_again(workspace, ready, stage, uploads, clock):
    uploaded, is_ready = uploads
    asset = Asset.everywhere.create(
        workspace=workspace,
        item=ready,
        role="image",
        kind="image",
        name="a.png",
        path="x/a.png",
        mime_type="image/png",
        bytes=3,
        sha256="0" * 64,
        alt_text="Old.",
    )
    publication = send(promise(ready, stage))
    decisions.edit(reread(ready), {"alt_texts": {asset.pk: "New."}}, by="alice", now=NOON)
    is_ready.append(True)
    clock.shift(timedelta(seconds=31))
    assert (send(publication).status, uploaded) == ("published", [("Old.",), ("New.",)])


def test_limits_that_have_changed_meanwhile_hold(ready, stage, uploads, monkeypatch, clock):
    _, is_ready = uploads
    publication = send(promise(ready, stage))
    too_long = (Problem("body", "too_long", "It is too long."),)
    monkeypatch.setattr(Simulated, "validate", lambda *_: too_long)
    is_ready.append(True)
    clock.shift(timedelta(seconds=31))
    failed = send(publication)
    assert (failed.status, failed.error["code"]) == ("failed", "too_long")


def test_fitting_that_refuses_is_told(ready, stage, monkeypatch):
    publication = promise(ready, stage)

    def refuse(*_):
        message = "This can't be fitted."
        raise Refused(message, code="cannot_fit")

    monkeypatch.setattr(Simulated, "adapt", refuse)
    failed = send(publication)
    assert (failed.status, failed.error["code"]) == ("failed", "cannot_fit")


def test_half_a_sign_in_what_a_platform_says_is_no_obstacle(ready, stage, monkeypatch):
    def commit(self, *_, **__):
        raise Refused(f"Refused: {HALF}\0", platform_message=f"your text {HALF}")

    monkeypatch.setattr(Simulated, "commit", commit)
    failed = send(promise(ready, stage))
    assert (failed.status, failed.error["message"], failed.error["platform_message"]) == (
        "failed",
        "Refused: ?",
        "your text ?",
    )


def test_half_a_sign_in_what_a_platform_answers_is_no_obstacle(ready, stage, monkeypatch):
    sent = Sent(f"x{HALF}", url=f"https://x.example/{HALF}", details={"uris": [f"at://{HALF}\0"]})
    monkeypatch.setattr(Simulated, "commit", lambda *_, **__: sent)
    published = send(promise(ready, stage))
    assert (published.status, published.external_id, published.url, published.details) == (
        "published",
        "x?",
        "https://x.example/?",
        {"uris": ["at://?"]},
    )


@pytest.fixture
def finished(monkeypatch):
    seen = []
    monkeypatch.setattr(Simulated, "has_finish", True)
    monkeypatch.setattr(Simulated, "finish", lambda self, account, post, sent, **_: seen.append(sent))
    return seen


def test_nothing_is_added_to_a_post_that_only_a_person_saw(ready, stage, finished, monkeypatch):
    def lost(*_, **__):
        raise OutcomeUnknown("Lost.")

    monkeypatch.setattr(Simulated, "commit", lost)
    publication = send(promise(ready, stage))
    publish.settle_publication(publication, was_sent=True, by="operator", now=NOON)
    assert (send(publication).step, finished) == ("done", [])


def test_a_hand_that_is_killed_after_what_follows_does_it_again(ready, stage, finished, monkeypatch):
    publication = send(promise(ready, stage))

    class Killed(BaseException):
        """The process is gone."""

    def kill(name):
        if name == "publish.finished":
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(steps, "crash_point", kill)
        with pytest.raises(Killed):
            send(publication)
    assert (reread(publication).status, reread(publication).step) == ("published", "finish")
    assert (send(publication).step, len(finished)) == ("done", 2)


@pytest.mark.parametrize(
    ("how", "step"), [("stopped", "finish"), ("disabled", "finish"), ("erased", "done"), ("", "done")]
)
def test_what_follows_waits_as_the_post_would(ready, stage, finished, how, step):
    publication = send(promise(ready, stage))
    if how == "stopped":
        kill_switch.stop("publishing", actor="operator", reason="Emergency.")
    elif how == "disabled":
        Outlet.everywhere.filter(pk=stage.pk).update(status="disabled")
    elif how == "erased":
        decisions.erase(reread(ready), now=NOON)
    assert (send(publication).step, len(finished)) == (step, int(not how))


def test_short_waits_of_a_platform_do_not_use_all_tries_up(workspace, ready, clock):
    publication = promise(ready, make_stage(workspace, "429", "429", "429", "429", "ok"))
    for _ in range(5):
        clock.move_to(reread(publication).next_attempt_at or NOON)
        publication = send(publication)
    assert (publication.status, timezone.now() - NOON) == ("published", timedelta(seconds=1 + 3 * 30))


def test_erasing_an_item_erases_its_receipts(ready, stage):
    publication = send(promise(ready, stage))
    assert Attempt.everywhere.get(publication=publication).receipt["body"] == ready.body
    decisions.erase(reread(ready), now=NOON)
    assert Attempt.everywhere.get(publication=publication).receipt is None


def test_failures_of_an_earlier_release_have_the_class_of_now(ready, stage):
    publication = promise(ready, stage)
    old = {
        "code": "x",
        "class": "OutcomeUnknown",
        "message": "m",
        "retryable": False,
        "platform_status": None,
    }
    Publication.everywhere.filter(pk=publication.pk).update(error=old)
    shown = resources.Publication.serialize(reread(publication), now=NOON)["error"]
    assert shown == {**old, "class": "unknown", "action": "", "platform_message": None}
    assert shown["class"] in ERROR_CLASSES
