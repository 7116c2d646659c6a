"""Ticks, the watch and the engine: work goes on whatever is lost, and a stop is a stop."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from time import monotonic

import pytest
from django.conf import settings
from django.db import InterfaceError, connection
from django.test.utils import CaptureQueriesContext

from accounts import workspaces
from accounts.models import Workspace
from config import celery
from config.engine import Engine
from config.ground import hands
from pipeline.models import Source
from tests.documents.text import read
from tests.webhooks.factories import make_event

pytestmark = [pytest.mark.timeout(60), pytest.mark.django_db(transaction=True)]


class Work:
    """A kind of work that counts its looks and finds as much as it was given."""

    def __init__(self):
        self.looked_at, self.left, self.fails, self.lock = [], 0, 0, threading.Lock()

    def __call__(self):
        with self.lock:
            self.looked_at.append(monotonic())
            if self.fails:
                self.fails -= 1
                raise RuntimeError("made up")
            if not self.left:
                return 0
            self.left -= 1
            return 1

    def wait_for(self, count, seconds=20):
        until = monotonic() + seconds
        while len(self.looked_at) < count and monotonic() < until:
            threading.Event().wait(0.005)
        return len(self.looked_at)


@pytest.fixture
def work(settings, monkeypatch):
    settings.DUE_MODULES = []
    monkeypatch.setattr(hands, "_kinds", {})
    monkeypatch.setattr(hands, "_looking", Counter())
    monkeypatch.setattr(hands, "_last_tick", {"at": 0.0})
    # A stopped engine leaves its process's hands at rest.
    monkeypatch.setattr(hands, "_resting", threading.Event())
    counted = Work()
    hands.register(hands.Batch("tests.work", counted))
    return counted


@pytest.fixture
def engine(settings):
    if settings.REDIS_URL:
        pytest.skip("Redis's queue may hold messages of other tests; tests/faults covers it")
    running = Engine()
    running.start()
    yield running
    assert running.stop(within=10)


@pytest.fixture
def watch(work):
    ends = threading.Event()
    thread = threading.Thread(target=hands.watch, args=(ends,))
    thread.start()
    yield
    ends.set()
    thread.join(10)
    assert not thread.is_alive()


def test_the_timetable_is_one_tick_a_second_that_expires():
    assert celery.app.conf.beat_schedule == {
        "tick": {"task": "tick", "schedule": 1.0, "options": {"expires": 3.0}}
    }


def test_settings_keep_a_message_until_its_work_is_done():
    conf = celery.app.conf
    assert (conf.task_acks_late, conf.task_reject_on_worker_lost, conf.worker_prefetch_multiplier) == (
        True,
        True,
        1,
    )
    assert conf.task_ignore_result is True
    assert conf.worker_hijack_root_logger is False
    assert conf.worker_redirect_stdouts is False


def test_the_pool_of_connections_covers_every_hand_with_a_thread_of_its_own():
    """Without one a hand would wait for ten seconds and leave its work to the next tick."""
    own = {
        kind.name: kind.side_by_side
        for kind in hands.kinds().values()
        if isinstance(kind, hands.Kind) and kind.own_threads
    }
    assert own.pop("pipeline.publish") == settings.PUBLISH_THREADS
    keepers = sum(isinstance(kind, hands.Kind) and kind.shares_claims for kind in hands.kinds().values())
    assert keepers == 2
    assert sum(own.values()) + keepers == settings.OWN_THREADS, own
    pool = settings.DATABASES["default"]["OPTIONS"].get("pool")
    threads = settings.WEB_THREADS + settings.WORKER_THREADS + settings.PUBLISH_THREADS + settings.OWN_THREADS
    assert pool is None or pool["max_size"] == threads + 4
    told = f"`WEB_THREADS + WORKER_THREADS + PUBLISH_THREADS + {settings.OWN_THREADS + 4}` connections"
    assert told in read("running.md")


def test_the_engine_ticks_every_second(work, engine):
    assert work.wait_for(4) >= 4
    gaps = [later - earlier for earlier, later in zip(work.looked_at[1:], work.looked_at[2:], strict=False)]
    assert 0.5 < sorted(gaps)[len(gaps) // 2] < 1.5


def asked_by_ticks(monkeypatch, times=1):
    asked = []
    monkeypatch.setattr(hands, "ask_for_look", asked.append)
    for _ in range(times):
        hands.tick()
    return asked


def test_a_tick_asks_for_what_is_due_alone(monkeypatch):
    monkeypatch.setattr(hands, "_asked_at", {name: float("inf") for name in hands.kinds()})
    assert asked_by_ticks(monkeypatch) == []
    workspace = workspaces.create("Alice's newsroom")
    now = datetime.now(UTC)
    for wake_at in (None, now + timedelta(hours=1)):
        Source.everywhere.create(workspace=workspace, name="Later", type="rss", wake_at=wake_at)
    assert asked_by_ticks(monkeypatch) == []
    Source.everywhere.create(workspace=workspace, name="Now", type="rss", wake_at=now)
    make_event(workspace)
    Workspace.everywhere.update(samples=Workspace.Samples.REMOVING)
    assert set(asked_by_ticks(monkeypatch)) == {
        "accounts.samples",
        "pipeline.collect",
        "webhooks.dispatch",
        "analytics.count",
    }


def test_every_statement_of_a_tick_reads_an_index():
    """A table that was worked through for years must not be read each second."""
    with connection.cursor() as cursor, CaptureQueriesContext(connection) as captured:
        hands._to_look_at()
        (probe,) = [one["sql"] for one in captured if "UNION ALL" in one["sql"]]
        assert probe.count("wake_at <=") == sum(
            isinstance(kind, hands.Kind) for kind in hands.kinds().values()
        )
        if connection.vendor == "sqlite":
            cursor.execute(f"EXPLAIN QUERY PLAN {probe}")
            plan = [row[3] for row in cursor.fetchall()]
            assert [
                line for line in plan if line.startswith("SCAN") and "INDEX" not in line and "one" not in line
            ] == []


def test_a_batch_with_a_pace_is_looked_at_at_that_pace(work, monkeypatch):
    hands.register(hands.Batch("tests.rare", lambda: 0, every_seconds=600))
    monkeypatch.setattr(hands, "_asked_at", {})
    assert asked_by_ticks(monkeypatch, times=3).count("tests.rare") == 1
    hands._asked_at["tests.rare"] -= 601
    assert asked_by_ticks(monkeypatch, times=3).count("tests.rare") == 1


def test_a_look_whose_time_is_up_asks_for_another(work, monkeypatch):
    asked = []
    monkeypatch.setattr(hands, "ask_for_look", asked.append)
    monkeypatch.setattr(hands, "LOOK_SECONDS", 0.05)
    work.left = 10**9
    assert hands.look("tests.work") > 0
    assert asked == ["tests.work"]


def test_a_nudge_is_worked_at_once(work, engine):
    assert work.wait_for(2) >= 2
    delays = []
    for _ in range(5):
        seen = len(work.looked_at)
        asked = monotonic()
        hands.ask_for_look("tests.work")
        work.wait_for(seen + 1)
        delays.append(work.looked_at[seen] - asked)
        threading.Event().wait(0.05)
    # Three milliseconds on an idle machine; a tick alone would take half a second on average.
    assert sorted(delays)[1] < 0.3


def test_a_burst_of_nudges_is_few_looks(work, engine):
    assert work.wait_for(2) >= 2
    seen = len(work.looked_at)
    for _ in range(500):
        hands.ask_for_look("tests.work")
    threading.Event().wait(0.5)
    assert len(work.looked_at) - seen < 100


def test_a_look_goes_on_until_nothing_is_left(work, engine):
    work.left = 50
    hands.ask_for_look("tests.work")
    work.wait_for(51)
    assert work.left == 0


def test_work_that_fails_does_not_end_the_engine(work, engine):
    work.fails = 3
    assert work.wait_for(6, seconds=15) >= 6
    assert work.fails == 0


def test_the_engine_stops_within_a_few_seconds(work, settings):
    if settings.REDIS_URL:
        pytest.skip("see the fixture")
    running = Engine()
    running.start()
    work.wait_for(2)
    started = monotonic()
    assert running.stop(within=10)
    assert monotonic() - started < 9
    seen = len(work.looked_at)
    threading.Event().wait(1.5)
    assert len(work.looked_at) == seen


def test_the_watch_works_when_no_tick_comes(work, watch):
    # The first look comes after a second, and then there is one every second.
    assert work.wait_for(3, seconds=20) >= 3


def test_the_watch_keeps_out_of_the_way_while_ticks_come(work, watch):
    for _ in range(8):
        hands.ticked()
        threading.Event().wait(0.3)
    assert work.looked_at == []


def test_the_watch_takes_over_within_two_seconds_of_the_last_tick(work, watch):
    hands.ticked()
    last_tick = monotonic()
    assert work.wait_for(1, seconds=20) == 1
    assert work.looked_at[0] - last_tick < 10


def test_the_watch_outlives_what_it_does_every_second(work, monkeypatch):
    done = []

    def broken():
        done.append(monotonic())
        raise InterfaceError("the connection is closed")

    monkeypatch.setattr(hands, "_every_second", [broken, lambda: done.append("next")])
    ends = threading.Event()
    thread = threading.Thread(target=hands.watch, args=(ends,))
    thread.start()
    assert work.wait_for(3, seconds=20) >= 3
    ends.set()
    thread.join(10)
    assert done.count("next") >= 3


def test_the_watch_outlives_work_that_fails(work, watch):
    work.fails = 2
    assert work.wait_for(4, seconds=20) >= 4
