"""Removes a workspace's sample data, from the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.core.management.base import BaseCommand, CommandError

from accounts import samples, workspaces
from config.core.errors import AppError

if TYPE_CHECKING:
    from django.core.management.base import CommandParser

_ACTOR: Final = "manage.py remove_samples"


class Command(BaseCommand):
    help = "Remove a workspace's sample data; what people made themselves stays."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--workspace", required=True, metavar="NAME", help="a workspace's name or ws_ id")

    def handle(self, *_args: Any, **options: Any) -> None:
        try:
            workspace = workspaces.find_workspace(options["workspace"])
        except AppError as error:
            raise CommandError(str(error)) from error
        if workspace is None:
            message = f"There is no workspace {options['workspace']}."
            raise CommandError(message)
        if not samples.request_samples_removal(workspace, actor=_ACTOR) and not samples.is_removing(
            workspace
        ):
            self.stdout.write(f"{workspace.name} holds no sample data.")
            return
        while samples.remove_some_of(workspace):
            pass
        self.stdout.write(f"The sample data of {workspace.name} is removed; what people made stays.")
