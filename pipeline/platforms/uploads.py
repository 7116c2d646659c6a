"""Reads an item's files part by part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.plugins import Refused

if TYPE_CHECKING:
    from pipeline.platforms.base import PayloadAsset


def part_of(asset: PayloadAsset, start: int, size: int) -> bytes:
    """Some bytes of the file, without holding the rest of it."""
    if asset.open is None:
        message = "This file has no bytes at hand."
        raise ValueError(message)
    with asset.open() as file:
        file.seek(start)
        content = file.read(size)
    if not content:
        message = "The file is shorter than it was; the item's files have changed."
        raise Refused(message, code="file_changed", field="assets", action="Retry it.")
    return content
