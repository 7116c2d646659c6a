"""Opens urllib3's connections under the guard, and holds each of their exchanges to one deadline."""

from __future__ import annotations

import http.client
import io
import ssl
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Final

from urllib3.connection import HTTPConnection, HTTPSConnection

from config.core.http_client.body import CHUNK_BYTES
from config.core.http_client.errors import ConnectFailed, TimedOut
from config.core.http_client.guard import open_socket

if TYPE_CHECKING:
    import socket

    from _typeshed import WriteableBuffer
    from urllib3 import HTTPConnectionPool

    from config.core.http_client.guard import Deadline, Host, Policy
    from config.core.http_client.messages import TransferLimits

IDLE_SECONDS: Final = 5.0
"""Seconds that a connection may be idle; common servers close it only later."""
MAX_AGE_SECONDS: Final = 60.0
"""Seconds after which a connection isn't reused, so that name and certificate are checked again."""
MAX_INTERIM_RESPONSES: Final = 8
"""Responses with a 1xx status that may come before the final one."""


class _Receiver(io.RawIOBase):
    """The receiving side of a socket; each receive gets only the time left until the deadline.

    A header that drips in takes many receives, so a time-out that is set once would hold for each, not for all.
    """

    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        super().__init__()
        self._sock = sock
        # Keeps the socket open until the answer is read, although http.client closes it before.
        self._raw = sock.makefile("rb", buffering=0)
        self._deadline = deadline
        self.has_received = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int | None:
        self._sock.settimeout(self._deadline.left())
        count = self._raw.readinto(buffer)
        self.has_received = self.has_received or bool(count)
        return count

    def readall(self) -> bytes:
        # http.client takes a chunk size of -1 at its word and would read without end into memory.
        message = "a chunk of negative size"
        raise http.client.HTTPException(message)

    def close(self) -> None:
        self._raw.close()
        super().close()

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Return the file that http.client asks a socket for."""
        return io.BufferedReader(self, CHUNK_BYTES)


class _FinalResponse(http.client.HTTPResponse):
    """The response behind the interim ones, of which http.client itself skips only 100."""

    def begin(self) -> None:
        for _ in range(MAX_INTERIM_RESPONSES):
            super().begin()
            if self.status >= http.HTTPStatus.OK:
                return
            # Otherwise the next head wouldn't be read.
            self.headers = None  # type: ignore[assignment]
        message = "too many interim answers"
        raise http.client.HTTPException(message)


class GuardedConnection(HTTPConnection):
    """A connection that is opened only to an allowed address; `begin` comes before each request."""

    pool: HTTPConnectionPool | None = None
    """The pool that it was taken from, while it is used."""
    _limits: TransferLimits
    _receiver: _Receiver | None = None
    _opened_at = _idle_since = 0.0

    def begin(self, host: Host, limits: TransferLimits, policy: Policy) -> None:
        """Set the limits of the next exchange, and connect unless the connection is open.

        Raises as `open_socket` does, and `ConnectFailed` or `TimedOut` if TLS fails.
        """
        self._checked_host, self._limits, self._policy = host, limits, policy
        self._receiver, self._unsent = None, bytearray()
        if self.is_closed:
            self.connect()

    def _new_conn(self) -> socket.socket:
        sock = open_socket(
            self._checked_host,
            self.port,
            deadline=self._limits.deadline,
            connect_timeout=self._limits.connect_timeout,
            policy=self._policy,
        )
        self._opened_at = monotonic()
        return sock

    def send(self, data: bytes) -> None:  # type: ignore[override]
        """Put the data behind those that `receive_head` sends, so that head and body leave together."""
        self._unsent += data

    def receive_head(self) -> http.client.HTTPResponse:
        """Send the request and return the response to it, its body not yet read.

        A connection that the server closes meanwhile doesn't end it. Raises `TimeoutError` after the deadline.
        """
        with memoryview(self._unsent) as view, suppress(ConnectionError):
            # A server may answer (413, 401) and close before it has read everything: the answer still counts.
            # If there is none, reading it will fail.
            sent = 0
            while sent < len(view):
                self.sock.settimeout(self._limits.deadline.left())
                sent += self.sock.send(view[sent : sent + CHUNK_BYTES])
        # A pool keeps the connection, also when it is closed.
        self._unsent = bytearray()
        # Not urllib3's response, which takes a compressed body that ends too early for a whole one. Without it an
        # exchange costs a fifth less, too.
        return http.client.HTTPConnection.getresponse(self)

    def response_class(self, sock: socket.socket, method: str) -> http.client.HTTPResponse:  # type: ignore[override]
        """Return the response that http.client reads, from the receiver instead of the socket."""
        self._receiver = _Receiver(sock, self._limits.deadline)
        return _FinalResponse(self._receiver, method=method)  # type: ignore[arg-type]

    @property
    def has_received(self) -> bool:
        """True once any byte of the answer has arrived."""
        return self._receiver is not None and self._receiver.has_received

    def drop(self) -> None:
        """Close the connection, also below an answer that isn't read to its end."""
        self.close()
        if self._receiver is not None:
            self._receiver.close()

    def rest(self) -> None:
        """Begin to be idle."""
        self._receiver = None
        self._idle_since = monotonic()

    @property
    def is_fresh(self) -> bool:
        """Return whether the connection is neither idle for too long nor too old."""
        now = monotonic()
        return now - self._idle_since < IDLE_SECONDS and now - self._opened_at < MAX_AGE_SECONDS

    @property
    def is_connected(self) -> bool:
        """Return whether the connection is fresh, and the other side has neither closed it nor sent anything."""
        return self.is_fresh and super().is_connected


class GuardedTlsConnection(GuardedConnection, HTTPSConnection):
    def connect(self) -> None:
        try:
            super().connect()
        except TimeoutError as error:
            message = f"{self.host} did not finish the TLS handshake in time."
            raise TimedOut(message) from error
        except ssl.SSLCertVerificationError as error:
            message = f"The certificate of {self.host} could not be verified: {error.verify_message}."
            raise ConnectFailed(message) from error
        except (OSError, ValueError) as error:
            # A name that can't be sent to the server is a ValueError.
            message = f"No TLS connection to {self.host} could be made."
            raise ConnectFailed(message) from error

    def _new_conn(self) -> socket.socket:
        self.sock = super()._new_conn()
        # OpenSSL's handshake takes the socket's time-out as the limit of the whole, not of each read.
        self.sock.settimeout(self._limits.deadline.left())
        return self.sock
