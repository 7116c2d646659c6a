"""The files of generated items, and uploads, at addresses that can't be guessed and can be revoked."""

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
"""The bytes behind an address never change; `revoked_at` is for those who ask anew."""
_PIECE: Final = 256 * 1024
"""Bytes of a file that are in memory at a time."""
_RANGE: Final = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


def media(request: HttpRequest, secret: str, name: str) -> HttpResponseBase:
    """The file or the range of it that is asked for; 404 for an address that was never given out, or was revoked."""
    if request.method not in {"GET", "HEAD"}:
        return error_response("method_not_allowed", headers={"Allow": "GET, HEAD"})
    # A workspace that was deleted is gone at once, however long its erasing takes.
    there = Asset.everywhere.filter(secret=secret, name=name, revoked_at=None, workspace__deleted_at=None)
    asset = there.first() or _upload(secret, name)
    if asset is None:
        raise NotFound
    path = files.path_of(asset.path)
    if not path.is_file():
        raise NotFound
    tag = f'"{asset.sha256}"'
    headers = {
        "ETag": tag,
        "Accept-Ranges": "bytes",
        "Cache-Control": f"public, max-age={MAX_AGE_SECONDS}, immutable",
        "Content-Disposition": "inline",
        "X-Content-Type-Options": "nosniff",
    }
    if _etag_matches(request.META.get("HTTP_IF_NONE_MATCH"), tag):
        return HttpResponse(status=304, headers=headers)
    asked = _requested_range(request, tag)
    start, end = _span(asked, asset.bytes) if asked else (0, asset.bytes)
    if start >= end:
        return _range_not_satisfiable(asset.bytes)
    if asked:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{asset.bytes}"
    headers["Content-Length"] = str(end - start)
    if request.method == "HEAD":
        return HttpResponse(content_type=asset.mime_type, headers=headers)
    response_options: dict[str, Any] = {
        "status": 206 if asked else 200,
        "content_type": asset.mime_type,
        "headers": headers,
    }
    span = FileRange(path, start, end)
    if end - start > _PIECE:
        return FileRangeResponse(span, **response_options)
    with closing(span):
        return HttpResponse(b"".join(span), **response_options)


def _upload(secret: str, name: str) -> Upload | None:
    """A picture, sound or video that somebody handed over. Never text: HTML from anybody would be a page of ours."""
    there = Upload.everywhere.filter(secret=secret, kind=name, workspace__deleted_at=None)
    found: Upload | None = there.exclude(kind="text").first()
    return found


def _etag_matches(header: str | None, tag: str) -> bool:
    return header is not None and bool(
        {"*", tag} & {one.strip().removeprefix("W/") for one in header.split(",")}
    )


def _requested_range(request: HttpRequest, tag: str) -> tuple[str, str] | None:
    """The one range that is asked for, as it was written.

    Several at once, and what isn't a range, are answered with the whole (RFC 9110, 14.2); so is a range of an older
    file.
    """
    written = _RANGE.fullmatch(request.META.get("HTTP_RANGE", "").strip())
    if written is None or request.method == "HEAD" or request.META.get("HTTP_IF_RANGE", tag) != tag:
        return None
    first, last = written.groups()
    is_backwards = first and last and int(last) < int(first)
    return None if is_backwards or not (first or last) else (first, last)


def _span(asked: tuple[str, str], size: int) -> tuple[int, int]:
    """Where to begin and before which byte to end; empty for a range that lies outside."""
    first, last = asked
    if not first:
        return max(size - int(last), 0) if int(last) else size, size
    return int(first), min(int(last) + 1, size) if last else size


def _range_not_satisfiable(size: int) -> HttpResponse:
    message = f"The file has {size} bytes; the range lies outside."
    response = error_response(
        "invalid_request",
        (Detail("Range", "range_not_satisfiable", message),),
        headers={"Content-Range": f"bytes */{size}"},
    )
    response.status_code = 416
    return response


class FileRange:
    """A part of a file, piece by piece; the answer closes it, sent to its end or not."""

    def __init__(self, path: Path, start: int, end: int) -> None:
        try:
            self.file = path.open("rb")
        except FileNotFoundError as error:
            # It was forgotten at this moment.
            raise NotFound from error
        self.file.seek(start)
        self._left = end - start

    def __iter__(self) -> Iterator[bytes]:
        while piece := self.read(_PIECE):
            yield piece

    def read(self, size: int) -> bytes:
        piece = self.file.read(min(size, self._left))
        self._left -= len(piece)
        return piece

    def fileno(self) -> int:
        """Of the file, which stands at the part's beginning."""
        return self.file.fileno()

    def close(self) -> None:
        self.file.close()


class FileRangeResponse(StreamingHttpResponse):
    """The server sends the file's bytes by itself, so that a slow client costs neither a thread nor a copy."""

    block_size = _PIECE

    def __init__(self, span: FileRange, **response_options: Any) -> None:
        super().__init__(span, **response_options)
        # Django gives it the answer's own `close()`; the file's must stay, or nothing would close it.
        self.file_to_stream = span
