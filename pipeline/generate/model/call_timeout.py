"""Ends a call that takes too long in total.

The package's own time-outs only limit each single read and write.
"""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class CallLimit:
    """Limits the total time of a call, in seconds.

    Add `follow` to the HTTP client's request hooks; one client's calls run in sequence. A server that sends a
    byte now and then satisfies every time-out of a single read, and would hold a task for ever. When the time
    is up the connections are shut, and each read or write that waits on them ends at once.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._is_over = False

    def follow(self, request: Any) -> None:
        """Have the request's connections tracked; a hook for the HTTP client."""
        request.extensions["trace"] = self._track_connection

    @contextmanager
    def running(self) -> Iterator[None]:
        """Limit one call; read `is_over` afterwards to see whether its time ran out."""
        self._is_over = False
        timer = threading.Timer(self.seconds, self._shut_connections)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    @property
    def is_over(self) -> bool:
        """Whether the time of the last call ran out."""
        return self._is_over

    def _track_connection(self, event: str, info: Mapping[str, Any]) -> None:
        if not event.endswith(("connect_tcp.complete", "start_tls.complete")):
            return
        connected = info["return_value"].get_extra_info("socket")
        with self._lock:
            # Kept for the client's life: a later call may reuse the connection, which sends no event then.
            self._sockets.append(connected)
            is_over = self._is_over
        if is_over:
            _shut_socket(connected)

    def _shut_connections(self) -> None:
        with self._lock:
            self._is_over = True
            sockets = list(self._sockets)
        for connected in sockets:
            _shut_socket(connected)


def _shut_socket(connected: socket.socket) -> None:
    # A socket that is closed already, or was taken over by its TLS wrapper, has nothing to shut.
    with suppress(OSError):
        # The plain socket's method: that of a TLS socket would drop the encryption while another thread
        # reads.
        socket.socket.shutdown(connected, socket.SHUT_RDWR)
