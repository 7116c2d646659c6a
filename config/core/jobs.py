"""Jobs: the kinds of due work, and how each is queued and run."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias
from uuid import NAMESPACE_OID, UUID, uuid5

from django.conf import settings

from config.core import work_leases, work_queue

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from config.core.database.prepared_queries import Prepared

LONGEST: Final = timedelta(minutes=10)
"""The default time limit of a task."""
MAX_LEASES_PER_TASK: Final = 10
"""How many leases in a row a task may take for one row."""
QUEUES: Final = (
    "dispatch",
    "ingest",
    "generate",
    "compute",
    "render",
    "publish",
    "webhooks",
    "mail",
    "analytics",
    "housekeeping",
)


@dataclass(frozen=True, kw_only=True)
class _Job:
    """What all jobs have."""

    name: str
    """The name of the Celery task too: the queue, a dot, and what is done."""
    ahead: int = 4
    """How many tasks are queued beyond the free slots, so that a worker that ends one finds the next."""
    late_after: timedelta = timedelta(minutes=1)
    """Rows that are due for longer are reported to the operator."""
    longest: timedelta | None = None
    is_promised: bool = False
    """True if its rows are due at a moment that people were told."""
    can_wait: bool = False
    """True if it isn't queued, for a few seconds, while more of a promised job is due than there are slots for."""

    @property
    def queue(self) -> str:
        return self.name.partition(".")[0]

    @property
    def time_limit(self) -> timedelta:
        """Return when a task is stopped, if its pool can: processes can be killed, threads can't."""
        return self.longest or LONGEST


@dataclass(frozen=True, kw_only=True)
class RowJob(_Job):
    """Works on one due row per task.

    An exception of `work` leaves the row due again when its `lease` runs out. `give_up` gets a row that was
    begun `max_attempts` times without success, and must end it in a status that a person sees. At most
    `per_workspace` tasks run for one workspace; None means three quarters of the slots. Rows of one table may
    belong to several jobs: `where` selects this job's.
    """

    model: type[work_queue.DueModel]
    work: Callable[[Any], None]
    give_up: Callable[[Any], None]
    lease: timedelta
    max_attempts: int = 5
    per_workspace: int | None = None
    computes: bool = False
    """True if its tasks only compute, so that a workspace that is alone may have all slots, and those ahead."""
    where: Mapping[str, str] = field(default_factory=dict)
    """The columns and values of the job's rows."""
    read: Prepared[Any] | None = None
    """The query for a task's row by `pk`; None loads the row with its model's `begins_with` relations."""
    turns: work_queue.Turns | None = None
    """The order of workspaces; None for those with the fewest rows queued and running first."""

    @property
    def time_limit(self) -> timedelta:
        return self.longest or MAX_LEASES_PER_TASK * self.lease


@dataclass(frozen=True)
class HolderSlots:
    """One holder's workspace, and how many of its tasks may run at once."""

    workspace_id: UUID
    most: int


class HolderPace(Protocol):
    """Limits how many rows of each holder may be taken within a second."""

    def left(self, holders: Collection[UUID]) -> Mapping[UUID, int]:
        """Return how many more rows of each may be taken now; a holder that is left out has no such limit."""


@dataclass(frozen=True, kw_only=True)
class HolderJob(_Job):
    """Works on the due rows of one holder (the row that `column` names), one after another in each task.

    `slots` returns how many tasks each of the given holders may have; a holder that it leaves out is skipped.
    The job may use at most `share` of the queue's slots.
    """

    model: type[work_queue.DueModel]
    column: str
    slots: Callable[[Collection[UUID]], Mapping[UUID, HolderSlots]]
    work: Callable[[UUID], None]
    share: float = 1.0
    pace: HolderPace | None = None


@dataclass(frozen=True, kw_only=True)
class BatchJob(_Job):
    """Works on many rows in one transaction: `work` returns how many it did, 0 when none are left.

    It is queued while the statement `waits` finds a row (always, if it is empty), at most once in
    `every_seconds`. One task of it runs at a time.
    """

    work: Callable[[], int]
    waits: str = ""
    every_seconds: float = 0.0

    @property
    def subject(self) -> UUID:
        """Return the id of its lease, which has no row of its own."""
        return uuid5(NAMESPACE_OID, self.name)


Job: TypeAlias = RowJob | HolderJob | BatchJob
_jobs: Final[dict[str, Job]] = {}


def register(job: Job) -> None:
    """Register a job; the modules in `JOB_MODULES` do so on import."""
    _jobs[job.name] = job


def jobs() -> dict[str, Job]:
    """Return every job of every app, in the order of `JOB_MODULES`."""
    _import_job_modules()
    return _jobs


@cache
def _import_job_modules() -> None:
    for module in settings.JOB_MODULES:
        importlib.import_module(module)


def release_claim(job: Job, subject: UUID, token: int) -> None:
    """Return a claimed row to the queue and delete its lease."""
    work_leases.end(subject, token)
    if isinstance(job, RowJob):
        work_queue.give_back(job.model, subject, token)
