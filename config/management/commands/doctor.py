"""doctor: a line for each thing that this instance needs, with what to do where it is missing."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand

from config.operations import doctor

if TYPE_CHECKING:
    from django.core.management.base import CommandParser


class Command(BaseCommand):
    help = "Check settings, database, broker, clock, restore, media, disk, backups, outbound guard, keys, dispatcher and dead rows."
    # The checks are the command's own first line; Django's would end it before the others are heard.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="one JSON object instead of lines")

    def handle(self, *_args: Any, **options: Any) -> None:
        findings = doctor.examine()
        has_failed = any(one.verdict == "FAIL" for one in findings)
        if options["json"]:
            told = {"ok": not has_failed, "checks": [asdict(one) for one in findings]}
            self.stdout.write(json.dumps(told, ensure_ascii=False))
        else:
            for one in findings:
                self.stdout.write(f"{one.verdict:<5} {one.name:<22} {one.said}")
                if one.verdict != "ok" and one.advice:
                    self.stdout.write(f"{'':<28} → {one.advice}")
        if has_failed:
            raise SystemExit(1)
