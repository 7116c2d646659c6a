"""backup: writes the database and the media to one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from config.operations import backup, backup_archive
from pipeline.text.prose.verbatim_edits import counted

if TYPE_CHECKING:
    from django.core.management.base import CommandParser


class Command(BaseCommand):
    help = "Write the database and the media to one file; the service may keep running."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "path", type=Path, nargs="?", help="a file, or a folder; without it the folder BACKUP_DIR"
        )
        parser.add_argument(
            "--keep", type=int, metavar="N", help="in a folder: keep the newest N backups, delete older ones"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        target: Path | None = options["path"] or (Path(settings.BACKUP_DIR) if settings.BACKUP_DIR else None)
        if target is None:
            message = "Name a file or a folder, or set BACKUP_DIR."
            raise CommandError(message)
        keep: int | None = options["keep"]
        try:
            self._write(target.absolute(), keep)
        except (backup_archive.UnusableBackup, OSError) as error:
            raise CommandError(str(error)) from error

    def _write(self, target: Path, keep: int | None) -> None:
        """Write the backup, then delete older ones. Raises `CommandError` if `keep` doesn't fit the target."""
        is_folder = target.is_dir()
        if keep is not None and (keep < 1 or not is_folder):
            message = "--keep needs a folder that is there, and a number of at least 1."
            raise CommandError(message)
        path = backup.next_backup_path(target) if is_folder else target
        backup.back_up(path)
        size = path.stat().st_size
        self.stdout.write(f"{path} ({size} bytes). Keep FIELD_KEYS and SECRET_KEY apart from it.")
        if keep is not None:
            # Older backups are deleted only now that the new one is complete.
            dropped = backup.delete_old_backups(target, keep=keep)
            self.stdout.write(
                f"{counted(len(dropped), 'older one was', 'older ones were')} deleted; the newest {keep} are kept."
            )
