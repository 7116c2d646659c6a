"""One post, also where a lease ends in the middle of a call; and what a platform says too late is kept and told."""

from __future__ import annotations

import threading
import time
from datetime import timedelta

import pytest
import time_machine
from django.db import connection
from django.utils import timezone

from accounts.models import Notice
from config.core.http_client import TimedOut
from config.core.ids import encode
from pipeline import limits, publish, resources
from pipeline.ingest import erase_raw_item
from pipeline.models import Attempt, Outlet, Publication, PublishHold, RawItem
from pipeline.platforms.base import Absent, Found, Prepared, Sent
from pipeline.platforms.simulated import Simulated
from pipeline.plugins import OutcomeUnknown, Problem, TryLater
from pipeline.publish import reconciliation
from pipeline.publish import record_outcome as results
from pipeline.publish import send as sending
from pipeline.publish import steps as publish_steps
from pipeline.publish.late_answers import record_despite_lost_lease
from pipeline.review import decisions
from tests import claims
from tests.pipeline.steps import (
    MINUTE,
    NOON,
    accepted,
    attempts,
    calls,
    claimed,
    make_stage,
    promise,
    reread,
    send,
    state,
)

LEASE = timedelta(seconds=60)
CALL = timedelta(seconds=50)
SETTLES = MINUTE
FIRST, SECOND = "https://platform.example/first", "https://platform.example/second"
COUNTS_AT = NOON + CALL + SETTLES


class Killed(BaseException):
    """The process is gone."""


@pytest.fixture(autouse=True)
def settles(monkeypatch):
    monkeypatch.setattr(Simulated, "settles", SETTLES)


# --- Absence ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def running_clock(clock, monkeypatch):
    """The time of the machine, for a real wait."""
    with time_machine.travel(timezone.now(), tick=True):
        yield


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("running_clock")
def test_a_lease_that_ends_in_the_middle_of_a_call_makes_one_post(workspace, ready, settings, monkeypatch):
    """By a real wait: the call takes longer than its lease, and another hand looks meanwhile."""
    for module in (results, sending, reconciliation):
        monkeypatch.setattr(module, "LEASE", timedelta(seconds=0.5))
    for module in (sending, reconciliation):
        monkeypatch.setattr(module, "LONGEST_CALL", timedelta(seconds=4))
    monkeypatch.setattr(Simulated, "settles", timedelta(0))
    monkeypatch.setattr(limits, "PUBLISH_RETRIES", (timedelta(0),) * 4)
    # The server stores a post, and answers, after that long.
    settings.SIMULATED_LATENCY_MS = 2000
    publication = promise(ready, make_stage(workspace))
    row = claimed(publication)

    def call():
        try:
            publish_steps.advance_publication(row)
        finally:
            connection.close()

    hand = threading.Thread(target=call)
    hand.start()
    looks = 0
    until = time.monotonic() + 30
    while hand.is_alive() or reread(publication).status != "published":
        assert time.monotonic() < until, reread(publication).status
        time.sleep(0.02)
        for one in claims.begun(Publication, limit=5, per_workspace=5, lease=results.LEASE):
            looks += 1
            publish_steps.advance_publication(one)
    hand.join()
    assert looks >= 1
    assert (len(accepted(workspace)), attempts(publication)) == (1, [(1, 1, "succeeded")])


def test_absence_counts_after_the_calls_deadline_and_the_platforms_settling_time(workspace, ready, clock):
    publication = send(promise(ready, make_stage(workspace, "error")))
    clock.move_to(publication.next_attempt_at)
    waiting = send(publication)
    assert (waiting.status, waiting.next_attempt_at, waiting.wake_at) == ("unknown", COUNTS_AT, COUNTS_AT)
    assert (waiting.error["code"], waiting.error["message"]) == (
        "not_there_yet",
        reconciliation.NOT_THERE_YET_MESSAGE,
    )
    clock.move_to(COUNTS_AT)
    again = send(publication)
    assert (again.status, again.error["code"], again.next_attempt_at) == (
        "scheduled",
        "not_accepted",
        COUNTS_AT + MINUTE,
    )


def test_a_person_who_asks_for_a_look_changes_nothing_of_that(workspace, ready, clock):
    publication = send(promise(ready, make_stage(workspace, "error")))
    clock.shift(timedelta(seconds=20))
    publish.reconcile_now(publication, now=timezone.now())
    assert state(publication, "wake_at")["wake_at"] == timezone.now()
    assert (send(publication).status, reread(publication).wake_at) == ("unknown", COUNTS_AT)


def test_after_a_persons_word_nothing_is_sent_beside_a_call_that_may_go_on(workspace, ready, clock):
    publication = send(promise(ready, make_stage(workspace, "error")))
    clock.shift(timedelta(seconds=5))
    settled = publish.settle_publication(publication, was_sent=False, by="op", now=timezone.now())
    assert (settled.status, settled.next_attempt_at) == ("scheduled", COUNTS_AT)


def test_what_gets_through_after_its_hand_was_killed_is_found(workspace, ready, clock, monkeypatch):
    there = []

    def commit(self, *_, **__):
        raise Killed

    monkeypatch.setattr(Simulated, "commit", commit)
    monkeypatch.setattr(
        Simulated, "reconcile", lambda *_, **__: Found(Sent("first", FIRST)) if there else Absent()
    )
    publication = promise(ready, make_stage(workspace))
    with pytest.raises(Killed):
        send(publication)
    clock.shift(LEASE)
    assert (send(publication).status, reread(publication).wake_at) == ("unknown", COUNTS_AT)
    # The platform's own queue was slow.
    there.append(1)
    clock.move_to(COUNTS_AT)
    assert (send(publication).status, attempts(publication)) == ("published", [(1, 1, "succeeded")])


def test_a_thread_of_which_the_beginning_is_there_goes_on_when_its_call_is_over(
    workspace, ready, clock, monkeypatch
):
    """The rest would else be sent beside a call that is still sending it."""
    sent = ["1"]
    monkeypatch.setattr(Simulated, "reconcile", lambda *_, **__: Absent(len(sent), 3))

    def commit(self, *_, **__):
        if attempts(publication)[-1][0] == 1:
            raise OutcomeUnknown("Lost after the first.", code="thread_unfinished")
        sent.extend(["2", "3"])
        return Sent("1", FIRST)

    monkeypatch.setattr(Simulated, "commit", commit)
    publication = promise(ready, make_stage(workspace))
    send(publication)
    clock.shift(timedelta(seconds=5))
    assert (send(publication).status, sent) == ("unknown", ["1"])
    clock.move_to(COUNTS_AT)
    assert (send(publication).status, reread(publication).error["code"]) == (
        "scheduled",
        "thread_unfinished",
    )
    clock.move_to(reread(publication).next_attempt_at)
    assert (send(publication).status, sent) == ("published", ["1", "2", "3"])


# --- The call --------------------------------------------------------------------------------------------------------


@pytest.fixture
def steps_made(monkeypatch):
    """A platform that makes a thread of three posts, request by request; between them happens what the test says."""
    made, between, reached = [], [], []

    def commit(self, account, post, state, *, http, key, now):
        for part in range(3):
            try:
                http.request("GET", f"https://simulated.invalid/posts?ref=part-{part}")
            except TimedOut as error:
                reached.append(error.may_have_reached)
                raise OutcomeUnknown(f"{part} of 3 are public. {error}", code="thread_unfinished") from error
            made.append(part)
            if between:
                between.pop()()
        return Sent("1")

    monkeypatch.setattr(Simulated, "commit", commit)
    yield made, between
    assert reached == [False]


def test_no_request_of_a_call_follows_its_deadline(workspace, ready, clock, steps_made):
    made, between = steps_made
    between.append(lambda: clock.shift(CALL))
    publication = send(promise(ready, make_stage(workspace)))
    assert (publication.status, made) == ("unknown", [0])
    assert publication.error["message"] == "1 of 3 are public. The 50 seconds of the whole call were over."


def test_no_request_of_a_call_follows_once_another_hand_has_it(workspace, ready, clock, steps_made):
    made, between = steps_made
    publication = promise(ready, make_stage(workspace))
    between.append(lambda: claimed(publication))
    send(publication)
    assert (made, reread(publication).status) == ([0], "publishing")


def test_each_request_has_what_is_left_of_the_whole_calls_time(workspace, ready, clock, monkeypatch):
    given = []

    def commit(self, account, post, state, *, http, key, now):
        monkeypatch.setattr(
            type(http._client), "request", lambda _self, *_, **options: given.append(options["timeout"])
        )
        http.request("POST", "https://simulated.invalid/posts", timeout=45)
        clock.shift(timedelta(seconds=40))
        http.request("POST", "https://simulated.invalid/posts", timeout=45)
        return Sent("1")

    monkeypatch.setattr(Simulated, "commit", commit)
    send(promise(ready, make_stage(workspace)))
    assert given == [45, pytest.approx(10, abs=0.5)]


def test_the_call_is_shorter_than_its_lease():
    assert sending.LONGEST_CALL < results.LEASE


def test_the_simulated_platform_keeps_its_caller_no_longer_than_it_waits(workspace, ready, settings):
    settings.SIMULATED_LATENCY_MS = 60_000
    publication = promise(ready, make_stage(workspace))
    row = claimed(publication)

    began = time.monotonic()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sending, "LONGEST_CALL", timedelta(seconds=0.2))
        publish_steps.advance_publication(row)
    assert time.monotonic() - began < 20
    assert (reread(publication).status, calls(workspace)) == ("unknown", [])


# --- Late answers ----------------------------------------------------------------------------------------------------


@pytest.fixture
def slow(monkeypatch, clock):
    """A platform that takes the first call long after its deadline; `meanwhile` happens before it answers."""
    meanwhile, there = [], []

    def commit(self, *_, **__):
        if there or not meanwhile:
            there.append("second")
            return Sent("second", SECOND, {"ids": ["second"]})
        for act in meanwhile:
            act()
        there.append("first")
        return Sent("first", FIRST, {"ids": ["first"]})

    monkeypatch.setattr(Simulated, "commit", commit)
    monkeypatch.setattr(Simulated, "reconcile", lambda *_, **__: Absent())
    return meanwhile, there


def give_up(publication, clock):
    """Other hands find the lease at its end, and then the post absent when that counts."""
    clock.shift(LEASE)
    publish_steps.advance_publication(claimed(publication))
    clock.move_to(COUNTS_AT)
    publish_steps.advance_publication(claimed(publication))
    assert reread(publication).status == "scheduled"


def late_answers(publication):
    rows = Attempt.everywhere.filter(publication=publication).order_by("number")
    return [(one.number, one.status, (one.late_answer or {}).get("external_id")) for one in rows]


def test_a_late_answer_before_anything_was_sent_again_is_the_outcome(workspace, ready, clock, slow):
    meanwhile, there = slow
    publication = promise(ready, make_stage(workspace))
    meanwhile.append(lambda: give_up(publication, clock))
    sent = send(publication)
    assert (sent.status, sent.external_id, sent.url, sent.details, sent.error) == (
        "published",
        "first",
        FIRST,
        {"ids": ["first"]},
        None,
    )
    assert late_answers(publication) == [(1, "failed", "first")]
    clock.shift(timedelta(hours=3))
    send(publication)
    assert there == ["first"]


def test_a_late_answer_of_former_words_is_published_with_those(workspace, ready, clock, slow):
    meanwhile, _ = slow
    publication = promise(ready, make_stage(workspace))

    def edit():
        decisions.edit(reread(ready), {"body": "Other words."}, by="alice", now=timezone.now())

    meanwhile.extend([lambda: give_up(publication, clock), edit])
    assert (send(publication).status, reread(publication).revision) == ("published", 1)


def test_a_late_answer_ends_a_failure(workspace, ready, clock, slow):
    meanwhile, there = slow
    publication = promise(ready, make_stage(workspace))

    def fail():
        Outlet.everywhere.filter(pk=publication.outlet_id).update(status="disabled")
        clock.move_to(reread(publication).next_attempt_at)
        assert send(publication).status == "failed"

    meanwhile.extend([lambda: give_up(publication, clock), fail])
    assert (send(publication).status, reread(publication).external_id, there) == (
        "published",
        "first",
        ["first"],
    )


def test_both_ids_are_shown_where_it_was_sent_again(workspace, ready, clock, slow):
    meanwhile, there = slow
    publication = promise(ready, make_stage(workspace))

    def send_again():
        clock.move_to(reread(publication).next_attempt_at)
        there.append("first, not listed yet")
        assert send(publication).status == "published"

    meanwhile.extend([lambda: give_up(publication, clock), send_again])
    sent = send(publication)
    assert (sent.status, sent.external_id) == ("published", "second")
    assert late_answers(publication) == [(1, "failed", "first"), (2, "succeeded", None)]
    shown = resources.Publication.serialize(sent, now=timezone.now())["error"]
    assert shown["code"] == "posted_twice"
    assert shown["message"].startswith("It may have been published twice, as second and as first:")
    assert shown["action"] == f"Check both on the platform, and delete one ({FIRST})."
    made = resources.Attempt.serialize(Attempt.everywhere.get(publication=publication, number=1))
    assert made["late_answer"] == {
        "external_id": "first",
        "url": FIRST,
        "at": timezone.now().strftime("%Y-%m-%dT%H:%M:%S.000Z"),
    }
    notice = Notice.everywhere.get(workspace=workspace, kind="post_failed")
    assert (notice.path, FIRST in notice.text) == (f"items/{encode('gen', ready.pk)}", True)


def test_what_was_cancelled_and_is_public_after_all_says_so(workspace, ready, clock, slow):
    meanwhile, _ = slow
    publication = promise(ready, make_stage(workspace))
    meanwhile.extend(
        [
            lambda: give_up(publication, clock),
            lambda: publish.cancel(reread(ready), now=timezone.now()),
        ]
    )
    sent = send(publication)
    assert (sent.status, sent.error["code"]) == ("cancelled", "posted_after_all")
    assert sent.error["action"] == f"Delete it on the platform, or leave it ({FIRST})."
    assert Notice.everywhere.filter(workspace=workspace, kind="post_failed").count() == 1


def test_a_late_answer_names_what_a_person_said_was_sent(workspace, ready, clock, slow):
    meanwhile, _ = slow
    publication = promise(ready, make_stage(workspace))

    def settle():
        clock.shift(LEASE)
        publish_steps.advance_publication(claimed(publication))
        publish.settle_publication(reread(publication), was_sent=True, by="op", now=timezone.now())

    meanwhile.append(settle)
    sent = send(publication)
    assert (sent.status, sent.external_id, sent.url, sent.error) == ("published", "first", FIRST, None)
    assert late_answers(publication) == [(1, "succeeded", None)]


@pytest.mark.parametrize("second", ["taken", "refused", "lost"])
def test_a_late_answer_while_it_is_sent_again_waits_for_that_calls_outcome(
    workspace, ready, clock, monkeypatch, second
):
    """Whatever becomes of the second call, there is no third, and no id is lost."""
    made = []

    def commit(self, *_, **__):
        made.append(1)
        if len(made) == 1:
            give_up(publication, clock)
            clock.move_to(reread(publication).next_attempt_at)
            waiting.append(claimed(publication))
            first = Attempt.everywhere.get(publication=publication, number=1)
            hand = waiting[0]

            def again():
                publish_steps.advance_publication(hand)

            inner.append(first)
            again()
            raise Killed
        # In the middle of the second call the first one is answered.
        row = reread(publication)
        row.lease_token -= 1
        record_despite_lost_lease(row, Sent("first", FIRST), inner[0])
        assert reread(publication).status == "publishing"
        if second == "refused":
            raise TryLater("Busy.")
        if second == "lost":
            raise OutcomeUnknown("Lost.")
        return Sent("second", SECOND)

    waiting, inner = [], []
    monkeypatch.setattr(Simulated, "commit", commit)
    monkeypatch.setattr(Simulated, "reconcile", lambda *_, **__: Absent())
    publication = promise(ready, make_stage(workspace))
    with pytest.raises(Killed):
        send(publication)
    if second == "lost":
        assert reread(publication).status == "unknown"
        clock.shift(CALL + SETTLES)
        send(publication)
    row = reread(publication)
    assert (row.status, len(made)) == ("published", 2)
    if second == "taken":
        assert (row.external_id, row.error["code"]) == ("second", "posted_twice")
    else:
        assert (row.external_id, row.error) == ("first", None)
        assert late_answers(publication) == [(1, "failed", "first"), (2, "failed", None)]


# --- After absent ----------------------------------------------------------------------------------------------------


def withdraw(ready, stage, patch):
    erase_raw_item.erase(RawItem.everywhere.get(pk=ready.raw_item_id), now=NOON)


def switch_off(ready, stage, patch):
    Outlet.everywhere.filter(pk=stage.pk).update(status="disabled")


def hold(ready, stage, patch):
    PublishHold.everywhere.create(workspace=ready.workspace, reason="Wait.")


def shorten(ready, stage, patch):
    patch.setattr(Simulated, "validate", lambda *_: (Problem("body", "too_long", "It is too long."),))


def edit(ready, stage, patch):
    decisions.edit(reread(ready), {"body": "Other words."}, by="alice", now=NOON)


def edit_and_approve(ready, stage, patch):
    edit(ready, stage, patch)
    decisions.approve(reread(ready), by="alice", now=NOON)


def cap(ready, stage, patch):
    Outlet.everywhere.filter(pk=stage.pk).update(rests_until=NOON + timedelta(days=1))


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        (withdraw, "scheduled", "not_accepted"),
        (switch_off, "failed", "outlet_disabled"),
        (hold, "scheduled", "not_accepted"),
        (shorten, "failed", "too_long"),
        (cap, "scheduled", "not_accepted"),
        (edit, "scheduled", "not_accepted"),
        (edit_and_approve, "published", None),
        (None, "published", None),
    ],
)
@pytest.mark.parametrize("there", [0, 1])
def test_what_is_absent_is_prepared_anew_before_its_next_call(
    workspace, ready, clock, monkeypatch, change, status, code, there
):
    """The whole post, and the rest of a thread (`there`) too."""
    prepared = []

    def prepare(self, account, post, state, **_):
        prepared.append(post.payload.body)
        return Prepared({"media": "1"})

    monkeypatch.setattr(Simulated, "prepare", prepare)
    stage = make_stage(workspace, "error")
    publication = send(promise(ready, stage))
    monkeypatch.setattr(Simulated, "reconcile", lambda *_, **__: Absent(there, 3))
    clock.move_to(COUNTS_AT)
    publication = send(publication)
    assert (publication.status, publication.step, len(prepared)) == ("scheduled", "prepare", 1)
    clock.move_to(publication.next_attempt_at)
    if change is not None:
        change(ready, stage, monkeypatch)
    again = send(publication)
    assert again.status == status
    if status == "published":
        body = "Other words." if change is edit_and_approve else ready.body
        assert (prepared, accepted(workspace)) == ([ready.body, body], [(publish.key_of(again), body)])
    else:
        expected = "thread_unfinished" if there and code == "not_accepted" else code
        assert (again.error["code"], accepted(workspace), calls(workspace)) == (expected, [], ["error"])
