"""Writes and erases files of the media folder: whole or not at all, under names that no other task is writing.

The sweep moves files into a trash within the folder, under the same name. A file comes back from it when a row that
names it is read. Erasing removes a file for good, from the trash too.
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
"""The trash within the media folder, which may be a separate volume, so that files are moved and never copied."""
PARTIAL_SUFFIX: Final = ".part"
"""The suffix of a file that is being written."""


def path_of(stored_path: str) -> Path:
    """Return the path of a file whose path a row stores, after moving it out of the trash if it is there."""
    path = Path(settings.MEDIA_ROOT) / stored_path
    if not path.exists():
        restore_from_trash(stored_path)
    return path


def open_file(stored_path: str) -> BinaryIO:
    """Open a file whose path a row stores. Raises `OSError` if the file is no longer there."""
    return path_of(stored_path).open("rb")


def write(stored_path: str, chunks: Iterable[bytes]) -> None:
    """Write the file that a row will name, so that it exists with all its bytes or not at all."""
    path = path_of(stored_path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # The name is unique, because another task that took the row over may be writing the same file.
    partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}{PARTIAL_SUFFIX}")
    try:
        with partial.open("wb") as file:
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            # The row that names the file outlives a power cut, so the bytes must outlive it too.
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def trash_folder() -> Path:
    return Path(settings.MEDIA_ROOT) / TRASH


def move_to_trash(stored_path: str, *, now: datetime) -> None:
    """Move a file into the trash, where its age starts again; after a kill it lies in either folder."""
    path, trashed = Path(settings.MEDIA_ROOT) / stored_path, trash_folder() / stored_path
    trashed.parent.mkdir(parents=True, exist_ok=True)
    try:
        # The age is set first: a file in the trash with its old age would be deleted by the next round.
        os.utime(path, (now.timestamp(), now.timestamp()))
        crash_point("retention.trashing")
        path.rename(trashed)
    except FileNotFoundError:
        # It was erased at this moment.
        return
    crash_point("retention.trashed")


def restore_from_trash(stored_path: str) -> None:
    """Move a file out of the trash, if it is there and no file has that path already."""
    path, trashed = Path(settings.MEDIA_ROOT) / stored_path, trash_folder() / stored_path
    if path.exists() or not trashed.is_file():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    crash_point("retention.returning")
    try:
        trashed.rename(path)
    except FileNotFoundError:
        # Another process has restored or erased it.
        return
    remove_if_empty(trashed.parent)


def erase(stored_path: str) -> None:
    """Remove a file for good, from the trash too."""
    for path in (Path(settings.MEDIA_ROOT) / stored_path, trash_folder() / stored_path):
        path.unlink(missing_ok=True)
        remove_if_empty(path.parent)


def erase_folder(folder: str) -> None:
    """Remove every file of an item's folder for good, whether a row names it or not.

    A file that is being written stays: its writer finds the row gone, and removes it.
    """
    for directory in (Path(settings.MEDIA_ROOT) / folder, trash_folder() / folder):
        for path in directory.iterdir() if directory.is_dir() else ():
            if path.suffix != PARTIAL_SUFFIX:
                path.unlink(missing_ok=True)
        remove_if_empty(directory)


def erase_files_of_items(items: Sequence[UUID]) -> None:
    """Remove the items' files for good, before their rows.

    A kill in between leaves rows that name no file, never a file that no row names.
    """
    for path in Asset.everywhere.filter(item_id__in=items).values_list("path", flat=True):
        erase(path)
    for item in items:
        erase_folder(item.hex)


def remove_if_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:
        # It holds something else, or is gone.
        return
