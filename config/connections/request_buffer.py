"""Collects one HTTP request until it is whole, within bounds; gunicorn then parses the same bytes.

It finds where head and body end, and answers a request that can't become whole.
"""

from __future__ import annotations

import json
import re
from http import HTTPStatus
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Final

from django.conf import settings
from gunicorn.http.unreader import Unreader

from config.core import errors, limits
from config.core.errors import Detail
from pipeline import limits as pipeline_limits

if TYPE_CHECKING:
    from typing import IO

PIECE: Final = 256 * 1024
"""Bytes that the loop reads or sends before it looks after the other connections."""
_SMALL_PIECE: Final = 8192
_CHUNK_LINE_BYTES: Final = 8190
_CHUNK_SIZE: Final = re.compile(rb"[0-9a-fA-F]{1,12}")
_BARE_LINE_END: Final = re.compile(rb"(?<!\r)\n")
_HEAD_END: Final = b"\r\n\r\n"
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


def refusal_bytes(status: HTTPStatus) -> bytes:
    """An answer of the form that every error has, written without a thread."""
    error, code, message = _SAID.get(status, _NO_HTTP)
    body = json.dumps(errors.error_body(error, [Detail(None, code, message)]))
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


class IncomingRequest:
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
            self.is_cut = not is_number or self._missing > pipeline_limits.UPLOAD_BODY_BYTES


class ArrivedRequest(Unreader):
    """Hands gunicorn's parser the bytes of one whole request; there are no others to wait for."""

    kept: IO[bytes] | None = None

    def chunk(self, size_hint: int | None = None) -> bytes:
        if self.kept is None:
            return b""
        return self.kept.read(min(max(size_hint or 0, _SMALL_PIECE), PIECE))
