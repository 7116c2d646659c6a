"""Explains the errors of commands on databases without tables, or from before the migrations were squashed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import OperationalError
from django.db.migrations.loader import MigrationLoader

if TYPE_CHECKING:
    from collections.abc import Collection

    from django.db import DatabaseError
    from django.db.backends.base.base import BaseDatabaseWrapper

LAST_UNSQUASHED: Final = "f15c1bd3"
"""The last commit that still has every single migration."""
_OUR_APPS: Final = ("accounts", "analytics", "pipeline", "webhooks")
_INITIAL: Final = "0001_initial"
_NO_TABLE: Final = re.compile(r'no such table|relation "\S+" does not exist')


def replaced_migrations() -> dict[tuple[str, str], frozenset[tuple[str, str]]]:
    """Return, for each squashed migration, the migrations that it replaces."""
    disk = MigrationLoader(None).disk_migrations
    return {key: frozenset(migration.replaces) for key, migration in disk.items() if migration.replaces}


def why_not(applied: Collection[tuple[str, str]]) -> str | None:
    """Return the message for a database that lacks some of an app's old migrations, else `None`.

    Django would skip such an app without an error, and the missing tables would be noticed much later.
    """
    applied_set = set(applied)
    replaced = replaced_migrations()
    for app in _OUR_APPS:
        initial = (app, _INITIAL)
        missing = sorted({initial, *replaced.get(initial, ())} - applied_set)
        if missing and any(applied_app == app for applied_app, _ in applied_set):
            names = ", ".join(f"{app}.{name}" for app, name in missing[:3])
            return (
                f"It was made by an unreleased version and lacks {len(missing)} of its migrations "
                f"({names}). Check out commit {LAST_UNSQUASHED}, run its manage.py migrate, then check out "
                "this version again and run manage.py migrate. Nothing was changed."
            )
    return None


def explain_error(connection: BaseDatabaseWrapper, error: DatabaseError) -> str | None:
    """Return what is wrong with the database, or `None` for our own faults, which keep their traceback.

    An SQLite file without tables is removed, because opening it has created it.
    """
    database_text = f"The database {connection.settings_dict['NAME']}"
    if _NO_TABLE.search(str(error)):
        _remove_empty(connection)
        return (
            f"{database_text} has no tables. If the service keeps its data elsewhere, name the same DATA_DIR or DATABASE_URL "
            "for this command (`make token DATA_DIR=…`); else make the tables with `manage.py migrate`, or start with `make up`."
        )
    if connection.vendor == "postgresql" and isinstance(error, OperationalError):
        return f"{database_text} doesn't answer: {str(error).strip().splitlines()[-1].removesuffix('.')}. Start it, or set DATABASE_URL right."
    return None


def _remove_empty(connection: BaseDatabaseWrapper) -> None:
    """Remove the SQLite file if it has no tables."""
    if connection.vendor != "sqlite":
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM sqlite_master")
        [tables] = cursor.fetchone()
    connection.close()
    if not tables:
        for ending in ("", "-wal", "-shm"):
            Path(f"{settings.DATABASES['default']['NAME']}{ending}").unlink(missing_ok=True)
