"""Runs the task of each message, and the functions that each process calls once a second."""

from __future__ import annotations

import gc
import os
import threading
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import structlog
from django.db import connection

from config.core import counters, work_leases, work_queue
from config.core.crash_points import crash_point
from config.core.dispatcher import claim, claim_lock, wake_now
from config.core.jobs import BatchJob, HolderJob, Job, RowJob, jobs, release_claim
from config.core.work_queue import release_connections

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

log = structlog.get_logger(__name__)

BATCH_SECONDS: Final = 20.0
"""A batch task begins no further batch after this time, and another task goes on with the rest."""
FAILED_REST_SECONDS: Final = 1.0
"""The pause of a batch job that failed, before it is queued again."""
LOCK_PAUSE_SECONDS: Final = 0.02
"""The pause between two batches on SQLite, so that threads that wait for the write lock get it."""
_stopping: Final = threading.Event()
_every_second: Final[list[Callable[[], None]]] = []


def run(name: str, subject: UUID, token: int, holder: UUID | None = None) -> bool:
    """Run the task of a message and return True; errors of the job's own work are logged and count as run.

    Returns False if the message was stale or came a second time, if an error came from outside of the job's own
    work, or if this process is stopping.
    """
    job = jobs()[name]
    with (
        counters.count_for_kind(name),
        structlog.contextvars.bound_contextvars(kind=name, row=str(holder or subject)),
    ):
        try:
            return _run_claimed(job, subject, token, holder)
        # Nothing above catches it: the database may be away. The work is due again when its lease runs out.
        except Exception as error:  # noqa: BLE001
            log.warning("task_failed", error=str(error))
            return False
        finally:
            do_every_second()
            release_connections()


def _run_claimed(job: Job, subject: UUID, token: int, holder: UUID | None) -> bool:
    """Begin the lease, do the work, and end the lease.

    Returns False if the lease was overtaken or begun before, or if this process is stopping, which releases the
    claim. A row that was overtaken between lease and row is left out, and still counts as run.
    """
    if _stopping.is_set():
        release_claim(job, subject, token)
        return False
    now = work_queue.database_now()
    if not work_leases.begin(subject, token, now=now):
        log.info("stale_message", token=token)
        return False
    crash_point("task.begun")
    rest_seconds = 0.0
    try:
        if isinstance(job, RowJob):
            row = work_queue.begin(job.model, subject, token, lease=job.lease, now=now, read=job.read)
            if row is not None:
                work_row(job, row)
        elif isinstance(job, HolderJob):
            assert holder is not None  # noqa: S101  for mypy; the messages of such a job always name one
            _run_timed(job, lambda: job.work(holder))
        else:
            # A batch that failed would find the same rows again, so it rests first.
            is_successful = _run_timed(job, lambda: _work_batches(job))
            rest_seconds = job.every_seconds if is_successful else FAILED_REST_SECONDS
        crash_point("task.worked")
    finally:
        if rest_seconds:
            work_leases.end_until(subject, token, work_queue.database_now() + timedelta(seconds=rest_seconds))
        else:
            work_leases.end(subject, token)
        # A slot is free, and the row may be due again at once.
        wake_now()
    return True


def work_row(job: RowJob, row: Any) -> None:
    """Run the job on one row that was begun, or give the row up after more than `max_attempts` tries.

    Nothing that the job raises gets out; the row is due again when its lease runs out.
    """
    with structlog.contextvars.bound_contextvars(
        workspace=str(row.workspace_id), request_id=getattr(row, "request_id", None)
    ):
        if row.attempts > job.max_attempts:
            _run_timed(job, lambda: job.give_up(row), attempts=row.attempts)
            counters.add("given_up", job.name)
            log.error("gave_up", attempts=row.attempts)
        else:
            _run_timed(job, lambda: job.work(row), attempts=row.attempts)


def _run_timed(job: Job, work: Callable[[], object], **log_fields: Any) -> bool:
    """Do the work, count it and log it; return False if it raised, which gets no further."""
    began_at, is_successful = time.monotonic(), False
    try:
        work()
    # Whatever a job raises is logged, and what it left undone is due again when its lease runs out.
    except Exception:
        counters.add("work_failed", job.name)
        log.exception("work_failed", **log_fields)
    else:
        is_successful = True
        log.info("worked", seconds=round(time.monotonic() - began_at, 3))
    counters.add("attempts", job.name)
    counters.add("work_seconds", job.name, time.monotonic() - began_at)
    return is_successful


def _work_batches(job: BatchJob) -> None:
    """Run batches until none is left, `BATCH_SECONDS` are over, or this process stops."""
    deadline = time.monotonic() + BATCH_SECONDS
    while job.work():
        if time.monotonic() > deadline or _stopping.is_set():
            wake_now()
            return
        if connection.vendor == "sqlite":
            # SQLite's write lock isn't fair: a thread that asks again at once gets it before those that wait.
            time.sleep(LOCK_PAUSE_SECONDS)


def stop() -> None:
    """Have this process begin no more tasks; the claims of messages that still come are released."""
    _stopping.set()


def start() -> None:
    """Have this process begin tasks: at a worker's start before it forks, or again after `stop()`."""
    _stopping.clear()
    # The modules stay as long as the process. Collections that walked them each time would stop all threads
    # for a third of a second, and in forked children would copy the pages that they share. They are frozen only
    # once, because an embedded worker may be started again while requests are served.
    if not gc.get_freeze_count():
        gc.collect()
        gc.freeze()


def is_stopping() -> bool:
    """Return whether this process begins no more tasks."""
    return _stopping.is_set()


_did_at: Final = {"at": 0.0}
"""The time of the last calls by `do_every_second()`, in seconds of the monotonic clock."""


def every_second(act: Callable[[], None]) -> None:
    """Have each process, of workers and of the web, call `act` about once a second; its errors are logged."""
    _every_second.append(act)


def do_every_second() -> None:
    """Call the functions of `every_second()` if a second has passed since the last call.

    It runs after each task and request, and in the heartbeat.
    """
    if time.monotonic() - _did_at["at"] < 1.0:
        return
    _did_at["at"] = time.monotonic()
    for act in _every_second:
        try:
            act()
        # The caller must survive anything, such as a database that is away or a bug of ours.
        except Exception as error:  # noqa: BLE001
            log.warning("not_done", act=getattr(act, "__qualname__", repr(act)), error=str(error))


# A forked child calls them at its first chance, whenever its parent last did.
os.register_at_fork(after_in_child=lambda: _did_at.update(at=0.0))


_SLOTS_WITHOUT_WORKERS: Final = 40
"""Slots that `work_all_due()` assumes, because no worker need be running."""


def work_all_due(*names: str, rounds: int = 50) -> int:
    """Run all due work, or that of the named jobs, in this thread until none is left; for tests and commands.

    A batch job without `waits` runs only if it is named. Naming a job with `where` runs all jobs of its table,
    because rows go from one of them to another. Returns how many tasks and batch rows were done. Raises
    `RuntimeError` if work is still due after `rounds`.
    """
    total = 0
    job_names = list(names) or [
        name for name, job in jobs().items() if not isinstance(job, BatchJob) or job.waits
    ]
    models = {job.model for name in names if isinstance(job := jobs()[name], RowJob) and job.where}
    job_names += [
        name
        for name, job in jobs().items()
        if isinstance(job, RowJob) and job.model in models and name not in job_names
    ]
    for _ in range(rounds):
        worked = sum(_work_all_of_job(jobs()[name]) for name in job_names)
        total += worked
        if not worked:
            return total
    message = f"Rows were still due after {rounds} rounds."
    raise RuntimeError(message)


def _work_all_of_job(job: Job) -> int:
    """Run the due work of one job, and return how many tasks ran, or how many rows its batches did."""
    worked = 0
    if isinstance(job, BatchJob):
        while batch_count := job.work():
            worked += batch_count
        return worked
    while True:
        with claim_lock:
            tasks = claim(job, _SLOTS_WITHOUT_WORKERS)
        if not tasks:
            return worked
        for task in tasks:
            worked += run(job.name, task.subject, task.token, task.holder)
