"""Queues due work as Celery tasks; the tables themselves are the queue.

A round asks in one statement which jobs have due work, claims as much as the living workers have slots for and
a little ahead, and sends one message for each claim to the job's queue. A lost message delays its row by
`work_leases.QUEUED`, a killed worker its rows by their own leases. Rows that wait stay in the tables, where
workspaces take turns.
"""

from __future__ import annotations

import math
import threading
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol
from uuid import uuid4

import structlog
from django.db import connection, transaction

from config.core import work_leases, work_queue
from config.core.crash_points import crash_point
from config.core.database.raw_sql import as_uuid
from config.core.jobs import BatchJob, HolderJob, Job, RowJob, jobs, release_claim
from config.core.work_queue import release_connections

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from contextlib import AbstractContextManager
    from datetime import datetime

log = structlog.get_logger(__name__)

ROUND_PAUSE_SECONDS: Final = (0.03, 0.15)
"""The shortest and the longest pause between rounds that find work; the tasks queued ahead last longer."""
ROUND_PAUSE_RATIO: Final = 8
"""The length of a pause, in lengths of the round before it: under load slow rounds find more work each."""
MAX_IDLE_PAUSE_SECONDS: Final = 0.25
"""Pauses double up to this while the due work finds no slot, such as for an endpoint that hangs."""
ROUNDS_SECONDS: Final = 1.0
"""A dispatcher that has found work for this long wakes another one and ends."""
MAX_PUT_OFF_SECONDS: Final = 5.0
"""The longest time for which jobs that can wait are left to later rounds while promised work is behind."""
WORKSPACE_SHARE: Final = 0.75
"""The largest share of its queue's slots that a job uses for one workspace."""


class Broker(Protocol):
    """Sends messages to workers; `config.celery` has a broker for Redis and one in memory."""

    def send(self, job: Job, lease: work_leases.QueuedTask) -> None:
        """Send the message of a lease. Raises whatever the broker's client raises."""

    def count_waiting(self, queues: Collection[str]) -> Mapping[str, int]:
        """Return how many messages of each queue no worker has taken yet, or none if that can't be read."""

    def wake(self) -> None:
        """Make a worker run the dispatcher soon, unless one was woken already; never raises, nor waits long."""

    def rearm_wake(self) -> None:
        """Make the next `wake()` send a message again. Never raises."""


_waker: Final[dict[str, Callable[[], None]]] = {}
claim_lock: Final = threading.Lock()
"""Held by the one thread of this process that claims and sends."""
_rounds_lock: Final = threading.Lock()
"""Held by the one thread of this process that runs rounds, also between them."""
_is_requested: Final = threading.Event()
"""Set while a round was requested that hasn't begun."""
_ran_at: Final = {"at": -math.inf}
"""The time at which this process last began rounds, in seconds of the monotonic clock."""
_put_off_since: Final[dict[str, float]] = {}
"""The time since which this process has put off each job, by name, in seconds of the monotonic clock."""


def set_waker(send_wake: Callable[[], None]) -> None:
    """Set the function that sends a wake; the Celery app does so when it is created."""
    _waker["it"] = send_wake


# --- Waking ----------------------------------------------------------------------------------------------------------


def wake() -> None:
    """Have due work queued as soon as the transaction commits, or at once if there is none.

    A wake that is lost delays the work by about a second.
    """
    if not any(entry[1] is wake_now for entry in connection.run_on_commit):
        transaction.on_commit(wake_now, robust=True)


def wake_now() -> None:
    """Have due work queued now, whatever becomes of the transaction; does nothing before `set_waker()`."""
    send_wake = _waker.get("it")
    if send_wake is not None:
        send_wake()


# --- The rounds ------------------------------------------------------------------------------------------------------


class DispatchRound(NamedTuple):
    """The result of a round."""

    queued: int
    """The number of tasks that were queued."""
    is_left: bool
    """True if a job with due work got no task in this round, or was put off."""


def run_rounds(broker: Broker) -> int:
    """Queue due work, round after round while there is any, and return how many tasks were queued.

    Only one thread of a process runs rounds. The others return 0 at once, because they would otherwise wait for
    each other in all slots.
    """
    queued = 0
    _is_requested.set()
    # Rounds run again if another thread requested one after the last one began.
    while _is_requested.is_set() and _rounds_lock.acquire(blocking=False):
        try:
            _is_requested.clear()
            queued += _run_rounds(broker)
        finally:
            _rounds_lock.release()
    return queued


def _run_rounds(broker: Broker) -> int:
    """Run rounds until nothing is due, or for `ROUNDS_SECONDS`, and return how many tasks were queued."""
    queued = 0
    deadline = time.monotonic() + ROUNDS_SECONDS
    _ran_at["at"] = time.monotonic()
    # While this runs nobody needs to wake another dispatcher. Wakes count again before the last round, so that a
    # row that is committed after that round wakes one.
    is_last = False
    idle_pause = ROUND_PAUSE_SECONDS[0]
    try:
        while True:
            began_at = time.monotonic()
            result = run_round(broker)
            queued += result.queued
            if result.queued or result.is_left:
                is_last = False
                if time.monotonic() > deadline:
                    broker.rearm_wake()
                    broker.wake()
                    return queued
                doubled_pause = min(2 * idle_pause, MAX_IDLE_PAUSE_SECONDS)
                idle_pause = ROUND_PAUSE_SECONDS[0] if result.queued else doubled_pause
                time.sleep(max(idle_pause, _pause_after(time.monotonic() - began_at)))
            elif is_last:
                return queued
            else:
                broker.rearm_wake()
                is_last = True
    finally:
        release_connections()


def _pause_after(round_seconds: float) -> float:
    """Return the pause, in seconds, after a round that took `round_seconds`."""
    shortest, longest = ROUND_PAUSE_SECONDS
    return min(max(shortest, round_seconds * ROUND_PAUSE_RATIO), longest)


def seconds_since_rounds() -> float:
    """Return the seconds since this process last began rounds, or infinity if it never did."""
    return time.monotonic() - _ran_at["at"]


def run_round(broker: Broker, slots: Mapping[str, int] | None = None) -> DispatchRound:
    """Claim due work of each job once, and send its messages.

    `slots` by queue replace those of the living workers. A job whose claim raises is logged and left out.
    """
    with claim_lock:
        due = find_due_jobs()
        if not due:
            return DispatchRound(0, is_left=False)
        slots_by_queue = work_leases.count_slots(work_queue.database_now()) if slots is None else slots
        waiting = broker.count_waiting({job.queue for job in due})
        queued, is_left, is_behind = 0, False, False
        for job in sorted(due, key=lambda job: job.can_wait):
            queue_slots = slots_by_queue.get(job.queue, 0)
            if not queue_slots:
                # No worker takes this queue: what is due waits in the table, where it is counted as late.
                continue
            if waiting.get(job.queue, 0) > 4 * (queue_slots + job.ahead):
                # The running tasks take long: further messages would expire, and their rows be claimed again.
                continue
            if is_behind and _put_off(job):
                is_left = True
                continue
            _put_off_since.pop(job.name, None)
            try:
                claimed = claim(job, queue_slots)
                is_behind = is_behind or (job.is_promised and _is_behind(job))
            # An error in one job mustn't stop the others.
            except Exception:
                log.exception("not_claimed", kind=job.name)
                continue
            is_left = is_left or not claimed
            queued += sum(_send_message(broker, job, lease) for lease in claimed)
        return DispatchRound(queued, is_left)


def _is_behind(job: Job) -> bool:
    """Return whether more rows of a `RowJob` are due than were just claimed; False for other jobs."""
    if not isinstance(job, RowJob):
        return False
    return bool(work_queue.find_names_with_work({job.name: (job.model._meta.db_table, job.where)}, {}))


def _put_off(job: Job) -> bool:
    """Leave a job to a later round, and return True; return False if it can't wait, or can't wait any longer."""
    now = time.monotonic()
    return job.can_wait and now - _put_off_since.setdefault(job.name, now) < MAX_PUT_OFF_SECONDS


def find_due_jobs() -> list[Job]:
    """Return the jobs that have due work.

    A batch job counts as due if it has no `waits`, and never while it is queued, running or resting.
    """
    all_jobs = jobs()
    tables = {
        job.name: (job.model._meta.db_table, job.where if isinstance(job, RowJob) else {})
        for job in all_jobs.values()
        if isinstance(job, RowJob | HolderJob)
    }
    wait_statements = {
        job.name: job.waits for job in all_jobs.values() if isinstance(job, BatchJob) and job.waits
    }
    due = work_queue.find_names_with_work(tables, wait_statements)
    batches = {
        job.subject: job
        for job in all_jobs.values()
        if isinstance(job, BatchJob) and (job.name in due or not job.waits)
    }
    if batches:
        leases = work_leases.read_batch_leases(list(batches), work_queue.database_now())
        for subject, job in batches.items():
            is_busy = subject in leases and leases[subject].is_busy
            (due.discard if is_busy else due.add)(job.name)
    return [job for name, job in all_jobs.items() if name in due]


def claim(job: Job, slots: int) -> list[work_leases.QueuedTask]:
    """Claim the job's work that may be queued now, record the leases, and return the tasks.

    `slots` is the number of slots of the job's queue.
    """
    isolation: AbstractContextManager[Any] = nullcontext()
    if connection.vendor == "postgresql":
        isolation = transaction.atomic()
    with isolation:
        work_leases.lock()
        # Read after the lock, so that the time isn't before the claims of another dispatcher.
        now = work_queue.database_now()
        load = work_leases.read_load(now)
        max_tasks = _count_free_tasks(job, slots, load)
        tasks = _claim_by_kind(job, max_tasks, slots, load, now) if max_tasks > 0 else []
        if tasks:
            work_leases.add(job.name, job.queue, tasks, now=now)
    if tasks:
        crash_point("dispatch.queued")
    return tasks


def _count_free_tasks(job: Job, slots: int, load: work_leases.QueueLoad) -> int:
    """Return how many more tasks of the job may be queued; it may be negative."""
    if isinstance(job, HolderJob):
        free = math.ceil(slots * job.share) + job.ahead - load.jobs[job.name]
    else:
        free = slots + job.ahead - load.queues[job.queue]
    # A job without any task gets one, because another job may have enough work to fill the queue for hours.
    return free if load.jobs[job.name] else max(free, 1)


def _claim_by_kind(
    job: Job, max_tasks: int, slots: int, load: work_leases.QueueLoad, now: datetime
) -> list[work_leases.QueuedTask]:
    """Claim up to `max_tasks` tasks as the kind of the job demands."""
    if isinstance(job, BatchJob):
        return _claim_batch(job, now)
    if isinstance(job, HolderJob):
        share = _workspace_share(math.ceil(slots * job.share))
        return _claim_holders(job, max_tasks, load, now, per_workspace=share)
    return _claim_rows(job, max_tasks, slots, load, now)


def _workspace_share(slots: int) -> int:
    """Return how many of the slots one workspace may use, at least one."""
    return max(1, math.ceil(slots * WORKSPACE_SHARE))


def _claim_rows(
    job: RowJob, max_tasks: int, slots: int, load: work_leases.QueueLoad, now: datetime
) -> list[work_leases.QueuedTask]:
    """Claim due rows, and return a task for each."""
    share = slots + job.ahead if job.computes else _workspace_share(slots)
    rows = work_queue.claim(
        job.model,
        limit=max_tasks,
        per_workspace=job.per_workspace or share,
        lease=work_leases.QUEUED,
        now=now,
        busy={owner: count for (name, owner), count in load.owners.items() if name == job.name},
        where=job.where,
        read_shares=job.read_shares,
    )
    return [work_leases.QueuedTask(row.pk, row.token, owner=row.workspace_id) for row in rows]


def _claim_holders(
    job: HolderJob, max_tasks: int, load: work_leases.QueueLoad, now: datetime, *, per_workspace: int
) -> list[work_leases.QueuedTask]:
    """Choose holders (endpoints) with due rows and free slots, and return a task for each slot.

    The rows stay unclaimed: the task takes them itself.
    """
    table = job.model._meta.db_table
    raw_ids = {as_uuid(raw): raw for raw in work_queue.find_holders_of_due_rows(table, job.column, now)}
    slots = {
        holder: slot for holder, slot in job.slots(raw_ids).items() if slot.max_tasks > load.holders[holder]
    }
    if job.pace and slots:
        remaining = job.pace.count_remaining(slots)
        # A holder that is left out has no limit, for which any positive number stands.
        slots = {holder: slot for holder, slot in slots.items() if remaining.get(holder, 1) > 0}
    if not slots:
        return []
    max_slots = max(slot.max_tasks for slot in slots.values())
    # Twice as many, because `queued` tasks, at most as many as slots, are subtracted below.
    due_counts = work_queue.count_due(
        table, job.column, [raw_ids[holder] for holder in slots], now, max_count=2 * max_slots
    )
    # Each queued task will take one of the due rows.
    free = {
        holder: min(slot.max_tasks - load.holders[holder], due_counts[holder] - load.queued[holder])
        for holder, slot in slots.items()
    }
    busy = {owner: count for (name, owner), count in load.owners.items() if name == job.name}
    chosen_holders = work_queue.deal_slots(
        {holder: (slot.workspace_id, free[holder]) for holder, slot in slots.items()},
        limit=max_tasks,
        per_workspace=per_workspace,
        busy=busy,
    )
    return [
        work_leases.QueuedTask(uuid4(), owner=slots[holder].workspace_id, holder=holder)
        for holder in chosen_holders
    ]


def _claim_batch(job: BatchJob, now: datetime) -> list[work_leases.QueuedTask]:
    """Return the one task of a batch job, or no task if the job is queued, running or resting."""
    lease = work_leases.read_batch_leases([job.subject], now).get(job.subject)
    # Another dispatcher may have queued it since `find_due_jobs()` read the leases.
    if lease is not None and lease.is_busy:
        return []
    return [work_leases.QueuedTask(job.subject, lease.token + 1 if lease is not None else 1)]


def _send_message(broker: Broker, job: Job, lease: work_leases.QueuedTask) -> bool:
    """Send the message of a claim; if that fails, give the claim back and return False."""
    try:
        broker.send(job, lease)
    # The client may raise anything. The work is due again at once, and is queued when the broker is back.
    except Exception as error:  # noqa: BLE001
        log.warning("message_not_sent", kind=job.name, error=str(error))
        release_claim(job, lease.subject, lease.token)
        return False
    return True
