"""Connections of the web processes: a thread is for a whole request, and never waits for a client.

gunicorn's own worker gives a thread to each new connection, which then waits for the request's bytes, and later until
the answer is taken; as many slow clients as there are threads stop it. Here the worker's loop reads each request, its
body too, and sends what of an answer the client doesn't take at once.
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
from gunicorn.http.body import LengthReader
from gunicorn.workers.gthread import STOP_KEEPALIVE_LINGER, ThreadWorker

from config.connections.client_connection import BENEFIT_OF_DOUBT, ClientConnection
from config.connections.request_buffer import PIECE, RefusedError, refusal_bytes
from config.core import limits

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from config.connections.response_socket import ResponseSocket

_WARNED_EVERY: Final = 60.0
_NO_MORE_FILES: Final = frozenset({errno.EMFILE, errno.ENFILE})
_NOBODY_THERE: Final = frozenset({errno.EAGAIN, errno.EWOULDBLOCK, errno.ECONNABORTED})


@lru_cache(maxsize=1024)
def _network(client: Any) -> str:
    """Whose connections are counted together; empty for a proxy of the operator's own, where everybody comes through."""
    if not isinstance(client, tuple):
        return ""
    address = ip_address(client[0].partition("%")[0])
    if isinstance(address, IPv6Address):
        address = address.ipv4_mapped or address
    if settings.TRUSTED_PROXIES and not address.is_global:
        return ""
    # Whoever has one address of the sixth version has a network of them.
    return str(ip_network((address, 64), strict=False) if isinstance(address, IPv6Address) else address)


class ConnectionsWorker(ThreadWorker):
    """gunicorn's `gthread`, with its own way from the connection to the thread, and from the thread to the client."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.by_address: Counter[str] = Counter()
        self.holding = Lock()
        self.held = 0
        """Bytes that are kept in files."""
        # Those that the loop reads from or sends to; a connection whose request is in a thread isn't among them.
        self._waiting: dict[ClientConnection, Callable[[ClientConnection], None]] = {}
        self._warned_at = -_WARNED_EVERY

    # --- In the loop: the request -------------------------------------------------------------------------------------

    def accept(self, listener: Any) -> None:
        try:
            sock, client = listener.accept()
        except OSError as error:
            if error.errno in _NO_MORE_FILES:
                self._drop_the_slowest()
            elif error.errno not in _NOBODY_THERE:
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
            self._drop_the_slowest()

    def _refuse_address(self, sock: socket.socket, network: str) -> None:
        with suppress(OSError), sock:
            sock.setblocking(False)  # noqa: FBT003  its only form
            sock.send(refusal_bytes(HTTPStatus.TOO_MANY_REQUESTS))
        if monotonic() - self._warned_at > _WARNED_EVERY:
            self._warned_at = monotonic()
            most = limits.CONNECTIONS_PER_ADDRESS
            self.log.warning("%s has %s connections open. Further ones are refused.", network, most)

    def on_client_socket_readable(self, conn: ClientConnection, client: ResponseSocket) -> None:
        """The next request of a connection that was kept."""
        if conn in self.keepalived_conns:
            self.poller.unregister(client)
            self.keepalived_conns.remove(conn)
            self._begin(conn)

    def _begin(self, connection: ClientConnection, rest: bytes = b"") -> None:
        connection.begin()
        if not self.alive:
            connection.hurry(STOP_KEEPALIVE_LINGER)
        self._watch(connection, selectors.EVENT_READ, self._read)
        if rest:
            self._safely(connection, lambda one: self._take(one, rest))
        else:
            # Mostly it's there already.
            self._safely(connection, self._read)

    def _read(self, connection: ClientConnection) -> None:
        data = connection.sock.recv(PIECE)
        if data:
            self._take(connection, data)
        else:
            self._drop(connection)

    def _take(self, connection: ClientConnection, data: bytes) -> None:
        if connection.take(data):
            self._unwatch(connection)
            self.enqueue_req(connection)
        else:
            connection.note_pace(self._patience)

    # --- In a thread --------------------------------------------------------------------------------------------------

    def handle_request(self, req: Any, conn: ClientConnection) -> Any:
        # The loop has told it already.
        req._expected_100_continue = False  # noqa: SLF001
        incoming, reader = conn.incoming, req.body.reader
        if incoming.is_cut:
            req.force_close()
        incoming.has_certain_end = isinstance(reader, LengthReader) and reader.length == incoming.length
        return super().handle_request(req, conn)

    def _keepalive_after(self, conn: ClientConnection, keepalive: Any) -> bool:
        """A body that nobody read is passed over: gunicorn reads a little of it and then closes a connection of which the
        answer has said that it is kept. A proxy would send its next request there, and answer it with 502.
        """
        if conn.incoming.has_certain_end:
            return bool(keepalive)
        return bool(super()._keepalive_after(conn, keepalive))

    # --- In the loop: the answer --------------------------------------------------------------------------------------

    def finish_request(self, conn: ClientConnection, fs: Future[Any]) -> None:
        if conn.sock.has_left:
            conn.allow(self._patience, limits.BODY_SECONDS)
            self._watch(conn, selectors.EVENT_WRITE, lambda one: self._send(one, fs))
            return
        is_kept = not fs.cancelled() and fs.exception() is None and fs.result()
        if not is_kept:
            self._part(conn)
            return
        rest = conn.rest()
        if rest:
            self._begin(conn, rest)
        else:
            super().finish_request(conn, fs)

    def _send(self, connection: ClientConnection, finished: Future[Any]) -> None:
        connection.sock.flush(PIECE)
        if not connection.sock.has_left:
            self._unwatch(connection)
            self.finish_request(connection, finished)
        else:
            connection.note_pace(self._patience)

    def _part(self, connection: ClientConnection) -> None:
        """Let the client close: what it still sends would else tear off the end of the answer."""
        try:
            connection.sock.shutdown(socket.SHUT_WR)
        except OSError:
            self._drop(connection)
            return
        connection.allow(limits.PARTING_SECONDS, limits.PARTING_SECONDS)
        self._watch(connection, selectors.EVENT_READ, self._discard)

    def _discard(self, connection: ClientConnection) -> None:
        if not connection.sock.recv(PIECE):
            self._drop(connection)

    # --- Watching -----------------------------------------------------------------------------------------------------

    @property
    def _patience(self) -> float:
        """Seconds for `PACE_SECONDS` worth of bytes; a worker that stops has less."""
        return limits.PACE_SECONDS if self.alive else STOP_KEEPALIVE_LINGER

    def _watch(
        self, connection: ClientConnection, event: int, step: Callable[[ClientConnection], None]
    ) -> None:
        self._waiting[connection] = step
        self.poller.register(connection.sock, event, lambda _: self._safely(connection, step))

    def _unwatch(self, connection: ClientConnection) -> None:
        if self._waiting.pop(connection, None) is not None:
            self.poller.unregister(connection.sock)

    def _safely(self, connection: ClientConnection, step: Callable[[ClientConnection], None]) -> None:
        """One connection's fault is no other's."""
        if connection not in self._waiting:
            # It was dropped after the poller told of it.
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
            # Out of here it would end the loop, and with it the worker.
            self.log.exception("A connection failed.")
            self._drop(connection)

    def _refuse(self, connection: ClientConnection, status: HTTPStatus) -> None:
        self._unwatch(connection)
        try:
            connection.sock.sendall(refusal_bytes(status))
        except OSError:
            self._drop(connection)
        else:
            self._part(connection)

    def _drop(self, connection: ClientConnection) -> None:
        self._unwatch(connection)
        self.nr_conns -= 1
        connection.close()

    def _drop_the_slowest(self) -> None:
        """Make room for one more."""
        now = monotonic()
        slowest = min(self._waiting, key=lambda one: one.pace(now), default=None)
        is_slow = slowest is not None and slowest.pace(now) < BENEFIT_OF_DOUBT / 2
        if self.keepalived_conns and not is_slow:
            kept = self.keepalived_conns.popleft()
            self.poller.unregister(kept.sock)
            self._drop(kept)
        elif slowest is not None:
            self._drop(slowest)

    def murder_pending(self) -> None:
        """Called by gunicorn once in each turn of its loop, also while it stops."""
        now = monotonic()
        for connection in [one for one in self._waiting if one.deadline <= now]:
            # Whoever sent a part of a request is told; the others have nothing to be told.
            if self._waiting[connection] == self._read and connection.incoming.bytes:
                self._refuse(connection, HTTPStatus.REQUEST_TIMEOUT)
            else:
                self._drop(connection)

    def _cap_keepalive(self, deadline: float) -> None:
        """Called by gunicorn when it begins to stop. A half-open connection ends at once."""
        super()._cap_keepalive(deadline)
        for connection in list(self._waiting):
            if connection.incoming.is_half_a_head:
                self._drop(connection)
            else:
                connection.hurry(STOP_KEEPALIVE_LINGER)
