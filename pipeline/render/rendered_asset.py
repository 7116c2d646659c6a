"""Holds a rendered file with its hash and its description."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True)
class RenderedAsset:
    """A rendered file. `sha256` is in hexadecimal, `width` and `height` are in pixels."""

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
    """Return the bytes as an asset, with their hash; `size` is width and height in pixels."""
    digest = hashlib.sha256(data).hexdigest()
    return RenderedAsset(name, mime_type, *size, data, digest, alt_text, role)
