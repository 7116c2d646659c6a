"""Writes the instance to one archive, database and media, which gets its name only when it is complete; deletes old ones."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from config.core.clock import utc_now
from config.core.crash_points import crash_point
from config.operations import backup_archive, db_dump, unfinished_restore
from pipeline.media import media_root_id

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

PART: Final = ".part"
LEFT_AFTER_SECONDS: Final = 24 * 3600.0
NAMED: Final = re.compile(r"pipeline-\d{8}T\d{6}Z\.tar\.gz")


def back_up(path: Path) -> None:
    """Database first, then media: a row may then name a file that was erased since, but no file is without its row.

    The keys of the settings are not in it; without FIELD_KEYS the sealed secrets of a restored instance stay shut.
    The final name appears only when the file is whole and on the disk.
    """
    if unfinished_restore.is_half_restored():
        raise backup_archive.UnusableBackup(unfinished_restore.SENTENCE)
    refusal = media_root_id.claim_folder()
    if refusal:
        # It would be a database without its files, under a name that promises both.
        raise backup_archive.UnusableBackup(refusal)
    partial, dump = path.with_name(f"{path.name}{PART}"), path.with_name(f"{path.name}.database{PART}")
    try:
        # Readable for its owner alone: it holds password hashes and people's content.
        os.close(os.open(dump, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
        db_dump.dump_database(dump)
        crash_point("backup.dumped")
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            writer = backup_archive.ArchiveWriter(file, _about())
            writer.put(dump, backup_archive.DATABASE)
            for one in _media():
                try:
                    writer.put(one, f"{backup_archive.MEDIA}{one.relative_to(settings.MEDIA_ROOT)}")
                except FileNotFoundError:
                    # Erased since it was listed.
                    continue
            writer.finish()
            file.flush()
            os.fsync(file.fileno())
        crash_point("backup.written")
        partial.replace(path)
        _sync_folder(path.parent)
    finally:
        partial.unlink(missing_ok=True)
        dump.unlink(missing_ok=True)


def next_backup_path(folder: Path, *, now: datetime | None = None) -> Path:
    """Where the next backup of a folder goes; by their names they sort by age."""
    return folder / f"pipeline-{now or utc_now():%Y%m%dT%H%M%SZ}.tar.gz"


def kept_backups(folder: Path) -> list[Path]:
    """The whole backups of a folder, oldest first."""
    return sorted(one for one in folder.iterdir() if NAMED.fullmatch(one.name))


def drop_old(folder: Path, *, keep: int) -> list[Path]:
    """Delete all but the newest `keep`, and what killed runs have left; returns the whole ones that were deleted."""
    if keep < 1:
        message = "At least one backup has to be kept."
        raise backup_archive.UnusableBackup(message)
    dropped = kept_backups(folder)[:-keep]
    for one in dropped:
        one.unlink()
    for one in folder.iterdir():
        is_part = one.name.startswith("pipeline-") and one.name.endswith(PART)
        # Not what another run is writing at this moment.
        if is_part and time.time() - one.stat().st_mtime > LEFT_AFTER_SECONDS:
            one.unlink(missing_ok=True)
    return dropped


def _about() -> backup_archive.BackupDescription:
    applied = MigrationRecorder(connection).applied_migrations()
    return backup_archive.BackupDescription(
        vendor=connection.vendor,
        made_at=utc_now().isoformat(timespec="seconds"),
        migrations=tuple(sorted(f"{app}.{name}" for app, name in applied)),
        instance=str(media_root_id.own_id() or ""),
    )


def _media() -> Iterator[Path]:
    """Every whole file; what is being written is of no row yet, and what a restore has left is of no instance."""
    for folder, folders, names in os.walk(settings.MEDIA_ROOT):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if not name.startswith(".") and not name.endswith(PART):
                yield Path(folder) / name


def _sync_folder(folder: Path) -> None:
    """The name itself must outlive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
