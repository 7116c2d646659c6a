"""Reads the body of a response within a limit of size, and decompresses it."""

from __future__ import annotations

import http.client
import zlib
from typing import TYPE_CHECKING

from config.core.http_client.errors import BadResponse, ResponseTooLarge

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK_BYTES = 64 * 1024
"""Bytes that are read or decompressed at once."""
ENCODED_CHUNK_BYTES = 16 * 1024
"""Bytes of a compressed body that are read at once; fewer, because zlib copies the rest at every step."""
ENCODING_OVERHEAD_BYTES = 64 * 1024
"""Bytes that gzip may add to a body that doesn't shrink.

Without a limit on the encoded side, an endless row of empty gzip members would never reach the decoded limit.
"""


def read_body(response: http.client.HTTPResponse, *, max_bytes: int, truncate: bool) -> tuple[bytes, bool]:
    """Return the decoded body, and whether it was cut at `max_bytes`; memory stays within the limit.

    Raises `ResponseTooLarge` if the body exceeds the limit without `truncate`, or its compressed bytes exceed it
    by more than `ENCODING_OVERHEAD_BYTES`. Raises `BadResponse` for an unknown encoding,
    `http.client.HTTPException` for an incomplete body, and `zlib.error` for a damaged one.
    """
    encoding = response.headers.get("Content-Encoding", "").strip().lower()
    if encoding in ("", "identity"):
        if not truncate and response.length is not None and response.length > max_bytes:
            raise _too_large(max_bytes)
        pieces = _read_plain(response, max_bytes)
    else:
        pieces = _read_encoded(response, encoding, max_bytes)
    body = bytearray()
    for piece in pieces:
        body += piece[: max_bytes - len(body) + 1]
        if len(body) > max_bytes:
            if truncate:
                return bytes(body[:max_bytes]), True
            raise _too_large(max_bytes)
    return bytes(body), False


def _too_large(max_bytes: int) -> ResponseTooLarge:
    message = f"The response is larger than {max_bytes} bytes."
    return ResponseTooLarge(message, may_have_reached=True)


def _read_plain(response: http.client.HTTPResponse, max_bytes: int) -> Iterator[bytes]:
    received = 0
    # At most one byte more than allowed is asked for: a slow server might not have a whole chunk.
    while piece := response.read(min(CHUNK_BYTES, max_bytes - received + 1)):
        received += len(piece)
        yield piece
    _check_complete(response)


def _read_encoded(response: http.client.HTTPResponse, encoding: str, max_bytes: int) -> Iterator[bytes]:
    """Yield the decompressed pieces of a body. Raises as `read_body` says."""
    inflater: _Inflater | None = None
    received = 0
    while piece := response.read(ENCODED_CHUNK_BYTES):
        # Made at the first byte: the answer to a HEAD names an encoding and has no body.
        if inflater is None:
            inflater = _Inflater(encoding, piece)
        yield from inflater.feed(piece)
        received += len(piece)
        if received > max_bytes + ENCODING_OVERHEAD_BYTES:
            raise _too_large(max_bytes)
    _check_complete(response)
    if inflater is not None:
        yield inflater.finish()


def _check_complete(response: http.client.HTTPResponse) -> None:
    """Raise `http.client.IncompleteRead` if the body is shorter than announced."""
    # When read in pieces, http.client says nothing about a connection that closed before Content-Length.
    if response.length:
        partial = b""
        raise http.client.IncompleteRead(partial, response.length)


class _Inflater:
    """Decompresses gzip or deflate in pieces of bounded size."""

    def __init__(self, encoding: str, first: bytes) -> None:
        if encoding in ("gzip", "x-gzip"):
            self._wbits = 16 + zlib.MAX_WBITS
        elif encoding == "deflate":
            # By the standard deflate means zlib's format; some servers leave its two header bytes out.
            is_zlib = first[0] & 15 == zlib.DEFLATED and int.from_bytes(first[:2]) % 31 == 0
            self._wbits = zlib.MAX_WBITS if is_zlib else -zlib.MAX_WBITS
        else:
            message = "The server used a content encoding that was not offered."
            raise BadResponse(message, may_have_reached=True)
        self._engine = zlib.decompressobj(self._wbits)
        self._is_over = False

    def feed(self, encoded: bytes) -> Iterator[bytes]:
        """Yield the decompressed bytes in bounded pieces; bytes behind the end of the data are ignored."""
        while encoded and not self._is_over:
            if self._engine.eof:
                # A gzip file may be several in a row; anything else behind the end is padding. Only the first
                # byte of the mark is looked at, because the second may not have come yet.
                if not (self._wbits > zlib.MAX_WBITS and encoded.startswith(b"\x1f")):
                    self._is_over = True
                    return
                self._engine = zlib.decompressobj(self._wbits)
            yield self._engine.decompress(encoded, CHUNK_BYTES)
            encoded = self._engine.unused_data if self._engine.eof else self._engine.unconsumed_tail

    def finish(self) -> bytes:
        """Return the last decoded bytes. Raises `http.client.HTTPException` if the data ended too early."""
        # With no input left behind, flush() has no more than the rest of one match to give.
        remainder = self._engine.flush()
        if not self._engine.eof:
            message = "compressed data that end too early"
            raise http.client.HTTPException(message)
        return remainder
