"""Reads an item's files in parts, and builds forms of them (`multipart/form-data`, RFC 7578)."""

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
    """Return at most `size` bytes of the file from `start`, without reading the rest.

    Raises `Refused` if the file has nothing there, `ValueError` if it has no `open`, and `OSError` if it can't be
    read.
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
    """A file of a form: the form's field, and the file's name, type and bytes."""

    field: str
    name: str
    mime_type: str
    content: bytes


def file_of(field: str, asset: PayloadAsset, index: int) -> UploadFile:
    """Return an item's file for a form's field; `index` names it if it has no name.

    Raises `TryLater` if our own storage can't read it, and `ValueError` if it has no `open`.
    """
    try:
        content = asset.read()
    except OSError as error:
        message = f"File {index + 1} of the item couldn't be read here."
        raise TryLater(message, code="file_unreadable") from error
    return UploadFile(field, asset.name or f"file{index}", asset.mime_type, content)


def build_multipart(fields: Mapping[str, str], files: Iterable[UploadFile] = ()) -> tuple[bytes, str]:
    """Return the form's body and content type; the same form always gives the same bytes."""
    parts: list[tuple[str, bytes | tuple[str, bytes, str]]] = []
    # The boundary follows from the content.
    digest = hashlib.sha256()
    for name, text in fields.items():
        value = text.encode("utf-8", "replace")
        digest.update(value)
        parts.append((name, value))
    for file in files:
        digest.update(file.content)
        parts.append((file.field, (file.name, file.content, file.mime_type)))
    return encode_multipart_formdata(parts, boundary=f"part-{digest.hexdigest()[:40]}")
