"""/healthz says that the process is up; /readyz says what is missing."""

from __future__ import annotations

import time
from unittest import mock

import pytest
from django.db import OperationalError, connection

from config import health
from config.ground import hands

REDIS_NOBODY_AT = "redis://127.0.0.1:1/0"


@pytest.fixture
def ticked():
    hands.ticked()


@pytest.fixture
def never_ticked(monkeypatch):
    monkeypatch.setattr(hands, "seconds_since_tick", lambda: 86_400.0)


def checks_of(response):
    return {check["name"]: (check["ok"], check["detail"]) for check in response.json()["checks"]}


def test_healthz_asks_nobody(client, settings):
    settings.REDIS_URL = REDIS_NOBODY_AT
    response = client.get("/healthz")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_other_methods_are_refused_in_the_contracts_shape(client, path):
    response = client.post(path)
    assert response.status_code == 405
    assert response["Allow"] == "GET, HEAD"
    assert response.json()["error"] == "method_not_allowed"


@pytest.mark.django_db
def test_readyz_is_ready_when_everything_answers(client, settings, ticked):
    settings.REDIS_URL = ""
    response = client.get("/readyz")
    assert response.status_code == 200
    assert response["Cache-Control"] == "no-store"
    found = checks_of(response)
    assert response.json()["status"] == "ok"
    assert found["database"] == (True, connection.vendor)
    assert found["broker"] == (True, "in process")
    assert found["tick"][0] is True
    assert found["tick"][1].endswith(" s ago")


@pytest.mark.django_db
def test_readyz_names_a_tick_that_does_not_come(client, settings, never_ticked):
    settings.REDIS_URL = ""
    response = client.get("/readyz")
    assert (response.status_code, response.json()["status"]) == (503, "unavailable")
    assert checks_of(response) == {
        "database": (True, connection.vendor),
        "broker": (True, "in process"),
        "tick": (False, "The last tick came more than 10 s ago: is beat running, and a worker?"),
    }


@pytest.mark.django_db
def test_readyz_names_a_broker_that_is_away_and_says_so_quickly(client, settings, ticked):
    settings.REDIS_URL = REDIS_NOBODY_AT
    started = time.monotonic()
    response = client.get("/readyz")
    assert time.monotonic() - started < 3
    assert response.status_code == 503
    found = checks_of(response)
    assert found["broker"] == (False, "Redis doesn't answer.")
    assert (found["database"][0], found["tick"][0]) == (True, True)


def test_readyz_names_a_database_that_is_away_and_tells_nothing_else_of_it(client, settings, ticked):
    settings.REDIS_URL = ""
    away = mock.patch.object(
        connection, "cursor", side_effect=OperationalError("host db.internal user secret")
    )
    with away:
        response = client.get("/readyz")
    assert response.status_code == 503
    assert checks_of(response)["database"] == (False, "The database doesn't answer.")
    assert "db.internal" not in response.content.decode()


@pytest.mark.django_db
def test_a_tick_of_another_process_is_seen_through_redis(client, settings, never_ticked):
    if not settings.REDIS_URL:
        pytest.skip("needs Redis")
    health.note_tick()
    assert checks_of(client.get("/readyz"))["tick"][0] is True
    long_ago = time.time() - 60
    health._redis(settings.REDIS_URL).set(health._TICKED_AT, long_ago, ex=60)
    assert checks_of(client.get("/readyz"))["tick"][0] is False
    health._redis(settings.REDIS_URL).delete(health._TICKED_AT)
    assert checks_of(client.get("/readyz"))["tick"][0] is False
