"""Makes SQLite work for many threads of one process.

SQLite has one write lock, and a thread that finds it taken sleeps for up to a tenth of a second and tries
again: a thread that writes one transaction after the other keeps the rest away for seconds. Here the threads
of a process queue for the lock, so that one workspace's burst doesn't delay the rows of others. Other processes
wait as without this module; SQLite alone decides which of them may write.

A commit is on the disk before the call returns, so that no power cut takes back an answer or an armed attempt,
except for statements with `MAY_BE_LOST`. SQLite would wait for the disk while it holds the write lock
(`synchronous=FULL`); here that wait comes after the lock is released, and threads that commit at the same time
share it.
"""

from __future__ import annotations

import os
import re
import threading
from collections import deque
from contextlib import contextmanager, suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from django.db import OperationalError
from django.db.backends.sqlite3 import base, operations
from django.db.models.constants import OnConflict

from config.core.database.raw_sql import MAY_BE_LOST
from config.core.database.search_words import search_words
from config.core.database.sqlite.schema import DatabaseSchemaEditor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PATIENCE_SECONDS: Final = 0.05
"""The wait after which a thread gets the lock next, even if others ask for it meanwhile."""
WRITE_STATEMENT: Final = re.compile(r"\s*(INSERT|UPDATE|DELETE|REPLACE)\b", re.IGNORECASE)
"""Matches the statements of Django that take the write lock outside a transaction."""
DEFAULT_LOCK_SECONDS: Final = 5.0
"""SQLite's default for how long to wait for the write lock."""


class _Waiter:
    """A thread in the queue for the lock."""

    def __init__(self) -> None:
        self.since = monotonic()
        self.gate = threading.Lock()
        self.gate.acquire()
        self.has_turn = False

    def wake(self) -> None:
        """Let the thread look at the lock again."""
        if self.gate.locked():
            self.gate.release()


class FairLock:
    """A lock for the threads of one process.

    A thread that comes while the lock is free gets it, even if woken threads are about to ask: to hand the lock
    over costs a switch of threads, during which it would be idle. It is handed over only once the first thread in
    the queue has waited for `PATIENCE_SECONDS`.
    """

    def __init__(self) -> None:
        self._reset()
        # A forked child has none of the threads that would release it.
        os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        self._changing = threading.Lock()
        self._is_taken = False
        self._waiting: deque[_Waiter] = deque()

    def acquire(self, seconds: float) -> bool:
        """Take the lock and return True, or return False if it isn't free within `seconds`."""
        with self._changing:
            if not self._is_taken:
                self._is_taken = True
                return True
            waiter = _Waiter()
            self._waiting.append(waiter)
        deadline = waiter.since + seconds
        while True:
            is_woken = waiter.gate.acquire(timeout=max(0.0, deadline - monotonic()))
            with self._changing:
                if waiter.has_turn:
                    return True
                if self._is_taken and is_woken:
                    # Another thread was quicker; this one stays in the queue.
                    continue
                self._waiting.remove(waiter)
                # The lock is free, or the time is up: then it stays another thread's, and this one goes without.
                was_free = not self._is_taken
                self._is_taken = True
                return was_free

    def release(self) -> None:
        """Release the lock, or hand it to the first thread in the queue if that has waited too long."""
        with self._changing:
            if not self._waiting:
                self._is_taken = False
                return
            first = self._waiting[0]
            if monotonic() - first.since >= PATIENCE_SECONDS:
                self._waiting.popleft()
                first.has_turn = True
            else:
                self._is_taken = False
            first.wake()

    @contextmanager
    def turn(self, seconds: float) -> Iterator[None]:
        """Run the block with the lock or, if it isn't released in time, without it."""
        has_turn = self.acquire(seconds)
        try:
            yield
        finally:
            if has_turn:
                self.release()


_write_locks: Final[dict[str, FairLock]] = {}
"""The lock of each database, by its name."""
_shared_syncs: Final[dict[str, SharedSync]] = {}
"""The sync of each database's log, by the name of the database."""


class SharedSync:
    """Writes a file to the disk; threads that ask while that is under way share the next sync."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._reset()
        # A forked child has none of the threads that would finish a sync.
        os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        self._changing = threading.Condition()
        self._begun = self._done = 0
        self._is_busy = False

    def sync(self) -> None:
        """Return when all that was written before is on the disk. Raises `OSError` if the disk fails."""
        with self._changing:
            # A sync that has begun already may miss what was written since.
            wanted_sync = self._begun + 1
            self._changing.wait_for(lambda: self._done >= wanted_sync or not self._is_busy)
            if self._done >= wanted_sync:
                return
            self._is_busy = True
            self._begun += 1
            number = self._begun
        try:
            self._write_out()
        except BaseException:
            # Whatever went wrong, the next thread has to try again.
            self._end(self._done)
            raise
        self._end(number)

    def _end(self, done: int) -> None:
        with self._changing:
            self._done = done
            self._is_busy = False
            self._changing.notify_all()

    def _write_out(self) -> None:
        # Without a journal everything is in the database, which SQLite brought to the disk before it removed the journal.
        with suppress(FileNotFoundError):
            file = os.open(self._path, os.O_RDONLY)
            try:
                # macOS has only the slower of the two.
                getattr(os, "fdatasync", os.fsync)(file)
            finally:
                os.close(file)


class DatabaseOperations(operations.DatabaseOperations):
    """Ignores only conflicts with a unique constraint, as PostgreSQL does.

    Django's INSERT OR IGNORE drops rows that break any other constraint too.
    """

    def insert_statement(self, on_conflict: OnConflict | None = None) -> str:
        return super().insert_statement(None if on_conflict == OnConflict.IGNORE else on_conflict)

    def on_conflict_suffix_sql(
        self, fields: Any, on_conflict: Any, update_fields: Any, unique_fields: Any
    ) -> str | Any:
        if on_conflict == OnConflict.IGNORE:
            return "ON CONFLICT DO NOTHING"
        return super().on_conflict_suffix_sql(fields, on_conflict, update_fields, unique_fields)


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection whose writes take turns, and whose commits share the wait for the disk."""

    ops_class = DatabaseOperations
    SchemaEditorClass = DatabaseSchemaEditor

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._has_turn = False
        self._changes_before = 0
        self._syncs_itself = False
        self.execute_wrappers.append(self._write_in_turn)

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        self._syncs_itself = False
        opened = super().get_new_connection(conn_params)
        opened.create_function("search_words", 1, search_words, deterministic=True)
        return opened

    def _begin(self, *, syncs_itself: bool) -> None:
        """Prepare for a transaction or a statement; with `syncs_itself` SQLite itself waits for the disk."""
        if syncs_itself != self._syncs_itself:
            self.connection.execute(f"PRAGMA synchronous={'FULL' if syncs_itself else 'NORMAL'}")
            self._syncs_itself = syncs_itself
        self._changes_before = self.connection.total_changes

    def _sync(self) -> None:
        """Wait for the disk if anything was changed. Raises `OperationalError` if the disk fails."""
        if self.connection.total_changes == self._changes_before:
            return
        name = str(self.settings_dict["NAME"])
        try:
            (_shared_syncs.get(name) or _shared_syncs.setdefault(name, SharedSync(f"{name}-wal"))).sync()
        except OSError as error:
            message = f"What was committed may not be on the disk: {error.strerror}."
            raise OperationalError(message) from error

    @property
    def _write_lock(self) -> FairLock:
        name = str(self.settings_dict["NAME"])
        # setdefault() is atomic: two threads never get two locks. A lock is never removed, as its fork handler isn't either.
        return _write_locks.get(name) or _write_locks.setdefault(name, FairLock())

    @property
    def _lock_timeout(self) -> float:
        return float(self.settings_dict["OPTIONS"].get("timeout", DEFAULT_LOCK_SECONDS))

    def _write_in_turn(self, execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        """Run a statement; outside a transaction a write takes the lock, then waits for the disk.

        A statement with `MAY_BE_LOST` doesn't wait for the disk.
        """
        if self.in_atomic_block or not WRITE_STATEMENT.match(sql):
            return execute(sql, *rest)
        is_needed = MAY_BE_LOST not in sql
        # A statement with RETURNING is committed only when its rows have been fetched, later: SQLite itself has to wait.
        syncs_itself = is_needed and "RETURNING" in sql
        self._begin(syncs_itself=syncs_itself)
        with self._write_lock.turn(self._lock_timeout):
            result = execute(sql, *rest)
        if is_needed and not syncs_itself:
            self._sync()
        return result

    def _start_transaction_under_autocommit(self) -> None:
        # Even without the lock SQLite is asked, and its answer counts: the lock only makes the order fair.
        self._has_turn = self._write_lock.acquire(self._lock_timeout)
        try:
            self._begin(syncs_itself=False)
            super()._start_transaction_under_autocommit()  # type: ignore[misc]  # the stubs leave it out
        # Whatever went wrong, a transaction that didn't begin won't release the lock at its end.
        except BaseException:
            self._end_turn()
            raise

    def _end_turn(self) -> None:
        if self._has_turn:
            self._has_turn = False
            self._write_lock.release()

    def _commit(self) -> None:
        # A commit that fails leaves the transaction open, and Django rolls it back.
        super()._commit()  # type: ignore[misc]  # the stubs leave it out
        self._end_turn()
        self._sync()

    def _rollback(self) -> None:
        try:
            super()._rollback()  # type: ignore[misc]  # the stubs leave it out
        finally:
            self._end_turn()

    def _close(self) -> None:
        try:
            super()._close()  # type: ignore[misc]  # the stubs leave it out
        finally:
            self._end_turn()
