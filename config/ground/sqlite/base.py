"""SQLite for many threads of one process.

SQLite has one write lock, and whoever finds it taken sleeps for up to a tenth of a second and tries again: a thread that
writes one transaction after the other keeps the rest away for seconds. Here the threads of a process queue for it, so
that one workspace's burst delays nobody else's row. Other processes wait as ever; SQLite alone decides who may write.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from django.db.backends.sqlite3 import base

from config.ground.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Callable

WRITES: Final = re.compile(r"\s*(INSERT|UPDATE|DELETE|REPLACE)\b", re.IGNORECASE)
"""What of Django's own SQL takes the lock outside a transaction."""
SECONDS: Final = 5.0
"""SQLite's own default."""

_turns: Final[dict[str, Turns]] = {}
"""By the name of the database."""


class DatabaseWrapper(base.DatabaseWrapper):
    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._has_turn = False
        self.execute_wrappers.append(self._write_in_turn)

    @property
    def _turns(self) -> Turns:
        # setdefault() is one step: two threads never get two of them.
        return _turns.setdefault(str(self.settings_dict["NAME"]), Turns())

    @property
    def _patience(self) -> float:
        return float(self.settings_dict["OPTIONS"].get("timeout", SECONDS))

    def _write_in_turn(self, execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if self.in_atomic_block or not WRITES.match(sql):
            return execute(sql, *rest)
        with self._turns.turn(self._patience):
            return execute(sql, *rest)

    def _start_transaction_under_autocommit(self) -> None:
        # Whoever gets no turn asks SQLite all the same, whose answer holds: a turn is a courtesy.
        self._has_turn = self._turns.take(self._patience)
        try:
            super()._start_transaction_under_autocommit()  # type: ignore[misc]  # the stubs leave it out
        # Whatever it was, a transaction that didn't begin never ends.
        except BaseException:
            self._end_turn()
            raise

    def _end_turn(self) -> None:
        if self._has_turn:
            self._has_turn = False
            self._turns.give_back()

    def _commit(self) -> None:
        # A commit that fails leaves the transaction open, and Django rolls it back.
        super()._commit()  # type: ignore[misc]  # the stubs leave it out
        self._end_turn()

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
