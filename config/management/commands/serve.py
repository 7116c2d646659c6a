"""serve: runs web, worker and Beat in one process, with nothing else to install."""

from __future__ import annotations

import errno
from importlib import import_module
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from config.operations import unfinished_restore

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(BaseCommand):
    help = "Serve the pages and the API, and do the work behind them, in one process."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--host", default=settings.WEB_HOST, help="The address to listen at (default: %(default)s)."
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Serve until a signal. Raises `CommandError` if the port can't be used, or a restore isn't finished."""
        from config import server  # noqa: PLC0415  gunicorn, which `help` doesn't need

        # Imported before the fork, so that a restarted process doesn't have to import every view first.
        import_module(settings.ROOT_URLCONF)
        try:
            unfinished_restore.refuse_to_start(before_fork=True)
        except unfinished_restore.HalfRestored as error:
            raise CommandError(str(error)) from error
        host: str = options["host"]
        try:
            server.wait_for_port(host, settings.PORT)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                message = (
                    f"Port {settings.PORT} is in use. Stop what listens there, or choose another: PORT=8001."
                )
                raise CommandError(message) from None
            message = f"Can't listen at {host}:{settings.PORT}: {error.strerror}."
            raise CommandError(message) from None
        server.EmbeddedServer(host=host).run()
