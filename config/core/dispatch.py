"""The dispatcher: which due work is queued as a Celery task, and the one place where a task begins and ends.

The tables are the queue. A round asks in one statement which jobs have due work, claims as much as the living workers
have slots for and a little ahead, and sends one message for each claim to the job's queue. A lost message costs its row
`leases.QUEUED`, a killed worker its rows their own leases. What waits stays in the tables, where workspaces take turns.
"""

from __future__ import annotations

import importlib
import math
import os
import threading
import time
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias
from uuid import NAMESPACE_OID, UUID, uuid4, uuid5

import structlog
from django.conf import settings
from django.db import connection, connections, transaction

from config.core import counters, leases, work_queue
from config.core.crash_points import crash_point

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from contextlib import AbstractContextManager
    from datetime import datetime

log = structlog.get_logger(__name__)

ROUND_PAUSE_SECONDS: Final = 0.03
"""Between two rounds while work is found."""
LEFT_PAUSE_SECONDS: Final = 0.06
"""The same while what is due waits for a free slot; what is queued ahead lasts longer."""
ROUNDS_SECONDS: Final = 1.0
"""A dispatcher that finds work for so long asks for another one and ends."""
LONGEST: Final = timedelta(minutes=10)
"""A task may take so long where its job says nothing else."""
LEASES_MOST: Final = 10
"""Of a row that is worked: so many leases, one after another."""
BATCH_SECONDS: Final = 20.0
"""A task that works many rows ends after this long, and goes on as another one."""
FAILED_REST_SECONDS: Final = 1.0
"""How long a batch that failed isn't queued again."""
LOCK_PAUSE_SECONDS: Final = 0.02
"""Between two batches on SQLite, so that those who wait for the lock get it."""
WORKSPACE_SHARE: Final = 0.75
"""Of the slots of its queue a job runs at most so many for one workspace."""
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
    turns: work_queue.Turns | None = None
    """Which workspaces come first; None: those with the fewest rows queued and running."""

    @property
    def time_limit(self) -> timedelta:
        return self.longest or LEASES_MOST * self.lease


@dataclass(frozen=True)
class Lanes:
    """Of one holder: whose it is, and how many of its tasks may run at once."""

    workspace_id: UUID
    most: int


class Pace(Protocol):
    """How many rows of each holder may be taken within a second."""

    def left(self, holders: Collection[UUID]) -> Mapping[UUID, int]:
        """How many more of each may be taken now; a holder that it leaves out has no such limit."""


@dataclass(frozen=True, kw_only=True)
class LaneJob(_Job):
    """Works the due rows of one holder, the row that `column` names, some after another in each task.

    `lanes` says how many of its tasks each of the given holders may have; one that it leaves out is passed by. At most
    `share` of the queue's slots is the job's.
    """

    model: type[work_queue.DueModel]
    column: str
    lanes: Callable[[Collection[UUID]], Mapping[UUID, Lanes]]
    work: Callable[[UUID], None]
    share: float = 1.0
    pace: Pace | None = None


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


Job: TypeAlias = RowJob | LaneJob | BatchJob


class Broker(Protocol):
    """How messages travel."""

    def send(self, job: Job, lease: leases.Lease) -> None:
        """Raises whatever the broker's client raises."""

    def waiting(self, queues: Collection[str]) -> Mapping[str, int]:
        """How many messages of each queue no worker has taken yet."""

    def wake(self) -> None:
        """Have a worker run the dispatcher soon, unless one has been woken; never raises, and never waits long."""

    def woken(self) -> None:
        """From now on a wake is needed again; never raises."""


_jobs: Final[dict[str, Job]] = {}
_waker: Final[dict[str, Callable[[], None]]] = {}
_one_at_a_time: Final = threading.Lock()
_rounds: Final = threading.Lock()
_is_asked: Final = threading.Event()
"""Somebody wants the dispatcher to look."""
_stopping: Final = threading.Event()
_ran_at: Final = {"at": -math.inf}
_every_second: Final[list[Callable[[], None]]] = []


def register(job: Job) -> None:
    _jobs[job.name] = job


def jobs() -> dict[str, Job]:
    """Every job of every app, in the order of `DUE_MODULES`."""
    _load()
    return _jobs


@cache
def _load() -> None:
    for module in settings.DUE_MODULES:
        importlib.import_module(module)


def wake_with(wakes: Callable[[], None]) -> None:
    """How a wake travels; the Celery app says so when it is made."""
    _waker["it"] = wakes


# --- Waking ----------------------------------------------------------------------------------------------------------


def wake() -> None:
    """Have due work queued as soon as the transaction has committed; a wake that is lost costs a second."""
    if not any(entry[1] is wake_now for entry in connection.run_on_commit):
        transaction.on_commit(wake_now, robust=True)


def wake_now() -> None:
    wakes = _waker.get("it")
    if wakes is not None:
        wakes()


# --- The rounds ------------------------------------------------------------------------------------------------------


class Round(NamedTuple):
    queued: int
    is_left: bool
    """Something is due for which there is no slot now, or no turn."""


def run_rounds(broker: Broker) -> int:
    """Queue what is due, round after round while anything is; returns how much was queued.

    One task of a process does it; the others leave it to that one, or they would wait for each other in all slots.
    """
    queued = 0
    _is_asked.set()
    # Again where somebody asked after the last look.
    while _is_asked.is_set() and _rounds.acquire(blocking=False):
        try:
            _is_asked.clear()
            queued += _run_rounds(broker)
        finally:
            _rounds.release()
    return queued


def _run_rounds(broker: Broker) -> int:
    queued = 0
    until = time.monotonic() + ROUNDS_SECONDS
    _ran_at["at"] = time.monotonic()
    # While this runs nobody needs to wake another one. Wakes count again before the last look, so that what is
    # committed after it is looked for.
    is_last = False
    try:
        while True:
            done = run_round(broker)
            queued += done.queued
            if done.queued or done.is_left:
                is_last = False
                if time.monotonic() > until:
                    broker.woken()
                    broker.wake()
                    return queued
                time.sleep(ROUND_PAUSE_SECONDS if done.queued else LEFT_PAUSE_SECONDS)
            elif is_last:
                return queued
            else:
                broker.woken()
                is_last = True
    finally:
        release_connections()


def seconds_since_rounds() -> float:
    """Since this process last ran the dispatcher."""
    return time.monotonic() - _ran_at["at"]


def run_round(broker: Broker, slots: Mapping[str, int] | None = None) -> Round:
    """Claim and send once; `slots` by queue where they aren't those of the living workers."""
    with _one_at_a_time:
        found = due_jobs()
        if not found:
            return Round(0, is_left=False)
        there = leases.slots(work_queue.database_now()) if slots is None else slots
        waiting = broker.waiting({job.queue for job in found})
        queued, is_left = 0, False
        for job in found:
            has = there.get(job.queue, 0)
            if not has:
                # No worker takes this queue: what is due waits in the table, where it is counted as late.
                continue
            if waiting.get(job.queue, 0) > 4 * (has + job.ahead):
                # The tasks at work take long. What was claimed would only be claimed again.
                continue
            try:
                claimed = _claim(job, has)
            # A fault of one job must not keep the others waiting.
            except Exception:
                log.exception("not_claimed", kind=job.name)
                continue
            is_left = is_left or not claimed
            queued += sum(_send(broker, job, lease) for lease in claimed)
        return Round(queued, is_left)


def due_jobs() -> list[Job]:
    """One statement asks for all of them."""
    every = jobs()
    tables = {
        job.name: (job.model._meta.db_table, job.where if isinstance(job, RowJob) else {})
        for job in every.values()
        if isinstance(job, RowJob | LaneJob)
    }
    waits = {job.name: job.waits for job in every.values() if isinstance(job, BatchJob) and job.waits}
    found = work_queue.names_with_work(tables, waits)
    batches = {
        job.subject: job
        for job in every.values()
        if isinstance(job, BatchJob) and (job.name in found or not job.waits)
    }
    if batches:
        known = leases.of_jobs(list(batches), work_queue.database_now())
        for subject, job in batches.items():
            is_busy = known.get(subject, (0, False))[1]
            (found.discard if is_busy else found.add)(job.name)
    return [job for name, job in every.items() if name in found]


def _claim(job: Job, slots: int) -> list[leases.Lease]:
    """What may be queued now."""
    counted_alone: AbstractContextManager[Any] = nullcontext()
    if connection.vendor == "postgresql":
        counted_alone = transaction.atomic()
    with counted_alone:
        leases.lock()
        # After the lock, so that it isn't before another dispatcher's claims.
        now = work_queue.database_now()
        held = leases.held(now)
        room = _room(job, slots, held)
        found = _claim_some(job, room, slots, held, now) if room > 0 else []
        if found:
            leases.add(job.name, job.queue, found, now=now)
    if found:
        crash_point("dispatch.queued")
    return found


def _room(job: Job, slots: int, held: leases.Held) -> int:
    """How much more of the job may be queued."""
    if isinstance(job, LaneJob):
        room = math.ceil(slots * job.share) + job.ahead - held.jobs[job.name]
    else:
        room = slots + job.ahead - held.queues[job.queue]
    # One at least: another job of the queue may have enough waiting to fill it for hours.
    return room if held.jobs[job.name] else max(room, 1)


def _claim_some(job: Job, room: int, slots: int, held: leases.Held, now: datetime) -> list[leases.Lease]:
    if isinstance(job, BatchJob):
        return _claim_batch(job, now)
    if isinstance(job, LaneJob):
        share = _share_of(math.ceil(slots * job.share))
        return _claim_lanes(job, room, held, now, per_workspace=share)
    return _claim_rows(job, room, slots, held, now)


def _share_of(slots: int) -> int:
    return max(1, math.ceil(slots * WORKSPACE_SHARE))


def _claim_rows(job: RowJob, room: int, slots: int, held: leases.Held, now: datetime) -> list[leases.Lease]:
    share = slots + job.ahead if job.computes else _share_of(slots)
    rows = work_queue.claim(
        job.model,
        limit=room,
        per_workspace=job.per_workspace or share,
        lease=leases.QUEUED,
        now=now,
        busy={owner: count for (name, owner), count in held.owners.items() if name == job.name},
        where=job.where,
        turns=job.turns,
    )
    return [leases.Lease(row.pk, row.token, owner=row.workspace_id) for row in rows]


def _claim_lanes(
    job: LaneJob, room: int, held: leases.Held, now: datetime, *, per_workspace: int
) -> list[leases.Lease]:
    table = job.model._meta.db_table
    waiting = {work_queue.as_uuid(raw): raw for raw in work_queue.holders_of_due_rows(table, job.column, now)}
    lanes = {holder: lane for holder, lane in job.lanes(waiting).items() if lane.most > held.holders[holder]}
    if job.pace and lanes:
        left = job.pace.left(lanes)
        lanes = {holder: lane for holder, lane in lanes.items() if left.get(holder, 1) > 0}
    if not lanes:
        return []
    most = max(lane.most for lane in lanes.values())
    counted = work_queue.count_due(
        table, job.column, [waiting[holder] for holder in lanes], now, most=2 * most
    )
    # A lane that is queued will take a row of those that are due.
    free = {
        holder: min(lane.most - held.holders[holder], counted[holder] - held.queued[holder])
        for holder, lane in lanes.items()
    }
    busy = {owner: count for (name, owner), count in held.owners.items() if name == job.name}
    chosen = work_queue.deal(
        {holder: (lane.workspace_id, free[holder]) for holder, lane in lanes.items()},
        limit=room,
        per_workspace=per_workspace,
        busy=busy,
    )
    return [leases.Lease(uuid4(), owner=lanes[holder].workspace_id, holder=holder) for holder in chosen]


def _claim_batch(job: BatchJob, now: datetime) -> list[leases.Lease]:
    token, is_busy = leases.of_jobs([job.subject], now).get(job.subject, (0, False))
    # Another dispatcher may have queued it since this one asked.
    return [] if is_busy else [leases.Lease(job.subject, token + 1)]


def _send(broker: Broker, job: Job, lease: leases.Lease) -> bool:
    try:
        broker.send(job, lease)
    # Whatever the broker's client raises: the work is due again at once, and is queued when the broker is back.
    except Exception as error:  # noqa: BLE001
        log.warning("message_not_sent", kind=job.name, error=str(error))
        _give_back(job, lease.subject, lease.token)
        return False
    return True


def _give_back(job: Job, subject: UUID, token: int) -> None:
    leases.end(subject, token)
    if isinstance(job, RowJob):
        work_queue.give_back(job.model, subject, token)


# --- One task --------------------------------------------------------------------------------------------------------


def run(name: str, subject: UUID, token: int, holder: UUID | None = None) -> bool:
    """What a message starts. False where it was stale, came a second time, or this process is about to stop."""
    job = jobs()[name]
    with (
        counters.of_kind(name),
        structlog.contextvars.bound_contextvars(kind=name, row=str(holder or subject)),
    ):
        try:
            return _run(job, subject, token, holder)
        # The edge of the task: the database may be away. The work is due again when its lease runs out.
        except Exception as error:  # noqa: BLE001
            log.warning("task_failed", error=str(error))
            return False
        finally:
            do_every_second()
            release_connections()


def _run(job: Job, subject: UUID, token: int, holder: UUID | None) -> bool:
    if _stopping.is_set():
        _give_back(job, subject, token)
        return False
    if not leases.begin(subject, token, now=work_queue.database_now()):
        log.info("stale_message", token=token)
        return False
    crash_point("task.begun")
    rest = 0.0
    try:
        if isinstance(job, RowJob):
            row = work_queue.begin(job.model, subject, token, lease=job.lease)
            if row is not None:
                work_row(job, row)
        elif isinstance(job, LaneJob):
            assert holder is not None  # noqa: S101  for the types; its message names one
            _time(job, lambda: job.work(holder))
        else:
            # What fails finds the same again: not at once.
            rest = job.every_seconds if _time(job, lambda: _work_batches(job)) else FAILED_REST_SECONDS
        crash_point("task.worked")
    finally:
        if rest:
            leases.rest(subject, token, work_queue.database_now() + timedelta(seconds=rest))
        else:
            leases.end(subject, token)
        # A slot is free, and the row may be due again at once.
        wake_now()
    return True


def work_row(job: RowJob, row: Any) -> None:
    """Work one row that was begun; whatever fails, it is due again when its lease runs out."""
    with structlog.contextvars.bound_contextvars(
        workspace=str(row.workspace_id), request_id=getattr(row, "request_id", None)
    ):
        if row.attempts > job.max_attempts:
            _time(job, lambda: job.give_up(row), attempts=row.attempts)
            counters.add("given_up", job.name)
            log.error("gave_up", attempts=row.attempts)
        else:
            _time(job, lambda: job.work(row), attempts=row.attempts)


def _time(job: Job, work: Callable[[], object], **shown: Any) -> bool:
    """Count and log what one task does; False where it failed. Nothing that is raised goes further."""
    began, is_done = time.monotonic(), False
    try:
        work()
    # The edge of the work: an unforeseen fault is logged, and what it left is due again when its lease runs out.
    except Exception:
        counters.add("work_failed", job.name)
        log.exception("work_failed", **shown)
    else:
        is_done = True
        log.info("worked", seconds=round(time.monotonic() - began, 3))
    counters.add("attempts", job.name)
    counters.add("work_seconds", job.name, time.monotonic() - began)
    return is_done


def _work_batches(job: BatchJob) -> None:
    until = time.monotonic() + BATCH_SECONDS
    while job.work():
        if time.monotonic() > until or _stopping.is_set():
            wake_now()
            return
        if connection.vendor == "sqlite":
            # SQLite's write lock isn't fair: who comes straight back has it before those who wait for it.
            time.sleep(LOCK_PAUSE_SECONDS)


def release_connections() -> None:
    """Give this thread's connections back: at its end, and before a wait for another machine."""
    for each in connections.all(initialized_only=True):
        # Django's own close_old_connections() would break off the transaction that a test runs in.
        if not each.in_atomic_block:
            each.close_if_unusable_or_obsolete()


def stop() -> None:
    """Begin nothing more in this process: what was queued for it is given back."""
    _stopping.set()


def start() -> None:
    _stopping.clear()


def is_stopping() -> bool:
    return _stopping.is_set()


# --- Beside the work -------------------------------------------------------------------------------------------------

_did_at: Final = {"at": 0.0}


def every_second(act: Callable[[], None]) -> None:
    """Let each process that works do this about once a second; what it raises is logged."""
    _every_second.append(act)


def do_every_second() -> None:
    """Called after each task, and by a worker's heartbeat."""
    if time.monotonic() - _did_at["at"] < 1.0:
        return
    _did_at["at"] = time.monotonic()
    for act in _every_second:
        try:
            act()
        # The caller must outlive everything: a database that is away, a fault of our own.
        except Exception as error:  # noqa: BLE001
            log.warning("not_done", act=getattr(act, "__qualname__", repr(act)), error=str(error))


os.register_at_fork(after_in_child=lambda: _did_at.update(at=0.0))


# --- Without a broker ------------------------------------------------------------------------------------------------

_SLOTS_WITHOUT_WORKERS: Final = 40


def work_all_due(*names: str, rounds: int = 50) -> int:
    """Work everything that is due, in this thread, until nothing is; for tests and commands.

    A batch that has its own pace is worked where it is named. Of rows that go from one job to another any of these jobs
    stands for all. Returns how much was worked.
    """
    total = 0
    chosen = list(names) or [
        name for name, job in jobs().items() if not isinstance(job, BatchJob) or job.waits
    ]
    models = {job.model for name in names if isinstance(job := jobs()[name], RowJob) and job.where}
    chosen += [
        name
        for name, job in jobs().items()
        if isinstance(job, RowJob) and job.model in models and name not in chosen
    ]
    for _ in range(rounds):
        worked = sum(_work_all_of(jobs()[name]) for name in chosen)
        total += worked
        if not worked:
            return total
    message = f"Rows were still due after {rounds} rounds."
    raise RuntimeError(message)


def _work_all_of(job: Job) -> int:
    worked = 0
    if isinstance(job, BatchJob):
        while done := job.work():
            worked += done
        return worked
    while True:
        with _one_at_a_time:
            claimed = _claim(job, _SLOTS_WITHOUT_WORKERS)
        if not claimed:
            return worked
        for lease in claimed:
            worked += run(job.name, lease.subject, lease.token, lease.holder)
