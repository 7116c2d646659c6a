"""The allowance of requests, a token bucket: the same rule in Lua and in SQL, exact under concurrency."""

import time
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from django.db import OperationalError, connection
from redis import RedisError

from accounts.access import workspace_rate_limit
from accounts.access.workspace_rate_limit import Decision, take_request
from accounts.models import RateBucket
from tests.factories import WorkspaceFactory

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
CLOSED_PORT = "redis://127.0.0.1:9/0"


@pytest.fixture(params=["sql", "redis"])
def store(request, settings, db):
    if request.param == "redis":
        settings.REDIS_URL = request.getfixturevalue("redis_url")
    return request.param


@pytest.fixture
def allowance(store):
    return WorkspaceFactory().pk


def later(seconds):
    return NOW + timedelta(seconds=seconds)


def test_first_request_leaves_119(allowance):
    assert take_request(allowance, now=NOW) == Decision(True, 120, 119, 1, 0)


def test_120_at_once_then_one_a_second(allowance):
    burst = [take_request(allowance, now=NOW) for _ in range(121)]
    assert [one.allowed for one in burst] == [True] * 120 + [False]
    assert [one.remaining for one in burst] == [*range(119, -1, -1), 0]
    assert burst[119] == Decision(True, 120, 0, 120, 1)
    assert burst[120] == Decision(False, 120, 0, 120, 1)

    assert take_request(allowance, now=later(0.999)) == Decision(False, 120, 0, 120, 1)
    assert take_request(allowance, now=later(1)) == Decision(True, 120, 0, 120, 1)
    assert take_request(allowance, now=later(1)).allowed is False


def test_refused_requests_cost_nothing(allowance):
    for _ in range(500):
        take_request(allowance, now=NOW)
    assert take_request(allowance, now=later(60)) == Decision(True, 120, 59, 61, 0)


def test_no_window_edge_gives_a_second_burst(allowance):
    assert sum(take_request(allowance, now=later(59.9)).allowed for _ in range(130)) == 120
    assert sum(take_request(allowance, now=later(60.1)).allowed for _ in range(130)) == 0


def test_full_allowance_never_holds_more_than_120(allowance):
    take_request(allowance, now=NOW)
    assert sum(take_request(allowance, now=later(86_400)).allowed for _ in range(200)) == 120


def test_clock_that_goes_back_gives_nothing_away(allowance):
    for _ in range(120):
        take_request(allowance, now=NOW)
    assert take_request(allowance, now=later(-10)) == Decision(False, 120, 0, 130, 11)


def test_clock_that_is_set_back_by_minutes_locks_nobody_out(allowance):
    """What an hour ahead had written would have refused everybody until the clock was there again."""
    for _ in range(130):
        take_request(allowance, now=later(600))
    assert take_request(allowance, now=NOW) == Decision(True, 120, 119, 1, 0)
    assert sum(take_request(allowance, now=NOW).allowed for _ in range(130)) == 119
    assert take_request(allowance, now=later(1)).allowed is True


def test_workspaces_have_allowances_of_their_own(allowance):
    other = WorkspaceFactory().pk
    for _ in range(120):
        take_request(allowance, now=NOW)
    assert take_request(allowance, now=NOW).allowed is False
    assert take_request(other, now=NOW) == Decision(True, 120, 119, 1, 0)


def test_stores_own_clock_is_used_without_now(allowance):
    first, second = take_request(allowance), take_request(allowance)
    assert (first.allowed, first.limit, first.reset_seconds) == (True, 120, 1)
    assert (second.allowed, second.remaining, second.reset_seconds) == (True, 118, 2)


def test_stores_own_clock_refuses_too(allowance):
    decisions = [take_request(allowance) for _ in range(130)]
    # At most as many more as seconds went by.
    assert 120 <= sum(one.allowed for one in decisions) <= 125
    assert (decisions[-1].allowed, decisions[-1].retry_after) == (False, 1)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", ["sql", "redis"])
def test_exactly_120_of_1000_concurrent_requests(name, settings, request, in_threads):
    if name == "redis":
        settings.REDIS_URL = request.getfixturevalue("redis_url")
    allowance = WorkspaceFactory().pk
    decisions = in_threads(1000, lambda _number: take_request(allowance, now=NOW))

    assert sum(one.allowed for one in decisions) == 120
    assert sorted(one.remaining for one in decisions if one.allowed) == list(range(120))
    assert {one for one in decisions if not one.allowed} == {Decision(False, 120, 0, 120, 1)}
    assert workspace_rate_limit._redis_skipped_until["at"] == 0.0
    assert RateBucket.everywhere.count() == (1 if name == "sql" else 0)


def test_sql_takes_one_statement_and_a_refusal_two(db, django_assert_num_queries):
    allowance = WorkspaceFactory().pk
    for _ in range(120):
        with django_assert_num_queries(1):
            take_request(allowance, now=NOW)
    with django_assert_num_queries(2):
        assert take_request(allowance, now=NOW).allowed is False


@pytest.mark.django_db(transaction=True)
def test_sql_commits_by_itself():
    allowance = WorkspaceFactory().pk
    take_request(allowance, now=NOW)
    connection.close()
    arrival = RateBucket.everywhere.get().arrival_micros
    assert arrival == round(NOW.timestamp() * 1_000_000) + 1_000_000


def test_redis_keeps_nothing_for_ever(settings, redis_url):
    settings.REDIS_URL = redis_url
    allowance = uuid.uuid4()
    take_request(allowance, now=NOW)
    left = workspace_rate_limit._script(redis_url).registered_client.pttl(f"rate:{allowance.hex}")
    assert 1000 < left <= 2000


def test_script_is_sent_where_redis_does_not_know_it(settings, redis_url, monkeypatch):
    settings.REDIS_URL = redis_url
    monkeypatch.setattr(workspace_rate_limit, "_LUA", f"-- {uuid.uuid4()}\n{workspace_rate_limit._LUA}")
    workspace_rate_limit._script.cache_clear()
    try:
        assert take_request(uuid.uuid4(), now=NOW) == Decision(True, 120, 119, 1, 0)
        assert workspace_rate_limit._redis_skipped_until["at"] == 0.0
    finally:
        workspace_rate_limit._script.cache_clear()


def test_dead_redis_falls_back_and_costs_one_timeout(settings, db, monkeypatch):
    settings.REDIS_URL = CLOSED_PORT
    allowance = WorkspaceFactory().pk
    asked = []
    real = workspace_rate_limit._take_from_redis
    monkeypatch.setattr(
        workspace_rate_limit, "_take_from_redis", lambda *args: asked.append(args) or real(*args)
    )

    assert [take_request(allowance, now=NOW).allowed for _ in range(121)] == [True] * 120 + [False]
    assert len(asked) == 1
    assert RateBucket.everywhere.count() == 1


def test_redis_is_asked_again_after_five_seconds(settings, db, monkeypatch):
    settings.REDIS_URL = CLOSED_PORT
    allowance = WorkspaceFactory().pk
    asked = []

    def fail(*args):
        asked.append(args)
        raise RedisError

    monkeypatch.setattr(workspace_rate_limit, "_take_from_redis", fail)
    clock = {"at": 1000.0}
    monkeypatch.setattr(workspace_rate_limit.time, "monotonic", lambda: clock["at"])
    take_request(allowance, now=NOW)
    clock["at"] += 4.9
    take_request(allowance, now=NOW)
    assert len(asked) == 1
    clock["at"] += 0.2
    take_request(allowance, now=NOW)
    assert len(asked) == 2


def test_slow_redis_costs_a_quarter_second_once(settings, db):
    import socket

    # A listener that never answers.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings.REDIS_URL = f"redis://127.0.0.1:{silent.getsockname()[1]}/0"
        allowance = WorkspaceFactory().pk
        started = time.monotonic()
        assert take_request(allowance, now=NOW) == Decision(True, 120, 119, 1, 0)
        assert take_request(allowance, now=NOW) == Decision(True, 120, 118, 2, 0)
        assert 0.2 < time.monotonic() - started < 20
        # Only the first take asked it.
        silent.settimeout(0)
        silent.accept()[0].close()
        with pytest.raises(BlockingIOError):
            silent.accept()
        workspace_rate_limit._script(settings.REDIS_URL).registered_client.close()


def test_without_redis_and_database_the_database_error_goes_up(settings, db, monkeypatch):
    settings.REDIS_URL = CLOSED_PORT

    def fail(*_args):
        raise OperationalError("gone")

    monkeypatch.setattr(workspace_rate_limit, "_take_from_database", fail)
    with pytest.raises(OperationalError):
        take_request(uuid.uuid4(), now=NOW)


def test_headers_of_an_allowed_request(monkeypatch):
    monkeypatch.setattr(workspace_rate_limit.time, "time", lambda: 1_000_000.7)
    assert workspace_rate_limit.headers_of(Decision(True, 120, 7, 113, 0)) == {
        "RateLimit-Policy": '"workspace";q=120;w=120',
        "RateLimit": '"workspace";r=7;t=113',
        "X-RateLimit-Limit": "120",
        "X-RateLimit-Remaining": "7",
        "X-RateLimit-Reset": "1000001",
    }


def test_headers_of_a_refused_request_say_when_to_come_back(monkeypatch):
    monkeypatch.setattr(workspace_rate_limit.time, "time", lambda: 1_000_000.7)
    headers = workspace_rate_limit.headers_of(Decision(False, 120, 0, 120, 3))
    assert (headers["Retry-After"], headers["X-RateLimit-Reset"]) == ("3", "1000004")


def test_unlimited_is_told_sane_numbers():
    assert workspace_rate_limit.unlimited_decision() == Decision(True, 120, 120, 0, 0)
