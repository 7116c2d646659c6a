"""The embedded worker: a wake is worked at once, a burst is few messages, and a stop is a stop."""

from __future__ import annotations

import threading
from time import monotonic

import pytest

from config import celery
from config.core import dispatcher, jobs, task_runner
from config.embedded import EmbeddedInstance
from pipeline.models import Lease, Worker

pytestmark = [pytest.mark.timeout(60), pytest.mark.django_db(transaction=True)]


class Work:
    """A batch that counts its runs and finds as much as it was given."""

    def __init__(self):
        self.ran_at, self.left, self.fails, self.lock = [], 0, 0, threading.Lock()

    def __call__(self):
        with self.lock:
            self.ran_at.append(monotonic())
            if self.fails:
                self.fails -= 1
                raise RuntimeError("made up")
            if not self.left:
                return 0
            self.left -= 1
            return 1

    def wait_for(self, count, seconds=20):
        until = monotonic() + seconds
        while len(self.ran_at) < count and monotonic() < until:
            threading.Event().wait(0.005)
        return len(self.ran_at)


@pytest.fixture
def work(settings, monkeypatch):
    if settings.REDIS_URL:
        pytest.skip("Redis's queue may hold messages of other tests; tests/faults covers it")
    settings.JOB_MODULES = []
    monkeypatch.setattr(jobs, "_jobs", {})
    dispatcher.set_waker(celery.broker.wake)
    counted = Work()
    job = jobs.BatchJob(name="housekeeping.tests", work=counted, waits="SELECT 1 AS found")
    jobs.register(job)
    celery._add_task(job)
    yield counted
    celery.app.tasks.unregister(job.name)
    # A process that has stopped begins nothing more, and this one runs other tests.
    task_runner.start()


@pytest.fixture
def engine(work):
    running = EmbeddedInstance()
    running.start()
    yield running
    assert running.stop(within=10)


def test_it_works_what_is_due(work, engine):
    assert work.wait_for(4) >= 4
    worker = Worker.everywhere.get()
    assert (worker.name, worker.slots["housekeeping"]) == ("celery@embedded", 2)


def test_it_goes_on_until_nothing_is_left(work, engine):
    work.left = 50
    work.wait_for(51)
    assert work.left == 0


def test_work_that_fails_does_not_end_it(work, engine):
    work.fails = 3
    assert work.wait_for(5) >= 5
    assert work.fails == 0


def test_it_stops_within_a_few_seconds_and_leaves_nothing(work):
    running = EmbeddedInstance()
    running.start()
    work.wait_for(2)
    started = monotonic()
    assert running.stop(within=10)
    assert monotonic() - started < 9
    seen = len(work.ran_at)
    threading.Event().wait(1.5)
    assert len(work.ran_at) == seen
    assert Worker.everywhere.count() == 0
    assert Lease.everywhere.filter(state="running").count() == 0


def test_its_start_leaves_the_pages_their_pool(work, monkeypatch):
    told = []
    monkeypatch.setattr(celery.unfinished_restore, "refuse_to_start", lambda **given: told.append(given))
    running = EmbeddedInstance()
    running.start()
    try:
        until = monotonic() + 20
        while len(told) < 2 and monotonic() < until:
            threading.Event().wait(0.005)
    finally:
        assert running.stop(within=5)
    assert told == [{"before_fork": False}] * 2, "the worker and Beat ask, and close nothing"
