"""Kill -9 at random moments: whatever was accepted is processed, and nothing is published twice."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
import requests

from tests.faults.instance import Instance
from tests.sizes import size

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500), pytest.mark.both_databases, pytest.mark.minutes(3)]

KILLS = size(6, 50)
USUAL_START_SECONDS = 4.0
SEED = 20261120
UNFINISHED_RAW = {"queued", "processing"}
FINISHED_PUBLICATION = {"published", "failed", "cancelled", "removed"}


class Client:
    """Pushes items and publishes what became ready, and goes on whatever happens to the service."""

    def __init__(self, instance, token, outlet, *, patience):
        self.instance, self.token, self.outlet, self.patience = instance, token, outlet, patience
        self.accepted, self.asked, self.faults = {}, {}, []
        self._ends = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(act,)) for act in (self._push, self._publish)
        ]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._ends.set()
        for thread in self._threads:
            thread.join(self.patience + 30)
        assert not any(thread.is_alive() for thread in self._threads)

    def _run(self, act):
        number = 0
        while not self._ends.is_set():
            number += 1
            try:
                act(number)
            except AssertionError as error:
                self.faults.append(error)
                return
            self._ends.wait(0.15)

    def _push(self, number):
        body = {
            "external_id": f"item-{number}",
            "title": f"Report number {number}",
            "body": f"Report number {number} of the harbour says that {number} boats came in. " * 8,
            # One item of each, so that a second one is a fault.
            "engines": ["Short Post"],
        }
        answer = self.instance.call_until_answered(
            "POST", "/v1/raw", self.token, body, self.patience, **{"Idempotency-Key": f"push-{number}"}
        )
        # 200 where the first try was stored but its answer was lost.
        assert answer.status_code in {200, 202}, answer.text
        self.accepted[number] = answer.json()["id"]

    def _publish(self, number):
        try:
            ready = self.instance.call("GET", "/v1/generated?status=ready&limit=20", self.token)
        except requests.RequestException:
            return
        if ready.status_code != 200:
            return
        for item in ready.json()["data"]:
            wish = {"outlets": [self.outlet]}
            if number % 2:
                wish["publish_at"] = (datetime.now(UTC) + timedelta(seconds=2)).isoformat()
            answer = self.instance.call_until_answered(
                "POST",
                f"/v1/generated/{item['id']}/publish",
                self.token,
                wish,
                self.patience,
                **{"Idempotency-Key": item["id"]},
            )
            if answer.status_code == 400 and "publish_at" in answer.text:
                # The service was away for so long that the moment has passed: a person would choose another.
                continue
            # 409 and 422: an earlier try was stored, and this one is another request to the service.
            assert answer.status_code in {202, 409, 422}, answer.text
            self.asked[item["id"]] = answer.status_code


def wait_for(what, seconds, instance):
    until = time.monotonic() + seconds
    while left := what():
        assert time.monotonic() < until, f"Left over: {left}\n{instance.tail()}"
        time.sleep(0.5)


def test_kills_lose_nothing_and_publish_nothing_twice(tmp_path, record_property):
    chance = random.Random(SEED)
    killed = Counter()
    with Instance(tmp_path) as instance:
        token = instance.token("Kills", "--unlimited")
        outlets = instance.every("/v1/outlets", token)
        outlet = next(row["id"] for row in outlets if row["platform"] == "simulated")
        # On a machine where a start takes long, a service that is killed every second would never answer anybody.
        pace = max(1.0, instance.started_in / USUAL_START_SECONDS)
        with Client(instance, token, outlet, patience=90 * pace) as client:
            for _ in range(KILLS):
                # From the middle of a start to some seconds of work.
                time.sleep(chance.choice([0.3, 1.0, 2.0, 3.0]) * pace + chance.random())
                killed[instance.kill_one(chance)] += 1
                instance.revive()
            instance.wait_until_ready()
            time.sleep(5)
        assert client.faults == []
        assert killed["arbiter"] + killed["worker"] == KILLS
        assert len(client.accepted) > KILLS

        def unfinished():
            raw = {row["id"]: row["status"] for row in instance.every("/v1/raw", token)}
            missing = set(client.accepted.values()) - raw.keys()
            assert not missing
            generated = instance.every("/v1/generated", token)
            publications = instance.every("/v1/publications", token)
            return (
                [status for status in raw.values() if status in UNFINISHED_RAW]
                + [
                    row["status"]
                    for row in generated
                    if row["status"] in {"queued", "generating", "publishing"}
                ]
                + [row["status"] for row in publications if row["status"] not in FINISHED_PUBLICATION]
            )

        wait_for(unfinished, 180, instance)

        raw = {row["id"]: row["status"] for row in instance.every("/v1/raw", token)}
        assert {raw[raw_id] for raw_id in client.accepted.values()} == {"processed"}
        # One raw item for each that was pushed, and one generated item for each of them.
        assert len(raw) == len(set(client.accepted.values())) == len(client.accepted)
        per_raw = Counter(row["raw_item"] for row in instance.every("/v1/generated", token))
        assert per_raw == Counter(dict.fromkeys(raw, 1))

        posts = instance.query("SELECT ref, COUNT(*) FROM simulated_post WHERE is_accepted GROUP BY ref")
        twice = [ref for ref, count in posts if count > 1]
        assert twice == []
        publications = instance.every("/v1/publications", token)
        per_item = Counter(row["generated_item"] for row in publications)
        assert set(per_item.values()) <= {1}
        assert {row["status"] for row in publications} == {"published"}
        assert len(posts) == len(publications)
        assert set(client.asked) <= per_item.keys()

        # Each fact is told once: an event for each item pushed, made and published. The list shows it from its place on,
        # which the dispatcher gives it.
        wait_for(lambda: instance.query("SELECT id FROM event WHERE position IS NULL"), 60, instance)
        events = instance.every("/v1/events", token, cursor_name="after")
        told = Counter((row["type"], _subject(row)) for row in events)
        assert set(told.values()) == {1}
        types = Counter(row["type"] for row in events)
        assert types["raw.ingested"] == len(raw)
        assert types["generated.ready"] == len(raw)
        assert types["published.success"] == len(publications)
        made = f"{len(raw)} items, {len(posts)} posts, none lost, none twice"
        record_property("told", f"{KILLS} kills ({dict(killed)}): {made}")


def _subject(event):
    data = event["data"]
    return (data.get("publication") or data.get("generated_item") or data.get("raw_item"))["id"]
