"""Web, worker, beat and Redis are killed at random moments, and Redis is emptied: no event is lost, none is told twice.

`make prove-kills` kills more often than the suite does.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from django.conf import settings
from standardwebhooks import Webhook, WebhookVerificationError

from tests.faults.separate import IS_POSSIBLE, Separate
from tests.sizes import size

KILLS = size(6, 30)
USUAL_START_SECONDS = 4.0
SLOWEST_PACE = 3.0
SEED = 20261122
pytestmark = [
    pytest.mark.slow,
    pytest.mark.postgres,
    pytest.mark.minutes(2),
]


class Sink:
    """Takes every event, and has each verified."""

    def __init__(self):
        self.secret, self.times, self.refused = "", Counter(), 0
        self.lock = threading.Lock()

    def take(self, headers, body):
        try:
            event = Webhook(self.secret).verify(body, headers)
            is_genuine = event["id"] == headers["webhook-id"]
        except WebhookVerificationError:
            is_genuine = False
        with self.lock:
            if is_genuine:
                self.times[headers["webhook-id"]] += 1
            else:
                self.refused += 1


@pytest.fixture
def sink():
    there = Sink()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            there.take({name.lower(): value for name, value in self.headers.items()}, body)
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

        def handle_error(self, *_):
            # Who sent it was killed in the middle.
            pass

    with Server(("127.0.0.1", 0), Handler) as server:
        there.url = f"http://127.0.0.1:{server.server_port}/in"
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield there
        server.shutdown()


class Pusher:
    """Pushes items one after the other, each until it is answered."""

    def __init__(self, instance, token, patience):
        self.instance, self.token, self.patience = instance, token, patience
        self.accepted, self.faults = {}, []
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ends.set()
        self._thread.join(self.patience + 30)
        assert not self._thread.is_alive()

    def _run(self):
        number = 0
        while not self._ends.wait(0.05):
            number += 1
            body = {
                "external_id": f"item-{number}",
                "title": f"Report number {number}",
                "body": f"Report number {number} of the harbour says that {number} boats came in. " * 8,
                "engines": ["Short Post"],
            }
            try:
                answer = self.instance.call_until_answered(
                    "POST",
                    "/v1/raw",
                    self.token,
                    body,
                    self.patience,
                    **{"Idempotency-Key": f"push-{number}"},
                )
                assert answer.status_code in {200, 202}, answer.text
            except AssertionError as error:
                self.faults.append(error)
                return
            self.accepted[number] = answer.json()["id"]


def kill_at_random(instance, chance, pace):
    """How often each was killed, and Redis emptied."""
    killed = Counter()
    while killed.total() - killed["redis"] - killed["flush"] < KILLS:
        # From the middle of a start to some seconds of work.
        time.sleep((chance.choice([0.2, 0.5, 1.0, 2.5]) + 0.5 * chance.random()) * pace)
        role = chance.choice(["web", "worker", "worker", "beat", "redis", "flush"])
        killed[role] += 1
        if role == "flush":
            instance.flush_redis()
        else:
            instance.kill_part(role)
    return killed


def is_anything_left(instance):
    sql = """SELECT (SELECT COUNT(*) FROM event WHERE position IS NULL)
        + (SELECT COUNT(*) FROM delivery WHERE status <> 'delivered')
        + (SELECT COUNT(*) FROM generated_item WHERE status IN ('queued', 'generating'))"""
    return instance.query(sql)[0][0]


@pytest.mark.skipif(
    not (settings.IS_POSTGRES and settings.REDIS_URL), reason="SQLite is for one process, see test_kills"
)
@pytest.mark.skipif(not IS_POSSIBLE, reason="no redis-server here to be killed")
def test_kills_lose_no_event(tmp_path, sink, record_property):
    chance = random.Random(SEED)
    with Separate(tmp_path) as instance:
        token = instance.token("Kills", "--unlimited")
        added = instance.manage(
            "add_webhook",
            "--workspace",
            "Kills",
            "--url",
            sink.url,
            "--event",
            "*",
            "--rate",
            "100",
            "--json",
        )
        sink.secret = json.loads(added.strip().splitlines()[-1])["secret"]
        # On a machine where a start takes long, a service that is killed every second would never answer anybody.
        pace = min(max(1.0, instance.started_in / USUAL_START_SECONDS), SLOWEST_PACE)
        with Pusher(instance, token, patience=300 * pace) as pusher:
            killed = kill_at_random(instance, chance, pace)
            instance.wait_until_ready()
            time.sleep(1)
        assert pusher.faults == []

        until = time.monotonic() + 180 * pace
        while left := is_anything_left(instance):
            assert time.monotonic() < until, f"{left} are left.\n{instance.tail()}"
            time.sleep(0.3)

        events = instance.every("/v1/events", token, cursor_name="after")
        told = Counter(event["id"] for event in events)
        lost = told.keys() - sink.times.keys()
        twice = sum(count > 1 for count in sink.times.values())
        said = f"{len(told)} events of {len(pusher.accepted)} items, {len(lost)} lost, {twice} came more than once"
        record_property("told", f"{dict(killed)}: {said}")
        assert lost == set(), said
        assert set(told.values()) == {1}
        assert sink.times.keys() == told.keys()
        assert sink.refused == 0
        # The list is whole: all that the database has, and the fact of every item that was accepted.
        assert len(told) == instance.query("SELECT COUNT(*) FROM event")[0][0]
        ingested = Counter(
            event["data"]["raw_item"]["id"] for event in events if event["type"] == "raw.ingested"
        )
        assert ingested == Counter(dict.fromkeys(pusher.accepted.values(), 1))
        # One that was killed in the middle of its answer was stored, and is told of only once.
        ready = Counter(
            event["data"]["generated_item"]["raw_item"]
            for event in events
            if event["type"] == "generated.ready"
        )
        assert ready == ingested
        assert len(pusher.accepted) >= KILLS
