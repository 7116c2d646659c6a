"""Reads which tasks run and are queued, and finds queues with due rows that no worker takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from config.core import jobs, work_leases
from config.operations import queue_stats
from pipeline.models import Lease, LeaseState, Worker

if TYPE_CHECKING:
    from datetime import datetime

UNSERVED_SECONDS: Final = 15.0
"""The age of a due row from which a queue without a worker is reported."""


@dataclass(frozen=True)
class JobQueue:
    """The state of one queue: its workers' slots, its tasks, and its due rows with the age of the oldest."""

    name: str
    slots: int
    running: int
    queued: int
    due: int
    oldest_seconds: float

    @property
    def is_unserved(self) -> bool:
        """True if a row has been due for a while and no worker takes the queue."""
        return self.slots == 0 and self.oldest_seconds > UNSERVED_SECONDS


def job_queues(now: datetime) -> list[JobQueue]:
    """Return the state of every queue but the dispatcher's."""
    slots = work_leases.count_slots(now)
    backlogs = queue_stats.backlog_of_jobs() + queue_stats.unread_events()
    leases = running_or_queued(now)
    queues = []
    for name in jobs.QUEUES:
        queue_backlogs = [entry for entry in backlogs if entry.kind.partition(".")[0] == name]
        states = [entry.state for entry in leases if entry.queue == name]
        if name != "dispatch":
            queues.append(
                JobQueue(
                    name,
                    slots[name],
                    states.count(LeaseState.RUNNING),
                    states.count(LeaseState.QUEUED),
                    sum(entry.due for entry in queue_backlogs),
                    max((entry.oldest_seconds for entry in queue_backlogs), default=0.0),
                )
            )
    return queues


def unserved_queues(now: datetime) -> list[JobQueue]:
    """Return the queues in which a row has been due for a while and that no living worker takes."""
    return [job_queue for job_queue in job_queues(now) if job_queue.is_unserved]


def running_or_queued(now: datetime) -> list[Lease]:
    """Return the leases of running and queued tasks, without those of dead workers and of lost messages."""
    alive = set(Worker.everywhere.filter(seen_at__gt=now - work_leases.ALIVE).values_list("pk", flat=True))
    leases = Lease.everywhere.exclude(state=LeaseState.RESTING)
    return [
        lease
        for lease in leases
        if (lease.worker in alive if lease.state == LeaseState.RUNNING else lease.until > now)
    ]
