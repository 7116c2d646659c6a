"""The dispatcher: which due work is queued as a Celery task.

The tables are the queue. A round asks in one statement which jobs have due work, claims as much as the living workers
have slots for and a little ahead, and sends one message for each claim to the job's queue. A lost message costs its row
`leases.QUEUED`, a killed worker its rows their own leases. What waits stays in the tables, where workspaces take turns.
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
from config.core.jobs import BatchJob, HolderJob, Job, RowJob, jobs, release_claim
from config.core.work_queue import release_connections

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from contextlib import AbstractContextManager
    from datetime import datetime

log = structlog.get_logger(__name__)

ROUND_PAUSE_SECONDS: Final = (0.03, 0.15)
"""Least and most between two rounds while work is found or left; what is queued ahead lasts longer."""
ROUND_PAUSE_RATIO: Final = 8
"""A pause is so many times as long as the round before it: under load rounds take longer, and each finds more."""
IDLE_PAUSE_MOST_SECONDS: Final = 0.25
"""Each pause is twice the one before, up to this, while what is left finds no slot: an endpoint that hangs, say."""
ROUNDS_SECONDS: Final = 1.0
"""A dispatcher that finds work for so long asks for another one and ends."""
PUT_OFF_MOST_SECONDS: Final = 5.0
"""How long what can wait is left to later rounds for the sake of what is promised."""
WORKSPACE_SHARE: Final = 0.75
"""Of the slots of its queue a job runs at most so many for one workspace."""


class Broker(Protocol):
    """How messages travel."""

    def send(self, job: Job, lease: work_leases.QueuedTask) -> None:
        """Raises whatever the broker's client raises."""

    def waiting(self, queues: Collection[str]) -> Mapping[str, int]:
        """How many messages of each queue no worker has taken yet."""

    def wake(self) -> None:
        """Have a worker run the dispatcher soon, unless one has been woken; never raises, and never waits long."""

    def woken(self) -> None:
        """From now on a wake is needed again; never raises."""


_waker: Final[dict[str, Callable[[], None]]] = {}
one_at_a_time: Final = threading.Lock()
_rounds: Final = threading.Lock()
_is_asked: Final = threading.Event()
"""Somebody wants the dispatcher to look."""
_ran_at: Final = {"at": -math.inf}
_put_off: Final[dict[str, float]] = {}
"""Since when this process leaves a job that can wait to later rounds."""


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


class DispatchRound(NamedTuple):
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
    idle_pause = ROUND_PAUSE_SECONDS[0]
    try:
        while True:
            began = time.monotonic()
            done = run_round(broker)
            queued += done.queued
            if done.queued or done.is_left:
                is_last = False
                if time.monotonic() > until:
                    broker.woken()
                    broker.wake()
                    return queued
                idle_pause = (
                    ROUND_PAUSE_SECONDS[0] if done.queued else min(2 * idle_pause, IDLE_PAUSE_MOST_SECONDS)
                )
                time.sleep(max(idle_pause, _pause(time.monotonic() - began)))
            elif is_last:
                return queued
            else:
                broker.woken()
                is_last = True
    finally:
        release_connections()


def _pause(round_seconds: float) -> float:
    least, most = ROUND_PAUSE_SECONDS
    return min(max(least, round_seconds * ROUND_PAUSE_RATIO), most)


def seconds_since_rounds() -> float:
    """Since this process last ran the dispatcher."""
    return time.monotonic() - _ran_at["at"]


def run_round(broker: Broker, slots: Mapping[str, int] | None = None) -> DispatchRound:
    """Claim and send once; `slots` by queue where they aren't those of the living workers."""
    with one_at_a_time:
        found = due_jobs()
        if not found:
            return DispatchRound(0, is_left=False)
        there = work_leases.slots(work_queue.database_now()) if slots is None else slots
        waiting = broker.waiting({job.queue for job in found})
        queued, is_left, is_behind = 0, False, False
        for job in sorted(found, key=lambda job: job.can_wait):
            has = there.get(job.queue, 0)
            if not has:
                # No worker takes this queue: what is due waits in the table, where it is counted as late.
                continue
            if waiting.get(job.queue, 0) > 4 * (has + job.ahead):
                # The tasks at work take long. What was claimed would only be claimed again.
                continue
            if is_behind and _may_put_off(job):
                is_left = True
                continue
            _put_off.pop(job.name, None)
            try:
                claimed = claim(job, has)
                is_behind = is_behind or (job.is_promised and _is_due(job))
            # A fault of one job must not keep the others waiting.
            except Exception:
                log.exception("not_claimed", kind=job.name)
                continue
            is_left = is_left or not claimed
            queued += sum(_send(broker, job, lease) for lease in claimed)
        return DispatchRound(queued, is_left)


def _is_due(job: Job) -> bool:
    """More of it is due than was claimed."""
    if not isinstance(job, RowJob):
        return False
    return bool(work_queue.names_with_work({job.name: (job.model._meta.db_table, job.where)}, {}))


def _may_put_off(job: Job) -> bool:
    """Not for longer than some seconds: then some of it is queued."""
    now = time.monotonic()
    return job.can_wait and now - _put_off.setdefault(job.name, now) < PUT_OFF_MOST_SECONDS


def due_jobs() -> list[Job]:
    """One statement asks for all of them."""
    every = jobs()
    tables = {
        job.name: (job.model._meta.db_table, job.where if isinstance(job, RowJob) else {})
        for job in every.values()
        if isinstance(job, RowJob | HolderJob)
    }
    waits = {job.name: job.waits for job in every.values() if isinstance(job, BatchJob) and job.waits}
    found = work_queue.names_with_work(tables, waits)
    batches = {
        job.subject: job
        for job in every.values()
        if isinstance(job, BatchJob) and (job.name in found or not job.waits)
    }
    if batches:
        known = work_leases.leases_of_jobs(list(batches), work_queue.database_now())
        for subject, job in batches.items():
            is_busy = known.get(subject, (0, False))[1]
            (found.discard if is_busy else found.add)(job.name)
    return [job for name, job in every.items() if name in found]


def claim(job: Job, slots: int) -> list[work_leases.QueuedTask]:
    """What may be queued now."""
    counted_alone: AbstractContextManager[Any] = nullcontext()
    if connection.vendor == "postgresql":
        counted_alone = transaction.atomic()
    with counted_alone:
        work_leases.lock()
        # After the lock, so that it isn't before another dispatcher's claims.
        now = work_queue.database_now()
        held = work_leases.current_load(now)
        room = _room(job, slots, held)
        found = _claim_some(job, room, slots, held, now) if room > 0 else []
        if found:
            work_leases.add(job.name, job.queue, found, now=now)
    if found:
        crash_point("dispatch.queued")
    return found


def _room(job: Job, slots: int, held: work_leases.QueueLoad) -> int:
    """How much more of the job may be queued."""
    if isinstance(job, HolderJob):
        room = math.ceil(slots * job.share) + job.ahead - held.jobs[job.name]
    else:
        room = slots + job.ahead - held.queues[job.queue]
    # One at least: another job of the queue may have enough waiting to fill it for hours.
    return room if held.jobs[job.name] else max(room, 1)


def _claim_some(
    job: Job, room: int, slots: int, held: work_leases.QueueLoad, now: datetime
) -> list[work_leases.QueuedTask]:
    if isinstance(job, BatchJob):
        return _claim_batch(job, now)
    if isinstance(job, HolderJob):
        share = _share_of(math.ceil(slots * job.share))
        return _claim_holders(job, room, held, now, per_workspace=share)
    return _claim_rows(job, room, slots, held, now)


def _share_of(slots: int) -> int:
    return max(1, math.ceil(slots * WORKSPACE_SHARE))


def _claim_rows(
    job: RowJob, room: int, slots: int, held: work_leases.QueueLoad, now: datetime
) -> list[work_leases.QueuedTask]:
    share = slots + job.ahead if job.computes else _share_of(slots)
    rows = work_queue.claim(
        job.model,
        limit=room,
        per_workspace=job.per_workspace or share,
        lease=work_leases.QUEUED,
        now=now,
        busy={owner: count for (name, owner), count in held.owners.items() if name == job.name},
        where=job.where,
        turns=job.turns,
    )
    return [work_leases.QueuedTask(row.pk, row.token, owner=row.workspace_id) for row in rows]


def _claim_holders(
    job: HolderJob, room: int, held: work_leases.QueueLoad, now: datetime, *, per_workspace: int
) -> list[work_leases.QueuedTask]:
    table = job.model._meta.db_table
    waiting = {work_queue.as_uuid(raw): raw for raw in work_queue.holders_of_due_rows(table, job.column, now)}
    slots = {holder: slot for holder, slot in job.slots(waiting).items() if slot.most > held.holders[holder]}
    if job.pace and slots:
        left = job.pace.left(slots)
        slots = {holder: slot for holder, slot in slots.items() if left.get(holder, 1) > 0}
    if not slots:
        return []
    most = max(slot.most for slot in slots.values())
    counted = work_queue.count_due(
        table, job.column, [waiting[holder] for holder in slots], now, most=2 * most
    )
    # A task that is queued will take a row of those that are due.
    free = {
        holder: min(slot.most - held.holders[holder], counted[holder] - held.queued[holder])
        for holder, slot in slots.items()
    }
    busy = {owner: count for (name, owner), count in held.owners.items() if name == job.name}
    chosen = work_queue.deal_places(
        {holder: (slot.workspace_id, free[holder]) for holder, slot in slots.items()},
        limit=room,
        per_workspace=per_workspace,
        busy=busy,
    )
    return [
        work_leases.QueuedTask(uuid4(), owner=slots[holder].workspace_id, holder=holder) for holder in chosen
    ]


def _claim_batch(job: BatchJob, now: datetime) -> list[work_leases.QueuedTask]:
    token, is_busy = work_leases.leases_of_jobs([job.subject], now).get(job.subject, (0, False))
    # Another dispatcher may have queued it since this one asked.
    return [] if is_busy else [work_leases.QueuedTask(job.subject, token + 1)]


def _send(broker: Broker, job: Job, lease: work_leases.QueuedTask) -> bool:
    try:
        broker.send(job, lease)
    # Whatever the broker's client raises: the work is due again at once, and is queued when the broker is back.
    except Exception as error:  # noqa: BLE001
        log.warning("message_not_sent", kind=job.name, error=str(error))
        release_claim(job, lease.subject, lease.token)
        return False
    return True
