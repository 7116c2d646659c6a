"""Files of the media folder: written whole or not at all, under names that nobody else is writing."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from django.conf import settings

if TYPE_CHECKING:
    from collections.abc import Iterable


def path_of(kept: str) -> Path:
    """Where a file lies that a row names."""
    return Path(settings.MEDIA_ROOT) / kept


def open_kept(kept: str) -> BinaryIO:
    return path_of(kept).open("rb")


def write(kept: str, chunks: Iterable[bytes]) -> None:
    """Write the file that a row will name; it is there with all its bytes, or not at all."""
    path = path_of(kept)
    path.parent.mkdir(parents=True, exist_ok=True)
    # A name of its own: another hand that took the row over may be writing the same file.
    partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
    try:
        with partial.open("wb") as file:
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            # The row that names it outlives a power cut; so must the bytes.
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
