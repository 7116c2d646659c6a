"""Virtual time, one thread, and processes that die: what a history runs in.

Each request and each task is a greenlet. It gives way where it waits (a call to another machine, a sleep) and, now and
then, between two statements outside of a transaction; so the acts of several processes mix as they do on PostgreSQL, whose
locks hold until a commit. Everything that differs from one run to the next (time, ids, chance) comes of the seed.
"""

from __future__ import annotations

import hashlib
import heapq
import os
import random
import sys
import time
import uuid
from collections import deque
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final
from unittest import mock

import greenlet
import time_machine
from django.db import connection

from config.core import crash_points, dispatcher, ids, work_leases, work_queue
from config.core.database import bulk_update, insert, prepared_queries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

START: Final = datetime(2027, 3, 12, 7, 0, tzinfo=UTC)
"""A month ends in every history that lasts three weeks."""
CALM: Final = 4
"""Each fourth history is without faults: in it nothing may be late, or come twice."""
SKEW: Final = timedelta(seconds=11)
"""Two processes' clocks differ by ten seconds at most."""
ON_TIME: Final = timedelta(seconds=3)
"""What nothing hinders is done so soon after it is due."""
PACKAGES: Final = ("accounts", "analytics", "config", "pipeline", "webhooks")
COMPILERS: Final = (
    (prepared_queries, "_compile_query"),
    (prepared_queries, "_build_reader"),
    (prepared_queries, "_build_row_maker"),
    (insert, "_build_statement"),
    (bulk_update, "_build_statements"),
)
STEPS_SHOWN: Final = 30
EVENTS_MOST: Final = 60_000
"""More than ten times as many as a month has: something goes round for ever."""
STATEMENTS_MOST: Final = 20_000
"""Far more than one thing that happens takes."""
GIVES_WAY: Final = 0.02
"""How often a statement outside of a transaction lets others go first."""


class Killed(BaseException):
    """The process is gone: what it had not committed was never written, and nothing of ours may catch this."""


class Broken(AssertionError):
    """A promise that didn't hold."""


@dataclass
class Process:
    """What dies as one: a worker, or a web process. Its clock is wrong by `skew`."""

    name: str
    slots: dict[str, int]
    worker: uuid.UUID
    skew: timedelta = timedelta(0)
    is_alive: bool = True
    is_noted: bool = False
    busy: dict[str, int] = field(default_factory=dict)

    def has_room(self, queue: str) -> bool:
        return self.is_alive and self.busy.get(queue, 0) < self.slots.get(queue, 0)


@dataclass
class Task:
    process: Process
    name: str
    run: greenlet.greenlet
    fuse: int | None = None
    """Dies after so many more steps."""
    is_dead: bool = False


class World:
    """One history: its clock, what happens next, and who is at work."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.chance = random.Random(f"history {seed}")
        # Of their own: when a statement is first compiled, ids are made that nobody uses.
        self.chance_of_ids = random.Random(f"ids {seed}")
        self.now = START
        self.has_faults = True
        self.steps: deque[str] = deque(maxlen=STEPS_SHOWN)
        self.count = 0
        self.faults: list[str] = []
        self.task: Task | None = None
        self.tasks: list[Task] = []
        self.on_death: Callable[[Process], None] = lambda _: None
        self._digest = hashlib.sha256()
        self._events: list[tuple[datetime, int, Callable[[], None]]] = []
        self._number = self._ran = self._statements = 0
        self._hub = greenlet.getcurrent()
        self._id_at = (0, 0)
        self._traveller: Any = None
        self._shown = START
        self.error: Exception | None = None

    # --- What happened -------------------------------------------------------------------------------------------

    @property
    def is_calm(self) -> bool:
        """No process dies, no message is lost, no clock is wrong: what a receiver or a platform answers is no fault of ours."""
        return not self.seed % CALM

    def note(self, text: str) -> None:
        line = f"{self.now:%m-%d %H:%M:%S.%f} {self.task.process.name if self.task else '-'}: {text}"
        self.steps.append(line)
        self._digest.update(line.encode())
        self.count += 1

    def mix(self, data: bytes) -> None:
        self._digest.update(data)

    def hash(self) -> str:
        return self._digest.hexdigest()[:16]

    def broken(self, text: str) -> None:
        """Noted where it is seen; the history ends with it."""
        self.faults.append(text)
        self.note(f"BROKEN {text}")

    # --- What comes ----------------------------------------------------------------------------------------------

    def at(self, moment: datetime, act: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._events, (max(moment, self.now), self._number, act))

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        self.at(self.now + timedelta(seconds=seconds), act)

    def run_until(self, moment: datetime) -> None:
        """Everything that comes up to `moment`; ends early where a promise is broken."""
        while self._events and self._events[0][0] <= moment and not self.faults:
            self.now, _, act = heapq.heappop(self._events)
            self._statements = 0
            self._set_clock()
            act()
            self._ran += 1
            if self._ran > EVENTS_MOST:
                self.broken("something goes round for ever")
        self.now = max(self.now, moment)
        self._set_clock()

    def happens(self, share: float) -> bool:
        return self.has_faults and self.chance.random() < share

    # --- Who is at work ------------------------------------------------------------------------------------------

    def spawn(
        self,
        process: Process,
        name: str,
        act: Callable[[], object],
        *,
        dies: float = 0.0,
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        """Have a process do something now; with the chance `dies` the process dies within it."""

        def work() -> None:
            try:
                act()
            except Killed:
                pass
            except Exception as error:
                self.broken(f"{name} raised {error!r}")
                raise
            finally:
                self.tasks.remove(task)
                ended()

        task = Task(process, name, greenlet.greenlet(work, self._hub))
        if self.happens(dies):
            task.fuse = self.chance.choice((1, 2, 3, 5, 8, 12, 18, 25, 35, 50))
        self.tasks.append(task)
        self._resume(task)

    def wait(self, seconds: float) -> None:
        """The task at work gives way for so long."""
        task = self.task
        if task is None or connection.in_atomic_block:
            self.broken("somebody waits inside of a transaction")
            return
        self._step()
        self.after(seconds, lambda: self._resume(task))
        self._hub.switch()
        if task.is_dead:
            raise Killed

    def kill(self, process: Process) -> None:
        """As kill -9 does: whatever its tasks were waiting for, they write nothing more."""
        self.note(f"{process.name} dies")
        process.is_alive = False
        for task in self.tasks:
            if task.process is process:
                task.is_dead = True
        self.on_death(process)

    @contextmanager
    def observing(self) -> Iterator[None]:
        """What another machine, or the history itself, reads and writes meanwhile is no step of the task at work."""
        task, self.task = self.task, None
        self._set_clock()
        try:
            yield
        finally:
            self.task = task
            self._set_clock()

    def end(self) -> None:
        """Nobody stays in the middle of something: it would go on in the next history."""
        self._events.clear()
        for task in list(self.tasks):
            task.is_dead = True
            if task.run:
                self._resume(task)

    def _resume(self, task: Task) -> None:
        self.task = task
        work_leases._worker["id"] = task.process.worker
        self._set_clock()
        try:
            task.run.switch()
        # The fault is noted; what raised it is shown with the history.
        except Exception as error:
            self.error = error
        finally:
            self.task = None
            self._set_clock()

    def _step(self) -> None:
        """A statement, a call or a named point: what a kill can come between."""
        task = self.task
        if task is None:
            return
        self._statements += 1
        if self._statements == STATEMENTS_MOST:
            self.broken("somebody goes round for ever")
        if task.is_dead or self._statements >= STATEMENTS_MOST:
            raise Killed
        if task.fuse is not None:
            task.fuse -= 1
            if task.fuse <= 0:
                self.kill(task.process)
                raise Killed

    def passed(self, point: str) -> None:
        del point
        self._step()

    def _execute(self, execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        self._step()
        if (
            self.task is not None
            and not connection.in_atomic_block
            and self.has_faults
            and not dispatcher.claim_lock.locked()
            and not sql.startswith(("BEGIN", "SAVEPOINT"))
            and self.chance.random() < GIVES_WAY
        ):
            self.wait(self.chance.choice((0.0, 0.004, 0.05)))
        return execute(sql, *rest)

    # --- Time and chance, handed in ------------------------------------------------------------------------------

    def _set_clock(self) -> None:
        skew = self.task.process.skew if self.task else timedelta(0)
        at = self.now + skew
        if at != self._shown:
            self._shown = at
            self._traveller.move_to(at)

    def monotonic(self) -> float:
        skew = self.task.process.skew if self.task else timedelta(0)
        return (self.now + skew - START).total_seconds() + 1_000_000.0

    def uuid7(self) -> uuid.UUID:
        skew = self.task.process.skew if self.task else timedelta(0)
        at = int((self.now + skew).timestamp() * 1000)
        last, number = self._id_at
        self._id_at = (at, number + 1 if at == last else 0)
        number = self._id_at[1] & 0xFFF
        return uuid.UUID(int=at << 80 | 7 << 76 | number << 64 | 2 << 62 | self.chance_of_ids.getrandbits(62))

    def _keep_ids(self, compiler: Callable[..., Any]) -> Callable[..., Any]:
        """Return what compiles a statement, and gives back the ids that it takes.

        It runs once a process: with them a history would depend on those before it.
        """

        def compile_statement(*arguments: Any, **options: Any) -> Any:
            kept = self.chance_of_ids.getstate(), self._id_at
            try:
                return compiler(*arguments, **options)
            finally:
                state, self._id_at = kept
                self.chance_of_ids.setstate(state)

        return compile_statement

    @contextmanager
    def entered(self) -> Iterator[None]:
        """The code of the product asks this world for the time, for chance, and before each statement."""
        urandom = self.chance_of_ids.randbytes
        ours = {time.monotonic: self.monotonic, time.sleep: self.wait}
        with ExitStack() as stack:
            self._traveller = stack.enter_context(time_machine.travel(self.now, tick=False))
            for module in [one for name, one in sys.modules.items() if name.partition(".")[0] in PACKAGES]:
                for name, value in list(vars(module).items()):
                    if callable(value) and getattr(value, "__module__", "") == "time" and value in ours:
                        stack.enter_context(mock.patch.object(module, name, ours[value]))
            for target, name, value in (
                (time, "monotonic", self.monotonic),
                (time, "sleep", self.wait),
                (os, "urandom", urandom),
                (random, "_urandom", urandom),
                (ids, "compat", SimpleNamespace(uuid7=self.uuid7)),
                (work_queue, "database_now", lambda: self.now),
                (connection, "_sync", lambda: None),
            ):
                stack.enter_context(mock.patch.object(target, name, value))
            for module, name in COMPILERS:
                compiler = self._keep_ids(getattr(module, name))
                stack.enter_context(mock.patch.object(module, name, compiler))
            random.seed(self.seed)
            connection.execute_wrappers.insert(0, self._execute)
            stack.callback(connection.execute_wrappers.remove, self._execute)
            crash_points.listeners.append(self.passed)
            stack.callback(crash_points.listeners.remove, self.passed)
            yield
