"""Reads an item's files as platforms take them: in parts, or in a form (`multipart/form-data`, RFC 7578)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from urllib3.filepost import encode_multipart_formdata

from pipeline.plugins import Refused, TryLater

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pipeline.platforms.payload_types import PayloadAsset


def part_of(asset: PayloadAsset, start: int, size: int) -> bytes:
    """Return some bytes of the file, without reading the rest.

    Raises `Refused` where the file has become shorter.
    """
    if asset.open is None:
        message = "This file's content isn't available."
        raise ValueError(message)
    with asset.open() as file:
        file.seek(start)
        content = file.read(size)
    if not content:
        message = "The file is shorter than it was; the item's files have changed."
        raise Refused(message, code="file_changed", field="assets", action="Retry it.")
    return content


@dataclass(frozen=True)
class UploadFile:
    """A file of a form: its field, name, type and bytes."""

    field: str
    name: str
    mime_type: str
    content: bytes


def file_of(field: str, asset: PayloadAsset, index: int) -> UploadFile:
    """Return an item's file as a form's. Raises `TryLater` where our own storage can't give it."""
    try:
        content = asset.read()
    except OSError as error:
        message = f"File {index + 1} of the item couldn't be read here."
        raise TryLater(message, code="file_unreadable") from error
    return UploadFile(field, asset.name or f"file{index}", asset.mime_type, content)


def build_multipart(fields: Mapping[str, str], files: Iterable[UploadFile] = ()) -> tuple[bytes, str]:
    """Return the form's body and content type.

    The boundary follows from the content: the same form gives the same bytes.
    """
    parts: list[tuple[str, bytes | tuple[str, bytes, str]]] = []
    digest = hashlib.sha256()
    for name, text in fields.items():
        value = text.encode("utf-8", "replace")
        digest.update(value)
        parts.append((name, value))
    for file in files:
        digest.update(file.content)
        parts.append((file.field, (file.name, file.content, file.mime_type)))
    return encode_multipart_formdata(parts, boundary=f"part-{digest.hexdigest()[:40]}")
