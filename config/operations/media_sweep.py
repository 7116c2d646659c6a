"""Deletes media files that nobody needs: those that killed processes left incomplete, and those no row names.

A round first inspects every folder, and deletes only old incomplete files, empty folders and restores' leftovers.
Then it moves the files that no row names to the trash, where they stay for a while before they are deleted. A round
that found more than a small share of all files stops instead and waits for the operator. In a folder that isn't
this database's nothing is touched.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import UUID

import structlog
from django.conf import settings

from config.core import limits
from config.core.crash_points import crash_point
from pipeline.media import files, media_root_id
from pipeline.models import Asset, GeneratedItem, MediaFolder, Upload

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime, timedelta

log = structlog.get_logger(__name__)

MARK: Final = ".swept"
"""A file in the media folder whose age tells when any process last began a round."""
ROUND_INTERVAL_SECONDS: Final = 24 * 3600.0
REFUSAL_RECHECK_SECONDS: Final = 3600.0
"""The time for which a folder that isn't this database's isn't checked again."""
FOLDERS_PER_BATCH: Final = 200
APPROVE_ADVICE: Final = (
    "Is DATABASE_URL right, and the database whole? Then manage.py media --approve-sweep lets it take them, once: "
    f"they rest in {files.TRASH} for {limits.MEDIA_TRASH_KEPT.days} days."
)


@dataclass
class SweepRound:
    """The progress of a round through its three lists of folders, one list after the other."""

    to_inspect: list[Path]
    to_clear: list[Path] = field(default_factory=list)
    """The folders with files that no row names."""
    to_empty: list[Path] = field(default_factory=list)
    """The folders of the trash."""
    total: int = 0
    """The number of complete files that were inspected."""
    found: int = 0
    """The number of inspected files that no row names."""
    taken: int = 0
    """The number of files that were moved to the trash."""
    allowed: int | None = None
    """The most files that may be removed, or `None` until every folder was inspected."""


_round: Final[dict[str, SweepRound]] = {}
_refused_until: Final = {"at": 0.0}
"""The time until which the folder counts as another database's, in seconds of the monotonic clock."""
_lock: Final = threading.Lock()


def sweep_some(now: datetime) -> int:
    """Handle the next folders of the round, and return how many; a round begins once a day.

    Returns 0 if the round is over, was stopped, or mustn't begin.
    """
    with _lock:
        current = _round.get("it") or _begin_round(now)
        if current is None:
            return 0
        _round["it"] = current
        folders_done = _continue_round(current, now)
        if not folders_done:
            _round.clear()
        return folders_done


def why_stopped() -> str:
    """Return why the sweep waits for the operator, or an empty text if it doesn't."""
    row = MediaFolder.everywhere.filter(sweep_stopped_at__isnull=False, sweep_approved=None).first()
    if row is None:
        return ""
    return (
        f"The sweep of the media found {row.sweep_found} of {row.sweep_total} files that no row names, too many to take "
        "without asking. Nothing was taken."
    )


def approve() -> int:
    """Let the next round, which begins soon, remove as many files as the stopped one found; return how many.

    Returns 0 if none was stopped.
    """
    row = MediaFolder.everywhere.filter(sweep_stopped_at__isnull=False).first()
    if row is None:
        return 0
    MediaFolder.everywhere.filter(pk=row.pk).update(sweep_approved=row.sweep_found)
    (Path(settings.MEDIA_ROOT) / MARK).unlink(missing_ok=True)
    return row.sweep_found or 0


# --- A round ---------------------------------------------------------------------------------------------------------


def _begin_round(now: datetime) -> SweepRound | None:
    """Begin a round, or return `None` if it isn't time, or the folder mustn't or can't be swept."""
    root = Path(settings.MEDIA_ROOT)
    mark = root / MARK
    if mark.exists() and now.timestamp() - mark.stat().st_mtime < ROUND_INTERVAL_SECONDS:
        return None
    if _is_refused():
        return None
    try:
        # Touched first, so that no other process begins a round. An interrupted round is repeated tomorrow.
        mark.touch()
        os.utime(mark, (now.timestamp(), now.timestamp()))
    except OSError:
        # A folder that can't be written to can't be swept; the doctor says so.
        return None
    return SweepRound(
        sorted(folder for folder in root.iterdir() if folder.is_dir() and folder.name != files.TRASH)
    )


def _is_refused() -> bool:
    """Claim the folder for this database, and return whether it is another's.

    After a refusal it isn't checked again for an hour, because a folder without an id is walked.
    """
    if time.monotonic() < _refused_until["at"]:
        return True
    refusal = media_root_id.claim_folder()
    if refusal:
        _refused_until["at"] = time.monotonic() + REFUSAL_RECHECK_SECONDS
        log.error("media_sweep_refused", why=refusal)
    return bool(refusal)


def _continue_round(current: SweepRound, now: datetime) -> int:
    """Do the next batch of the round, and return how many folders it handled, or 0 if the round is over or stops."""
    # The folder may be another one by now: a volume that was mounted, a service that was restored.
    if media_root_id.compare_folder().refusal:
        return 0
    if current.to_inspect:
        batch = _take_batch(current.to_inspect)
        for folder in batch:
            _inspect_folder(current, folder, now)
        return len(batch)
    if current.allowed is None and not _may_remove(current, now):
        return 0
    if current.to_clear:
        batch = _take_batch(current.to_clear)
        return len(batch) if all(_move_to_trash(current, folder, now) for folder in batch) else 0
    batch = _take_batch(current.to_empty)
    for folder in batch:
        _empty_trash_folder(folder, now)
    if not batch:
        # An approval counts for one round.
        MediaFolder.everywhere.filter(sweep_stopped_at__isnull=False).update(
            sweep_stopped_at=None, sweep_found=None, sweep_total=None, sweep_approved=None
        )
    return len(batch)


def _take_batch(folders: list[Path]) -> list[Path]:
    """Remove the next folders from the list, and return them."""
    batch = folders[:FOLDERS_PER_BATCH]
    del folders[:FOLDERS_PER_BATCH]
    return batch


def _inspect_folder(current: SweepRound, folder: Path, now: datetime) -> None:
    """Count the folder's files and those no row names; delete old incomplete files and leftovers of restores."""
    if folder.name.startswith("."):
        # The leftovers of a restore that was killed before it changed anything; none is under way while workers run.
        if _is_older(folder, limits.MEDIA_PARTS_KEPT, now):
            shutil.rmtree(folder, ignore_errors=True)
        return
    paths = list(_files(folder))
    complete = [path for path in paths if path.suffix != files.PARTIAL_SUFFIX]
    for path in paths:
        if path.suffix == files.PARTIAL_SUFFIX and _is_older(path, limits.MEDIA_PARTS_KEPT, now):
            path.unlink(missing_ok=True)
            crash_point("retention.unlinked")
    unreferenced = _unreferenced(
        folder, [path for path in complete if _is_older(path, limits.MEDIA_LEFT_KEPT, now)]
    )
    current.total += len(complete)
    current.found += len(unreferenced)
    if unreferenced:
        current.to_clear.append(folder)
    _remove_if_abandoned(folder, now)


def _may_remove(current: SweepRound, now: datetime) -> bool:
    """Set the round's limit and list the trash; return False, and stop the round, if it found too many files."""
    row = MediaFolder.everywhere.first()
    default_limit = max(limits.MEDIA_SWEEP_FILES, current.total * limits.MEDIA_SWEEP_PERCENT // 100)
    # Between the approval and the round more such files may come, hence the default share as well.
    approved = row.sweep_approved if row is not None else None
    current.allowed = default_limit + (approved or 0)
    current.to_empty = sorted(path for path in files.trash_folder().glob("*") if path.is_dir())
    if current.found <= current.allowed:
        return True
    _stop_round(current, now)
    return False


def _stop_round(current: SweepRound, now: datetime) -> None:
    """Store the round's numbers, with which the sweep waits for the operator."""
    MediaFolder.everywhere.update(
        sweep_stopped_at=now, sweep_found=current.found, sweep_total=current.total, sweep_approved=None
    )
    log.error("media_sweep_stopped", found=current.found, total=current.total, advice=APPROVE_ADVICE)


def _move_to_trash(current: SweepRound, folder: Path, now: datetime) -> bool:
    """Check the folder again and move unreferenced files to the trash.

    Returns False, and stops the round without moving these files, if they exceed the limit.
    """
    old = [path for path in _complete_files(folder) if _is_older(path, limits.MEDIA_LEFT_KEPT, now)]
    unnamed = _unreferenced(folder, old)
    current.taken += len(unnamed)
    if current.taken > (current.allowed or 0):
        current.found = max(current.found, current.taken)
        _stop_round(current, now)
        return False
    for path in unnamed:
        files.move_to_trash(str(path.relative_to(settings.MEDIA_ROOT)), now=now)
    _remove_if_abandoned(folder, now)
    return True


def _empty_trash_folder(folder: Path, now: datetime) -> None:
    """Restore the files that a row names again, and delete those that were in the trash long enough."""
    referenced = _referenced_paths(folder)
    if referenced is None:
        return
    for path in list(_complete_files(folder)):
        name = str(path.relative_to(files.trash_folder()))
        if name in referenced:
            files.restore_from_trash(name)
        # A restored file is no longer in the trash, for which `_is_older` is false.
        if _is_older(path, limits.MEDIA_TRASH_KEPT, now):
            path.unlink(missing_ok=True)
            crash_point("retention.unlinked")
    files.remove_if_empty(folder)


# --- What is referenced ----------------------------------------------------------------------------------------------


def _unreferenced(folder: Path, paths: list[Path]) -> list[Path]:
    """Return the files that no row names, or none if the folder must be left alone."""
    referenced = _referenced_paths(folder) if paths else None
    if referenced is None:
        return []
    return [path for path in paths if str(path.relative_to(settings.MEDIA_ROOT)) not in referenced]


def _referenced_paths(folder: Path) -> set[str] | None:
    """Return the paths that served rows name in the folder of an item or upload.

    Returns `None` if the folder must be left alone: a folder of another kind, or of an item in the making, which
    has files before its rows for as long as the run has to wait. A deleted item never gets rows.
    """
    try:
        item = UUID(folder.name)
    except ValueError:
        return None
    if GeneratedItem.everywhere.in_making().filter(pk=item).exists():
        return None
    paths = set(Asset.everywhere.filter(item_id=item, revoked_at=None).values_list("path", flat=True))
    return paths | set(Upload.everywhere.filter(pk=item).values_list("path", flat=True))


def _remove_if_abandoned(folder: Path, now: datetime) -> None:
    """Remove the folder if it is old and empty."""
    if _is_older(folder, limits.MEDIA_PARTS_KEPT, now):
        files.remove_if_empty(folder)


def _complete_files(folder: Path) -> Iterator[Path]:
    return (path for path in _files(folder) if path.suffix != files.PARTIAL_SUFFIX)


def _files(folder: Path) -> Iterator[Path]:
    for directory, _, names in os.walk(folder):
        for name in names:
            yield Path(directory) / name


def _is_older(path: Path, span: timedelta, now: datetime) -> bool:
    """Return whether the file or folder is there and older than the span."""
    try:
        return now.timestamp() - path.stat().st_mtime > span.total_seconds()
    except FileNotFoundError:
        return False
