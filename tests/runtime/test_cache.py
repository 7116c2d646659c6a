"""The pages go on while Redis is away, and guesses are counted all the same."""

from __future__ import annotations

import pytest
from django.core.cache.backends.redis import RedisCache
from redis import RedisError
from redis.backoff import NoBackoff
from redis.retry import Retry

from accounts.models import Workspace
from config.core import resilient_cache
from tests.factories import UserFactory

PASSWORD = "a long enough phrase 9"
# Nothing listens at port 1.
DEAD = {
    "LOCATION": "redis://127.0.0.1:1/0",
    "OPTIONS": {"socket_connect_timeout": 0.3, "retry": Retry(NoBackoff(), 0)},
}


@pytest.fixture
def dead(settings, monkeypatch):
    monkeypatch.setattr(resilient_cache.ResilientRedisCache, "_skipped_until", 0.0)
    settings.CACHES = {
        "default": {"BACKEND": "accounts.access.counter_caches.DatabaseCounterCache"},
        "marks": {"BACKEND": "config.core.resilient_cache.ResilientRedisCache", **DEAD},
        "counts": {"BACKEND": "django.core.cache.backends.redis.RedisCache", **DEAD},
    }


def test_a_dead_redis_holds_nothing_and_is_asked_once_in_a_while(monkeypatch):
    monkeypatch.setattr(resilient_cache.ResilientRedisCache, "_skipped_until", 0.0)
    cache = resilient_cache.ResilientRedisCache(DEAD["LOCATION"], {"OPTIONS": DEAD["OPTIONS"]})
    with pytest.raises(RedisError):
        RedisCache.get(cache, "x")
    asked = []
    monkeypatch.setattr(
        RedisCache, "get", lambda *_: asked.append(1) or (_ for _ in ()).throw(OSError("away"))
    )
    assert cache.get("x", "nothing") == "nothing"
    assert cache.get("x", "nothing") == "nothing"
    assert len(asked) == 1
    assert cache.add("x", 1) is True
    assert cache.set("x", 1) is None
    assert cache.delete("x") is False


def test_people_log_in_and_forms_work_without_it(client, db, dead):
    user = UserFactory(email="alice@example.test", password=PASSWORD)
    user.mark_email_verified()
    answer = client.post("/account/login/", {"login": user.email, "password": PASSWORD})
    assert (answer.status_code, answer["Location"]) == (302, "/")
    answer = client.post("/new", {"name": "Newsroom", "timezone": "UTC", "once": "abc"})
    assert answer.status_code == 302
    workspace = Workspace.everywhere.get()
    assert client.get(f"/w/{workspace.public_id}/").status_code == 200
    assert client.get(f"/w/{workspace.public_id}/settings/keys").status_code == 200


def test_guesses_are_counted_without_it(client, db, dead):
    user = UserFactory(email="alice@example.test", password=PASSWORD)
    user.mark_email_verified()
    for _ in range(5):
        client.post("/account/login/", {"login": user.email, "password": "a wrong guess"})
    answer = client.post("/account/login/", {"login": user.email, "password": PASSWORD})
    assert answer.status_code == 200
    assert "Too many failed" in answer.content.decode()
