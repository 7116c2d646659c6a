"""/healthz says that the process is up; /readyz says what is missing."""

from __future__ import annotations

import errno
import os
import shutil
import time
from types import SimpleNamespace
from unittest import mock

import pytest
from django.db import InternalError, OperationalError, connection

from config.core import dispatcher
from config.core.middleware import exception_response
from config.operations import health

MEDIA = (True, "takes files")
REDIS_NOBODY_AT = "redis://127.0.0.1:1/0"


@pytest.fixture(autouse=True)
def _nothing_tried_before(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    health._probe_results.clear()


@pytest.fixture
def ran():
    dispatcher._ran_at["at"] = time.monotonic()


@pytest.fixture
def never_ran(monkeypatch):
    monkeypatch.setattr(dispatcher, "seconds_since_rounds", lambda: 86_400.0)


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
def test_readyz_is_ready_when_everything_answers(client, settings, ran):
    settings.REDIS_URL = ""
    response = client.get("/readyz")
    assert response.status_code == 200
    assert response["Cache-Control"] == "no-store"
    found = checks_of(response)
    assert response.json()["status"] == "ok"
    assert found["database"] == (True, connection.vendor)
    assert found["media"] == MEDIA
    assert found["broker"] == (True, "in process")
    assert found["dispatcher"][0] is True
    assert found["dispatcher"][1].endswith(" s ago")


@pytest.mark.django_db
def test_readyz_names_a_dispatcher_that_does_not_run(client, settings, never_ran):
    settings.REDIS_URL = ""
    response = client.get("/readyz")
    assert (response.status_code, response.json()["status"]) == (503, "unavailable")
    assert checks_of(response) == {
        "database": (True, connection.vendor),
        "media": MEDIA,
        "broker": (True, "in process"),
        "dispatcher": (
            False,
            "It last ran more than 10 s ago: is a worker running that takes the queue dispatch?",
        ),
    }


@pytest.mark.django_db
def test_readyz_names_a_broker_that_is_away_and_says_so_quickly(client, settings, ran):
    settings.REDIS_URL = REDIS_NOBODY_AT
    started = time.monotonic()
    response = client.get("/readyz")
    assert time.monotonic() - started < 20
    assert response.status_code == 503
    found = checks_of(response)
    assert found["broker"] == (False, "Redis doesn't answer.")
    assert (found["database"][0], found["dispatcher"][0]) == (True, True)


@pytest.mark.django_db
def test_readyz_names_a_database_that_is_away_and_tells_nothing_else_of_it(client, settings, ran):
    settings.REDIS_URL = ""
    away = mock.patch.object(
        connection, "cursor", side_effect=OperationalError("host db.internal user secret")
    )
    with away:
        response = client.get("/readyz")
    assert response.status_code == 503
    assert checks_of(response)["database"] == (False, "The database doesn't answer.")
    assert "db.internal" not in response.content.decode()


# --- What can't be kept ----------------------------------------------------------------------------------------------

FULL = OSError(errno.ENOSPC, "No space left on device", "/srv/secret/place")
READ_ONLY = OSError(errno.EROFS, "Read-only file system", "/srv/secret/place")


@pytest.fixture
def time_passes(monkeypatch):
    """Call it, and what was found before is too old to count."""
    return lambda: monkeypatch.setattr(health, "_probe_results", {})


def is_ready(client, settings):
    settings.REDIS_URL = ""
    response = client.get("/readyz")
    assert "secret" not in response.content.decode()
    assert str(settings.MEDIA_ROOT) not in response.content.decode()
    return response.status_code == 200, checks_of(response)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (FULL, "The disk of media files is full."),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), "The disk of media files is full."),
        (READ_ONLY, "The folder of media files can't be written to."),
        (PermissionError(errno.EACCES, "no"), "The folder of media files can't be written to."),
    ],
)
def test_media_that_cannot_be_kept_is_named_until_it_can(
    client, settings, ran, monkeypatch, time_passes, error, said
):
    with monkeypatch.context() as broken:
        broken.setattr(health, "TemporaryFile", mock.Mock(side_effect=error))
        ready, found = is_ready(client, settings)
        assert (ready, found["media"]) == (False, (False, said))
    time_passes()
    assert is_ready(client, settings)[0]


@pytest.mark.django_db
def test_a_disk_with_hardly_any_room_is_full(client, settings, ran, monkeypatch, time_passes):
    room = SimpleNamespace(free=health.MIN_FREE_DISK_BYTES - 1)
    with monkeypatch.context() as crowded:
        crowded.setattr(shutil, "disk_usage", lambda _: room)
        ready, found = is_ready(client, settings)
        assert (ready, found["media"]) == (False, (False, "The disk of media files is full."))
        if connection.vendor == "sqlite":
            assert found["database"] == (False, "The disk of the database is full.")
    time_passes()
    assert is_ready(client, settings)[0]


@pytest.mark.sqlite
@pytest.mark.django_db
def test_a_database_file_that_is_read_only_is_named(client, settings, ran, monkeypatch):
    with monkeypatch.context() as closed:
        closed.setattr(os, "access", lambda *_: False)
        ready, found = is_ready(client, settings)
        assert (ready, found["database"]) == (False, (False, "The database's file is read-only."))
    assert is_ready(client, settings)[0]


@pytest.mark.django_db
def test_however_often_somebody_asks_the_disk_is_tried_now_and_then(client, settings, ran, monkeypatch):
    tries = mock.Mock(wraps=health._folder_fault)
    monkeypatch.setattr(health, "_folder_fault", tries)
    for _ in range(20):
        assert is_ready(client, settings)[0]
    each = 2 if connection.vendor == "sqlite" else 1
    assert tries.call_count <= 2 * each
    monkeypatch.setattr(
        health,
        "_probe_results",
        {what: (at - 6, found) for what, (at, found) in health._probe_results.items()},
    )
    before = tries.call_count
    assert is_ready(client, settings)[0]
    assert tries.call_count == before + each


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_a_read_only_postgresql_is_named_and_refuses_in_the_contracts_shape(client, settings, ran):
    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only = on")
    try:
        ready, found = is_ready(client, settings)
        assert (ready, found["database"]) == (False, (False, "The database is read-only."))
        with pytest.raises(InternalError) as refused, connection.cursor() as cursor:
            cursor.execute("DELETE FROM tally")
        assert exception_response(refused.value).status_code == 503
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SET default_transaction_read_only = off")
    assert is_ready(client, settings)[0]


@pytest.mark.django_db
def test_a_tick_of_another_process_is_seen_through_redis(client, settings, never_ran):
    if not settings.REDIS_URL:
        pytest.skip("needs Redis")
    health.note_run()
    assert checks_of(client.get("/readyz"))["dispatcher"][0] is True
    long_ago = time.time() - 60
    health._redis(settings.REDIS_URL).set(health._RAN_AT, long_ago, ex=60)
    assert checks_of(client.get("/readyz"))["dispatcher"][0] is False
    health._redis(settings.REDIS_URL).delete(health._RAN_AT)
    assert checks_of(client.get("/readyz"))["dispatcher"][0] is False
