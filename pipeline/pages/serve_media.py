"""Serves the files of generated items, and uploads, at addresses that can't be guessed and can be revoked."""

from __future__ import annotations

import re
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from django.http import HttpResponse, StreamingHttpResponse

from config.core.errors import Detail, NotFound
from config.core.middleware import error_response
from pipeline.media import files
from pipeline.models import Asset, Upload

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

MAX_AGE_SECONDS: Final = 31_536_000
"""A year, because the bytes behind an address never change. `revoked_at` takes effect for new requests only."""
_CHUNK_BYTES: Final = 256 * 1024
"""The bytes of a file that are read into memory at a time."""
# Matches `bytes=0-499`, `bytes=500-` and `bytes=-500`, and also `bytes=-`, which is refused later.
_RANGE: Final = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


def media(request: HttpRequest, secret: str, name: str) -> HttpResponseBase:
    """Return the file, or the requested range of it (206).

    The response is a 304 if the client has the file, a 405 for methods other than GET and HEAD, and a 416 for a range
    outside of the file. Raises `NotFound` if the address was never given out or was revoked, its workspace was deleted,
    or the file is missing.
    """
    if request.method not in {"GET", "HEAD"}:
        return error_response("method_not_allowed", headers={"Allow": "GET, HEAD"})
    # A deleted workspace's files are gone at once, however long it takes to purge them.
    assets = Asset.everywhere.filter(secret=secret, name=name, revoked_at=None, workspace__deleted_at=None)
    asset = assets.first() or _find_upload(secret, name)
    if asset is None:
        raise NotFound
    path = files.path_of(asset.path)
    if not path.is_file():
        raise NotFound
    etag = f'"{asset.sha256}"'
    headers = {
        "ETag": etag,
        "Accept-Ranges": "bytes",
        "Cache-Control": f"public, max-age={MAX_AGE_SECONDS}, immutable",
        "Content-Disposition": "inline",
        "X-Content-Type-Options": "nosniff",
    }
    if _etag_matches(request.META.get("HTTP_IF_NONE_MATCH"), etag):
        return HttpResponse(status=304, headers=headers)
    requested_range = _requested_range(request, etag)
    start, end = _byte_span(requested_range, asset.bytes) if requested_range else (0, asset.bytes)
    if start >= end:
        return _range_not_satisfiable(asset.bytes)
    if requested_range:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{asset.bytes}"
    headers["Content-Length"] = str(end - start)
    if request.method == "HEAD":
        return HttpResponse(content_type=asset.mime_type, headers=headers)
    response_options: dict[str, Any] = {
        "status": 206 if requested_range else 200,
        "content_type": asset.mime_type,
        "headers": headers,
    }
    file_range = FileRange(path, start, end)
    if end - start > _CHUNK_BYTES:
        return FileRangeResponse(file_range, **response_options)
    with closing(file_range):
        return HttpResponse(b"".join(file_range), **response_options)


def _find_upload(secret: str, name: str) -> Upload | None:
    """Return the uploaded image, video or audio file, or `None` if there is none at this address.

    Text is never served, because uploaded HTML would be a page on our own origin.
    """
    uploads = Upload.everywhere.filter(secret=secret, kind=name, workspace__deleted_at=None)
    upload: Upload | None = uploads.exclude(kind="text").first()
    return upload


def _etag_matches(header: str | None, etag: str) -> bool:
    """Return whether an `If-None-Match` header names the tag, weak or strong, or contains `*`."""
    return header is not None and bool(
        {"*", etag} & {value.strip().removeprefix("W/") for value in header.split(",")}
    )


def _requested_range(request: HttpRequest, etag: str) -> tuple[str, str] | None:
    """Return first and last byte as the `Range` header has them; one of them may be empty.

    `None` means the whole file: for several ranges, for an invalid range (RFC 9110, 14.2), for a HEAD request, and if
    `If-Range` names another version of the file.
    """
    match = _RANGE.fullmatch(request.META.get("HTTP_RANGE", "").strip())
    if match is None or request.method == "HEAD" or request.META.get("HTTP_IF_RANGE", etag) != etag:
        return None
    first, last = match.groups()
    is_backwards = first and last and int(last) < int(first)
    return None if is_backwards or not (first or last) else (first, last)


def _byte_span(requested_range: tuple[str, str], size: int) -> tuple[int, int]:
    """Return the first byte and the one after the last; the range is empty if it lies outside of the file."""
    first, last = requested_range
    if not first:
        # `bytes=-500` requests the last 500 bytes, and `bytes=-0` nothing, which can't be satisfied.
        return max(size - int(last), 0) if int(last) else size, size
    return int(first), min(int(last) + 1, size) if last else size


def _range_not_satisfiable(size: int) -> HttpResponse:
    """Return a 416 response that states the file's size in bytes."""
    message = f"The file has {size} bytes; the range lies outside."
    response = error_response(
        "invalid_request",
        (Detail("Range", "range_not_satisfiable", message),),
        headers={"Content-Range": f"bytes */{size}"},
    )
    response.status_code = 416
    return response


class FileRange:
    """Iterates over a part of a file in chunks. Opening it raises `NotFound` if the file is gone.

    The response closes it, even if it wasn't sent to the end.
    """

    def __init__(self, path: Path, start: int, end: int) -> None:
        try:
            self.file = path.open("rb")
        except FileNotFoundError as error:
            # The file was deleted after the view had looked for it.
            raise NotFound from error
        self.file.seek(start)
        self._bytes_left = end - start

    def __iter__(self) -> Iterator[bytes]:
        while chunk := self.read(_CHUNK_BYTES):
            yield chunk

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes at most, or an empty value at the end of the part."""
        chunk = self.file.read(min(size, self._bytes_left))
        self._bytes_left -= len(chunk)
        return chunk

    def fileno(self) -> int:
        """Return the file's descriptor, which is positioned at the start of the part."""
        return self.file.fileno()

    def close(self) -> None:
        """Close the file."""
        self.file.close()


class FileRangeResponse(StreamingHttpResponse):
    """Lets the server send the file's bytes through WSGI's file wrapper.

    So a slow client costs neither a thread nor a copy in memory.
    """

    block_size = _CHUNK_BYTES

    def __init__(self, span: FileRange, **response_options: Any) -> None:
        super().__init__(span, **response_options)
        # Django replaces this object's `close()` by the response's, so it mustn't be the open file itself: nothing
        # would close that then.
        self.file_to_stream = span
