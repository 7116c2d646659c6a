"""Files of the media folder that nobody needs any more: what a killed process was writing, what no row names."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.conf import settings

from config.ground import limits
from config.ground.crash import crash_point
from pipeline.models import Asset, GeneratedItem, Upload

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime, timedelta

MARK: Final = ".swept"
"""Its age says when the folder was last walked, by whichever process."""
EVERY_SECONDS: Final = 24 * 3600.0
FOLDERS_AT_ONCE: Final = 200
BEING_MADE: Final = ("queued", "generating")
_folders: Final[list[Path]] = []
_lock: Final = threading.Lock()


def sweep_some(now: datetime) -> int:
    """Walk on through some folders; returns how many, 0 when the round is over. A round begins once a day."""
    with _lock:
        if not _folders:
            _folders.extend(_begin(now))
        some = _folders[:FOLDERS_AT_ONCE]
        del _folders[:FOLDERS_AT_ONCE]
    for folder in some:
        _sweep(folder, now)
    return len(some)


def _begin(now: datetime) -> list[Path]:
    root = Path(settings.MEDIA_ROOT)
    mark = root / MARK
    if not root.is_dir() or (mark.exists() and now.timestamp() - mark.stat().st_mtime < EVERY_SECONDS):
        return []
    try:
        # First, so that another process doesn't walk beside this one. A round that breaks off is walked again tomorrow.
        mark.touch()
        os.utime(mark, (now.timestamp(), now.timestamp()))
    except OSError:
        # A folder that can't be written to can't be swept; the doctor says so.
        return []
    return sorted(one for one in root.iterdir() if one.is_dir())


def _sweep(folder: Path, now: datetime) -> None:
    if folder.name.startswith("."):
        # What a restore that was killed before it changed anything has left; none is under way while hands work.
        if _is_older(folder, limits.MEDIA_PARTS_KEPT, now):
            shutil.rmtree(folder, ignore_errors=True)
        return
    files = list(_files(folder))
    left = [
        one for one in files if one.name.endswith(".part") and _is_older(one, limits.MEDIA_PARTS_KEPT, now)
    ]
    old = [
        one for one in files if not one.name.endswith(".part") and _is_older(one, limits.MEDIA_LEFT_KEPT, now)
    ]
    for one in [*left, *_unnamed(folder, old)]:
        one.unlink(missing_ok=True)
        crash_point("retention.unlinked")
    if not any(folder.iterdir()) and _is_older(folder, limits.MEDIA_PARTS_KEPT, now):
        try:
            folder.rmdir()
        except OSError:
            # Somebody has just put a file there.
            return


def _unnamed(folder: Path, files: list[Path]) -> list[Path]:
    """Of the folder of an item or an upload: what no row that is served names. A folder of another kind is left alone."""
    try:
        item = UUID(folder.name)
    except ValueError:
        return []
    # What is being made has its files before its rows, for as long as the run has to wait; what was deleted meanwhile
    # never gets rows.
    if not files or GeneratedItem.everywhere.filter(pk=item, status__in=BEING_MADE, deleted_at=None).exists():
        return []
    named = set(Asset.everywhere.filter(item_id=item, revoked_at=None).values_list("path", flat=True))
    named |= set(Upload.everywhere.filter(pk=item).values_list("path", flat=True))
    return [one for one in files if str(one.relative_to(settings.MEDIA_ROOT)) not in named]


def _files(folder: Path) -> Iterator[Path]:
    for where, _, names in os.walk(folder):
        for name in names:
            yield Path(where) / name


def _is_older(path: Path, span: timedelta, now: datetime) -> bool:
    try:
        return now.timestamp() - path.stat().st_mtime > span.total_seconds()
    except FileNotFoundError:
        return False
