"""settle_publication: records whether a publication of unknown outcome, or handed over, was sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from config.core.clock import utc_now
from config.core.errors import AppError
from config.core.ids import decode
from pipeline import publish
from pipeline.models import Publication

if TYPE_CHECKING:
    from django.core.management.base import CommandParser


class Command(BaseCommand):
    help = (
        "Say whether a publication of unknown outcome, or handed over, was sent; look at the platform first."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("publication", help="its id, pub_…")
        outcome = parser.add_mutually_exclusive_group(required=True)
        outcome.add_argument(
            "--sent", action="store_true", help="the platform has it: it counts as published"
        )
        outcome.add_argument(
            "--not-sent",
            action="store_true",
            help="the platform doesn't have it: an unknown one is sent, a handed-over one fails",
        )
        parser.add_argument("--url", default="", help="with --sent: where people see it")

    def handle(self, *_args: Any, **options: Any) -> None:
        key = decode("pub", options["publication"])
        row = Publication.everywhere.select_related("item").filter(pk=key).first() if key else None
        if row is None:
            message = f"There is no publication {options['publication']}."
            raise CommandError(message)
        try:
            settled = publish.settle_publication(
                row,
                was_sent=options["sent"],
                url=options["url"],
                by="manage.py settle_publication",
                now=utc_now(),
            )
        except AppError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{options['publication']} is {settled.status} now.")
