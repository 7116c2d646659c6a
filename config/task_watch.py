"""Watches a worker's tasks: those that outlast their row's lease, and leases of killed processes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import structlog

from config.core import counters, jobs, work_leases, work_queue

if TYPE_CHECKING:
    from collections.abc import Collection
    from uuid import UUID

log = structlog.get_logger(__name__)

OVERDUE_SECONDS: Final = 30.0
"""The time without a lease after which a running task is reported to the operator."""


@dataclass(frozen=True)
class RunningTask:
    """A task that Celery reports as running in this worker."""

    name: str
    subject: UUID
    token: int
    seconds: float
    """The time for which it has run."""


class TaskWatch:
    """The watch of one worker, whose heartbeat calls `check` every few seconds."""

    def __init__(self) -> None:
        self._without_lease: dict[tuple[UUID, int], float] = {}
        """Since when each task has had no lease, in seconds of the monotonic clock."""
        self._reported: set[tuple[UUID, int]] = set()

    def check(self, running: Collection[RunningTask]) -> None:
        """End leases without a task, and report tasks that have had no lease for too long."""
        work_leases.end_lost({(task.subject, task.token) for task in running}, now=work_queue.database_now())
        for task in running:
            self._check_lease(task)
        running_keys = {(task.subject, task.token) for task in running}
        self._reported &= running_keys
        self._without_lease = {
            key: since for key, since in self._without_lease.items() if key in running_keys
        }

    def _check_lease(self, task: RunningTask) -> None:
        """Report a `RowJob`'s task, once, if it has run without its lease for `OVERDUE_SECONDS`."""
        job, key = jobs.jobs()[task.name], (task.subject, task.token)
        if not isinstance(job, jobs.RowJob) or task.seconds < job.lease.total_seconds():
            return
        leased_rows = job.model.everywhere.filter(pk=task.subject, lease_token=task.token)
        if leased_rows.filter(wake_at__gt=work_queue.database_now()).exists():
            self._without_lease.pop(key, None)
            return
        since = self._without_lease.setdefault(key, time.monotonic())
        if time.monotonic() - since >= OVERDUE_SECONDS and key not in self._reported:
            self._reported.add(key)
            counters.add("overdue", task.name)
            log.warning("task_overdue", kind=task.name, row=str(task.subject), seconds=round(task.seconds))
