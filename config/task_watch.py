"""What a worker's heartbeat looks after: tasks that outlast the lease of their row, and leases whose process was killed."""

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
"""A task that still runs so long after the lease of its row is told to the operator."""


@dataclass(frozen=True)
class RunningTask:
    """A task that Celery says is running in this worker."""

    name: str
    subject: UUID
    token: int
    seconds: float


class TaskWatch:
    """Of one worker; it is shown all that runs every few seconds."""

    def __init__(self) -> None:
        self._without_lease: dict[tuple[UUID, int], float] = {}
        """Since when, by the monotonic clock."""
        self._told: set[tuple[UUID, int]] = set()

    def look(self, running: Collection[RunningTask]) -> None:
        work_leases.end_lost({(one.subject, one.token) for one in running}, now=work_queue.database_now())
        for one in running:
            self._look_at(one)
        still = {(one.subject, one.token) for one in running}
        self._told &= still
        self._without_lease = {key: at for key, at in self._without_lease.items() if key in still}

    def _look_at(self, one: RunningTask) -> None:
        job, key = jobs.jobs()[one.name], (one.subject, one.token)
        if not isinstance(job, jobs.RowJob) or one.seconds < job.lease.total_seconds():
            return
        held = job.model.everywhere.filter(pk=one.subject, lease_token=one.token)
        if held.filter(wake_at__gt=work_queue.database_now()).exists():
            self._without_lease.pop(key, None)
            return
        since = self._without_lease.setdefault(key, time.monotonic())
        if time.monotonic() - since >= OVERDUE_SECONDS and key not in self._told:
            self._told.add(key)
            counters.add("overdue", one.name)
            log.warning("task_overdue", kind=one.name, row=str(one.subject), seconds=round(one.seconds))
