"""Together: what many threads have to write goes into the database in few transactions."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Thing = TypeVar("Thing")


class Together(Generic[Thing]):
    """`add()` writes what this thread has and what others have added meanwhile, with one call of `write`.

    Where another thread is about to write, it takes this one's with it, and `add()` returns at once: nobody waits for a
    write but who does it. A thread that adds alone has its thing written when `add()` returns. `write` gets up to `most`
    things and has to see to its own faults, because they aren't those of the thread that it runs in. Before it writes,
    a thread waits as long as `gather` says, in seconds, for others to join.
    """

    def __init__(
        self, write: Callable[[Sequence[Thing]], None], *, most: int, gather: Callable[[], float]
    ) -> None:
        self._write = write
        self._most = most
        self._gather = gather
        self._waiting: deque[Thing] = deque()
        self._writing = threading.Lock()
        self._is_full = threading.Event()

    def add(self, thing: Thing) -> None:
        self._waiting.append(thing)
        if len(self._waiting) >= self._most:
            self._is_full.set()
        # Asked again after each write: who came between its end and the lock's has gone without writing.
        while self._waiting and self._writing.acquire(blocking=False):
            try:
                self._write_some()
            finally:
                self._writing.release()

    def _write_some(self) -> None:
        pause = self._gather()
        if pause > 0 and len(self._waiting) < self._most:
            self._is_full.clear()
            self._is_full.wait(pause)
        # Nobody else takes any.
        some = [self._waiting.popleft() for _ in range(min(len(self._waiting), self._most))]
        if some:
            self._write(some)
