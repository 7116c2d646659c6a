"""The simulated platform's server, and the promises that hold whatever people and the platform do."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import transaction
from django.utils import timezone
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from accounts.ledger import reports
from config.core.errors import AppError
from config.core.http_client import TimedOut
from config.core.ids import encode, uuid7
from pipeline import publish
from pipeline.models import Event, GeneratedItem, Outlet, Publication, SimulatedPost
from pipeline.outlets import simulated_server
from pipeline.outlets.outlet_client import account_of, connect
from pipeline.outlets.simulated_server import SimulatedServer
from pipeline.platforms.simulated import BASE_URL, MAX_TEXT_CHARACTERS, SCRIPT_WORDS, made_up_metrics
from pipeline.publish import reconciliation
from pipeline.publish import send as sending
from pipeline.publish import steps as publish_steps
from pipeline.review import decisions
from pipeline.states import derive_status
from tests.pipeline import steps
from tests.pipeline.steps import NOON, make_items, make_stage, reread, send
from tests.sizes import size


@pytest.fixture
def server(workspace):
    return SimulatedServer(workspace.pk)


def post(server, ref="pub_1", script=(), **changes):
    outlet = encode("out", uuid7())
    given = {"ref": ref, "outlet": outlet, "title": "T", "body": "Words.", "script": list(script), **changes}
    return server.request("POST", f"{BASE_URL}/posts", json=given)


def found(server, ref="pub_1"):
    import json

    return json.loads(server.request("GET", f"{BASE_URL}/posts?ref={ref}").body)["data"]


@pytest.mark.parametrize(
    ("word", "status", "is_accepted"),
    [
        ("ok", 201, True),
        ("slow", 201, True),
        ("429", 429, False),
        ("reject", 422, False),
        ("expired", 401, False),
        ("error", 500, False),
    ],
)
def test_server_answers_each_word_as_its_protocol_says(server, monkeypatch, word, status, is_accepted):
    monkeypatch.setattr(simulated_server, "SLOW_SECONDS", 0.0)
    answer = post(server, script=[word])
    row = SimulatedPost.everywhere.get()
    assert (answer.status, row.answer, row.is_accepted, row.title, row.body) == (
        status,
        word,
        is_accepted,
        "T",
        "Words.",
    )
    assert answer.headers.get("retry-after") == ("1" if word == "429" else None)
    assert [one["id"] for one in found(server)] == ([encode("sim", row.pk)] if is_accepted else [])


@pytest.mark.parametrize(
    ("word", "reached"), [("timeout_after_accept", True), ("timeout_before_accept", False)]
)
def test_server_times_out_after_or_before_it_took_the_post(server, word, reached):
    with pytest.raises(TimedOut) as raised:
        post(server, script=[word])
    assert (raised.value.may_have_reached, len(found(server))) == (reached, int(reached))


def test_server_plays_its_script_call_by_call_and_then_says_ok(server):
    statuses = [post(server, script=["429", "reject"]).status for _ in range(4)]
    assert (statuses, len(found(server))) == ([429, 422, 201, 201], 2)
    assert post(server, ref="pub_2", script=["reject"]).status == 422


def test_server_refuses_what_is_too_long_whatever_the_script_says(server):
    assert [
        post(server, body="x" * length).status for length in (MAX_TEXT_CHARACTERS, MAX_TEXT_CHARACTERS + 1)
    ] == [201, 422]


def test_server_that_fell_silent_cannot_be_asked(server):
    with pytest.raises(TimedOut) as caught:
        post(server, script=["silence"])
    asked = server.request("GET", f"{BASE_URL}/posts?ref=pub_1")
    assert (caught.value.may_have_reached, asked.status) == (True, 503)


def test_server_knows_one_workspace_alone(server, charlies):
    post(server)
    assert (len(found(server)), found(SimulatedServer(charlies.pk))) == (1, [])


def test_server_counts_what_is_stored(workspace):
    later = NOON + timedelta(days=2)
    post(SimulatedServer(workspace.pk))
    post_id = encode("sim", SimulatedPost.everywhere.get().pk)
    counting = SimulatedServer(workspace.pk, clock=lambda: later)
    answer = counting.request("GET", f"{BASE_URL}/metrics?ids={post_id},{encode('sim', uuid7())},x")
    import json

    assert json.loads(answer.body) == {"data": {post_id: made_up_metrics(post_id, NOON, later)}}


@pytest.mark.parametrize(("method", "path"), [("GET", "/x"), ("DELETE", "/posts"), ("POST", "/metrics")])
def test_server_has_nothing_elsewhere(server, method, path):
    assert server.request(method, f"{BASE_URL}{path}").status == 404


def test_connection_reaches_the_simulated_server_and_tells_the_feed_its_address(workspace, stage, feed):
    assert isinstance(connect(stage).http, SimulatedServer)
    assert not isinstance(connect(feed).http, SimulatedServer)
    assert account_of(stage).config == {}
    assert account_of(feed).config["feed_url"].endswith(f"/feeds/{feed.secret}.atom")
    assert account_of(feed).outlet == encode("out", feed.pk)
    assert feed.config == {}


# --- Whatever happens ------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """Stands for kill -9: nothing of ours may catch it."""


class Pipeline(RuleBasedStateMachine):
    """People and hands in any order over two items, two outlets and any script; time passes as it likes."""

    workspace: Any

    def __init__(self) -> None:
        super().__init__()
        self.clock = time_machine.travel(NOON, tick=False)
        self.traveller = self.clock.__enter__()
        self.savepoint = transaction.atomic()
        self.savepoint.__enter__()
        self.items = make_items(self.workspace, external_id=uuid7().hex, url="", variants=2, test=True)
        self.stages = [make_stage(self.workspace), make_stage(self.workspace)]

    def teardown(self) -> None:
        transaction.set_rollback(True)
        self.savepoint.__exit__(None, None, None)
        self.clock.__exit__(None, None, None)

    def publications(self) -> list[Publication]:
        return list(Publication.everywhere.filter(item__in=self.items).order_by("id"))

    @rule(
        word=st.lists(st.sampled_from([one for one in SCRIPT_WORDS if one != "slow"]), max_size=3),
        which=st.integers(0, 1),
    )
    def rewrite_the_script(self, word, which):
        Outlet.everywhere.filter(pk=self.stages[which].pk).update(config={"script": word})

    @rule(which=st.integers(0, 1), outlets=st.integers(1, 3), ahead=st.sampled_from([0, 0, 10]))
    def publish(self, which, outlets, ahead):
        named = [stage for place, stage in enumerate(self.stages) if outlets & (1 << place)]
        wish = steps.to(
            *named, publish_at=timezone.now() + timedelta(minutes=ahead), keep_siblings=bool(ahead)
        )
        with suppress(AppError):
            publish.request(self.items[which], wish, by="alice")

    @rule(which=st.integers(0, 1))
    def cancel(self, which):
        with suppress(AppError):
            publish.cancel(self.items[which], now=timezone.now())

    @rule(which=st.integers(0, 3))
    def retry(self, which):
        rows = self.publications()
        with suppress(AppError):
            if rows:
                publish.retry(rows[which % len(rows)], by="alice", now=timezone.now())

    @rule(which=st.integers(0, 3))
    def reconcile(self, which):
        rows = self.publications()
        with suppress(AppError):
            if rows:
                publish.reconcile_now(rows[which % len(rows)], now=timezone.now())

    @rule(which=st.integers(0, 1), words=st.text("abc", min_size=1, max_size=3))
    def edit(self, which, words):
        with suppress(AppError):
            decisions.edit(self.items[which], {"body": words}, by="alice", now=timezone.now())

    @rule(which=st.integers(0, 1))
    def approve(self, which):
        with suppress(AppError):
            decisions.approve(self.items[which], by="alice", now=timezone.now())

    @rule(which=st.integers(0, 1))
    def reject(self, which):
        with suppress(AppError):
            decisions.reject(self.items[which], reason="", by="alice", now=timezone.now())

    @rule(which=st.integers(0, 1))
    def restore(self, which):
        with suppress(AppError):
            decisions.restore(self.items[which], now=timezone.now())

    @rule(minutes=st.sampled_from([0, 1, 30, 120]))
    def hands_work_what_is_due(self, minutes):
        self.traveller.shift(timedelta(minutes=minutes))
        for row in Publication.everywhere.filter(item__in=self.items, wake_at__lte=timezone.now()):
            send(row)

    @rule(point=st.sampled_from(["publish.claimed", "publish.armed", "publish.sent", "publish.reconciled"]))
    def hand_is_killed(self, point):
        def die(name):
            if name == point:
                raise Killed

        due = Publication.everywhere.filter(item__in=self.items, wake_at__lte=timezone.now()).first()
        if due is None:
            return
        with pytest.MonkeyPatch.context() as patch, suppress(Killed):
            for module in (publish_steps, sending, reconciliation):
                patch.setattr(module, "crash_point", die)
            publish_steps.advance_publication(steps.claimed(due))

    @rule()
    def hand_gives_up(self):
        due = Publication.everywhere.filter(item__in=self.items, wake_at__lte=timezone.now()).first()
        if due is not None:
            publish_steps.give_up(steps.claimed(due))

    @invariant()
    def items_say_what_their_publications_came_to(self):
        for item in self.items:
            rows = Publication.everywhere.filter(item=item).values_list("status", flat=True)
            left = [status for status in rows if status != "cancelled"]
            if left:
                assert reread(item).status == derive_status(left)
            else:
                assert reread(item).status in {"ready", "rejected"}

    @invariant()
    def nothing_is_published_twice(self):
        for row in self.publications():
            posts = SimulatedPost.everywhere.filter(ref=encode("pub", row.pk), is_accepted=True).count()
            assert posts <= 1
            if row.status == "published":
                assert posts == 1
            if row.status in {"cancelled", "failed", "scheduled"}:
                assert posts == 0

    @invariant()
    def everything_open_is_looked_at_again(self):
        for row in self.publications():
            assert (row.wake_at is not None) == (row.status in {"scheduled", "publishing", "unknown"})

    @invariant()
    def every_success_is_told_once(self):
        for row in self.publications():
            told = Event.everywhere.filter(publication_id=row.pk, type="published.success").count()
            assert told == int(row.status == "published")

    @invariant()
    def the_ledger_is_balanced(self):
        assert reports.check() == []


def test_promises_hold_whatever_people_and_the_platform_do(workspace):
    machine = type("OfThisWorkspace", (Pipeline,), {"workspace": workspace})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=size(8, 50),
            stateful_step_count=30,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert GeneratedItem.everywhere.count() == 0
