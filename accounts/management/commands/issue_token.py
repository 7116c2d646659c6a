"""Issues a token for a workspace, which it creates too if asked to."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from accounts import whitelist_requests, workspaces
from accounts.access import tokens
from config.core.errors import AppError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.core.management.base import CommandParser

    from accounts.models import Workspace

_ACTOR: Final = "manage.py issue_token"


class Command(BaseCommand):
    help = "Make an API token; its text is shown once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--workspace", required=True, metavar="NAME", help="a workspace's name or ws_ id")
        parser.add_argument("--create", action="store_true", help="create the workspace if there is none")
        parser.add_argument("--whitelist", action="store_true", help="approve the workspace")
        parser.add_argument("--unlimited", action="store_true", help="lift its rate limit and quota")
        parser.add_argument("--test", action="store_true", help="make a test token")
        parser.add_argument("--name", default="issued by the operator", help="the token's name")
        parser.add_argument(
            "--scopes",
            default="full",
            help=f"one of {', '.join(tokens.PRESETS)}, or scopes separated by commas",
        )
        parser.add_argument("--json", action="store_true", help="print one line of JSON at the end")

    def handle(self, *args: Any, **options: Any) -> None:
        del args
        try:
            workspace, issued = _issue(**options)
        except AppError as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            self.stdout.write(json.dumps({"workspace": workspace.public_id, "token": issued.secret}))
            return
        self.stdout.write(f"Workspace {workspace.name} ({workspace.public_id})")
        self.stdout.write(f"Token     {issued.secret}")
        self.stdout.write("It is shown only now; keep it in a safe place.")
        if not workspace.is_whitelisted:
            self.stdout.write("The workspace is not approved: run this again with --whitelist.")


def _issue(
    *,
    workspace: str,
    create: bool,
    whitelist: bool,
    unlimited: bool,
    test: bool,
    name: str,
    scopes: str,
    **_others: Any,
) -> tuple[Workspace, tokens.IssuedToken]:
    """Create the workspace if asked to, whitelist it and lift its limits if asked to, and issue a token."""
    with transaction.atomic():
        row = workspaces.find_workspace(workspace)
        if row is None:
            if not create or workspace.startswith("ws_"):
                message = f"There is no workspace {workspace}. Add --create and its name to create one."
                raise CommandError(message)
            row = workspaces.create(workspace, actor=_ACTOR)
        if whitelist:
            whitelist_requests.grant(row, _ACTOR)
        if unlimited:
            workspaces.lift_limits(row, _ACTOR)
        return row, tokens.issue(row, name=name, scopes=_read_scopes(scopes), is_test=test, actor=_ACTOR)


def _read_scopes(text: str) -> Iterable[str]:
    """Return the scopes of the preset with this name, or else those that commas separate."""
    return tokens.PRESETS.get(text) or [scope.strip() for scope in text.split(",") if scope.strip()]
