"""rotate_keys: encrypts every secret again with the first key of FIELD_KEYS."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management.base import BaseCommand

from config.operations import rotate_keys

if TYPE_CHECKING:
    from django.core.management.base import CommandParser


class Command(BaseCommand):
    help = (
        "Encrypt every secret in the database with the first key of FIELD_KEYS; the service may keep running."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--check", action="store_true", help="only show how many values are encrypted with which key"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        is_complete = True
        if not options["check"]:
            for rotated in rotate_keys.rotate():
                self.stdout.write(
                    f"{rotated.column}: {rotated.rewritten} encrypted again{self._problems(rotated)}"
                )
                is_complete = is_complete and not rotated.undecryptable
        if not self._check() or not is_complete:
            raise SystemExit(1)

    def _problems(self, rotated: rotate_keys.RotatedColumn) -> str:
        overtaken = f", {rotated.overtaken} changed by others in the meantime" if rotated.overtaken else ""
        lost = f", {rotated.undecryptable} that no key decrypts" if rotated.undecryptable else ""
        return overtaken + lost

    def _check(self) -> bool:
        """Print how many values each key encrypts, and return whether the first one encrypts all."""
        newest = rotate_keys.newest_key()
        known = {str(pair).partition(":")[0] for pair in settings.FIELD_KEYS}
        total: Counter[str] = Counter()
        for column, counts in rotate_keys.count_by_key().items():
            total.update(counts)
            for key, count in sorted(counts.items()):
                if key != newest:
                    self.stdout.write(f"{column}: {count} encrypted with {key}")
        for key, count in sorted(total.items()):
            lacks = "" if key in known else ", which isn't in FIELD_KEYS"
            self.stdout.write(f"{key}: {count} values{lacks}")
        is_done = set(total) <= {newest}
        self.stdout.write(
            f"Everything is encrypted with {newest}."
            if is_done
            else f"Not everything is encrypted with {newest}."
        )
        return is_done
