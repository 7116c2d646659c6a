"""Collects one HTTP request until it is complete, within bounds; gunicorn then parses the same bytes.

The module finds where head and body end, and has the answers to requests that can't be completed.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Final

from django.conf import settings
from gunicorn.http.unreader import Unreader

from config.core import errors, limits
from config.core.errors import Detail
from config.core.ids import uuid7
from config.core.json_encoding import dump
from pipeline import limits as pipeline_limits

if TYPE_CHECKING:
    from typing import IO

CHUNK_BYTES: Final = 256 * 1024
"""Bytes that the loop reads or sends before it serves the other connections."""
REQUEST_LINE_BYTES: Final = 8190
"""The most that gunicorn can be set to."""
_MIN_CHUNK_BYTES: Final = 8192
"""The fewest bytes that gunicorn's parser gets at once, if so many are there."""
_MAX_CHUNK_LINE_BYTES: Final = 8190
"""Bytes of a chunk's size line or of a trailer; a longer line ends the request, which gunicorn then refuses."""
_CHUNK_SIZE: Final = re.compile(rb"[0-9a-fA-F]{1,12}")
_BARE_LINE_END: Final = re.compile(rb"(?<!\r)\n")
"""Matches a line feed without a carriage return, which is malformed in a head."""
_HEAD_END: Final = b"\r\n\r\n"
_REFUSAL_RESPONSE_HEAD: Final = (
    "HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n"
    "X-Request-Id: {request_id}\r\n{extra_headers}Connection: close\r\n\r\n"
)
_TRY_AGAIN: Final = frozenset(
    {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.REQUEST_TIMEOUT}
)
_REFUSALS: Final = {
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
    HTTPStatus.REQUEST_URI_TOO_LONG: (
        "invalid_request",
        "address_too_long",
        f"The first line of a request may have {REQUEST_LINE_BYTES} bytes.",
    ),
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: (
        "invalid_request",
        "headers_too_large",
        "The request has too many headers, or one that is too long.",
    ),
    HTTPStatus.INTERNAL_SERVER_ERROR: (
        "internal_error",
        "internal_error",
        errors.CODES["internal_error"].message,
    ),
}
_MALFORMED: Final = ("invalid_request", "malformed_request", "This is no HTTP request that can be read.")


def refusal_bytes(status: HTTPStatus, *, request_id: str = "") -> bytes:
    """Return an error response of the usual form, which needs no thread; by default it has an id of its own."""
    error, code, message = _REFUSALS.get(status, _MALFORMED)
    body = dump(errors.error_body(error, [Detail(None, code, message)]))
    extra_headers = "Retry-After: 1\r\n" if status in _TRY_AGAIN else ""
    head = _REFUSAL_RESPONSE_HEAD.format(
        status=status,
        length=len(body),
        request_id=request_id or f"req_{uuid7().hex}",
        extra_headers=extra_headers,
    )
    return head.encode() + body


class RefusedError(Exception):
    """Raised for a request that the loop refuses with a status, without a thread."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status)
        self.status = status


class Chunks:
    """Finds the end of a chunked body; gunicorn checks later whether the chunks are well formed."""

    def __init__(self) -> None:
        self._line = b""
        self._skip = 0
        self._is_trailer = False

    def end(self, data: bytes) -> int | None:
        """Return how many of these bytes belong to the body if it ends in them, else `None`.

        A body that is malformed ends at its first wrong line.
        """
        position = 0
        while position < len(data):
            if self._skip:
                step = min(self._skip, len(data) - position)
                self._skip -= step
                position += step
                continue
            line_end = data.find(b"\n", position) + 1
            self._line += data[position : line_end or len(data)]
            if len(self._line) > _MAX_CHUNK_LINE_BYTES:
                return len(data)
            if not line_end:
                return None
            position = line_end
            line, self._line = self._line.strip(), b""
            if self._is_trailer:
                if not line:
                    return position
                continue
            size = _CHUNK_SIZE.match(line)
            if size is None:
                return position
            if int(size[0], 16) == 0:
                self._is_trailer = True
            else:
                self._skip = int(size[0], 16) + len(b"\r\n")
        return None


class IncomingRequest:
    """A request that is being received; `kept` is a file with its bytes and those of the next request."""

    def __init__(self) -> None:
        self.kept: IO[bytes] = SpooledTemporaryFile(  # noqa: SIM115  open until the answer is there
            limits.BODY_MEMORY_BYTES, dir=str(settings.DATA_DIR)
        )
        self.bytes = 0
        self.has_head = False
        self.expects_continue = False
        self.is_cut = False
        """True if the rest of the request isn't read, so that the connection can't be used again."""
        self.length: int | None = 0
        """The announced length of the body in bytes, or `None` if it is chunked."""
        self.has_certain_end = False
        """True if gunicorn has found the same length, so that `end` is right."""
        self.end = 0
        """The offset in `kept` at which the next request begins, if the end is certain."""
        self._head = bytearray()
        self._missing = 0
        self._chunks: Chunks | None = None

    def take(self, data: bytes) -> bool:
        """Add bytes, and return whether the request is complete, or cut because it will be refused.

        Raises `RefusedError` (431) if the head is too long, and `OSError` if the bytes can't be stored.
        """
        self.kept.write(data)
        self.bytes += len(data)
        if not self.has_head:
            # The end may lie across the old and the new bytes.
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
        """True if only a part of the head has arrived."""
        return bool(self.bytes) and not self.has_head

    def _frame(self, head: bytes) -> None:
        """Read from the head how long the body is, and whether the client waits for 100 Continue.

        A body whose length is in doubt, or too large for every address, is cut: gunicorn parses the same head
        afterwards and refuses the former, the application the latter.
        """
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
            self.is_cut = not is_number or self._missing > pipeline_limits.UPLOAD_BODY_BYTES


class ArrivedRequest(Unreader):
    """Gives gunicorn's parser the bytes of one complete request, without waiting for others."""

    kept: IO[bytes] | None = None

    def chunk(self, size_hint: int | None = None) -> bytes:
        if self.kept is None:
            return b""
        return self.kept.read(min(max(size_hint or 0, _MIN_CHUNK_BYTES), CHUNK_BYTES))
