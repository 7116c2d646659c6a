"""What the tests of accounts stand on: a workspace of Alice's, one of Charlie's, and threads."""

from __future__ import annotations

import os
import uuid

import pytest
from django.test import Client

from accounts.access import authentication, recent_requests, workspace_rate_limit
from tests.factories import TokenFactory, WorkspaceFactory

REDIS_URL = os.environ.get("REDIS_URL") or "redis://127.0.0.1:6379/5"


@pytest.fixture(autouse=True)
def _ground(settings):
    """No furnishers of other apps, no Redis unless a test asks for it, and a cache of each test's own."""
    settings.WORKSPACE_FURNISHERS = []
    settings.REDIS_URL = ""
    fresh = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": uuid.uuid4().hex}
    settings.CACHES = dict.fromkeys(("default", "counts", "marks"), fresh)
    workspace_rate_limit._redis_skipped_until["at"] = 0.0
    authentication._cache_skipped_until["at"] = 0.0


@pytest.fixture
def redis_url(monkeypatch):
    """Redis, asked with patience: that it is left alone when it is slow has tests of its own."""
    from redis import Redis, RedisError

    for asked in (workspace_rate_limit, recent_requests):
        monkeypatch.setattr(asked, "REDIS_TIMEOUT_SECONDS", 30)
    workspace_rate_limit._script.cache_clear()
    recent_requests._client.cache_clear()

    try:
        with Redis.from_url(REDIS_URL, socket_connect_timeout=1) as client:
            client.ping()
    except RedisError as error:
        if os.environ.get("REQUIRE_SERVICES") == "1":
            raise
        pytest.skip(f"No Redis answers at {REDIS_URL}: {error}")
    yield REDIS_URL
    workspace_rate_limit._script.cache_clear()
    recent_requests._client.cache_clear()


@pytest.fixture
def workspace(db):
    return WorkspaceFactory(name="Alice's newsroom", plan__name="Small", plan__credits_per_month=1000)


@pytest.fixture
def charlies(db):
    """A workspace that nothing of Alice's may ever show."""
    return WorkspaceFactory(name="Charlie's newsroom")


@pytest.fixture
def token(workspace):
    return TokenFactory(workspace=workspace)


@pytest.fixture
def api(token):
    return Client(headers={"Authorization": f"Bearer {token.secret}"})
