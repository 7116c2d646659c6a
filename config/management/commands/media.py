"""media: says whether the media folder belongs to the database, and whether its sweep waits for approval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from config.operations import media_sweep
from pipeline.media import files, media_root_id
from pipeline.text.prose.verbatim_edits import counted

if TYPE_CHECKING:
    from django.core.management.base import CommandParser


class Command(BaseCommand):
    help = "Say whether the media folder belongs to the database, and what its sweep waits for."

    def add_arguments(self, parser: CommandParser) -> None:
        group = parser.add_mutually_exclusive_group()
        group.add_argument(
            "--adopt",
            action="store_true",
            help="write this database's id into the folder: its files are then judged by this database",
        )
        group.add_argument(
            "--approve-sweep", action="store_true", help="let a stopped sweep delete what it found, once"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        try:
            if options["adopt"]:
                media_root_id.adopt_folder()
            if options["approve_sweep"]:
                self._approve()
        except OSError as error:
            message = f"{settings.MEDIA_ROOT} can't be written to: {error.strerror}."
            raise CommandError(message) from error
        self._report()

    def _approve(self) -> None:
        approved = media_sweep.approve()
        if not approved:
            message = "No sweep has stopped; there is nothing to approve."
            raise CommandError(message)
        self.stdout.write(f"The next sweep may take {counted(approved, 'file')}; it begins within a minute.")

    def _report(self) -> None:
        """Print the folder's state. Raises `CommandError` if it isn't this database's, or its sweep waits."""
        comparison = media_root_id.compare_folder()
        stop_reason = media_sweep.why_stopped()
        trashed = [path for path in files.trash_folder().rglob("*") if path.is_file()]
        if comparison.verdict == "ours":
            self.stdout.write(f"{settings.MEDIA_ROOT} belongs to this database: {media_root_id.own_id()}.")
        elif not comparison.message:
            self.stdout.write(f"{settings.MEDIA_ROOT} has no id yet; the next sweep or backup gives it one.")
        self.stdout.write(f"{counted(len(trashed), 'file rests', 'files rest')} in its trash.")
        if comparison.message:
            raise CommandError(comparison.refusal)
        if stop_reason:
            message = f"{stop_reason} {media_sweep.APPROVE_ADVICE}"
            raise CommandError(message)
