"""Stores which work is queued or running in all processes (leases), and the slots of the living workers.

A lease begins when the dispatcher queues a message and ends with the task. It counts against the slots of its
queue, its workspace and its endpoint. The due row itself carries what protects it (`wake_at`, `lease_token`),
so a lost lease makes nothing but a count wrong.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID, uuid4

from django.db import connection

from config.core import work_queue
from config.core.database.plan_cache import keyed_cursor
from config.core.database.raw_sql import MAY_BE_LOST, adapt_datetime, adapt_id, as_uuid

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

QUEUED: Final = timedelta(seconds=10)
"""The time for which a message may be under way; then it is ignored, and its row is queued again."""
SEEN_EVERY_SECONDS: Final = 5.0
"""The time between two writes by which a worker shows that it lives."""
ALIVE: Final = timedelta(seconds=15)
"""A worker that wrote nothing for this long counts as dead: neither its slots nor its running tasks count."""
FORGOTTEN: Final = timedelta(minutes=5)
"""The time after which the rows of dead workers, and leases that ran out, are deleted."""

_ADVISORY_LOCK_KEY: Final = 4_611_686_018_427_387_905
"""Key of PostgreSQL's advisory lock, so that only one dispatcher at a time counts and claims."""
_worker: Final = {"id": uuid4()}


@dataclass(frozen=True)
class QueuedTask:
    """A task to queue. `owner` is the workspace, `holder` the endpoint if the task makes deliveries."""

    subject: UUID
    token: int = 0
    owner: UUID | None = None
    holder: UUID | None = None


@dataclass
class QueueLoad:
    """The numbers of tasks that are queued and running now."""

    queues: Counter[str] = field(default_factory=Counter)
    """Tasks by queue."""
    jobs: Counter[str] = field(default_factory=Counter)
    """Tasks by job."""
    owners: Counter[tuple[str, UUID]] = field(default_factory=Counter)
    """Tasks by job and workspace."""
    holders: Counter[UUID] = field(default_factory=Counter)
    """Tasks by holder."""
    queued: Counter[UUID] = field(default_factory=Counter)
    """Tasks by holder that haven't begun yet."""


class BatchLease(NamedTuple):
    """The newest lease of a batch job."""

    token: int
    is_busy: bool
    """True while the job is queued, running in a living worker, or resting."""


def lock() -> None:
    """Keep other processes from counting and claiming until the transaction ends."""
    # With SQLite there is only one process.
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_ADVISORY_LOCK_KEY])


def read_load(now: datetime) -> QueueLoad:
    """Return how many tasks are queued, or running in living workers."""
    sql = """SELECT lease.queue, lease.job, lease.owner, lease.holder, lease.state, count(*)
             FROM lease LEFT JOIN worker ON worker.id = lease.worker
             WHERE (lease.state = 'queued' AND lease.until > %s)
                OR (lease.state = 'running' AND worker.seen_at > %s)
             GROUP BY lease.queue, lease.job, lease.owner, lease.holder, lease.state"""
    load = QueueLoad()
    with connection.cursor() as cursor:
        cursor.execute(sql, [adapt_datetime(now), adapt_datetime(now - ALIVE)])
        for queue, job, owner, holder, state, count in cursor.fetchall():
            load.queues[queue] += count
            load.jobs[job] += count
            if owner is not None:
                load.owners[job, as_uuid(owner)] += count
            if holder is not None:
                load.holders[as_uuid(holder)] += count
                if state == "queued":
                    load.queued[as_uuid(holder)] += count
    return load


def add(job: str, queue: str, leases: Sequence[QueuedTask], *, now: datetime) -> None:
    """Record the tasks that are about to be queued; an older lease of the same subject is replaced."""
    rows = ", ".join(["(%s, %s, %s, %s, 'queued', %s, %s, NULL, %s, NULL, %s)"] * len(leases))
    sql = f"""INSERT INTO lease
                (subject, job, queue, token, state, owner, holder, worker, queued_at, began_at, until)
              VALUES {rows}
              ON CONFLICT (subject) DO UPDATE SET job = excluded.job, queue = excluded.queue,
                token = excluded.token, state = 'queued', worker = NULL, queued_at = excluded.queued_at, began_at = NULL, until = excluded.until {MAY_BE_LOST}"""  # noqa: S608
    parameters: list[Any] = []
    for task in leases:
        parameters += [adapt_id(task.subject), job, queue, task.token]
        parameters += [adapt_id(task.owner), adapt_id(task.holder)]
        parameters += [adapt_datetime(now), adapt_datetime(now + QUEUED)]
    _execute(sql, parameters)


def begin(subject: UUID, token: int, *, now: datetime) -> bool:
    """Mark the lease as running, so that its message is used up, and return True.

    Returns False if the message comes a second time or too late, or if the subject was queued again since.
    """
    sql = f"""UPDATE lease SET state = 'running', worker = %s, began_at = %s
              WHERE subject = %s AND token = %s AND state = 'queued' {MAY_BE_LOST}"""  # noqa: S608
    return _execute_keyed(sql, [adapt_id(_worker["id"]), adapt_datetime(now), adapt_id(subject), token]) == 1


def end(subject: UUID, token: int) -> None:
    """Delete the lease, unless the subject was queued again under a newer token."""
    sql = f"DELETE FROM lease WHERE subject = %s AND token = %s {MAY_BE_LOST}"  # noqa: S608
    _execute_keyed(sql, [adapt_id(subject), token])


def end_lost(known: Collection[tuple[UUID, int]], *, now: datetime) -> None:
    """End the leases of this worker's tasks that don't run any more, because a process of its pool was killed.

    `known` has the subject and the token of each task that does run. A task that began less than `QUEUED` ago
    isn't ended. The slots of the others are free again.
    """
    sql = "SELECT subject, token FROM lease WHERE worker = %s AND state = 'running' AND began_at < %s"
    with connection.cursor() as cursor:
        # A task that has just begun may not be in `known` yet.
        cursor.execute(sql, [adapt_id(worker_id()), adapt_datetime(now - QUEUED)])
        running = [(as_uuid(subject), token) for subject, token in cursor.fetchall()]
    for subject, token in running:
        if (subject, token) not in known:
            end(subject, token)


def end_until(subject: UUID, token: int, until: datetime) -> None:
    """End the task, and keep its subject from being queued before `until`."""
    sql = f"""UPDATE lease SET state = 'resting', worker = NULL, until = %s
              WHERE subject = %s AND token = %s {MAY_BE_LOST}"""  # noqa: S608
    _execute(sql, [adapt_datetime(until), adapt_id(subject), token])


def read_batch_leases(subjects: Collection[UUID], now: datetime) -> dict[UUID, BatchLease]:
    """Return the newest lease of each batch job; a job without one is left out."""
    placeholders = ", ".join(["%s"] * len(subjects))
    sql = f"""SELECT lease.subject, lease.token,
                     (lease.state IN ('queued', 'resting') AND lease.until > %s)
                     OR (lease.state = 'running' AND worker.seen_at > %s)
              FROM lease LEFT JOIN worker ON worker.id = lease.worker WHERE lease.subject IN ({placeholders})"""  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(sql, [adapt_datetime(now), adapt_datetime(now - ALIVE), *map(adapt_id, subjects)])
        return {
            as_uuid(subject): BatchLease(token, is_busy=bool(is_busy))
            for subject, token, is_busy in cursor.fetchall()
        }


# --- Workers ---------------------------------------------------------------------------------------------------------


def start_worker() -> None:
    """Make this process a new worker; children that it forks later are part of it."""
    _worker["id"] = uuid4()


def worker_id() -> UUID:
    """Return the id of the worker that this process belongs to."""
    return _worker["id"]


def note_worker(name: str, slots_by_queue: Mapping[str, int], *, connections: int = 0) -> None:
    """Record that this worker lives, with its slots, and delete rows and leases that dead workers left."""
    now = work_queue.database_now()
    sql = f"""INSERT INTO worker (id, name, slots, connections, started_at, seen_at)
              VALUES (%s, %s, %s, %s, %s, %s)
              ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, slots = excluded.slots
              {MAY_BE_LOST}"""  # noqa: S608
    slots_as_json, moment = json.dumps(dict(slots_by_queue)), adapt_datetime(now)
    _execute(sql, [adapt_id(worker_id()), name[:255], slots_as_json, connections, moment, moment])
    deadline = adapt_datetime(now - FORGOTTEN)
    _execute(f"DELETE FROM worker WHERE seen_at < %s {MAY_BE_LOST}", [deadline])  # noqa: S608
    _execute(
        f"""DELETE FROM lease WHERE (state = 'queued' AND until < %s)
            OR (state = 'running' AND began_at < %s AND worker NOT IN (SELECT id FROM worker))
            {MAY_BE_LOST}""",  # noqa: S608
        [deadline, deadline],
    )


def end_worker() -> None:
    """Delete this worker's row, so that its slots and running tasks don't count from now on."""
    _execute(f"DELETE FROM worker WHERE id = %s {MAY_BE_LOST}", [adapt_id(worker_id())])  # noqa: S608


def count_slots(now: datetime) -> Counter[str]:
    """Return the slots of all living workers together, by queue."""
    total: Counter[str] = Counter()
    with connection.cursor() as cursor:
        cursor.execute("SELECT slots FROM worker WHERE seen_at > %s", [adapt_datetime(now - ALIVE)])
        for (worker_slots,) in cursor.fetchall():
            total.update(json.loads(worker_slots) if isinstance(worker_slots, str) else worker_slots)
    return total


def _execute(sql: str, parameters: Sequence[Any]) -> int:
    """Run the statement and return how many rows it changed."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return int(cursor.rowcount)


def _execute_keyed(sql: str, parameters: Sequence[Any]) -> int:
    """Run a statement that names one row, and return how many rows it changed."""
    with keyed_cursor(connection) as cursor:
        cursor.execute(sql, parameters)
        return int(cursor.rowcount)
