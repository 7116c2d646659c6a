"""Keeps connections open between requests to the same origin.

A connection is kept only after a completely read answer, and for at most a minute, so that a name that leads
elsewhere, or a certificate that expires, is noticed by then. Its address was checked when it was opened.
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
"""Seconds that a connection may be idle; common servers close it only later."""
MAX_AGE_SECONDS: Final = 60.0
"""Seconds after which a connection isn't reused, so that name and certificate are checked again."""
MAX_PER_ORIGIN: Final = 8
"""The most idle connections of one scheme, host and port."""
MAX_TOTAL: Final = 128
"""The most idle connections of a process; each holds a file descriptor open."""


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
        """Take out and return a usable connection of the origin, or return `None` if there is none.

        Connections that are too old, or that the other side has closed or written to, are closed on the way.
        """
        while True:
            with self._lock:
                connections = self._idle.get(origin)
                # The most recently used connection, so that those that aren't needed expire.
                connection = connections.pop() if connections else None
                if connection is not None:
                    self._count -= 1
                if connections is not None and not connections:
                    del self._idle[origin]
            if connection is None:
                return None
            if _is_fresh(connection, monotonic()) and _is_silent(connection.socket):
                return connection
            connection.socket.close()

    def put(self, origin: Origin, sock: socket.socket, *, opened_at: float) -> None:
        """Keep a connection for the next request to its origin.

        Beyond `MAX_PER_ORIGIN` the oldest of the origin is closed. Beyond `MAX_TOTAL` all connections of the
        origin that got one least recently are closed.
        """
        now = monotonic()
        with self._lock:
            connections = self._idle.setdefault(origin, deque())
            self._idle.move_to_end(origin)
            connections.append(PooledConnection(sock, opened_at, now))
            self._count += 1
            surplus = [connections.popleft()] if len(connections) > MAX_PER_ORIGIN else []
            self._count -= len(surplus)
            while self._count > MAX_TOTAL:
                _, oldest = self._idle.popitem(last=False)
                surplus += oldest
                self._count -= len(oldest)
        for connection in surplus:
            connection.socket.close()

    def sweep(self) -> None:
        """Close the connections that are idle for too long or too old."""
        now = monotonic()
        with self._lock:
            expired = [
                connection
                for connections in self._idle.values()
                for connection in connections
                if not _is_fresh(connection, now)
            ]
            for origin in list(self._idle):
                fresh = deque(connection for connection in self._idle[origin] if _is_fresh(connection, now))
                if fresh:
                    self._idle[origin] = fresh
                else:
                    del self._idle[origin]
            self._count -= len(expired)
        for connection in expired:
            connection.socket.close()


def _is_fresh(connection: PooledConnection, now: float) -> bool:
    """Return whether the connection is neither idle for too long nor too old."""
    return now - connection.idle_since < IDLE_SECONDS and now - connection.opened_at < MAX_AGE_SECONDS


def _is_silent(sock: socket.socket) -> bool:
    """Return whether the other side has neither sent anything nor closed the connection."""
    try:
        poll = select.poll()
        poll.register(sock, select.POLLIN | select.POLLHUP | select.POLLERR)
        return not poll.poll(0)
    except (OSError, ValueError):
        return False
