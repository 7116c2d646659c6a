"""Adds an endpoint from the command line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from accounts import workspaces
from config.core.errors import AppError
from config.core.ids import encode
from pipeline.events import TYPES
from webhooks import endpoints, limits

if TYPE_CHECKING:
    from django.core.management.base import CommandParser


class Command(BaseCommand):
    help = "Add a webhook endpoint to a workspace and show its secret, once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--workspace", required=True, help="its name, or its id (ws_…)")
        parser.add_argument("--url", required=True)
        parser.add_argument(
            "--event",
            action="append",
            default=[],
            metavar="TYPE",
            help=f"repeatable; without it the four default types. There are: {', '.join(TYPES)}",
        )
        parser.add_argument("--description", default="")
        parser.add_argument(
            "--rate",
            type=int,
            default=limits.WEBHOOK_RATE,
            help=f"attempts a second, at most {limits.WEBHOOK_RATE_MOST}",
        )
        parser.add_argument(
            "--test", action="store_true", help="gets the events of test tokens, and no others"
        )
        parser.add_argument(
            "--json", action="store_true", help="print id and secret as JSON, as the last line"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        try:
            workspace = workspaces.find_workspace(options["workspace"])
            if workspace is None:
                message = f"There is no workspace {options['workspace']!r}; name one, or give its id (ws_…)."
                raise CommandError(message)
            added = endpoints.add(
                workspace,
                options["url"],
                events=options["event"],
                test=options["test"],
                description=options["description"],
                rate=options["rate"],
                actor="manage.py add_webhook",
            )
        except AppError as error:
            raise CommandError(
                "\n".join(f"{detail.field}: {detail.message}" for detail in error.detail)
            ) from error
        public_id = encode("whe", added.endpoint.pk)
        if options["json"]:
            self.stdout.write(json.dumps({"id": public_id, "secret": added.secret}))
        else:
            self.stdout.write(
                f"Endpoint: {public_id}\nSecret:   {added.secret}\nThe secret is not shown again."
            )
