"""Writes the database and media to one archive, named only when it is complete; deletes old archives."""

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
"""The ending of a file that isn't complete."""
ABANDONED_AFTER_SECONDS: Final = 24 * 3600.0
"""The age from which an incomplete backup counts as left by a killed run."""
BACKUP_NAME: Final = re.compile(r"pipeline-\d{8}T\d{6}Z\.tar\.gz")
"""Matches the names that `next_backup_path` gives, such as `pipeline-20261120T093000Z.tar.gz`."""


def back_up(path: Path) -> None:
    """Write a backup to `path`, a name that appears only when the file is complete and on the disk.

    The database comes first, then the media: a row may then name a file that was erased since, but no file is
    without its row. The keys of the settings are not included; without FIELD_KEYS the encrypted secrets of a
    restored instance can't be read. Raises `UnusableBackup` if a restore isn't finished, the media folder is another
    instance's, or the database can't be dumped, and `OSError` if a file can't be written.
    """
    if unfinished_restore.is_half_restored():
        raise backup_archive.UnusableBackup(unfinished_restore.MESSAGE)
    refusal = media_root_id.claim_folder()
    if refusal:
        # Otherwise the backup would hold a database without its files.
        raise backup_archive.UnusableBackup(refusal)
    partial, dump = path.with_name(f"{path.name}{PART}"), path.with_name(f"{path.name}.database{PART}")
    try:
        # Readable for its owner alone: it holds password hashes and people's content.
        os.close(os.open(dump, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
        db_dump.dump_database(dump)
        crash_point("backup.dumped")
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            writer = backup_archive.ArchiveWriter(file, _describe_instance())
            writer.put(dump, backup_archive.DATABASE)
            for media_file in _media_files():
                try:
                    writer.put(
                        media_file, f"{backup_archive.MEDIA}{media_file.relative_to(settings.MEDIA_ROOT)}"
                    )
                except FileNotFoundError:
                    # The file was erased after it was listed.
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
    """Return the path of the folder's next backup; the names sort by age."""
    return folder / f"pipeline-{now or utc_now():%Y%m%dT%H%M%SZ}.tar.gz"


def list_backups(folder: Path) -> list[Path]:
    """Return the complete backups of a folder, oldest first."""
    return sorted(path for path in folder.iterdir() if BACKUP_NAME.fullmatch(path.name))


def delete_old_backups(folder: Path, *, keep: int) -> list[Path]:
    """Delete all but the newest `keep` backups, and leftovers of killed runs; return the deleted backups.

    Raises `UnusableBackup` if `keep` is less than 1.
    """
    if keep < 1:
        message = "At least one backup has to be kept."
        raise backup_archive.UnusableBackup(message)
    dropped = list_backups(folder)[:-keep]
    for path in dropped:
        path.unlink()
    for path in folder.iterdir():
        is_part = path.name.startswith("pipeline-") and path.name.endswith(PART)
        # Another run may be writing a younger one at this moment.
        if is_part and time.time() - path.stat().st_mtime > ABANDONED_AFTER_SECONDS:
            path.unlink(missing_ok=True)
    return dropped


def _describe_instance() -> backup_archive.BackupDescription:
    """Return the description of this instance that its backup holds."""
    applied = MigrationRecorder(connection).applied_migrations()
    return backup_archive.BackupDescription(
        vendor=connection.vendor,
        made_at=utc_now().isoformat(timespec="seconds"),
        migrations=tuple(sorted(f"{app}.{name}" for app, name in applied)),
        instance=str(media_root_id.own_id() or ""),
    )


def _media_files() -> Iterator[Path]:
    """Yield every complete file, without hidden files and folders.

    A file that is being written belongs to no row yet, and leftovers of a restore belong to no instance.
    """
    for folder, folders, names in os.walk(settings.MEDIA_ROOT):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if not name.startswith(".") and not name.endswith(PART):
                yield Path(folder) / name


def _sync_folder(folder: Path) -> None:
    """Write the folder's entries to the disk, so that the new name outlives a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
