"""migrate: runs Django's command, unless a database lacks some of the old migrations."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import connections
from django.db.migrations.recorder import MigrationRecorder

from config.operations import unmigrated_database


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        applied = MigrationRecorder(connections[options["database"]]).applied_migrations()
        reason = unmigrated_database.why_not(applied)
        if reason:
            message = f"This database can't be migrated. {reason}"
            raise CommandError(message)
        super().handle(*args, **options)
