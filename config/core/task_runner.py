"""The one place where a task begins and ends, and what a process does beside its tasks."""

from __future__ import annotations

import os
import threading
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import structlog
from django.db import connection

from config.core import counters, work_leases, work_queue
from config.core.crash_points import crash_point
from config.core.dispatcher import claim, one_at_a_time, wake_now
from config.core.jobs import BatchJob, HolderJob, Job, RowJob, jobs, release_claim
from config.core.work_queue import release_connections

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

log = structlog.get_logger(__name__)

BATCH_SECONDS: Final = 20.0
"""A task that works many rows ends after this long, and goes on as another one."""
FAILED_REST_SECONDS: Final = 1.0
"""How long a batch that failed isn't queued again."""
LOCK_PAUSE_SECONDS: Final = 0.02
"""Between two batches on SQLite, so that those who wait for the lock get it."""
_stopping: Final = threading.Event()
_every_second: Final[list[Callable[[], None]]] = []


def run(name: str, subject: UUID, token: int, holder: UUID | None = None) -> bool:
    """What a message starts. False where it was stale, came a second time, or this process is about to stop."""
    job = jobs()[name]
    with (
        counters.count_for_kind(name),
        structlog.contextvars.bound_contextvars(kind=name, row=str(holder or subject)),
    ):
        try:
            return _run(job, subject, token, holder)
        # The edge of the task: the database may be away. The work is due again when its lease runs out.
        except Exception as error:  # noqa: BLE001
            log.warning("task_failed", error=str(error))
            return False
        finally:
            do_every_second()
            release_connections()


def _run(job: Job, subject: UUID, token: int, holder: UUID | None) -> bool:
    if _stopping.is_set():
        release_claim(job, subject, token)
        return False
    now = work_queue.database_now()
    if not work_leases.begin(subject, token, now=now):
        log.info("stale_message", token=token)
        return False
    crash_point("task.begun")
    rest = 0.0
    try:
        if isinstance(job, RowJob):
            row = work_queue.begin(job.model, subject, token, lease=job.lease, now=now, read=job.read)
            if row is not None:
                work_row(job, row)
        elif isinstance(job, HolderJob):
            assert holder is not None  # noqa: S101  for the types; its message names one
            _time(job, lambda: job.work(holder))
        else:
            # What fails finds the same again: not at once.
            rest = job.every_seconds if _time(job, lambda: _work_batches(job)) else FAILED_REST_SECONDS
        crash_point("task.worked")
    finally:
        if rest:
            work_leases.end_until(subject, token, work_queue.database_now() + timedelta(seconds=rest))
        else:
            work_leases.end(subject, token)
        # A slot is free, and the row may be due again at once.
        wake_now()
    return True


def work_row(job: RowJob, row: Any) -> None:
    """Work one row that was begun; whatever fails, it is due again when its lease runs out."""
    with structlog.contextvars.bound_contextvars(
        workspace=str(row.workspace_id), request_id=getattr(row, "request_id", None)
    ):
        if row.attempts > job.max_attempts:
            _time(job, lambda: job.give_up(row), attempts=row.attempts)
            counters.add("given_up", job.name)
            log.error("gave_up", attempts=row.attempts)
        else:
            _time(job, lambda: job.work(row), attempts=row.attempts)


def _time(job: Job, work: Callable[[], object], **shown: Any) -> bool:
    """Count and log what one task does; False where it failed. Nothing that is raised goes further."""
    began, is_done = time.monotonic(), False
    try:
        work()
    # The edge of the work: an unforeseen fault is logged, and what it left is due again when its lease runs out.
    except Exception:
        counters.add("work_failed", job.name)
        log.exception("work_failed", **shown)
    else:
        is_done = True
        log.info("worked", seconds=round(time.monotonic() - began, 3))
    counters.add("attempts", job.name)
    counters.add("work_seconds", job.name, time.monotonic() - began)
    return is_done


def _work_batches(job: BatchJob) -> None:
    until = time.monotonic() + BATCH_SECONDS
    while job.work():
        if time.monotonic() > until or _stopping.is_set():
            wake_now()
            return
        if connection.vendor == "sqlite":
            # SQLite's write lock isn't fair: who comes straight back has it before those who wait for it.
            time.sleep(LOCK_PAUSE_SECONDS)


def stop() -> None:
    """Begin nothing more in this process: what was queued for it is given back."""
    _stopping.set()


def start() -> None:
    _stopping.clear()


def is_stopping() -> bool:
    return _stopping.is_set()


_did_at: Final = {"at": 0.0}


def every_second(act: Callable[[], None]) -> None:
    """Let each process that works do this about once a second; what it raises is logged."""
    _every_second.append(act)


def do_every_second() -> None:
    """Called after each task, and by a worker's heartbeat."""
    if time.monotonic() - _did_at["at"] < 1.0:
        return
    _did_at["at"] = time.monotonic()
    for act in _every_second:
        try:
            act()
        # The caller must outlive everything: a database that is away, a fault of our own.
        except Exception as error:  # noqa: BLE001
            log.warning("not_done", act=getattr(act, "__qualname__", repr(act)), error=str(error))


os.register_at_fork(after_in_child=lambda: _did_at.update(at=0.0))


_SLOTS_WITHOUT_WORKERS: Final = 40


def work_all_due(*names: str, rounds: int = 50) -> int:
    """Work everything that is due, in this thread, until nothing is; for tests and commands.

    A batch that has its own pace is worked where it is named. Of rows that go from one job to another any of these jobs
    stands for all. Returns how much was worked.
    """
    total = 0
    chosen = list(names) or [
        name for name, job in jobs().items() if not isinstance(job, BatchJob) or job.waits
    ]
    models = {job.model for name in names if isinstance(job := jobs()[name], RowJob) and job.where}
    chosen += [
        name
        for name, job in jobs().items()
        if isinstance(job, RowJob) and job.model in models and name not in chosen
    ]
    for _ in range(rounds):
        worked = sum(_work_all_of(jobs()[name]) for name in chosen)
        total += worked
        if not worked:
            return total
    message = f"Rows were still due after {rounds} rounds."
    raise RuntimeError(message)


def _work_all_of(job: Job) -> int:
    worked = 0
    if isinstance(job, BatchJob):
        while done := job.work():
            worked += done
        return worked
    while True:
        with one_at_a_time:
            claimed = claim(job, _SLOTS_WITHOUT_WORKERS)
        if not claimed:
            return worked
        for lease in claimed:
            worked += run(job.name, lease.subject, lease.token, lease.holder)
