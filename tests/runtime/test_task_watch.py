"""What a worker's heartbeat looks after: tasks that outlast the lease of their row, and processes that were killed."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from config import celery, task_watch
from config.core import counters, jobs, work_leases, work_queue
from config.task_watch import RunningTask, TaskWatch
from pipeline.models import Lease, Source
from tests.factories import WorkspaceFactory

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
JOB = "ingest.poll_source"


@pytest.fixture
def row():
    work_leases.start_worker()
    work_leases.note_worker("one", {"ingest": 8})
    now = work_queue.database_now()
    row = Source.everywhere.create(
        workspace=WorkspaceFactory(), name="Harbour", type="rss", wake_at=now + timedelta(minutes=1)
    )
    lease = work_leases.QueuedTask(row.pk, row.lease_token, owner=row.workspace_id)
    work_leases.add(JOB, "ingest", [lease], now=now)
    work_leases.begin(row.pk, row.lease_token, now=now)
    return row


@pytest.fixture
def at(monkeypatch):
    """Sets the clock that the watch measures by."""
    clock = SimpleNamespace(monotonic=lambda: 0.0)
    monkeypatch.setattr(task_watch, "time", clock)

    def set_to(seconds):
        clock.monotonic = lambda: seconds

    return set_to


def overdue():
    return counters.drain().get(("overdue", JOB), 0)


def test_a_task_that_runs_on_without_its_lease_is_counted_once(row, at):
    watch, running = TaskWatch(), [RunningTask(JOB, row.pk, row.lease_token, seconds=90)]
    overdue()
    watch.check(running)
    assert overdue() == 0
    row.sleep_until(work_queue.database_now() - timedelta(seconds=1))
    with capture_logs() as logged:
        for seconds, counted in ((0, 0), (29, 0), (31, 1), (60, 0)):
            at(seconds)
            watch.check(running)
            assert overdue() == counted
    assert [one["row"] for one in logged if one["event"] == "task_overdue"] == [str(row.pk)]


@pytest.mark.parametrize("kept", ["renewed", "short"])
def test_a_task_with_its_lease_is_not_overdue(row, at, kept):
    watch = TaskWatch()
    row.sleep_until(work_queue.database_now() - timedelta(seconds=1))
    running = [RunningTask(JOB, row.pk, row.lease_token, seconds=5 if kept == "short" else 90)]
    overdue()
    for seconds in (0, 20, 40):
        at(seconds)
        watch.check(running)
        if kept == "renewed":
            row.renew_lease(timedelta(minutes=1))
    assert overdue() == 0


@pytest.mark.parametrize(
    ("age", "is_known", "is_left"), [(30, False, False), (30, True, True), (1, False, True)]
)
def test_the_slot_of_a_process_that_was_killed_is_free_again(row, age, is_known, is_left):
    """What has just begun may not be known yet."""
    Lease.everywhere.update(began_at=work_queue.database_now() - timedelta(seconds=age))
    running = [RunningTask(JOB, row.pk, row.lease_token, seconds=age)] if is_known else []
    TaskWatch().check(running)
    assert work_leases.read_load(work_queue.database_now()).queues == ({"ingest": 1} if is_left else {})


def test_what_runs_is_what_celery_says(row, monkeypatch):
    request = SimpleNamespace(name=JOB, args=[str(row.pk), 3, None], time_start=celery.time.time() - 5)
    others = [
        SimpleNamespace(name="dispatch.wake", args=[], time_start=1.0),
        SimpleNamespace(name=JOB, args=[str(row.pk), 4, None], time_start=None),
    ]
    monkeypatch.setattr(celery.celery_state, "active_requests", [request, *others])
    (one,) = celery.running_tasks()
    assert (one.name, one.subject, one.token, round(one.seconds)) == (JOB, row.pk, 3, 5)


@pytest.mark.parametrize(
    ("name", "seconds"),
    [
        ("ingest.poll_source", 600),
        ("mail.send_letters", 2400),
        ("generate.run_item", 3600),
        ("render.render_film", 7200),
        ("webhooks.fan_out", 600),
    ],
)
def test_time_limits_follow_from_the_lease(name, seconds):
    task = celery.app.tasks[name]
    assert (task.soft_time_limit, task.time_limit) == (seconds, seconds + 30)
    assert jobs.jobs()[name].time_limit == timedelta(seconds=seconds)
