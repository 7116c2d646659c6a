"""Idempotency-Key on every POST: one effect, one answer, replayed byte for byte."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from accounts.ledger import credits as credit_account
from accounts.models import AuditEntry, IdempotencyKey, LedgerEntry
from config.core import task_runner
from pipeline.api import raw_items
from pipeline.models import (
    Event,
    GeneratedItem,
    Generation,
    InboundDelivery,
    Publication,
    PublishHold,
    RawItem,
    Recurrence,
    Series,
    SeriesIssue,
    Source,
    Topic,
    WeekPlan,
)
from tests.contracts.conftest import problem, refusal
from tests.contracts.routes import ROUTES, name_of

# A preview takes its time and stores nothing: there is no effect to have once. An upload is a form, not JSON:
# tests/contracts/test_uploads.py.
ELSEWHERE = {"source-preview", "uploads"}
POSTS = [route for route in ROUTES if route.method == "POST" and route.name not in ELSEWHERE]
OWN = {"X-Request-Id", "RateLimit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "Idempotency-Replayed"}
TABLES = (
    AuditEntry,
    InboundDelivery,
    Source,
    Topic,
    RawItem,
    Generation,
    GeneratedItem,
    Publication,
    Event,
    LedgerEntry,
    PublishHold,
    Recurrence,
    Series,
    SeriesIssue,
    WeekPlan,
)


def _path_and_body(newsroom, route):
    key = {
        "source-poll": lambda: newsroom.source(type="rss", config={"url": "https://example.test/feed"})["id"],
        "inbound-delivery-replay": lambda: newsroom.delivery(newsroom.source()["id"]),
        "source-dry-run": lambda: newsroom.source()["id"],
        "source-rotate-secret": lambda: newsroom.source(config={"verification": {"type": "bearer"}})["id"],
        "raw-retry": lambda: _failed_raw(newsroom),
        "generated-restore": lambda: _rejected(newsroom),
        "generated-retry": lambda: newsroom.failed()["id"],
        "publication-reconcile": lambda: newsroom.publication("timeout_after_accept")["id"],
        "publication-settle": lambda: newsroom.publication("error")["id"],
        "publication-remove": lambda: newsroom.publication("ok")["id"],
        "plans": lambda: newsroom.ready()["id"],
        "plan-undo": lambda: newsroom.planned()["id"],
        "series-make": lambda: _told_series(newsroom),
        "publication-retry": lambda: newsroom.publication("reject")["id"],
    }.get(route.name, lambda: newsroom.ready()["id"] if route.prefix == "gen" else "")()
    body = {
        "publication-settle": {"published": True},
        "hold": {"reason": "A crisis"},
        "sources": {"type": "webhook", "name": "Bridge"},
        "raw": newsroom.content(),
        "estimate": newsroom.content(),
        "topics": {"title": "Winter in the harbour"},
        "personas": {"name": "Mira"},
        "series": {"name": "Weekly", "slots": [{"weekday": 4, "time": "09:00"}]},
        "source-dry-run": {"payload": {"title": "Storm"}},
        "generated-reject": {"reason": "Off topic"},
    }.get(route.name, {})
    if route.name == "recurrences":
        body = {"generated_item": newsroom.ready()["id"], "every_days": 30}
    return route.path.format(id=key), body


def _failed_raw(newsroom):
    raw = newsroom.push()
    GeneratedItem.everywhere.update(status="failed")
    Generation.everywhere.update(status="failed", wake_at=None)
    RawItem.everywhere.update(status="failed")
    return raw["id"]


def _told_series(newsroom):
    newsroom.stories()
    return newsroom.series()["id"]


def _rejected(newsroom):
    item = newsroom.ready()
    newsroom.api.post(f"/generated/{item['id']}/reject")
    return item["id"]


def _everything():
    return {table.__name__: list(table.everywhere.order_by("pk").values()) for table in TABLES}


def _headers(answer):
    return {name: value for name, value in answer.headers.items() if name not in OWN}


def test_same_request_again_is_a_replay_without_an_effect_and_another_body_is_refused(alice, each_case):
    message = "This Idempotency-Key was used with another request; make a new key for each new request."
    reused = problem("idempotency_key_reused", ("Idempotency-Key", "idempotency_key_reused", message))

    def check(route):
        path, body = _path_and_body(alice, route)
        before = _everything()
        headers = {"Idempotency-Key": "one"}
        first = alice.api.post(path, body, headers=headers)
        assert 200 <= first.status_code < 300, first.content
        assert "Idempotency-Replayed" not in first
        after = _everything()
        assert (after == before) is (route.name in {"estimate", "source-dry-run"})
        for form in (path, f"{path}/"):
            again = alice.api.post(form, body, headers=headers)
            assert (again.status_code, again.content) == (first.status_code, first.content)
            assert again["Idempotency-Replayed"] == "true"
            assert _headers(again) == _headers(first)
            assert _everything() == after
        other = alice.api.post(path, {**body, "more": 1}, headers=headers)
        assert (other.status_code, other.json()) == (422, reused)
        assert _everything() == after

    each_case([(name_of(route), route) for route in POSTS], check)


def test_same_key_at_another_address_is_refused(alice):
    item = alice.ready()
    headers = {"Idempotency-Key": "one"}
    assert alice.api.post(f"/generated/{item['id']}/approve", headers=headers).status_code == 200
    answer = alice.api.post(f"/generated/{item['id']}/reject", headers=headers)
    assert answer.status_code == 422
    assert alice.api.read(f"/generated/{item['id']}")["status"] == "ready"


def test_replay_outlives_the_object(alice):
    item = alice.ready()
    headers = {"Idempotency-Key": "one"}
    first = alice.api.post(f"/generated/{item['id']}/approve", headers=headers)
    alice.api.delete(f"/generated/{item['id']}")
    again = alice.api.post(f"/generated/{item['id']}/approve", headers=headers)
    assert (again.status_code, again.content) == (200, first.content)


@pytest.mark.parametrize(
    ("form", "other"),
    [
        ("abc", '"abc"'),
        ('"a b"', "a b"),
        ('"a\\"b\\\\c"', 'a"b\\c'),
        (" abc ", "abc"),
        ("x" * 255, f'"{"x" * 255}"'),
    ],
)
def test_plain_and_quoted_form_are_one_key(alice, form, other):
    content = alice.content()
    first = alice.api.post("/raw", content, headers={"Idempotency-Key": form})
    again = alice.api.post("/raw", content, headers={"Idempotency-Key": other})
    assert (first.status_code, again.status_code, again.content) == (202, 202, first.content)
    assert again["Idempotency-Replayed"] == "true"


@pytest.mark.parametrize(
    "key", ["", " ", "x" * 256, "é", "a\x01b", '"open', '""', '"a"b"', "\x7f", '"' + "x" * 256 + '"']
)
@pytest.mark.parametrize("path", ["/raw", "/estimate"])
def test_key_that_can_not_be_used(alice, path, key):
    answer = alice.api.post(path, alice.content(), headers={"Idempotency-Key": key})
    message = "Give 1 to 255 printable ASCII characters."
    assert (answer.status_code, answer.json()) == (
        400,
        problem("invalid_request", ("Idempotency-Key", "invalid", message)),
    )
    assert RawItem.everywhere.count() == 0


def test_errors_are_not_kept(alice):
    headers = {"Idempotency-Key": "one"}
    content = alice.content()
    credit_account.adjust(alice.workspace, -1000, "for this test", "operator")
    assert alice.api.post("/raw", {**content, "x": 1}, headers=headers).status_code == 400
    assert refusal(alice.api.post("/raw", content, headers=headers))[:2] == (402, "quota_exceeded")
    assert IdempotencyKey.everywhere.count() == 0
    credit_account.adjust(alice.workspace, 5, "for this test", "operator")
    answer = alice.api.post("/raw", content, headers=headers)
    assert (answer.status_code, "Idempotency-Replayed" in answer) == (202, False)
    assert alice.api.post("/raw", content, headers=headers).content == answer.content


def test_conflicts_and_missing_objects_are_not_kept(alice):
    item = alice.ready()
    headers = {"Idempotency-Key": "one"}
    assert alice.api.post("/generated/gen_x/approve", headers=headers).status_code == 404
    assert alice.api.post(f"/generated/{item['id']}/restore", headers=headers).status_code == 409
    assert alice.api.post(f"/generated/{item['id']}/approve", headers=headers).status_code == 200


def test_batch_is_replayed(alice):
    body = {"items": [alice.content(), {"title": 5}]}
    headers = {"Idempotency-Key": "one"}
    first, again = (alice.api.post("/raw", body, headers=headers) for _ in range(2))
    assert (first.status_code, again.content, again["Idempotency-Replayed"]) == (207, first.content, "true")
    assert RawItem.everywhere.count() == 1


def test_keys_of_other_workspaces_and_test_tokens_are_others(alice, charlie):
    headers = {"Idempotency-Key": "one"}
    answers = [
        api.post("/raw", alice.content(), headers=headers)
        for api in (alice.api, charlie.api, alice.client(is_test=True))
    ]
    assert [answer.status_code for answer in answers] == [202, 202, 202]
    other_token = alice.client()
    assert other_token.post("/raw", alice.content(), headers=headers).status_code == 422


def test_key_is_forgotten_after_48_hours(alice):
    headers, body = {"Idempotency-Key": "one"}, {"type": "webhook", "name": "Bridge"}
    first = alice.api.post("/sources", body, headers=headers).json()
    nearly = datetime.now(UTC) - timedelta(hours=47, minutes=59)
    IdempotencyKey.everywhere.update(created_at=nearly)
    assert alice.api.post("/sources", body, headers=headers).json()["id"] == first["id"]
    IdempotencyKey.everywhere.update(created_at=datetime.now(UTC) - timedelta(hours=48, seconds=1))
    later = alice.api.post("/sources", body, headers=headers)
    assert (later.status_code, "Idempotency-Replayed" in later, later.json()["id"] == first["id"]) == (
        201,
        False,
        False,
    )
    assert alice.api.post("/sources", {**body, "name": "Other"}, headers=headers).status_code == 422


def test_key_means_nothing_to_other_methods(alice):
    headers = {"Idempotency-Key": "one"}
    path = f"/sources/{alice.source()['id']}"
    assert alice.api.patch(path, {"name": "A"}, headers=headers).status_code == 200
    assert alice.api.patch(path, {"name": "B"}, headers=headers).json()["name"] == "B"
    assert alice.api.get(path, headers=headers).status_code == 200
    assert alice.api.delete(path, headers=headers).status_code == 204


@pytest.fixture
def held_push(monkeypatch):
    """Pushes wait inside, until they are let go."""
    inside, go = threading.Event(), threading.Event()
    push = raw_items.store_raw_item.push

    def wait(*args, **more):
        pushed = push(*args, **more)
        inside.set()
        assert go.wait(20)
        return pushed

    monkeypatch.setattr(raw_items.store_raw_item, "push", wait)
    yield inside, go
    go.set()


def _in_thread(pool, newsroom, content, headers):
    def ask():
        try:
            return newsroom.client_of_thread().post("/raw", content, headers=headers)
        finally:
            connection.close()

    return pool.submit(ask)


@pytest.mark.django_db(transaction=True)
def test_second_request_while_the_first_runs(alice, held_push):
    inside, go = held_push
    content, headers = alice.content(), {"Idempotency-Key": "one"}
    alice.api.get("/workspace")
    with ThreadPoolExecutor(2) as pool:
        first = _in_thread(pool, alice, content, headers)
        assert inside.wait(10)
        if connection.vendor == "postgresql":
            answer = alice.api.post("/raw", content, headers=headers)
            message = "The first request with this Idempotency-Key is still running; ask again in a second."
            assert (answer.status_code, answer.json(), answer["Retry-After"]) == (
                409,
                problem("idempotency_in_progress", ("Idempotency-Key", "idempotency_in_progress", message)),
                "1",
            )
            go.set()
            kept = first.result(20)
            replay = alice.api.post("/raw", content, headers=headers)
        else:
            # The only writer's lock makes the second wait.
            second = _in_thread(pool, alice, content, headers)
            threading.Event().wait(0.5)
            assert not second.done()
            go.set()
            kept, replay = first.result(20), second.result(20)
    assert (kept.status_code, replay.content, replay["Idempotency-Replayed"]) == (202, kept.content, "true")
    assert (RawItem.everywhere.count(), Event.everywhere.count()) == (1, 1)


@pytest.mark.django_db(transaction=True)
def test_many_at_once_have_one_effect(alice, in_threads):
    content, headers = alice.content(), {"Idempotency-Key": "one"}
    alice.api.get("/workspace")
    answers = in_threads(
        12, lambda _: alice.client_of_thread().post("/raw", content, headers=headers), threads=6
    )
    statuses = {answer.status_code for answer in answers}
    assert statuses <= {202, 409}
    assert len({answer.content for answer in answers if answer.status_code == 202}) == 1
    assert (RawItem.everywhere.count(), alice.api.read("/usage")["reserved"]) == (1, 1)
    assert task_runner.work_all_due("generate.run_item") == 1
