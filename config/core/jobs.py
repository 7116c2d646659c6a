"""Jobs: what kinds of due work there are, and how each is queued and worked."""

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
"""A task may take so long where its job says nothing else."""
LEASES_MOST: Final = 10
"""Of a row that is worked: so many leases, one after another."""
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
    name: str
    """Of the Celery task too: the queue, a dot, and what is done."""
    ahead: int = 4
    """How many are queued beyond the free slots, so that a worker that ends one finds the next."""
    late_after: timedelta = timedelta(minutes=1)
    """Operators are told of what is due for longer."""
    longest: timedelta | None = None
    is_promised: bool = False
    """Its rows are due at a moment that somebody was told."""
    can_wait: bool = False
    """While more of a promised job is due than there are slots for, none of this one is queued, for a few seconds."""

    @property
    def queue(self) -> str:
        return self.name.partition(".")[0]

    @property
    def time_limit(self) -> timedelta:
        """A task that takes longer is stopped, where its pool can: processes can be killed, threads can't."""
        return self.longest or LONGEST


@dataclass(frozen=True, kw_only=True)
class RowJob(_Job):
    """Works one due row in each task.

    An exception of `work` leaves the row due again when its `lease` runs out. `give_up` gets a row that was begun
    `max_attempts` times without success, and must end it in a status that a person sees. At most `per_workspace` run
    for one workspace; None: three quarters of the slots. Rows of one table may be of several jobs: `where` narrows
    them to the job's own.
    """

    model: type[work_queue.DueModel]
    work: Callable[[Any], None]
    give_up: Callable[[Any], None]
    lease: timedelta
    max_attempts: int = 5
    per_workspace: int | None = None
    computes: bool = False
    """Its tasks don't wait for others, so that one workspace may have all slots, and those ahead, while it is alone."""
    where: Mapping[str, str] = field(default_factory=dict)
    """Columns and their values."""
    read: Prepared[Any] | None = None
    """Asks for the row of a task by its `pk`; None: the row, and what its model begins with."""
    turns: work_queue.Turns | None = None
    """Which workspaces come first; None: those with the fewest rows queued and running."""

    @property
    def time_limit(self) -> timedelta:
        return self.longest or LEASES_MOST * self.lease


@dataclass(frozen=True)
class HolderSlots:
    """Of one holder: whose it is, and how many of its tasks may run at once."""

    workspace_id: UUID
    most: int


class HolderPace(Protocol):
    """How many rows of each holder may be taken within a second."""

    def left(self, holders: Collection[UUID]) -> Mapping[UUID, int]:
        """How many more of each may be taken now; a holder that it leaves out has no such limit."""


@dataclass(frozen=True, kw_only=True)
class HolderJob(_Job):
    """Works the due rows of one holder, the row that `column` names, some after another in each task.

    `slots` says how many of its tasks each of the given holders may have; one that it leaves out is passed by. At most
    `share` of the queue's slots is the job's.
    """

    model: type[work_queue.DueModel]
    column: str
    slots: Callable[[Collection[UUID]], Mapping[UUID, HolderSlots]]
    work: Callable[[UUID], None]
    share: float = 1.0
    pace: HolderPace | None = None


@dataclass(frozen=True, kw_only=True)
class BatchJob(_Job):
    """Marks many rows in one transaction: `work` returns how many it did, 0 when none are left.

    It is queued while `waits`, a statement, finds a row, and without one always; at most once in `every_seconds`. One
    task of it runs at a time.
    """

    work: Callable[[], int]
    waits: str = ""
    every_seconds: float = 0.0

    @property
    def subject(self) -> UUID:
        return uuid5(NAMESPACE_OID, self.name)


Job: TypeAlias = RowJob | HolderJob | BatchJob
_jobs: Final[dict[str, Job]] = {}


def register(job: Job) -> None:
    _jobs[job.name] = job


def jobs() -> dict[str, Job]:
    """Every job of every app, in the order of `JOB_MODULES`."""
    _load()
    return _jobs


@cache
def _load() -> None:
    for module in settings.JOB_MODULES:
        importlib.import_module(module)


def release_claim(job: Job, subject: UUID, token: int) -> None:
    work_leases.end(subject, token)
    if isinstance(job, RowJob):
        work_queue.give_back(job.model, subject, token)
