"""A file that was drawn, with its hash and what is told of it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True)
class RenderedAsset:
    """`sha256` in hexadecimal; `width` and `height` in pixels."""

    name: str
    mime_type: str
    width: int
    height: int
    bytes: bytes
    sha256: str
    alt_text: str
    role: str


def make_asset(
    data: bytes, *, name: str, mime_type: str, size: tuple[int, int], alt_text: str, role: str
) -> RenderedAsset:
    """The bytes as a file, with their hash."""
    digest = hashlib.sha256(data).hexdigest()
    return RenderedAsset(name, mime_type, *size, data, digest, alt_text, role)
