"""Holds one client's connection: its request, its deadlines, and its end."""

from __future__ import annotations

from http import HTTPStatus
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from gunicorn.http.parser import RequestParser
from gunicorn.workers.gthread import TConn

from config.connections.request_buffer import ArrivedRequest, IncomingRequest, RefusedError
from config.connections.response_socket import PACE_BYTES, ResponseSocket
from config.core import limits

if TYPE_CHECKING:
    import socket

    from config.connections.worker import ConnectionsWorker

NEW_CONNECTION_BYTES: Final = 4096
"""Bytes that each connection is credited with, so that a new connection isn't the slowest."""
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class ClientConnection(TConn):
    """A connection whose request the worker's loop reads, and whose response it sends."""

    def __init__(
        self, worker: ConnectionsWorker, sock: socket.socket, network: str, client: Any, server: Any
    ) -> None:
        super().__init__(worker.cfg, sock, client, server)
        self.sock = ResponseSocket(self, sock)
        self.parser = RequestParser(worker.cfg, (), client)
        self.parser.unreader = ArrivedRequest()
        # Otherwise gunicorn would create a parser that reads from the socket.
        self.initialized = True
        self.incoming = IncomingRequest()
        self.deadline = 0.0
        self._worker = worker
        self._network = network
        self._held = 0
        self._since = self._last_moment = 0.0
        self._mark = self._moved_before = 0

    def hold(self, count: int) -> None:
        """Count bytes that are to be stored in a file.

        Raises `RefusedError` (503) if all connections together would have too many; then nothing is counted.
        """
        with self._worker.holding:
            if self._worker.held + count > limits.BODIES_KEPT_BYTES:
                raise RefusedError(HTTPStatus.SERVICE_UNAVAILABLE)
            self._worker.held += count
        self._held += count

    def let_go(self, count: int) -> None:
        """Stop counting bytes whose file is closed."""
        with self._worker.holding:
            self._worker.held -= count
        self._held -= count

    # --- The request -------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Set the deadline for the next request's head, and start a new request if the last one had a head."""
        if self.incoming.has_head:
            self.incoming = IncomingRequest()
        self.allow(limits.HEAD_SECONDS, limits.HEAD_SECONDS)

    def take(self, data: bytes) -> bool:
        """Add received bytes, and return whether the request can be handled.

        After the head it sets the deadlines of the body, and answers `Expect: 100-continue`. Raises `RefusedError`
        if the head is too long, or the bytes can't be stored.
        """
        incoming = self.incoming
        had_head = incoming.has_head
        if incoming.bytes + len(data) > limits.BODY_MEMORY_BYTES:
            self.hold(len(data))
        self.sock.moved += len(data)
        try:
            is_complete = incoming.take(data)
        except OSError as error:
            # Most likely the disk is full.
            raise RefusedError(HTTPStatus.SERVICE_UNAVAILABLE) from error
        if is_complete:
            incoming.kept.seek(0)
            self.parser.unreader.kept = incoming.kept
        elif incoming.has_head and not had_head:
            self.allow(limits.PACE_SECONDS, limits.BODY_SECONDS)
            if incoming.expects_continue:
                self.sock.sendall(_CONTINUE)
        return is_complete

    def rest(self) -> bytes:
        """Return the bytes that arrived of the next request, and forget the request that was answered."""
        buffered: bytes = self.parser.unreader.take_buffered()
        if self.incoming.has_certain_end:
            self.incoming.kept.seek(self.incoming.end)
            buffered = b""
            # Otherwise the parser would look for the end of its body.
            self.parser.mesg = None
        rest = buffered + self.incoming.kept.read()
        self._forget_request()
        return rest

    def _forget_request(self) -> None:
        self.incoming.kept.close()
        self.let_go(self._held)

    # --- Time --------------------------------------------------------------------------------------------------------

    def hurry(self, seconds: float) -> None:
        """Move the deadline to at most that many seconds from now."""
        self.deadline = min(self.deadline, monotonic() + seconds)

    def allow(self, seconds: float, max_seconds: float) -> None:
        """Set the deadline in `seconds`; `note_pace` extends it, up to `max_seconds` from now."""
        self._since = monotonic()
        self._mark = self._moved_before = self.sock.moved
        self._last_moment = self._since + max_seconds
        self.deadline = self._since + seconds

    def note_pace(self, seconds: float) -> None:
        """Set the deadline to `seconds` from now if the client has moved another `PACE_BYTES`."""
        if self.sock.moved - self._mark >= PACE_BYTES:
            self._mark = self.sock.moved
            self.deadline = min(monotonic() + seconds, self._last_moment)

    def pace(self, now: float) -> float:
        """Return the bytes per second since `allow` was called, with the credit of a new connection."""
        return (self.sock.moved - self._moved_before + NEW_CONNECTION_BYTES) / (now - self._since + 1)

    # --- The end -----------------------------------------------------------------------------------------------------

    def close(self, graceful: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002  gunicorn's signature
        """Close the socket at once; gunicorn's graceful way would have its loop wait for this client."""
        self.sock.close()
        self._forget_request()
        self._worker.by_address[self._network] -= 1
        if not self._worker.by_address[self._network]:
            del self._worker.by_address[self._network]
