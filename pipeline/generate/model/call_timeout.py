"""Ends a call that takes too long in all; the package's own time-outs hold for each read and write alone."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class CallLimit:
    """Give `follow` to the HTTP client as a hook of its requests; calls of one client follow one another.

    A server that sends a byte now and then satisfies every time-out of a single read, and would hold a task for
    ever. When the time is up the connections are shut, and whatever read or write waits on them ends at once.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._is_over = False

    def follow(self, request: Any) -> None:
        request.extensions["trace"] = self._note

    @contextmanager
    def running(self) -> Iterator[None]:
        """The time of one call; whether it ran out is asked of `is_over` afterwards."""
        self._is_over = False
        timer = threading.Timer(self.seconds, self._end)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    @property
    def is_over(self) -> bool:
        return self._is_over

    def _note(self, event: str, info: Mapping[str, Any]) -> None:
        if not event.endswith(("connect_tcp.complete", "start_tls.complete")):
            return
        connected = info["return_value"].get_extra_info("socket")
        with self._lock:
            # Kept for the client's life: a further call may use the same connection, of which no event tells.
            self._sockets.append(connected)
            is_over = self._is_over
        if is_over:
            _shut(connected)

    def _end(self) -> None:
        with self._lock:
            self._is_over = True
            connected = list(self._sockets)
        for one in connected:
            _shut(one)


def _shut(connected: socket.socket) -> None:
    # One that is closed already, or that its encrypted successor has taken over, has nothing to shut.
    with suppress(OSError):
        # The plain method: that of an encrypted socket drops the encryption under the reader's feet.
        socket.socket.shutdown(connected, socket.SHUT_RDWR)
