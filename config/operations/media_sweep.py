"""Deletes media files that nobody needs: what killed processes were writing, and what no row names.

A round first looks at every folder and removes nothing. Then it moves what it found to the trash, where files
stay for a while before they are deleted; a round that found more than a small share of all files stops
instead and waits for the operator. In a folder that isn't this database's nothing is touched.
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
"""A file whose age tells when any process last walked the folder."""
ROUND_INTERVAL_SECONDS: Final = 24 * 3600.0
REFUSAL_RECHECK_SECONDS: Final = 3600.0
FOLDERS_PER_BATCH: Final = 200
APPROVE_ADVICE: Final = (
    "Is DATABASE_URL right, and the database whole? Then manage.py media --approve-sweep lets it take them, once: "
    f"they rest in {files.TRASH} for {limits.MEDIA_TRASH_KEPT.days} days."
)


@dataclass
class SweepRound:
    """The progress of a round.

    First it works through `to_look`, then `to_take` (folders with something to remove), then `to_empty` (the
    trash).
    """

    to_look: list[Path]
    to_take: list[Path] = field(default_factory=list)
    to_empty: list[Path] = field(default_factory=list)
    total: int = 0
    found: int = 0
    taken: int = 0
    allowed: int | None = None
    """How many files may be removed; None until every folder was looked at."""


_round: Final[dict[str, SweepRound]] = {}
_refused_until: Final = {"at": 0.0}
_lock: Final = threading.Lock()


def sweep_some(now: datetime) -> int:
    """Continue through some folders and return how many, 0 when the round is over. A round begins once a day."""
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
    """Return why the sweep waits for the operator; empty if it doesn't."""
    row = MediaFolder.everywhere.filter(sweep_stopped_at__isnull=False, sweep_approved=None).first()
    if row is None:
        return ""
    return (
        f"The sweep of the media found {row.sweep_found} of {row.sweep_total} files that no row names, too many to take "
        "without asking. Nothing was taken."
    )


def approve() -> int:
    """Let the next round remove as many files as the last one found, starting soon; return how many."""
    row = MediaFolder.everywhere.filter(sweep_stopped_at__isnull=False).first()
    if row is None:
        return 0
    MediaFolder.everywhere.filter(pk=row.pk).update(sweep_approved=row.sweep_found)
    (Path(settings.MEDIA_ROOT) / MARK).unlink(missing_ok=True)
    return row.sweep_found or 0


# --- A round ---------------------------------------------------------------------------------------------------------


def _begin_round(now: datetime) -> SweepRound | None:
    """Start a round, or return None if it isn't time or the folder may not be swept."""
    root = Path(settings.MEDIA_ROOT)
    mark = root / MARK
    if mark.exists() and now.timestamp() - mark.stat().st_mtime < ROUND_INTERVAL_SECONDS:
        return None
    if _is_refused():
        return None
    try:
        # First, so that another process doesn't start a round too. An interrupted round is repeated tomorrow.
        mark.touch()
        os.utime(mark, (now.timestamp(), now.timestamp()))
    except OSError:
        # A folder that can't be written to can't be swept; the doctor says so.
        return None
    return SweepRound(
        sorted(folder for folder in root.iterdir() if folder.is_dir() and folder.name != files.TRASH)
    )


def _is_refused() -> bool:
    """Return whether the folder isn't this database's; checked once an hour, as without an id it is walked."""
    if time.monotonic() < _refused_until["at"]:
        return True
    refusal = media_root_id.claim_folder()
    if refusal:
        _refused_until["at"] = time.monotonic() + REFUSAL_RECHECK_SECONDS
        log.error("media_sweep_refused", why=refusal)
    return bool(refusal)


def _continue_round(current: SweepRound, now: datetime) -> int:
    """Do the next batch of the round; return how many folders it handled, 0 at the end."""
    # The folder may be another one by now: a volume that was mounted, a service that was restored.
    if media_root_id.compare_folder().refusal:
        return 0
    if current.to_look:
        batch = _take_batch(current.to_look)
        for folder in batch:
            _inspect_folder(current, folder, now)
        return len(batch)
    if current.allowed is None and not _may_remove(current, now):
        return 0
    if current.to_take:
        batch = _take_batch(current.to_take)
        return len(batch) if all(_move_to_trash(current, folder, now) for folder in batch) else 0
    batch = _take_batch(current.to_empty)
    for folder in batch:
        _empty_trash_folder(folder, now)
    if not batch:
        # An approval was for this round.
        MediaFolder.everywhere.filter(sweep_stopped_at__isnull=False).update(
            sweep_stopped_at=None, sweep_found=None, sweep_total=None, sweep_approved=None
        )
    return len(batch)


def _take_batch(folders: list[Path]) -> list[Path]:
    """Remove and return the next folders of the list."""
    batch = folders[:FOLDERS_PER_BATCH]
    del folders[:FOLDERS_PER_BATCH]
    return batch


def _inspect_folder(current: SweepRound, folder: Path, now: datetime) -> None:
    """Count what could be removed; only incomplete files are deleted at once."""
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
        current.to_take.append(folder)
    _remove_if_abandoned(folder, now)


def _may_remove(current: SweepRound, now: datetime) -> bool:
    """Return whether the round may remove what it found; otherwise it stops."""
    row = MediaFolder.everywhere.first()
    usual_limit = max(limits.MEDIA_SWEEP_FILES, current.total * limits.MEDIA_SWEEP_PERCENT // 100)
    # In the day between the approval and the round more may come, hence the usual share as well.
    approved = row.sweep_approved if row is not None else None
    current.allowed = usual_limit + (approved or 0)
    current.to_empty = sorted(path for path in files.trash_folder().glob("*") if path.is_dir())
    if current.found <= current.allowed:
        return True
    _stop_round(current, now)
    return False


def _stop_round(current: SweepRound, now: datetime) -> None:
    """Store what was found and wait for the operator."""
    MediaFolder.everywhere.update(
        sweep_stopped_at=now, sweep_found=current.found, sweep_total=current.total, sweep_approved=None
    )
    log.error("media_sweep_stopped", found=current.found, total=current.total, advice=APPROVE_ADVICE)


def _move_to_trash(current: SweepRound, folder: Path, now: datetime) -> bool:
    """Check the folder again and move unreferenced files to the trash; False if that exceeds the limit."""
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
    """Restore what a row names again, and delete what was in the trash long enough."""
    referenced = _referenced_paths(folder)
    if referenced is None:
        return
    for path in list(_complete_files(folder)):
        name = str(path.relative_to(files.trash_folder()))
        if name in referenced:
            files.restore_from_trash(name)
        # A restored file is no longer here, and fails this test.
        if _is_older(path, limits.MEDIA_TRASH_KEPT, now):
            path.unlink(missing_ok=True)
            crash_point("retention.unlinked")
    files.remove_if_empty(folder)


# --- What is referenced ----------------------------------------------------------------------------------------------


def _unreferenced(folder: Path, paths: list[Path]) -> list[Path]:
    """Return the files that no row names."""
    referenced = _referenced_paths(folder) if paths else None
    if referenced is None:
        return []
    return [path for path in paths if str(path.relative_to(settings.MEDIA_ROOT)) not in referenced]


def _referenced_paths(folder: Path) -> set[str] | None:
    """Return the paths that served rows name in the folder of an item or upload.

    None if the folder must be left alone: one of another kind, or of an item in the making, which has files
    before its rows for as long as the run has to wait. What was deleted meanwhile never gets rows.
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
    """Remove the folder if it is empty and old."""
    if _is_older(folder, limits.MEDIA_PARTS_KEPT, now):
        files.remove_if_empty(folder)


def _complete_files(folder: Path) -> Iterator[Path]:
    return (path for path in _files(folder) if path.suffix != files.PARTIAL_SUFFIX)


def _files(folder: Path) -> Iterator[Path]:
    for directory, _, names in os.walk(folder):
        for name in names:
            yield Path(directory) / name


def _is_older(path: Path, span: timedelta, now: datetime) -> bool:
    """Return whether the file is older than the span; False if it is gone."""
    try:
        return now.timestamp() - path.stat().st_mtime > span.total_seconds()
    except FileNotFoundError:
        return False
