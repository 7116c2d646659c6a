"""doctor: prints the result of each check of this instance, with what to do about a fault."""

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
    # Django's checks are the doctor's first check. If Django ran them, a failing one would end the command.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="one JSON object instead of lines")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Print the findings, and exit with 1 if one of them is a failure."""
        findings = doctor.examine()
        has_failed = any(finding.verdict == "FAIL" for finding in findings)
        if options["json"]:
            report = {"ok": not has_failed, "checks": [asdict(finding) for finding in findings]}
            self.stdout.write(json.dumps(report, ensure_ascii=False))
        else:
            for finding in findings:
                self.stdout.write(f"{finding.verdict:<5} {finding.name:<22} {finding.said}")
                if finding.verdict != "ok" and finding.advice:
                    self.stdout.write(f"{'':<28} → {finding.advice}")
        if has_failed:
            raise SystemExit(1)
