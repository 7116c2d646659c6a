"""A database that was restarted: once the service says that it is ready, no request fails and all work goes on."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.faults import own_postgres, separate
from tests.faults.instance import Instance
from tests.faults.own_postgres import OwnPostgres
from tests.faults.separate import Separate
from tests.sizes import IS_PROOF

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not own_postgres.IS_POSSIBLE, reason="no initdb here to make a database of its own with"
    ),
]

REQUESTS = 50
OUTAGES = (0, 12)
"""Seconds; in the longer one the pools begin to wait between their tries."""
SECONDS = 120
TEXT = "The city council approved the new tram line on Monday evening after six hours of debate. " * 3


class Migrated:
    def _make_database(self) -> bool:
        self.manage("migrate", "--no-input", timeout=300)
        return True


class OnItsOwn(Migrated, Instance):
    pass


class SeparateOnItsOwn(Migrated, Separate):
    pass


MODES = [
    OnItsOwn,
    pytest.param(
        SeparateOnItsOwn,
        marks=pytest.mark.skipif(not separate.IS_POSSIBLE, reason="no redis-server here to be used"),
    ),
]


@pytest.fixture
def postgres():
    with OwnPostgres() as started:
        yield started


def push(instance, token, name):
    body = {
        "external_id": name,
        "title": f"Tram line {name}",
        "body": f"{name}. {TEXT}",
        "engines": ["Short Post"],
    }
    return instance.call("POST", "/v1/raw", token, body)


def wait_until_processed(instance, token, raw_id):
    until = time.monotonic() + SECONDS
    while instance.call("GET", f"/v1/raw/{raw_id}", token).json()["status"] != "processed":
        assert time.monotonic() < until, instance.tail()
        time.sleep(0.2)


def read_at_once(clients, instance, token):
    paths = ("/v1/outlets", "/v1/generated", "/v1/workspace")
    return Counter(
        clients.map(
            lambda number: instance.call("GET", paths[number % 3], token).status_code, range(REQUESTS)
        )
    )


@pytest.mark.parametrize("mode", MODES if IS_PROOF else MODES[-1:])
def test_no_request_fails_once_it_is_ready_again(postgres, tmp_path, mode):
    instance = mode(tmp_path, DATABASE_URL=postgres.url)
    # That one of two is ready says nothing of the other.
    instance.environment["WEB_PROCESSES"] = "2"
    with instance, ThreadPoolExecutor(8) as clients:
        token = instance.token("Faults", "--unlimited")
        for outage in OUTAGES:
            # Each pool has more than one connection.
            assert read_at_once(clients, instance, token) == {200: REQUESTS}
            postgres.stop()
            time.sleep(outage)
            postgres.start()
            instance.wait_until_ready()
            assert read_at_once(clients, instance, token) == {200: REQUESTS}, instance.tail()
            pushed = push(instance, token, f"after-{outage}")
            assert pushed.status_code == 202, pushed.text
            wait_until_processed(instance, token, pushed.json()["id"])
