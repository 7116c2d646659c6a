"""Serves connections so that a thread handles a complete request and never waits for a client.

gunicorn's own worker gives a thread to each new connection. The thread then waits for the request's bytes, and
later until the answer is taken, so that as many slow clients as there are threads stop the worker. Here the
worker's loop reads each request with its body, and sends the rest of an answer that the client doesn't take at
once.
"""

from __future__ import annotations

import errno
import selectors
import socket
from collections import Counter
from contextlib import suppress
from functools import lru_cache
from http import HTTPStatus
from ipaddress import IPv6Address, ip_address, ip_network
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.core.exceptions import BadRequest
from gunicorn.http import errors as parse_errors
from gunicorn.http.body import ChunkedReader, LengthReader
from gunicorn.workers.gthread import STOP_KEEPALIVE_LINGER, ThreadWorker

from config.connections.client_connection import NEW_CONNECTION_BYTES, ClientConnection
from config.connections.request_buffer import CHUNK_BYTES, RefusedError, refusal_bytes
from config.core import limits
from config.core.ids import uuid7

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from config.connections.response_socket import ResponseSocket

_WARNING_INTERVAL_SECONDS: Final = 60.0
"""The shortest time between two warnings about addresses with too many connections."""
_FILE_LIMIT_ERRORS: Final = frozenset({errno.EMFILE, errno.ENFILE})
# The first that fits counts: a response's invalid header is the service's fault, though its class is a header's.
_STATUS_BY_ERROR: Final = (
    (parse_errors.InvalidResponseHeader, HTTPStatus.INTERNAL_SERVER_ERROR),
    (parse_errors.InvalidResponseHeaderName, HTTPStatus.INTERNAL_SERVER_ERROR),
    (parse_errors.ConfigurationProblem, HTTPStatus.INTERNAL_SERVER_ERROR),
    (parse_errors.LimitRequestLine, HTTPStatus.REQUEST_URI_TOO_LONG),
    (parse_errors.LimitRequestHeaders, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE),
    (parse_errors.ExpectationFailed, HTTPStatus.EXPECTATION_FAILED),
    (parse_errors.ParseException, HTTPStatus.BAD_REQUEST),
)
_NO_CLIENT_ERRORS: Final = frozenset({errno.EAGAIN, errno.EWOULDBLOCK, errno.ECONNABORTED})


@lru_cache(maxsize=1024)
def _network(client: Any) -> str:
    """Return the network whose connections are counted together, or an empty text if they aren't counted.

    That is so for a Unix socket, and for private addresses if the operator has a proxy.
    """
    if not isinstance(client, tuple):
        return ""
    address = ip_address(client[0].partition("%")[0])
    if isinstance(address, IPv6Address):
        address = address.ipv4_mapped or address
    if settings.TRUSTED_PROXIES and not address.is_global:
        return ""
    # A client with one IPv6 address has a whole /64 network of them.
    return str(ip_network((address, 64), strict=False) if isinstance(address, IPv6Address) else address)


class _CheckedChunks:
    """Reads a chunked body. Raises Django's `BadRequest` (400) for chunks that are malformed.

    gunicorn finds them only when the view reads the body, where its own exception would be a fault of the service.
    The connection is closed then, because nobody knows where the next request begins.
    """

    def __init__(self, reader: ChunkedReader, request: Any) -> None:
        self._reader = reader
        self._request = request

    def read(self, size: int) -> bytes:
        try:
            return bytes(self._reader.read(size))
        except parse_errors.ParseException as error:
            self._request.force_close()
            message = "The chunks of the body are malformed."
            raise BadRequest(message) from error


class ConnectionsWorker(ThreadWorker):
    """gunicorn's `gthread`, whose loop reads whole requests before a thread handles them, and sends answers."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.by_address: Counter[str] = Counter()
        self.holding = Lock()
        self.held = 0
        """Bytes that all connections have stored in files."""
        # The connections that the loop reads from or sends to; one whose request is in a thread isn't among them.
        self._waiting: dict[ClientConnection, Callable[[ClientConnection], None]] = {}
        self._warned_at = -_WARNING_INTERVAL_SECONDS

    # --- In the loop: the request ------------------------------------------------------------------------------------

    def accept(self, listener: Any) -> None:
        """Accept a connection, or refuse it (429) if its network has too many; the slowest may be dropped for it."""
        try:
            sock, client = listener.accept()
        except OSError as error:
            if error.errno in _FILE_LIMIT_ERRORS:
                self._drop_slowest()
            elif error.errno not in _NO_CLIENT_ERRORS:
                raise
            return
        network = _network(client[:1] if isinstance(client, tuple) else client)
        if network and self.by_address[network] >= limits.CONNECTIONS_PER_ADDRESS:
            self._refuse_address(sock, network)
            return
        connection = ClientConnection(self, sock, network, client, listener.getsockname())
        self.by_address[network] += 1
        self.nr_conns += 1
        self._begin(connection)
        if self.nr_conns >= self.worker_connections:
            self._drop_slowest()

    def _refuse_address(self, sock: socket.socket, network: str) -> None:
        """Answer 429 to a client with too many connections, and warn of it at most once in a while."""
        with suppress(OSError), sock:
            sock.setblocking(False)  # noqa: FBT003  its only form
            sock.send(refusal_bytes(HTTPStatus.TOO_MANY_REQUESTS))
        if monotonic() - self._warned_at > _WARNING_INTERVAL_SECONDS:
            self._warned_at = monotonic()
            limit = limits.CONNECTIONS_PER_ADDRESS
            self.log.warning("%s has %s connections open. Further ones are refused.", network, limit)

    def on_client_socket_readable(self, conn: ClientConnection, client: ResponseSocket) -> None:
        """Begin the next request of an idle connection."""
        if conn in self.keepalived_conns:
            self.poller.unregister(client)
            self.keepalived_conns.remove(conn)
            self._begin(conn)

    def _begin(self, connection: ClientConnection, rest: bytes = b"") -> None:
        """Start reading a request, of which `rest` has arrived already."""
        connection.begin()
        if not self.alive:
            connection.hurry(STOP_KEEPALIVE_LINGER)
        self._watch(connection, selectors.EVENT_READ, self._read)
        if rest:
            self._run_step(connection, lambda current: self._take(current, rest))
        else:
            # In most cases the request has arrived already.
            self._run_step(connection, self._read)

    def _read(self, connection: ClientConnection) -> None:
        data = connection.sock.recv(CHUNK_BYTES)
        if data:
            self._take(connection, data)
        else:
            self._drop(connection)

    def _take(self, connection: ClientConnection, data: bytes) -> None:
        if connection.take(data):
            self._unwatch(connection)
            self.enqueue_req(connection)
        else:
            connection.note_pace(self._pace_seconds)

    # --- In a thread -------------------------------------------------------------------------------------------------

    def handle_request(self, req: Any, conn: ClientConnection) -> Any:
        # The loop has answered "100 Continue" already.
        req._expected_100_continue = False  # noqa: SLF001
        incoming, reader = conn.incoming, req.body.reader
        if incoming.is_cut:
            req.force_close()
        incoming.has_certain_end = isinstance(reader, LengthReader) and reader.length == incoming.length
        if isinstance(reader, ChunkedReader):
            req.body.reader = _CheckedChunks(reader, req)
        return super().handle_request(req, conn)

    def handle_error(self, req: Any, client: Any, addr: Any, exc: Exception) -> None:
        """Answer a request that gunicorn can't read, or that failed there, as all other errors are answered.

        gunicorn's own answer is a page without a request id.
        """
        server_error = HTTPStatus.INTERNAL_SERVER_ERROR
        status = next((status for error, status in _STATUS_BY_ERROR if isinstance(exc, error)), server_error)
        request_id = f"req_{uuid7().hex}"
        if status == server_error:
            self.log.error(
                "Error handling %s (%s)", getattr(req, "uri", "a request"), request_id, exc_info=exc
            )
        else:
            address = addr[0] if addr else "a socket"
            # Not the text of the error: it may quote an address that is a secret.
            self.log.warning("Refused a request from %s: %s (%s)", address, type(exc).__name__, request_id)
        with suppress(OSError):
            client.sendall(refusal_bytes(status, request_id=request_id))

    def _keepalive_after(self, conn: ClientConnection, keepalive: Any) -> bool:
        """Return whether to keep the connection, also if the view hasn't read the whole body.

        gunicorn would read a little more and then close. Because the response has promised to keep the connection,
        a proxy would send its next request there, and answer it with 502.
        """
        if conn.incoming.has_certain_end:
            return bool(keepalive)
        try:
            return bool(super()._keepalive_after(conn, keepalive))
        except BadRequest:
            # The chunks that the view hasn't read are malformed, and it has answered already.
            return False

    # --- In the loop: the answer -------------------------------------------------------------------------------------

    def finish_request(self, conn: ClientConnection, fs: Future[Any]) -> None:
        """Send the rest of the answer, then await the next request or the client's end of the connection."""
        if conn.sock.has_left:
            conn.allow(self._pace_seconds, limits.BODY_SECONDS)
            self._watch(conn, selectors.EVENT_WRITE, lambda current: self._send(current, fs))
            return
        keeps_alive = not fs.cancelled() and fs.exception() is None and fs.result()
        if not keeps_alive:
            self._await_close(conn)
            return
        rest = conn.rest()
        if rest:
            self._begin(conn, rest)
        else:
            super().finish_request(conn, fs)

    def _send(self, connection: ClientConnection, finished: Future[Any]) -> None:
        connection.sock.flush(CHUNK_BYTES)
        if not connection.sock.has_left:
            self._unwatch(connection)
            self.finish_request(connection, finished)
        else:
            connection.note_pace(self._pace_seconds)

    def _await_close(self, connection: ClientConnection) -> None:
        """Let the client close first, because bytes that it still sends could cut off the end of the response."""
        try:
            connection.sock.shutdown(socket.SHUT_WR)
        except OSError:
            self._drop(connection)
            return
        connection.allow(limits.PARTING_SECONDS, limits.PARTING_SECONDS)
        self._watch(connection, selectors.EVENT_READ, self._discard)

    def _discard(self, connection: ClientConnection) -> None:
        if not connection.sock.recv(CHUNK_BYTES):
            self._drop(connection)

    # --- Watching ----------------------------------------------------------------------------------------------------

    @property
    def _pace_seconds(self) -> float:
        """The seconds within which a client has to move `PACE_BYTES`; a worker that stops allows fewer."""
        return limits.PACE_SECONDS if self.alive else STOP_KEEPALIVE_LINGER

    def _watch(
        self, connection: ClientConnection, event: int, step: Callable[[ClientConnection], None]
    ) -> None:
        self._waiting[connection] = step
        self.poller.register(connection.sock, event, lambda _: self._run_step(connection, step))

    def _unwatch(self, connection: ClientConnection) -> None:
        if self._waiting.pop(connection, None) is not None:
            self.poller.unregister(connection.sock)

    def _run_step(self, connection: ClientConnection, step: Callable[[ClientConnection], None]) -> None:
        """Run a step so that one connection's failure doesn't affect the others."""
        if connection not in self._waiting:
            # It was dropped after the poller reported it.
            return
        try:
            step(connection)
        except BlockingIOError:
            return
        except RefusedError as error:
            self._refuse(connection, error.status)
        except OSError:
            self._drop(connection)
        except Exception:
            # Uncaught, it would end the loop, and with it the worker.
            self.log.exception("A connection failed.")
            self._drop(connection)

    def _refuse(self, connection: ClientConnection, status: HTTPStatus) -> None:
        self._unwatch(connection)
        try:
            connection.sock.sendall(refusal_bytes(status))
        except OSError:
            self._drop(connection)
        else:
            self._await_close(connection)

    def _drop(self, connection: ClientConnection) -> None:
        self._unwatch(connection)
        self.nr_conns -= 1
        connection.close()

    def _drop_slowest(self) -> None:
        """Drop a connection: the slowest if it is slower than half a new one, else an idle one, else the slowest."""
        now = monotonic()
        slowest = min(self._waiting, key=lambda connection: connection.pace(now), default=None)
        is_slow = slowest is not None and slowest.pace(now) < NEW_CONNECTION_BYTES / 2
        if self.keepalived_conns and not is_slow:
            idle = self.keepalived_conns.popleft()
            self.poller.unregister(idle.sock)
            self._drop(idle)
        elif slowest is not None:
            self._drop(slowest)

    def murder_pending(self) -> None:
        """Drop the connections past their deadline, after a 408 if a part of a request has arrived.

        gunicorn calls this in each round of its loop, also while it stops.
        """
        now = monotonic()
        for connection in [waiting for waiting in self._waiting if waiting.deadline <= now]:
            # A client that sent a part of a request gets an answer; the others asked nothing.
            if self._waiting[connection] == self._read and connection.incoming.bytes:
                self._refuse(connection, HTTPStatus.REQUEST_TIMEOUT)
            else:
                self._drop(connection)

    def _cap_keepalive(self, deadline: float) -> None:
        """Drop connections with half a head, and shorten the deadlines of others, when gunicorn begins to stop."""
        super()._cap_keepalive(deadline)
        for connection in list(self._waiting):
            if connection.incoming.is_half_a_head:
                self._drop(connection)
            else:
                connection.hurry(STOP_KEEPALIVE_LINGER)
