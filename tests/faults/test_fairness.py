"""Thousands of due rows of one workspace delay another workspace's single row by two seconds at most.

The delay is counted from what the same row takes, in the same run, while nothing else is due.
"""

from __future__ import annotations

import json
import statistics
import time
from contextlib import ExitStack

import pytest

from tests.faults.instance import Instance
from tests.faults.separate import Separate
from tests.faults.world import Neighbour, World, serve
from tests.sizes import IS_PROOF, size

pytestmark = [
    pytest.mark.slow,
    pytest.mark.alone,
    # What a claim takes is tested on both in tests/core/test_work_queue.py.
    pytest.mark.both_databases if IS_PROOF else pytest.mark.postgres_if_there,
]

ROWS = size(3_000, 5_000)
MANY = 20_000
MOST_SECONDS = 2.0
IDLE_TIMES = 3
TIMES = 8
APART_SECONDS = 0.7
WAITING = {
    "generations": "SELECT COUNT(*) FROM generation WHERE wake_at IS NOT NULL",
    "publications": "SELECT COUNT(*) FROM publication WHERE wake_at IS NOT NULL",
    "events": "SELECT (SELECT COUNT(*) FROM event WHERE dispatched_at IS NULL)"
    " + (SELECT COUNT(*) FROM delivery WHERE wake_at IS NOT NULL)",
}


WAKE = {
    "generations": "UPDATE generation SET wake_at = due_at WHERE wake_at IS NULL AND status = 'queued' RETURNING 1",
    "publications": "UPDATE publication SET wake_at = due_at WHERE wake_at IS NULL RETURNING 1",
    "events": "UPDATE event SET dispatched_at = NULL WHERE position IS NULL RETURNING 1",
}
"""All of them are due at the same moment, in the middle of the service's work."""


@pytest.fixture
def neighbour():
    there = Neighbour()
    server = serve(there)
    yield there
    server.shutdown()
    server.server_close()


@pytest.fixture
def busy(tmp_path, neighbour):
    """Call it with what is to become due in a running service; gives the service and the other workspace's key."""
    with ExitStack() as ends:
        instance = Instance(tmp_path)
        ends.push(instance)

        def start(what, **options):
            World(tmp_path, instance._database).run(("seed", {"count": ROWS, "what": what, **options}))
            token = instance.token("Single")
            if "receiver" in options:
                url = f"{neighbour.url}/single"
                instance.manage("add_webhook", "--workspace", "Single", "--url", url, "--json")
            instance.start()
            return instance, token

        yield start


def waiting(instance, what):
    return instance.query(WAITING[what])[0][0]


def seconds_until(condition, instance, *, since):
    while not condition():
        assert time.monotonic() - since < 60, instance.tail()
        time.sleep(0.02)
    return time.monotonic() - since


def push(instance, token, number):
    body = {
        "external_id": f"single-{number}",
        "title": f"Ferry number {number}",
        "body": f"The ferry number {number} leaves the northern harbour at seven in the morning. " * 8,
        "engines": ["Short Post"],
    }
    answer = instance.call("POST", "/v1/raw", token, body)
    assert answer.status_code == 202, answer.text
    return answer.json()["id"], time.monotonic()


def is_ready(instance, number):
    sql = "SELECT COUNT(*) FROM generated_item g JOIN raw_item r ON r.id = g.raw_item_id"
    return instance.query(f"{sql} WHERE r.external_id = 'single-{number}' AND g.status = 'ready'")[0][0]


def measure(what, instance, wait_of, *, rows=ROWS, times_usual=None, on_measured=print):
    """`wait_of(number)` has one row worked and gives its seconds: first while nothing else is due, then beside 5,000.

    `on_measured` is given the figures before they are judged.
    """
    idle = []
    for number in range(IDLE_TIMES):
        idle.append(wait_of(number))
        time.sleep(APART_SECONDS)
    assert len(instance.query(WAKE[what])) >= rows
    waits = []
    for number in range(IDLE_TIMES, IDLE_TIMES + TIMES):
        waits.append(wait_of(number))
        time.sleep(APART_SECONDS)
    left = waiting(instance, what)
    usual = statistics.median(idle)
    shown = ", ".join(f"{one:.2f}" for one in waits)
    said = f"{what}: {shown} s; median {statistics.median(waits):.2f} s, most {max(waits):.2f} s, idle {usual:.2f} s, {left} left"
    on_measured(said)
    # Else there was nothing to be delayed by.
    assert left > rows // 10, said
    if times_usual is None:
        assert max(waits) - usual <= MOST_SECONDS, said
    else:
        assert statistics.median(waits) <= times_usual * usual, said


def test_generations_of_one_workspace_delay_no_other(busy):
    instance, token = busy("generations")

    def wait_of(number):
        _, committed = push(instance, token, number)
        return seconds_until(lambda: is_ready(instance, number), instance, since=committed)

    measure("generations", instance, wait_of)


@pytest.mark.skipif(not IS_PROOF, reason="for make prove-fairness: minutes")
@pytest.mark.postgres
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_twenty_thousand_rows_of_one_workspace_double_another_ones_time_at_most(
    tmp_path, workers, record_property
):
    with ExitStack() as ends:
        instance = Separate(tmp_path)
        ends.push(instance)
        World(tmp_path, instance._database).run(("seed", {"count": MANY, "what": "generations"}))
        token = instance.token("Single")
        for number in range(2, workers + 1):
            instance.start_part(f"worker{number}")
        instance.start()

        def wait_of(number):
            _, committed = push(instance, token, number)
            return seconds_until(lambda: is_ready(instance, number), instance, since=committed)

        def on_measured(said):
            record_property("told", f"{workers} workers, {MANY:,} rows: {said}")

        measure("generations", instance, wait_of, rows=MANY, times_usual=2, on_measured=on_measured)


def test_publications_of_one_workspace_delay_no_other(busy):
    instance, token = busy("publications")
    outlets = instance.every("/v1/outlets", token)
    outlet = next(row["id"] for row in outlets if row["platform"] == "simulated")

    def wait_of(number):
        raw_id, pushed = push(instance, token, number)
        seconds_until(lambda: is_ready(instance, number), instance, since=pushed)
        item = instance.call("GET", f"/v1/raw/{raw_id}", token).json()["generated"][0]
        answer = instance.call("POST", f"/v1/generated/{item}/publish", token, {"outlets": [outlet]})
        committed = time.monotonic()
        assert answer.status_code == 202, answer.text
        publication = answer.json()["publications"][0]["id"]

        def is_published():
            shown = instance.call("GET", f"/v1/publications/{publication}", token)
            return shown.json().get("status") == "published"

        return seconds_until(is_published, instance, since=committed)

    measure("publications", instance, wait_of)


def test_events_of_one_workspace_delay_no_other(busy, neighbour):
    """From the event to its arrival: the dispatcher's turn, then the deliveries' hands."""
    instance, token = busy("events", receiver=neighbour.url)

    def wait_of(number):
        raw_id, committed = push(instance, token, number)

        def has_arrived():
            with neighbour.lock:
                bodies = [body for path, _, body in neighbour.received if path == "/single"]
            told = [json.loads(body) for body in bodies]
            return any(one["data"].get("raw_item", {}).get("id") == raw_id for one in told)

        return seconds_until(has_arrived, instance, since=committed)

    measure("events", instance, wait_of)
