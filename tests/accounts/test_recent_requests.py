"""The record of each key's last requests: bounded, short-lived, and in nobody's way."""

from __future__ import annotations

import socket
import time
import uuid
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from redis import Redis

from accounts import limits
from accounts.access import recent_requests, tokens
from accounts.access.recent_requests import RecentRequest
from tests.factories import TokenFactory

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _forgotten():
    recent_requests._in_process.clear()
    recent_requests._redis_skipped_until["at"] = 0.0
    recent_requests._client.cache_clear()


@pytest.fixture(params=["in process", "redis"])
def store(request, settings):
    if request.param == "redis":
        settings.REDIS_URL = request.getfixturevalue("redis_url")
    return request.param


def seen(number=0, at=None):
    return RecentRequest(at or time.time(), "GET", f"/v1/raw/{number}", 200, f"req_{number}")


def told(token_id):
    return [
        (row.method, row.path, row.status, row.request_id)
        for row in recent_requests.read_recent_requests(token_id)
    ]


def get(token, path="/v1/workspace", **headers):
    return Client().get(path, headers={"Authorization": f"Bearer {token.secret}", **headers})


def test_newest_first_and_at_most_so_many(store):
    token_id = uuid.uuid4()
    rows = [seen(number) for number in range(limits.KEY_REQUESTS_KEPT + 7)]
    for row in rows:
        recent_requests.store_request(token_id, row)
    assert recent_requests.read_recent_requests(token_id) == rows[: -limits.KEY_REQUESTS_KEPT - 1 : -1]
    assert recent_requests.read_recent_requests(uuid.uuid4()) == []


def test_what_is_older_than_a_day_is_not_shown(store):
    token_id = uuid.uuid4()
    now = datetime.now(UTC)
    recent_requests.store_request(token_id, seen(1, (now - timedelta(hours=24, seconds=1)).timestamp()))
    recent_requests.store_request(token_id, seen(2, (now - timedelta(hours=23)).timestamp()))
    assert [row.path for row in recent_requests.read_recent_requests(token_id, now=now)] == ["/v1/raw/2"]


def test_redis_forgets_by_itself(settings, redis_url):
    settings.REDIS_URL = redis_url
    token_id = uuid.uuid4()
    for number in range(limits.KEY_REQUESTS_KEPT + 7):
        recent_requests.store_request(token_id, seen(number))
    with Redis.from_url(redis_url) as client:
        assert client.llen(recent_requests._list_key(token_id)) == limits.KEY_REQUESTS_KEPT
        assert 86_390 <= client.ttl(recent_requests._list_key(token_id)) <= 86_400


def test_the_process_remembers_so_many_keys(monkeypatch):
    monkeypatch.setattr(recent_requests, "MAX_KEYS_IN_PROCESS", 2)
    first, second, third = (uuid.uuid4() for _ in range(3))
    for token_id in (first, second, first, third):
        recent_requests.store_request(token_id, seen())
    assert [len(recent_requests.read_recent_requests(token_id)) for token_id in (first, second, third)] == [
        2,
        0,
        1,
    ]


def test_every_answer_to_a_known_key_is_recorded_with_its_id(store, workspace, charlies, settings):
    token = TokenFactory(workspace=workspace, scopes=["raw:read"])
    other = TokenFactory(workspace=charlies)
    get(other)
    ids = [
        get(token, path, **{"X-Request-Id": f"my-request-{number}"})["X-Request-Id"]
        for number, path in enumerate(
            ("/v1/workspace", "/v1/workspace?q=secret", "/v1/usage/nothing", "/v1/sources")
        )
    ]
    assert ids == [f"my-request-{number}" for number in range(4)]
    assert told(token.pk) == [
        ("GET", "/v1/sources", 403, "my-request-3"),
        ("GET", "/v1/usage/nothing", 404, "my-request-2"),
        ("GET", "/v1/workspace", 400, "my-request-1"),
        ("GET", "/v1/workspace", 200, "my-request-0"),
    ]
    assert [row[1:3] for row in told(other.pk)] == [("/v1/workspace", 200)]


def test_a_refusal_for_its_rate_and_one_for_its_workspace_are_recorded(workspace, token, monkeypatch):
    from accounts import workspaces
    from accounts.access import workspace_rate_limit

    monkeypatch.setattr(
        workspace_rate_limit,
        "take_request",
        lambda workspace_id: workspace_rate_limit.Decision(False, 120, 0, 60, retry_after=1),
    )
    assert get(token).status_code == 429
    workspaces.delist(workspace, "operator@example.test")
    assert get(token).status_code == 403
    assert [row[2] for row in told(token.pk)] == [403, 429]


def test_a_wrong_and_a_revoked_key_name_nobody(token, alice):
    tokens.revoke(token, alice)
    assert get(token).status_code == 401
    assert Client().get("/v1/workspace").status_code == 401
    assert dict(recent_requests._in_process) == {}


def test_a_long_path_is_cut(token):
    get(token, "/v1/" + "x" * 3000)
    assert [len(row[1]) for row in told(token.pk)] == [recent_requests.MAX_PATH_CHARACTERS]


def test_recording_writes_no_row(workspace, token, django_assert_num_queries):
    get(token)
    get(token)
    with django_assert_num_queries(0):
        recent_requests.store_request(token.pk, seen())


def calls(listener):
    """How many have come up to now."""
    listener.settimeout(0)
    found = 0
    with suppress(BlockingIOError):
        while True:
            listener.accept()[0].close()
            found += 1
    return found


def test_a_redis_that_hangs_costs_one_short_try_and_breaks_nothing(settings, token):
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        settings.REDIS_URL = f"redis://127.0.0.1:{hanging.getsockname()[1]}/0"
        for _ in range(10):
            recent_requests.store_request(token.pk, seen())
        assert calls(hanging) == 1
        assert recent_requests.read_recent_requests(token.pk) is None
        assert get(token).status_code == 200


def test_it_is_recorded_after_the_answer_was_sent(token):
    from django.test import RequestFactory

    from accounts.access.authentication import caller_of

    request = RequestFactory().get("/v1/workspace")

    def view(request):
        from django.http import HttpResponse

        request.caller = caller_of(token)
        return HttpResponse("{}")

    response = recent_requests.RecordRequests(view)(request)
    assert told(token.pk) == []
    response.close()
    assert [row[:3] for row in told(token.pk)] == [("GET", "/v1/workspace", 200)]
