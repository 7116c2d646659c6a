"""Files of the media folder that nobody needs any more: what a killed process was writing, what no row names.

A round looks at every folder first and takes nothing. Then it takes what it found into the trash, where it rests before
it is deleted; a round that found more than a small share of all files stops instead and waits for the operator. In a
folder that isn't this database's nothing is touched.
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
"""Its age says when the folder was last walked, by whichever process."""
EVERY_SECONDS: Final = 24 * 3600.0
REFUSED_FOR_SECONDS: Final = 3600.0
FOLDERS_AT_ONCE: Final = 200
APPROVE: Final = (
    "Is DATABASE_URL right, and the database whole? Then manage.py media --approve-sweep lets it take them, once: "
    f"they rest in {files.TRASH} for {limits.MEDIA_TRASH_KEPT.days} days."
)


@dataclass
class SweepRound:
    """`to_look` first, then `to_take` of what had something in it, then the trash."""

    to_look: list[Path]
    to_take: list[Path] = field(default_factory=list)
    to_empty: list[Path] = field(default_factory=list)
    total: int = 0
    found: int = 0
    taken: int = 0
    allowed: int | None = None
    """None until every folder was looked at."""


_round: Final[dict[str, SweepRound]] = {}
_refused_until: Final = {"at": 0.0}
_lock: Final = threading.Lock()


def sweep_some(now: datetime) -> int:
    """Walk on through some folders; returns how many, 0 when the round is over. A round begins once a day."""
    with _lock:
        current = _round.get("it") or _begin(now)
        if current is None:
            return 0
        _round["it"] = current
        done = _go_on(current, now)
        if not done:
            _round.clear()
        return done


def why_stopped() -> str:
    """Why the sweep waits for the operator; empty where it doesn't."""
    row = MediaFolder.everywhere.filter(sweep_stopped_at__isnull=False, sweep_approved=None).first()
    if row is None:
        return ""
    return (
        f"The sweep of the media found {row.sweep_found} of {row.sweep_total} files that no row names, too many to take "
        "without asking. Nothing was taken."
    )


def approve() -> int:
    """Let the next round take as many as the last one found; it begins with the next look. Returns how many."""
    row = MediaFolder.everywhere.filter(sweep_stopped_at__isnull=False).first()
    if row is None:
        return 0
    MediaFolder.everywhere.filter(pk=row.pk).update(sweep_approved=row.sweep_found)
    (Path(settings.MEDIA_ROOT) / MARK).unlink(missing_ok=True)
    return row.sweep_found or 0


# --- A round ---------------------------------------------------------------------------------------------------------


def _begin(now: datetime) -> SweepRound | None:
    root = Path(settings.MEDIA_ROOT)
    mark = root / MARK
    if mark.exists() and now.timestamp() - mark.stat().st_mtime < EVERY_SECONDS:
        return None
    if _is_refused():
        return None
    try:
        # First, so that another process doesn't walk beside this one. A round that breaks off is walked again tomorrow.
        mark.touch()
        os.utime(mark, (now.timestamp(), now.timestamp()))
    except OSError:
        # A folder that can't be written to can't be swept; the doctor says so.
        return None
    return SweepRound(sorted(one for one in root.iterdir() if one.is_dir() and one.name != files.TRASH))


def _is_refused() -> bool:
    """Asked again after an hour, as the folder is walked where it has no id."""
    if time.monotonic() < _refused_until["at"]:
        return True
    refusal = media_root_id.claim_folder()
    if refusal:
        _refused_until["at"] = time.monotonic() + REFUSED_FOR_SECONDS
        log.error("media_sweep_refused", why=refusal)
    return bool(refusal)


def _go_on(current: SweepRound, now: datetime) -> int:
    # The folder may be another one by now: a volume that was mounted, a service that was restored.
    if media_root_id.compare_folder().refusal:
        return 0
    if current.to_look:
        some = _next(current.to_look)
        for folder in some:
            _look(current, folder, now)
        return len(some)
    if current.allowed is None and not _decide(current, now):
        return 0
    if current.to_take:
        some = _next(current.to_take)
        return len(some) if all(_take(current, folder, now) for folder in some) else 0
    some = _next(current.to_empty)
    for folder in some:
        _empty(folder, now)
    if not some:
        # An approval was for this round.
        MediaFolder.everywhere.filter(sweep_stopped_at__isnull=False).update(
            sweep_stopped_at=None, sweep_found=None, sweep_total=None, sweep_approved=None
        )
    return len(some)


def _next(folders: list[Path]) -> list[Path]:
    some = folders[:FOLDERS_AT_ONCE]
    del folders[:FOLDERS_AT_ONCE]
    return some


def _look(current: SweepRound, folder: Path, now: datetime) -> None:
    """Count what could go; only what was never whole goes at once."""
    if folder.name.startswith("."):
        # What a restore that was killed before it changed anything has left; none is under way while workers run.
        if _is_older(folder, limits.MEDIA_PARTS_KEPT, now):
            shutil.rmtree(folder, ignore_errors=True)
        return
    there = list(_files(folder))
    whole = [one for one in there if one.suffix != files.PARTIAL_SUFFIX]
    for one in there:
        if one.suffix == files.PARTIAL_SUFFIX and _is_older(one, limits.MEDIA_PARTS_KEPT, now):
            one.unlink(missing_ok=True)
            crash_point("retention.unlinked")
    found = _unnamed(folder, [one for one in whole if _is_older(one, limits.MEDIA_LEFT_KEPT, now)])
    current.total += len(whole)
    current.found += len(found)
    if found:
        current.to_take.append(folder)
    _remove_if_left(folder, now)


def _decide(current: SweepRound, now: datetime) -> bool:
    """Whether the round may go on to take what it found."""
    row = MediaFolder.everywhere.first()
    share = max(limits.MEDIA_SWEEP_FILES, current.total * limits.MEDIA_SWEEP_PERCENT // 100)
    # A day passes between what was approved and the round.
    approved = row.sweep_approved if row is not None else None
    current.allowed = share + (approved or 0)
    current.to_empty = sorted(one for one in files.trash_folder().glob("*") if one.is_dir())
    if current.found <= current.allowed:
        return True
    _stop(current, now)
    return False


def _stop(current: SweepRound, now: datetime) -> None:
    MediaFolder.everywhere.update(
        sweep_stopped_at=now,
        sweep_found=current.found,
        sweep_total=current.total,
        sweep_approved=None,
    )
    log.error("media_sweep_stopped", found=current.found, total=current.total, advice=APPROVE)


def _take(current: SweepRound, folder: Path, now: datetime) -> bool:
    """Into the trash, judged anew; False where more would go than may."""
    old = [one for one in _whole(folder) if _is_older(one, limits.MEDIA_LEFT_KEPT, now)]
    unnamed = _unnamed(folder, old)
    current.taken += len(unnamed)
    if current.taken > (current.allowed or 0):
        current.found = max(current.found, current.taken)
        _stop(current, now)
        return False
    for one in unnamed:
        files.move_to_trash(str(one.relative_to(settings.MEDIA_ROOT)), now=now)
    _remove_if_left(folder, now)
    return True


def _empty(folder: Path, now: datetime) -> None:
    """A folder of the trash: what a row names comes back, what has rested long enough goes."""
    named = _named(folder)
    if named is None:
        return
    for one in list(_whole(folder)):
        kept = str(one.relative_to(files.trash_folder()))
        if kept in named:
            files.restore_from_trash(kept)
        # Not what has just come back; but what lies in its place already.
        if _is_older(one, limits.MEDIA_TRASH_KEPT, now):
            one.unlink(missing_ok=True)
            crash_point("retention.unlinked")
    files.remove_if_empty(folder)


# --- What is judged --------------------------------------------------------------------------------------------------


def _unnamed(folder: Path, there: list[Path]) -> list[Path]:
    named = _named(folder) if there else None
    if named is None:
        return []
    return [one for one in there if str(one.relative_to(settings.MEDIA_ROOT)) not in named]


def _named(folder: Path) -> set[str] | None:
    """Of the folder of an item or an upload: what rows name that are served. None where it isn't to be judged: a folder
    of another kind; and what is being made, which has its files before its rows for as long as the run has to wait.
    What was deleted meanwhile never gets rows.
    """
    try:
        item = UUID(folder.name)
    except ValueError:
        return None
    if GeneratedItem.everywhere.in_making().filter(pk=item).exists():
        return None
    named = set(Asset.everywhere.filter(item_id=item, revoked_at=None).values_list("path", flat=True))
    return named | set(Upload.everywhere.filter(pk=item).values_list("path", flat=True))


def _remove_if_left(folder: Path, now: datetime) -> None:
    if _is_older(folder, limits.MEDIA_PARTS_KEPT, now):
        files.remove_if_empty(folder)


def _whole(folder: Path) -> Iterator[Path]:
    return (one for one in _files(folder) if one.suffix != files.PARTIAL_SUFFIX)


def _files(folder: Path) -> Iterator[Path]:
    for where, _, names in os.walk(folder):
        for name in names:
            yield Path(where) / name


def _is_older(path: Path, span: timedelta, now: datetime) -> bool:
    try:
        return now.timestamp() - path.stat().st_mtime > span.total_seconds()
    except FileNotFoundError:
        return False
