"""Compares every workspace's balance with the sum of its ledger."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from accounts.ledger import reports
from config.core.ids import encode


class Command(BaseCommand):
    help = "Compare every balance with the sum of its ledger; exit 1 where they differ."

    def handle(self, *args: Any, **options: Any) -> None:
        del args, options
        mismatches = reports.check()
        for mismatch in mismatches:
            balance = "no row" if mismatch.balance is None else mismatch.balance
            self.stdout.write(
                f"{encode('ws', mismatch.workspace_id)} {mismatch.what}: ledger {mismatch.ledger}, balance {balance}"
            )
        if mismatches:
            raise SystemExit(1)
        self.stdout.write("Every balance is the sum of its ledger.")
