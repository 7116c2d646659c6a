"""runserver: runs Django's command at the service's port."""

from __future__ import annotations

from django.conf import settings
from django.contrib.staticfiles.management.commands import runserver


class Command(runserver.Command):
    default_port = str(settings.PORT)

    def on_bind(self, server_port: int) -> None:
        super().on_bind(server_port)
        self.stdout.write(
            "This serves only pages and the API. Start `celery -A config worker` too, which does the work."
        )
