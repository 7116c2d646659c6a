"""Turns: a lock that nobody waits for much longer than those before him in the queue."""

from __future__ import annotations

import os
import threading
from collections import deque
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE_SECONDS: Final = 0.05
"""Who has waited this long is the next, whoever asks meanwhile."""


class _Waiter:
    def __init__(self) -> None:
        self.since = monotonic()
        self.gate = threading.Lock()
        self.gate.acquire()
        self.has_turn = False

    def wake(self) -> None:
        if self.gate.locked():
            self.gate.release()


class Turns:
    """A lock for the threads of one process.

    Whoever comes while it is free gets it, although others are on their way to it: to hand it over costs a switch of
    threads each time, during which it would stand idle. Only once the first in the queue has waited for
    `PATIENCE_SECONDS` is it handed over.
    """

    def __init__(self) -> None:
        self._forget()
        # A forked child has none of the threads that would give it back.
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self._changing = threading.Lock()
        self._is_taken = False
        self._waiting: deque[_Waiter] = deque()

    def take(self, seconds: float) -> bool:
        """False where it wasn't given back within so many seconds."""
        with self._changing:
            if not self._is_taken:
                self._is_taken = True
                return True
            waiter = _Waiter()
            self._waiting.append(waiter)
        until = waiter.since + seconds
        while True:
            is_woken = waiter.gate.acquire(timeout=max(0.0, until - monotonic()))
            with self._changing:
                if waiter.has_turn:
                    return True
                if self._is_taken and is_woken:
                    # Somebody was quicker; the place in the queue is kept.
                    continue
                self._waiting.remove(waiter)
                gets_it = not self._is_taken
                self._is_taken = True
                return gets_it

    def give_back(self) -> None:
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
        """With it or, where it isn't given back in time, without."""
        has_turn = self.take(seconds)
        try:
            yield
        finally:
            if has_turn:
                self.give_back()
