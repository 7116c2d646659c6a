"""What gunicorn takes for the socket: writing never waits, what the client doesn't take yet is kept."""

from __future__ import annotations

import errno
import os
import selectors
from collections import deque
from contextlib import suppress
from tempfile import TemporaryFile
from time import monotonic
from typing import TYPE_CHECKING, Final

from django.conf import settings

from config.connections.request_buffer import PIECE, RefusedError
from config.core import limits

if TYPE_CHECKING:
    import socket
    from typing import IO

    from config.connections.client_connection import ClientConnection

PACE_BYTES: Final = limits.SLOWEST_BYTES_PER_SECOND * limits.PACE_SECONDS


class _Span:
    """Bytes of a file that are to be sent."""

    def __init__(self, number: int, offset: int, count: int) -> None:
        self.number = number
        self.offset = offset
        self.count = count


class ResponseSocket:
    """What gunicorn takes for the socket: writing to it never waits, what the client doesn't take yet is kept."""

    def __init__(self, connection: ClientConnection, sock: socket.socket) -> None:
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
                    sent = os.sendfile(self.fileno(), piece.number, piece.offset, min(piece.count, PIECE))
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
                if self.moved - mark >= PACE_BYTES:
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
