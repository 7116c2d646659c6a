"""Leases: which work is queued or running in all processes, and how many slots the living workers have.

A lease begins when the dispatcher queues a message and ends with the task. It counts against the slots of its queue,
its workspace and its endpoint. The due row itself carries what protects it (`wake_at`, `lease_token`), so a lease that
is lost costs nothing but a count.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID, uuid4

from django.db import connection

from config.core import work_queue
from config.core.database.plan_cache import keyed_cursor
from config.core.database.relaxed_durability import MAY_BE_LOST

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

QUEUED: Final = timedelta(seconds=10)
"""How long a message may take to its task; after that the row is queued again, and the late message is ignored."""
SEEN_EVERY_SECONDS: Final = 5.0
ALIVE: Final = timedelta(seconds=15)
"""A worker that wasn't seen for so long counts as dead: its slots are gone, and what it had counts no more."""
FORGOTTEN: Final = timedelta(minutes=5)

_LOCK: Final = 4_611_686_018_427_387_905
"""PostgreSQL's advisory lock of the dispatcher: who counts and claims does it alone."""
_worker: Final = {"id": uuid4()}


@dataclass(frozen=True)
class QueuedTask:
    """What the dispatcher queues. `owner` is the workspace, `holder` the endpoint of a task of deliveries."""

    subject: UUID
    token: int = 0
    owner: UUID | None = None
    holder: UUID | None = None


@dataclass
class QueueLoad:
    """How much is queued and running now."""

    queues: Counter[str] = field(default_factory=Counter)
    jobs: Counter[str] = field(default_factory=Counter)
    owners: Counter[tuple[str, UUID]] = field(default_factory=Counter)
    """By job and workspace."""
    holders: Counter[UUID] = field(default_factory=Counter)
    queued: Counter[UUID] = field(default_factory=Counter)
    """Of the holders' leases those that haven't begun."""


def lock() -> None:
    """Until the transaction ends no other process counts or claims; SQLite has one process only."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])


def current_load(now: datetime) -> QueueLoad:
    sql = """SELECT lease.queue, lease.job, lease.owner, lease.holder, lease.state, count(*)
             FROM lease LEFT JOIN worker ON worker.id = lease.worker
             WHERE (lease.state = 'queued' AND lease.until > %s)
                OR (lease.state = 'running' AND worker.seen_at > %s)
             GROUP BY lease.queue, lease.job, lease.owner, lease.holder, lease.state"""
    counted = QueueLoad()
    with connection.cursor() as cursor:
        cursor.execute(sql, [_moment(now), _moment(now - ALIVE)])
        for queue, job, owner, holder, state, count in cursor.fetchall():
            counted.queues[queue] += count
            counted.jobs[job] += count
            if owner is not None:
                counted.owners[job, work_queue.as_uuid(owner)] += count
            if holder is not None:
                counted.holders[work_queue.as_uuid(holder)] += count
                if state == "queued":
                    counted.queued[work_queue.as_uuid(holder)] += count
    return counted


def add(job: str, queue: str, leases: Sequence[QueuedTask], *, now: datetime) -> None:
    """Note what is about to be queued; an older lease of the same subject has been overtaken and is replaced."""
    rows = ", ".join(["(%s, %s, %s, %s, 'queued', %s, %s, NULL, %s, NULL, %s)"] * len(leases))
    sql = f"""INSERT INTO lease
                (subject, job, queue, token, state, owner, holder, worker, queued_at, began_at, until)
              VALUES {rows}
              ON CONFLICT (subject) DO UPDATE SET job = excluded.job, queue = excluded.queue,
                token = excluded.token, state = 'queued', worker = NULL, queued_at = excluded.queued_at, began_at = NULL, until = excluded.until {MAY_BE_LOST}"""  # noqa: S608
    parameters: list[Any] = []
    for one in leases:
        parameters += [_id(one.subject), job, queue, one.token, _id(one.owner), _id(one.holder)]
        parameters += [_moment(now), _moment(now + QUEUED)]
    _execute(sql, parameters)


def begin(subject: UUID, token: int, *, now: datetime) -> bool:
    """Use the message up: False where it comes a second time, or too late, or the row was queued again since."""
    sql = f"""UPDATE lease SET state = 'running', worker = %s, began_at = %s
              WHERE subject = %s AND token = %s AND state = 'queued' {MAY_BE_LOST}"""  # noqa: S608
    return _execute_keyed(sql, [_id(_worker["id"]), _moment(now), _id(subject), token]) == 1


def end(subject: UUID, token: int) -> None:
    sql = f"DELETE FROM lease WHERE subject = %s AND token = %s {MAY_BE_LOST}"  # noqa: S608
    _execute_keyed(sql, [_id(subject), token])


def end_lost(known: Collection[tuple[UUID, int]], *, now: datetime) -> None:
    """End what this worker is said to run and doesn't: a process of its pool was killed. Its slot is free again."""
    sql = "SELECT subject, token FROM lease WHERE worker = %s AND state = 'running' AND began_at < %s"
    with connection.cursor() as cursor:
        # What has just begun may not be known yet.
        cursor.execute(sql, [_id(worker_id()), _moment(now - QUEUED)])
        found = [(work_queue.as_uuid(subject), token) for subject, token in cursor.fetchall()]
    for subject, token in found:
        if (subject, token) not in known:
            end(subject, token)


def end_until(subject: UUID, token: int, until: datetime) -> None:
    """The work is done and due again at `until`."""
    sql = f"""UPDATE lease SET state = 'resting', worker = NULL, until = %s
              WHERE subject = %s AND token = %s {MAY_BE_LOST}"""  # noqa: S608
    _execute(sql, [_moment(until), _id(subject), token])


def leases_of_jobs(subjects: Collection[UUID], now: datetime) -> dict[UUID, tuple[int, bool]]:
    """Of work without rows: the newest token, and whether it is queued, running or resting now."""
    marks = ", ".join(["%s"] * len(subjects))
    sql = f"""SELECT lease.subject, lease.token,
                     (lease.state IN ('queued', 'resting') AND lease.until > %s)
                     OR (lease.state = 'running' AND worker.seen_at > %s)
              FROM lease LEFT JOIN worker ON worker.id = lease.worker WHERE lease.subject IN ({marks})"""  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(sql, [_moment(now), _moment(now - ALIVE), *map(_id, subjects)])
        return {
            work_queue.as_uuid(subject): (token, bool(busy)) for subject, token, busy in cursor.fetchall()
        }


# --- Workers ---------------------------------------------------------------------------------------------------------


def start_worker() -> None:
    """From now on this process is a new worker, and its forked children are part of it."""
    _worker["id"] = uuid4()


def worker_id() -> UUID:
    return _worker["id"]


def note_worker(name: str, slots_by_queue: Mapping[str, int], *, connections: int = 0) -> None:
    """Say that this worker lives, and remove what dead ones left."""
    now = work_queue.database_now()
    sql = f"""INSERT INTO worker (id, name, slots, connections, started_at, seen_at)
              VALUES (%s, %s, %s, %s, %s, %s)
              ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, slots = excluded.slots
              {MAY_BE_LOST}"""  # noqa: S608
    slots_as_json = json.dumps(dict(slots_by_queue))
    _execute(sql, [_id(worker_id()), name[:255], slots_as_json, connections, _moment(now), _moment(now)])
    old = _moment(now - FORGOTTEN)
    _execute(f"DELETE FROM worker WHERE seen_at < %s {MAY_BE_LOST}", [old])  # noqa: S608
    _execute(
        f"""DELETE FROM lease WHERE (state = 'queued' AND until < %s)
            OR (state = 'running' AND began_at < %s AND worker NOT IN (SELECT id FROM worker))
            {MAY_BE_LOST}""",  # noqa: S608
        [old, old],
    )


def end_worker() -> None:
    _execute(f"DELETE FROM worker WHERE id = %s {MAY_BE_LOST}", [_id(worker_id())])  # noqa: S608


def slots(now: datetime) -> Counter[str]:
    """Of all living workers together, by queue."""
    total: Counter[str] = Counter()
    with connection.cursor() as cursor:
        cursor.execute("SELECT slots FROM worker WHERE seen_at > %s", [_moment(now - ALIVE)])
        for (given,) in cursor.fetchall():
            total.update(json.loads(given) if isinstance(given, str) else given)
    return total


def _execute(sql: str, parameters: Sequence[Any]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return int(cursor.rowcount)


def _execute_keyed(sql: str, parameters: Sequence[Any]) -> int:
    """The same of a statement that names one row."""
    with keyed_cursor(connection) as cursor:
        cursor.execute(sql, parameters)
        return int(cursor.rowcount)


def _moment(moment: datetime) -> Any:
    return connection.ops.adapt_datetimefield_value(moment)


def _id(value: UUID | None) -> Any:
    return value if value is None or connection.vendor == "postgresql" else value.hex
