"""Connections of the web processes: a thread is for a whole request, and never waits for a client.

gunicorn's own worker gives a thread to each new connection, which then waits for the request's bytes, and later until
the answer is taken; as many slow clients as there are threads stop it. Here the worker's loop reads each request, its
body too, and sends what of an answer the client doesn't take at once.
"""

from __future__ import annotations

import errno
import json
import os
import re
import selectors
import socket
from collections import Counter, deque
from contextlib import suppress
from functools import lru_cache
from http import HTTPStatus
from ipaddress import IPv6Address, ip_address, ip_network
from tempfile import SpooledTemporaryFile, TemporaryFile
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from gunicorn.http.body import LengthReader
from gunicorn.http.parser import RequestParser
from gunicorn.http.unreader import Unreader
from gunicorn.workers.gthread import STOP_KEEPALIVE_LINGER, TConn, ThreadWorker

from config.core import errors, limits
from config.core.errors import Detail

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future
    from typing import IO

_PIECE: Final = 256 * 1024
"""Bytes that the loop reads or sends before it looks after the other connections."""
_SMALL_PIECE: Final = 8192
_PACE_BYTES: Final = limits.SLOWEST_BYTES_PER_SECOND * limits.PACE_SECONDS
_BENEFIT_OF_DOUBT: Final = 4096
"""Bytes that each connection is taken to have moved in a second before it was there: a new one isn't the slowest."""
_WARNED_EVERY: Final = 60.0
_CHUNK_LINE_BYTES: Final = 8190
_CHUNK_SIZE: Final = re.compile(rb"[0-9a-fA-F]{1,12}")
_BARE_LINE_END: Final = re.compile(rb"(?<!\r)\n")
_HEAD_END: Final = b"\r\n\r\n"
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_REFUSED: Final = (
    "HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n"
    "{more}Connection: close\r\n\r\n{body}"
)
_SAID: Final = {
    HTTPStatus.TOO_MANY_REQUESTS: (
        "rate_limited",
        "too_many_connections",
        f"This address has {limits.CONNECTIONS_PER_ADDRESS} connections open; send further requests over one of them.",
    ),
    HTTPStatus.SERVICE_UNAVAILABLE: (
        "unavailable",
        "unavailable",
        "The service can't take this just now; send it again in a moment.",
    ),
    HTTPStatus.REQUEST_TIMEOUT: (
        "invalid_request",
        "too_slow",
        "The request did not come in time; send it again.",
    ),
}
_NO_HTTP: Final = ("invalid_request", "malformed_request", "This is no HTTP request that can be read.")
_NO_MORE_FILES: Final = frozenset({errno.EMFILE, errno.ENFILE})
_NOBODY_THERE: Final = frozenset({errno.EAGAIN, errno.EWOULDBLOCK, errno.ECONNABORTED})


def _refusal(status: HTTPStatus) -> bytes:
    """An answer of the form that every error has, written without a thread."""
    error, code, message = _SAID.get(status, _NO_HTTP)
    body = json.dumps(errors.body(error, [Detail(None, code, message)]))
    more = "Retry-After: 1\r\n" if status in _SAID else ""
    return _REFUSED.format(status=status, length=len(body), more=more, body=body).encode()


class RefusedError(Exception):
    """The request comes to nothing, and no thread hears of it."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status)
        self.status = status


class Chunks:
    """Finds the end of a body that comes in chunks; whether they are well formed, gunicorn says."""

    def __init__(self) -> None:
        self._line = b""
        self._skip = 0
        self._is_trailer = False

    def end(self, data: bytes) -> int | None:
        """How many bytes of these are the body's, where it ends in them."""
        at = 0
        while at < len(data):
            if self._skip:
                step = min(self._skip, len(data) - at)
                self._skip -= step
                at += step
                continue
            stop = data.find(b"\n", at) + 1
            self._line += data[at : stop or len(data)]
            if len(self._line) > _CHUNK_LINE_BYTES:
                return len(data)
            if not stop:
                return None
            at = stop
            line, self._line = self._line.strip(), b""
            if self._is_trailer:
                if not line:
                    return at
                continue
            size = _CHUNK_SIZE.match(line)
            if size is None:
                return at
            if int(size[0], 16) == 0:
                self._is_trailer = True
            else:
                self._skip = int(size[0], 16) + len(b"\r\n")
        return None


class Incoming:
    """A request on its way. `kept` has its bytes, and after its end those of the next one."""

    def __init__(self) -> None:
        self.kept: IO[bytes] = SpooledTemporaryFile(  # noqa: SIM115  open until the answer is there
            limits.BODY_MEMORY_BYTES, dir=str(settings.DATA_DIR)
        )
        self.bytes = 0
        self.has_head = False
        self.expects_continue = False
        self.is_cut = False
        """The body isn't read, or not to its end: the connection can't be used again."""
        self.length: int | None = 0
        """Bytes of the body, where they are announced."""
        self.has_certain_end = False
        self.end = 0
        """Where the bytes of the next request begin in `kept`, if the end is certain."""
        self._head = bytearray()
        self._missing = 0
        self._chunks: Chunks | None = None

    def take(self, data: bytes) -> bool:
        """Whether the request is whole now, or has something that gunicorn or the application will refuse."""
        self.kept.write(data)
        self.bytes += len(data)
        if not self.has_head:
            searched = max(0, len(self._head) - len(_HEAD_END) + 1)
            self._head += data
            end = self._head.find(_HEAD_END, searched)
            if end < 0:
                if len(self._head) > limits.HEAD_BYTES:
                    raise RefusedError(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
                self.is_cut = bool(_BARE_LINE_END.search(self._head, searched))
                return self.is_cut
            self.has_head = True
            data = bytes(self._head[end + len(_HEAD_END) :])
            self._frame(bytes(self._head[:end]))
            self._head.clear()
        if self.is_cut:
            return True
        if self._chunks is None:
            self._missing -= len(data)
            self.end = self.bytes + min(self._missing, 0)
            return self._missing <= 0
        if self._chunks.end(data) is not None:
            return True
        self.is_cut = self.bytes > limits.REFUSED_BODY_READ_BYTES
        return self.is_cut

    @property
    def is_half_a_head(self) -> bool:
        return bool(self.bytes) and not self.has_head

    def _frame(self, head: bytes) -> None:
        """How long the body is. Where that is in doubt gunicorn refuses it; it reads the same head afterwards."""
        lengths: list[bytes] = []
        codings: list[bytes] = []
        for line in head.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            value = value.strip(b" \t").lower()
            match name.lower():
                case b"content-length":
                    lengths.append(value)
                case b"transfer-encoding":
                    codings.append(value)
                case b"expect":
                    self.expects_continue = value == b"100-continue"
        if codings:
            self._chunks, self.length = Chunks(), None
            self.is_cut = codings != [b"chunked"] or bool(lengths)
        elif lengths:
            is_number = len(lengths) == 1 and len(lengths[0]) <= 18 and lengths[0].isdigit()
            self.length = self._missing = int(lengths[0]) if is_number else 0
            # One that is announced as too large is refused by the application, which reads nothing of it.
            self.is_cut = not is_number or self._missing > limits.UPLOAD_BODY_BYTES


class Arrived(Unreader):
    """Hands gunicorn's parser the bytes of one whole request; there are no others to wait for."""

    kept: IO[bytes] | None = None

    def chunk(self, size_hint: int | None = None) -> bytes:
        if self.kept is None:
            return b""
        return self.kept.read(min(max(size_hint or 0, _SMALL_PIECE), _PIECE))


class _Span:
    """Bytes of a file that are to be sent."""

    def __init__(self, number: int, offset: int, count: int) -> None:
        self.number = number
        self.offset = offset
        self.count = count


class Wire:
    """What gunicorn takes for the socket: writing to it never waits, what the client doesn't take yet is kept."""

    def __init__(self, connection: Connection, sock: socket.socket) -> None:
        sock.setblocking(False)  # noqa: FBT003  its only form
        self._connection = connection
        self._socket = sock
        self._left: deque[memoryview | _Span] = deque()
        self._in_memory = 0
        self._file: IO[bytes] | None = None
        self._file_bytes = 0
        self.moved = 0
        """Bytes in either direction."""
        self.recv = sock.recv
        self.fileno = sock.fileno
        self.getsockname = sock.getsockname
        self.shutdown = sock.shutdown

    def setblocking(self, _flag: object) -> None:
        """It never blocks, whatever gunicorn wishes."""

    settimeout = setblocking

    def gettimeout(self) -> float:
        return 0.0

    @property
    def has_left(self) -> bool:
        return bool(self._left)

    def send(self, data: bytes) -> int:
        self.sendall(data)
        return len(data)

    def sendall(self, data: bytes) -> None:
        self.flush()
        if self._file_bytes > limits.ANSWER_AHEAD_BYTES:
            self._wait()
        view = memoryview(data)
        while view and not self._left:
            try:
                sent = self._socket.send(view)
            except BlockingIOError:
                break
            self.moved += sent
            view = view[sent:]
        if view:
            self._keep(view)

    def sendfile(self, file: IO[bytes], offset: int = 0, count: int = 0) -> None:
        self._left.append(_Span(os.dup(file.fileno()), offset, count))
        self.flush()

    def _keep(self, view: memoryview) -> None:
        if self._file is None and self._in_memory + len(view) <= limits.BODY_MEMORY_BYTES:
            self._in_memory += len(view)
            self._left.append(memoryview(bytes(view)))
            return
        if self._file is None:
            self._file = TemporaryFile(dir=settings.DATA_DIR)  # noqa: SIM115  open until all is sent
        try:
            self._connection.hold(len(view))
        except RefusedError as error:
            raise ConnectionResetError(errno.ECONNRESET, "Too much waits for slow clients.") from error
        at = self._file.seek(0, os.SEEK_END)
        self._file.write(view)
        self._file.flush()
        self._file_bytes += len(view)
        last = self._left[-1] if self._left else None
        if isinstance(last, _Span) and last.offset + last.count == at and last.number == self._file.fileno():
            last.count += len(view)
        else:
            self._left.append(_Span(self._file.fileno(), at, len(view)))

    def flush(self, most: int | None = None) -> None:
        """Send what is left, as far as the client takes it; `OSError` where it is gone."""
        until = None if most is None else self.moved + most
        with suppress(BlockingIOError):
            while self._left and (until is None or self.moved < until):
                piece = self._left[0]
                if isinstance(piece, _Span):
                    sent = os.sendfile(self.fileno(), piece.number, piece.offset, min(piece.count, _PIECE))
                    if not sent:
                        raise ConnectionResetError(errno.ECONNRESET, "The file is shorter than it was.")
                    piece.offset += sent
                    piece.count -= sent
                    if not piece.count:
                        self._left.popleft()
                        self._let_go(piece)
                else:
                    sent = self._socket.send(piece)
                    self._left[0] = piece[sent:]
                    if sent == len(piece):
                        self._left.popleft()
                self.moved += sent
        if not self._left:
            self._in_memory = 0
            self._drop_file()

    def _wait(self) -> None:
        """The one wait for a client: somebody with a session is sent far more than is kept for anybody."""
        ready = selectors.DefaultSelector()
        with ready:
            ready.register(self._socket, selectors.EVENT_WRITE)
            until, mark = monotonic() + limits.PACE_SECONDS, self.moved
            while self._left:
                if monotonic() > until:
                    raise ConnectionResetError(errno.ECONNRESET, "The answer is taken too slowly.")
                ready.select(1.0)
                self.flush()
                if self.moved - mark >= _PACE_BYTES:
                    until, mark = monotonic() + limits.PACE_SECONDS, self.moved

    def _let_go(self, span: _Span) -> None:
        if self._file is None or span.number != self._file.fileno():
            os.close(span.number)

    def _drop_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._connection.let_go(self._file_bytes)
            self._file, self._file_bytes = None, 0

    def close(self) -> None:
        for piece in self._left:
            if isinstance(piece, _Span):
                self._let_go(piece)
        self._left.clear()
        self._drop_file()
        self._socket.close()


class Connection(TConn):
    def __init__(
        self, worker: ConnectionsWorker, sock: socket.socket, network: str, client: Any, server: Any
    ) -> None:
        super().__init__(worker.cfg, sock, client, server)
        self.sock = Wire(self, sock)
        self.parser = RequestParser(worker.cfg, (), client)
        self.parser.unreader = Arrived()
        # Else gunicorn would make a parser that reads from the socket.
        self.initialized = True
        self.incoming = Incoming()
        self.deadline = 0.0
        self._worker = worker
        self._network = network
        self._held = 0
        self._since = self._last_moment = 0.0
        self._mark = self._moved_before = 0

    def hold(self, count: int) -> None:
        """Count bytes that are kept in a file."""
        with self._worker.holding:
            if self._worker.held + count > limits.BODIES_KEPT_BYTES:
                raise RefusedError(HTTPStatus.SERVICE_UNAVAILABLE)
            self._worker.held += count
        self._held += count

    def let_go(self, count: int) -> None:
        with self._worker.holding:
            self._worker.held -= count
        self._held -= count

    # --- The request --------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        if self.incoming.has_head:
            self.incoming = Incoming()
        self.allow(limits.HEAD_SECONDS, limits.HEAD_SECONDS)

    def take(self, data: bytes) -> bool:
        """Whether the request is whole."""
        incoming = self.incoming
        had_head = incoming.has_head
        if incoming.bytes + len(data) > limits.BODY_MEMORY_BYTES:
            self.hold(len(data))
        self.sock.moved += len(data)
        try:
            is_whole = incoming.take(data)
        except OSError as error:
            # The disk is full.
            raise RefusedError(HTTPStatus.SERVICE_UNAVAILABLE) from error
        if is_whole:
            incoming.kept.seek(0)
            self.parser.unreader.kept = incoming.kept
        elif incoming.has_head and not had_head:
            self.allow(limits.PACE_SECONDS, limits.BODY_SECONDS)
            if incoming.expects_continue:
                self.sock.sendall(_CONTINUE)
        return is_whole

    def rest(self) -> bytes:
        """What came of the next request together with the one that is answered now."""
        buffered: bytes = self.parser.unreader.take_buffered()
        if self.incoming.has_certain_end:
            self.incoming.kept.seek(self.incoming.end)
            buffered = b""
            # Else the parser would look for the end of its body.
            self.parser.mesg = None
        rest = buffered + self.incoming.kept.read()
        self._forget_request()
        return rest

    def _forget_request(self) -> None:
        self.incoming.kept.close()
        self.let_go(self._held)

    # --- Time ---------------------------------------------------------------------------------------------------------

    def hurry(self, seconds: float) -> None:
        self.deadline = min(self.deadline, monotonic() + seconds)

    def allow(self, seconds: float, most: float) -> None:
        """From now on the client has so many seconds, and as many again with each `_PACE_BYTES`, up to the most."""
        self._since = monotonic()
        self._mark = self._moved_before = self.sock.moved
        self._last_moment = self._since + most
        self.deadline = self._since + seconds

    def note_pace(self, seconds: float) -> None:
        if self.sock.moved - self._mark >= _PACE_BYTES:
            self._mark = self.sock.moved
            self.deadline = min(monotonic() + seconds, self._last_moment)

    def pace(self, now: float) -> float:
        return (self.sock.moved - self._moved_before + _BENEFIT_OF_DOUBT) / (now - self._since + 1)

    # --- The end ------------------------------------------------------------------------------------------------------

    def close(self, graceful: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002  gunicorn's signature
        """Never gracefully in gunicorn's way: its loop would wait for this client, and all others with it."""
        self.sock.close()
        self._forget_request()
        self._worker.by_address[self._network] -= 1
        if not self._worker.by_address[self._network]:
            del self._worker.by_address[self._network]


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
        self._waiting: dict[Connection, Callable[[Connection], None]] = {}
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
        connection = Connection(self, sock, network, client, listener.getsockname())
        self.by_address[network] += 1
        self.nr_conns += 1
        self._begin(connection)
        if self.nr_conns >= self.worker_connections:
            self._drop_the_slowest()

    def _refuse_address(self, sock: socket.socket, network: str) -> None:
        with suppress(OSError), sock:
            sock.setblocking(False)  # noqa: FBT003  its only form
            sock.send(_refusal(HTTPStatus.TOO_MANY_REQUESTS))
        if monotonic() - self._warned_at > _WARNED_EVERY:
            self._warned_at = monotonic()
            most = limits.CONNECTIONS_PER_ADDRESS
            self.log.warning("%s has %s connections open. Further ones are refused.", network, most)

    def on_client_socket_readable(self, conn: Connection, client: Wire) -> None:
        """The next request of a connection that was kept."""
        if conn in self.keepalived_conns:
            self.poller.unregister(client)
            self.keepalived_conns.remove(conn)
            self._begin(conn)

    def _begin(self, connection: Connection, rest: bytes = b"") -> None:
        connection.begin()
        if not self.alive:
            connection.hurry(STOP_KEEPALIVE_LINGER)
        self._watch(connection, selectors.EVENT_READ, self._read)
        if rest:
            self._safely(connection, lambda one: self._take(one, rest))
        else:
            # Mostly it's there already.
            self._safely(connection, self._read)

    def _read(self, connection: Connection) -> None:
        data = connection.sock.recv(_PIECE)
        if data:
            self._take(connection, data)
        else:
            self._drop(connection)

    def _take(self, connection: Connection, data: bytes) -> None:
        if connection.take(data):
            self._unwatch(connection)
            self.enqueue_req(connection)
        else:
            connection.note_pace(self._patience)

    # --- In a thread --------------------------------------------------------------------------------------------------

    def handle_request(self, req: Any, conn: Connection) -> Any:
        # The loop has told it already.
        req._expected_100_continue = False  # noqa: SLF001
        incoming, reader = conn.incoming, req.body.reader
        if incoming.is_cut:
            req.force_close()
        incoming.has_certain_end = isinstance(reader, LengthReader) and reader.length == incoming.length
        return super().handle_request(req, conn)

    def _keepalive_after(self, conn: Connection, keepalive: Any) -> bool:
        """A body that nobody read is passed over: gunicorn reads a little of it and then closes a connection of which the
        answer has said that it is kept. A proxy would send its next request there, and answer it with 502.
        """
        if conn.incoming.has_certain_end:
            return bool(keepalive)
        return bool(super()._keepalive_after(conn, keepalive))

    # --- In the loop: the answer --------------------------------------------------------------------------------------

    def finish_request(self, conn: Connection, fs: Future[Any]) -> None:
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

    def _send(self, connection: Connection, finished: Future[Any]) -> None:
        connection.sock.flush(_PIECE)
        if not connection.sock.has_left:
            self._unwatch(connection)
            self.finish_request(connection, finished)
        else:
            connection.note_pace(self._patience)

    def _part(self, connection: Connection) -> None:
        """Let the client close: what it still sends would else tear off the end of the answer."""
        try:
            connection.sock.shutdown(socket.SHUT_WR)
        except OSError:
            self._drop(connection)
            return
        connection.allow(limits.PARTING_SECONDS, limits.PARTING_SECONDS)
        self._watch(connection, selectors.EVENT_READ, self._discard)

    def _discard(self, connection: Connection) -> None:
        if not connection.sock.recv(_PIECE):
            self._drop(connection)

    # --- Watching -----------------------------------------------------------------------------------------------------

    @property
    def _patience(self) -> float:
        """Seconds for `PACE_SECONDS` worth of bytes; a worker that stops has less."""
        return limits.PACE_SECONDS if self.alive else STOP_KEEPALIVE_LINGER

    def _watch(self, connection: Connection, event: int, step: Callable[[Connection], None]) -> None:
        self._waiting[connection] = step
        self.poller.register(connection.sock, event, lambda _: self._safely(connection, step))

    def _unwatch(self, connection: Connection) -> None:
        if self._waiting.pop(connection, None) is not None:
            self.poller.unregister(connection.sock)

    def _safely(self, connection: Connection, step: Callable[[Connection], None]) -> None:
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

    def _refuse(self, connection: Connection, status: HTTPStatus) -> None:
        self._unwatch(connection)
        try:
            connection.sock.sendall(_refusal(status))
        except OSError:
            self._drop(connection)
        else:
            self._part(connection)

    def _drop(self, connection: Connection) -> None:
        self._unwatch(connection)
        self.nr_conns -= 1
        connection.close()

    def _drop_the_slowest(self) -> None:
        """Make room for one more."""
        now = monotonic()
        slowest = min(self._waiting, key=lambda one: one.pace(now), default=None)
        is_slow = slowest is not None and slowest.pace(now) < _BENEFIT_OF_DOUBT / 2
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
