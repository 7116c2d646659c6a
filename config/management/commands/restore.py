"""restore: replaces this instance's data by a backup."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from config.operations import backup_archive, restore
from pipeline.text.prose.verbatim_edits import counted

if TYPE_CHECKING:
    from django.core.management.base import CommandParser


class Command(BaseCommand):
    help = "Replace this instance's data with a backup; stop the service first."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("path", type=Path, help="what manage.py backup wrote")
        parser.add_argument("--wipe", action="store_true", help="replace this instance's data")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Restore, and print what was restored and stopped. Raises `CommandError` if the backup is refused."""
        try:
            result = restore.restore(options["path"].absolute(), wipe=options["wipe"])
        except (backup_archive.UnusableBackup, OSError) as error:
            raise CommandError(str(error)) from error
        lines = [
            f"Restored as it was at {result.made_at}.",
            f"{counted(result.voided, 'row in progress is', 'rows in progress are')} checked again.",
            (
                f"{counted(result.doubted, 'unsent publication is', 'unsent publications are')} looked up "
                "on the platform first."
            ),
        ]
        if result.stopped:
            names = ", ".join(result.stopped)
            lines.append(
                f"Publishing is paused for workspaces with a source on autopilot: {names}. Compare with "
                'their platforms, then resume it in the admin under "Paused".'
            )
        self.stdout.write("\n".join(lines))
        if result.warning:
            self.stderr.write(f"Warning: {result.warning}")
