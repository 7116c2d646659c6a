"""Defines the kinds of due work (jobs), and how each is queued and run."""

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

DEFAULT_TIME_LIMIT: Final = timedelta(minutes=10)
"""The time limit of a task whose job names none; a `RowJob` has another default."""
MAX_LEASES_PER_TASK: Final = 10
"""The default time limit of a `RowJob`'s task, in leases."""
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
    """The fields of every job."""

    name: str
    """The name of the job and of its Celery task: the queue, a dot, and the action."""
    ahead: int = 4
    """The number of tasks that are queued beyond the free slots, so that a worker that ends one finds the next."""
    late_after: timedelta = timedelta(minutes=1)
    """Rows that are due for longer are reported to the operator."""
    max_duration: timedelta | None = None
    """The time limit of a task, or `None` for the default of the job's kind."""
    is_promised: bool = False
    """True if its rows are due at a moment that was promised to people."""
    can_wait: bool = False
    """True if it isn't queued, for some seconds, while more rows of a promised job are due than fit the slots."""

    @property
    def queue(self) -> str:
        return self.name.partition(".")[0]

    @property
    def time_limit(self) -> timedelta:
        """The time after which a task is stopped, in a pool of processes; threads can't be stopped."""
        return self.max_duration or DEFAULT_TIME_LIMIT


@dataclass(frozen=True, kw_only=True)
class RowJob(_Job):
    """A job whose tasks each work on one due row.

    An exception of `work` leaves the row due again when its `lease` runs out. `give_up` gets a row that was
    begun `max_attempts` times without success, and must end it in a status that a person sees. At most
    `per_workspace` tasks run for one workspace; `None` means three quarters of the slots. If rows of one table
    belong to several jobs, `where` selects this job's.
    """

    model: type[work_queue.DueModel]
    work: Callable[[Any], None]
    give_up: Callable[[Any], None]
    lease: timedelta
    max_attempts: int = 5
    per_workspace: int | None = None
    computes: bool = False
    """True if its tasks only compute, so that one workspace may use all slots and the tasks ahead."""
    where: Mapping[str, str] = field(default_factory=dict)
    """The columns and values of the job's rows."""
    read: Prepared[Any] | None = None
    """The query for a task's row by `pk`, or `None` to load it with its model's `begins_with` relations."""
    read_shares: work_queue.ReadShares | None = None
    """The function that orders the workspaces, or `None` for those with the fewest queued and running rows first."""

    @property
    def time_limit(self) -> timedelta:
        return self.max_duration or MAX_LEASES_PER_TASK * self.lease


@dataclass(frozen=True)
class HolderSlots:
    """A holder's workspace, and the most of the holder's tasks that may be queued and running at once."""

    workspace_id: UUID
    max_tasks: int


class HolderPace(Protocol):
    """Limits how many rows of each holder may be taken within a second."""

    def count_remaining(self, holders: Collection[UUID]) -> Mapping[UUID, int]:
        """Return how many more rows of each holder may be taken now; a holder that is left out has no limit."""


@dataclass(frozen=True, kw_only=True)
class HolderJob(_Job):
    """A job whose tasks each work on due rows of one holder (the row that `column` names), one after another.

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
    """A job that works on many rows in one transaction: `work` returns how many, or 0 if none are left.

    It is queued while the statement `waits` finds a row, or always if that is empty, at most once in
    `every_seconds` and in one task at a time.
    """

    work: Callable[[], int]
    waits: str = ""
    every_seconds: float = 0.0

    @property
    def subject(self) -> UUID:
        """The id that its lease is stored under, because no row stands for the job."""
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
    """Delete the lease of a claim; a `RowJob`'s row is due again at once."""
    work_leases.end(subject, token)
    if isinstance(job, RowJob):
        work_queue.give_back(job.model, subject, token)
