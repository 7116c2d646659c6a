"""What the workers run and have queued now, and in which queues something is due that no worker takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from config.core import jobs, work_leases
from config.operations import queue_stats
from pipeline.models import Lease, LeaseState, Worker

if TYPE_CHECKING:
    from datetime import datetime

UNSERVED_SECONDS: Final = 15.0


@dataclass(frozen=True)
class JobQueue:
    name: str
    slots: int
    running: int
    queued: int
    due: int
    oldest_seconds: float

    @property
    def is_unserved(self) -> bool:
        """Something has been due for a while, and no worker takes it."""
        return self.slots == 0 and self.oldest_seconds > UNSERVED_SECONDS


def job_queues(now: datetime) -> list[JobQueue]:
    there = work_leases.slots(now)
    waiting = queue_stats.backlog_of_jobs() + queue_stats.unread_events()
    leases = running_or_queued(now)
    found = []
    for name in jobs.QUEUES:
        late = [one for one in waiting if one.kind.partition(".")[0] == name]
        states = [one.state for one in leases if one.queue == name]
        if name != "dispatch":
            found.append(
                JobQueue(
                    name,
                    there[name],
                    states.count(LeaseState.RUNNING),
                    states.count(LeaseState.QUEUED),
                    sum(one.due for one in late),
                    max((one.oldest_seconds for one in late), default=0.0),
                )
            )
    return found


def unserved_queues(now: datetime) -> list[JobQueue]:
    """Queues in which something is due and that no living worker takes."""
    return [one for one in job_queues(now) if one.is_unserved]


def running_or_queued(now: datetime) -> list[Lease]:
    """Read the leases of all tasks, without those of dead workers and of messages that were lost."""
    alive = set(Worker.everywhere.filter(seen_at__gt=now - work_leases.ALIVE).values_list("pk", flat=True))
    there = Lease.everywhere.exclude(state=LeaseState.RESTING)
    return [
        one for one in there if (one.worker in alive if one.state == LeaseState.RUNNING else one.until > now)
    ]
