"""Replaces the socket that gunicorn writes to, so that writing hardly ever waits for the client.

The bytes that the client doesn't take yet are stored in memory or in a file.
"""

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

from config.connections.request_buffer import CHUNK_BYTES, RefusedError
from config.core import limits

if TYPE_CHECKING:
    import socket
    from typing import IO

    from config.connections.client_connection import ClientConnection

PACE_BYTES: Final = limits.SLOWEST_BYTES_PER_SECOND * limits.PACE_SECONDS
"""Bytes that a client has to move within `PACE_SECONDS`."""


class _FileSpan:
    """A range of a file that is to be sent; `number` is the file descriptor."""

    def __init__(self, number: int, offset: int, count: int) -> None:
        self.number = number
        self.offset = offset
        self.count = count


class ResponseSocket:
    """Acts as the socket for gunicorn, and stores the bytes that the client doesn't take yet."""

    def __init__(self, connection: ClientConnection, sock: socket.socket) -> None:
        sock.setblocking(False)  # noqa: FBT003  its only form
        self._connection = connection
        self._socket = sock
        self._unsent: deque[memoryview | _FileSpan] = deque()
        self._in_memory = 0
        self._file: IO[bytes] | None = None
        self._file_bytes = 0
        self.moved = 0
        """Bytes sent and received."""
        self.recv = sock.recv
        self.fileno = sock.fileno
        self.getsockname = sock.getsockname
        self.shutdown = sock.shutdown

    def setblocking(self, _flag: object) -> None:
        """Do nothing: the socket never blocks, whatever gunicorn asks for."""

    settimeout = setblocking

    def gettimeout(self) -> float:
        return 0.0

    @property
    def has_left(self) -> bool:
        """True if bytes are still to be sent."""
        return bool(self._unsent)

    def send(self, data: bytes) -> int:
        self.sendall(data)
        return len(data)

    def sendall(self, data: bytes) -> None:
        """Send the data, and store the bytes that the client doesn't take.

        It waits for the client only if more than `ANSWER_AHEAD_BYTES` are in the file. Raises `OSError` if the
        client is gone or too slow, or all connections together have stored too much.
        """
        self.flush()
        if self._file_bytes > limits.ANSWER_AHEAD_BYTES:
            self._wait_for_client()
        view = memoryview(data)
        while view and not self._unsent:
            try:
                sent = self._socket.send(view)
            except BlockingIOError:
                break
            self.moved += sent
            view = view[sent:]
        if view:
            self._store(view)

    def sendfile(self, file: IO[bytes], offset: int = 0, count: int = 0) -> None:
        """Send a range of the file, or keep it for later; the descriptor is duplicated, so the file may be closed."""
        self._unsent.append(_FileSpan(os.dup(file.fileno()), offset, count))
        self.flush()

    def _store(self, view: memoryview) -> None:
        """Store data in memory, or beyond `BODY_MEMORY_BYTES` in a file.

        Raises `ConnectionResetError` if all connections together have stored too much.
        """
        if self._file is None and self._in_memory + len(view) <= limits.BODY_MEMORY_BYTES:
            self._in_memory += len(view)
            self._unsent.append(memoryview(bytes(view)))
            return
        if self._file is None:
            self._file = TemporaryFile(dir=settings.DATA_DIR)  # noqa: SIM115  open until all is sent
        try:
            self._connection.hold(len(view))
        except RefusedError as error:
            raise ConnectionResetError(errno.ECONNRESET, "Too much waits for slow clients.") from error
        offset = self._file.seek(0, os.SEEK_END)
        self._file.write(view)
        self._file.flush()
        self._file_bytes += len(view)
        last = self._unsent[-1] if self._unsent else None
        if (
            isinstance(last, _FileSpan)
            and last.offset + last.count == offset
            and last.number == self._file.fileno()
        ):
            last.count += len(view)
        else:
            self._unsent.append(_FileSpan(self._file.fileno(), offset, len(view)))

    def flush(self, max_bytes: int | None = None) -> None:
        """Send the stored bytes until the client takes no more, or about `max_bytes` were sent.

        Raises `OSError` if the client is gone, or a file became shorter.
        """
        stop_at = None if max_bytes is None else self.moved + max_bytes
        with suppress(BlockingIOError):
            while self._unsent and (stop_at is None or self.moved < stop_at):
                part = self._unsent[0]
                if isinstance(part, _FileSpan):
                    sent = os.sendfile(self.fileno(), part.number, part.offset, min(part.count, CHUNK_BYTES))
                    if not sent:
                        raise ConnectionResetError(errno.ECONNRESET, "The file is shorter than it was.")
                    part.offset += sent
                    part.count -= sent
                    if not part.count:
                        self._unsent.popleft()
                        self._close_span(part)
                else:
                    sent = self._socket.send(part)
                    self._unsent[0] = part[sent:]
                    if sent == len(part):
                        self._unsent.popleft()
                self.moved += sent
        if not self._unsent:
            self._in_memory = 0
            self._drop_file()

    def _wait_for_client(self) -> None:
        """Wait until the client has taken every stored byte, which is the only wait for a client.

        Without it, all of a very long answer would be stored for a slow client. Raises `ConnectionResetError` if
        the client is slower than `PACE_BYTES` in `PACE_SECONDS`.
        """
        ready = selectors.DefaultSelector()
        with ready:
            ready.register(self._socket, selectors.EVENT_WRITE)
            deadline, mark = monotonic() + limits.PACE_SECONDS, self.moved
            while self._unsent:
                if monotonic() > deadline:
                    raise ConnectionResetError(errno.ECONNRESET, "The answer is taken too slowly.")
                ready.select(1.0)
                self.flush()
                if self.moved - mark >= PACE_BYTES:
                    deadline, mark = monotonic() + limits.PACE_SECONDS, self.moved

    def _close_span(self, span: _FileSpan) -> None:
        """Close the span's descriptor, unless it is that of the file for stored bytes."""
        if self._file is None or span.number != self._file.fileno():
            os.close(span.number)

    def _drop_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._connection.let_go(self._file_bytes)
            self._file, self._file_bytes = None, 0

    def close(self) -> None:
        for part in self._unsent:
            if isinstance(part, _FileSpan):
                self._close_span(part)
        self._unsent.clear()
        self._drop_file()
        self._socket.close()
