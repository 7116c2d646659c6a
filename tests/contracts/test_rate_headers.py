"""Rate limits as the caller sees them: headers on every answer past the whitelist, 429 with Retry-After."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from accounts import workspaces
from accounts.access import permissions, workspace_rate_limit
from tests.contracts.conftest import problem
from tests.contracts.routes import ROUTES, name_of

NAMES = {"RateLimit-Policy", "RateLimit", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"}
NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
_take = workspace_rate_limit.take_request


def _rate_headers(answer):
    return {name: answer[name] for name in NAMES if name in answer.headers}


@pytest.fixture
def stopped_clock(monkeypatch):
    monkeypatch.setattr(
        permissions.workspace_rate_limit, "take_request", lambda workspace_id: _take(workspace_id, now=NOW)
    )


def _fresh(left, seconds):
    return {
        "RateLimit-Policy": '"workspace";q=120;w=120',
        "RateLimit": f'"workspace";r={left};t={seconds}',
        "X-RateLimit-Limit": "120",
        "X-RateLimit-Remaining": str(left),
    }


@pytest.mark.usefixtures("stopped_clock")
def test_each_answer_counts_down(api):
    answers = [
        api.get("/workspace"),
        api.get("/nothing"),
        api.call("PUT", "/raw"),
        api.post("/raw", {}),
        api.get("/raw/x"),
    ]
    assert [answer.status_code for answer in answers] == [200, 404, 405, 400, 404]
    for number, answer in enumerate(answers, start=1):
        headers = _rate_headers(answer)
        reset = int(headers.pop("X-RateLimit-Reset"))
        assert headers == _fresh(120 - number, number)
        assert abs(reset - time.time() - number) < 30


@pytest.mark.usefixtures("stopped_clock")
def test_every_route_has_the_headers(alice):
    for route in ROUTES:
        answer = alice.api.call(route.method, route.path.format(id="x"))
        assert set(_rate_headers(answer)) == NAMES, name_of(route)


def test_answers_before_the_whitelist_have_none(alice, stranger):
    assert _rate_headers(stranger.get("/workspace")) == {}
    workspaces.delist(alice.workspace, "operator")
    answer = alice.api.get("/workspace")
    assert (answer.status_code, _rate_headers(answer)) == (403, {})


@pytest.mark.usefixtures("stopped_clock")
def test_past_the_burst(alice, charlie):
    for _ in range(120):
        assert alice.api.get("/workspace").status_code == 200
    for path in ("/workspace", "/nothing"):
        answer = alice.api.get(path)
        message = "This workspace may send 120 requests at once and one a second after that; wait 1 s."
        assert (answer.status_code, answer.json()) == (
            429,
            problem("rate_limited", (None, "rate_limited", message)),
        )
        headers = _rate_headers(answer)
        del headers["X-RateLimit-Reset"]
        assert (headers, answer["Retry-After"]) == (_fresh(0, 120), "1")
    # Every token of the workspace draws on the same bucket, and no other workspace's.
    assert alice.client(is_test=True).get("/workspace").status_code == 429
    assert charlie.api.get("/workspace").status_code == 200


def test_workspace_without_limits_has_no_bucket(alice):
    workspaces.lift_limits(alice.workspace, "operator")
    assert [alice.api.get("/workspace").status_code for _ in range(125)] == [200] * 125


def test_replays_and_unchanged_answers_count_too(alice):
    tag = alice.api.get("/workspace")["ETag"]
    same = alice.api.get("/workspace", headers={"If-None-Match": tag})
    assert (same.status_code, set(_rate_headers(same))) == (304, NAMES)


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("stopped_clock")
@pytest.mark.parametrize(
    "requests", [200, pytest.param(1000, marks=[pytest.mark.slow, pytest.mark.postgres_if_there])]
)
def test_many_at_once_let_exactly_the_burst_through(alice, in_threads, requests):
    # The first request of a token notes its use, which every other would wait for.
    alice.api.get("/usage")
    answers = in_threads(requests, lambda _: alice.client_of_thread().get("/workspace").status_code)
    assert (answers.count(200), answers.count(429)) == (119, requests - 119)
