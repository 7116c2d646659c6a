"""Files of the media folder: written whole or not at all, under names that nobody else is writing.

What the sweep takes away rests in a trash beside them, under the same name, and comes back when a row that names it is
read. Erasing takes a file away for good, out of the trash too.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from django.conf import settings

from config.core.crash_points import crash_point
from pipeline.models import Asset

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime
    from uuid import UUID

TRASH: Final = ".trash"
"""In the media folder, which may be a volume of its own: what goes there is moved, never copied."""
PART: Final = ".part"


def path_of(kept: str) -> Path:
    """Where a file lies that a row names."""
    path = Path(settings.MEDIA_ROOT) / kept
    if not path.exists():
        bring_back(kept)
    return path


def open_file(kept: str) -> BinaryIO:
    return path_of(kept).open("rb")


def write(kept: str, chunks: Iterable[bytes]) -> None:
    """Write the file that a row will name; it is there with all its bytes, or not at all."""
    path = path_of(kept)
    path.parent.mkdir(parents=True, exist_ok=True)
    # A name of its own: another task that took the row over may be writing the same file.
    partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}{PART}")
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


def trash() -> Path:
    return Path(settings.MEDIA_ROOT) / TRASH


def throw_away(kept: str, *, now: datetime) -> None:
    """Into the trash; its time there begins now. Killed in the middle, the file is at one place or the other."""
    path, resting = Path(settings.MEDIA_ROOT) / kept, trash() / kept
    resting.parent.mkdir(parents=True, exist_ok=True)
    try:
        # First: in the trash with its own age it would be deleted by the next round.
        os.utime(path, (now.timestamp(), now.timestamp()))
        crash_point("retention.trashing")
        path.rename(resting)
    except FileNotFoundError:
        # Erased at this moment.
        return
    crash_point("retention.trashed")


def bring_back(kept: str) -> None:
    """Out of the trash, if it is there and nothing has taken its place."""
    path, resting = Path(settings.MEDIA_ROOT) / kept, trash() / kept
    if path.exists() or not resting.is_file():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    crash_point("retention.returning")
    try:
        resting.rename(path)
    except FileNotFoundError:
        # Somebody else has brought it back, or erased it.
        return
    remove_if_empty(resting.parent)


def erase(kept: str) -> None:
    """For good."""
    for path in (Path(settings.MEDIA_ROOT) / kept, trash() / kept):
        path.unlink(missing_ok=True)
        remove_if_empty(path.parent)


def erase_all_of(folder: str) -> None:
    """Every file of an item's folder for good, whether a row names it or not."""
    for home in (Path(settings.MEDIA_ROOT) / folder, trash() / folder):
        for path in home.iterdir() if home.is_dir() else ():
            # What somebody is writing at this moment goes when its writer finds the row gone.
            if path.suffix != PART:
                path.unlink(missing_ok=True)
        remove_if_empty(home)


def erase_of_items(items: Sequence[UUID]) -> None:
    """Before their rows: a kill in between leaves rows that name no file, never a file that no row names."""
    for path in Asset.everywhere.filter(item_id__in=items).values_list("path", flat=True):
        erase(path)
    for item in items:
        erase_all_of(item.hex)


def remove_if_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:
        # It holds something else, or is gone.
        return
