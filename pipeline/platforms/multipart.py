"""A form with files, as `multipart/form-data` (RFC 7578)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.plugins import TryLater

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pipeline.platforms.base import PayloadAsset


@dataclass(frozen=True)
class File:
    field: str
    name: str
    mime_type: str
    content: bytes


def file_of(field: str, asset: PayloadAsset, index: int) -> File:
    """An item's file as a form's; raises `TryLater` where our own storage can't give it."""
    try:
        content = asset.read()
    except OSError as error:
        message = f"File {index + 1} of the item couldn't be read here."
        raise TryLater(message, code="file_unreadable") from error
    return File(field, asset.name or f"file{index}", asset.mime_type, content)


def multipart(fields: Mapping[str, str], files: Iterable[File] = ()) -> tuple[bytes, str]:
    """The body and its content type. The boundary follows from the content: the same form, the same bytes."""
    parts = [
        (
            f'Content-Disposition: form-data; name="{_quoted(name)}"\r\n\r\n'.encode(),
            value.encode("utf-8", "replace"),
        )
        for name, value in fields.items()
    ]
    parts += [
        (
            f'Content-Disposition: form-data; name="{_quoted(one.field)}"; filename="{_quoted(one.name)}"\r\n'
            f"Content-Type: {one.mime_type}\r\n\r\n".encode(),
            one.content,
        )
        for one in files
    ]
    boundary = _boundary(parts)
    body = b"".join(b"--%b\r\n%b%b\r\n" % (boundary, head, content) for head, content in parts)
    return body + b"--%b--\r\n" % boundary, f"multipart/form-data; boundary={boundary.decode()}"


def _boundary(parts: list[tuple[bytes, bytes]]) -> bytes:
    digest = hashlib.sha256()
    for head, content in parts:
        digest.update(head)
        digest.update(content)
    while True:
        boundary = b"part-" + digest.hexdigest()[:40].encode()
        if not any(boundary in content for _, content in parts):
            return boundary
        digest.update(boundary)


def _quoted(name: str) -> str:
    """As browsers write it: a line end or a quotation mark would begin another header."""
    return name.replace("\r", "%0D").replace("\n", "%0A").replace('"', "%22")
