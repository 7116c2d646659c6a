"""Connections that stay open between requests to the same place.

A connection is kept after an answer that was read to its end, and for so short a time that a name that leads elsewhere
by now, or a certificate that has ended, is noticed within a minute. Its address was judged when it was opened.
"""

from __future__ import annotations

import select
import threading
from collections import OrderedDict, deque
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import socket

    Origin = tuple[str, str, int]

IDLE_SECONDS: Final = 5.0
"""Less than the time after which servers of the usual kind close an idle connection."""
MAX_AGE_SECONDS: Final = 60.0
"""Since it was opened: after that its name is resolved, and its certificate judged, anew."""
MAX_PER_ORIGIN: Final = 8
"""Idle connections of one scheme, host and port."""
MAX_TOTAL: Final = 128
"""Idle connections of a process: each holds a file descriptor open."""


@dataclass(frozen=True)
class PooledConnection:
    """An idle connection; `opened_at` and `idle_since` are seconds of the monotonic clock."""

    socket: socket.socket
    opened_at: float
    idle_since: float


class IdleConnections:
    """Idle connections by scheme, host and port. Thread-safe."""

    def __init__(self) -> None:
        self._idle: OrderedDict[Origin, deque[PooledConnection]] = OrderedDict()
        self._count = 0
        self._lock = threading.Lock()

    def take(self, origin: Origin) -> PooledConnection | None:
        """One that the other side has neither closed nor written to, or None."""
        while True:
            with self._lock:
                held = self._idle.get(origin)
                # The one that was used last: those that aren't needed grow old.
                found = held.pop() if held else None
                if found is not None:
                    self._count -= 1
                if held is not None and not held:
                    del self._idle[origin]
            if found is None:
                return None
            if _is_fresh(found, monotonic()) and _is_silent(found.socket):
                return found
            found.socket.close()

    def put(self, origin: Origin, sock: socket.socket, *, opened_at: float) -> None:
        """Keep a connection; the eldest of its origin, or all of the eldest origin, are closed where there are too many."""
        now = monotonic()
        with self._lock:
            held = self._idle.setdefault(origin, deque())
            self._idle.move_to_end(origin)
            held.append(PooledConnection(sock, opened_at, now))
            self._count += 1
            spare = [held.popleft()] if len(held) > MAX_PER_ORIGIN else []
            self._count -= len(spare)
            while self._count > MAX_TOTAL:
                _, eldest = self._idle.popitem(last=False)
                spare += eldest
                self._count -= len(eldest)
        for one in spare:
            one.socket.close()

    def sweep(self) -> None:
        """Close those that nobody has used for a while."""
        now = monotonic()
        with self._lock:
            spare = [one for held in self._idle.values() for one in held if not _is_fresh(one, now)]
            for origin in list(self._idle):
                left = deque(one for one in self._idle[origin] if _is_fresh(one, now))
                if left:
                    self._idle[origin] = left
                else:
                    del self._idle[origin]
            self._count -= len(spare)
        for one in spare:
            one.socket.close()


def _is_fresh(one: PooledConnection, now: float) -> bool:
    return now - one.idle_since < IDLE_SECONDS and now - one.opened_at < MAX_AGE_SECONDS


def _is_silent(sock: socket.socket) -> bool:
    """Nothing has come that nobody asked for, the end included."""
    try:
        poll = select.poll()
        poll.register(sock, select.POLLIN | select.POLLHUP | select.POLLERR)
        return not poll.poll(0)
    except (OSError, ValueError):
        return False
