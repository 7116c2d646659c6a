"""explain: says why something hasn't moved, what it waits for, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from config.core.clock import utc_now
from config.operations.explain import explain

if TYPE_CHECKING:
    from django.core.management.base import CommandParser


class Command(BaseCommand):
    help = "Say why an item, publication, source, delivery or anything else with a public id hasn't moved."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("id", help="its public id, such as gen_…, raw_…, pub_…, src_…, dlv_… or whe_…")

    def handle(self, *_args: Any, **options: Any) -> None:
        lines = explain(options["id"], now=utc_now())
        if not lines:
            message = f"There is nothing with the id {options['id']}."
            raise CommandError(message)
        self.stdout.write("\n".join(lines))
