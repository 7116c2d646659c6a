"""Databases without tables, and those of before the migrations were one for each app: what a command says of them."""

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
"""The last commit with every single migration."""
_OURS: Final = ("accounts", "analytics", "pipeline", "webhooks")
_INITIAL: Final = "0001_initial"
_NO_TABLE: Final = re.compile(r'no such table|relation "\S+" does not exist')


def replaced_migrations() -> dict[tuple[str, str], frozenset[tuple[str, str]]]:
    """Of each migration that replaces others those others."""
    disk = MigrationLoader(None).disk_migrations
    return {key: frozenset(one.replaces) for key, one in disk.items() if one.replaces}


def why_not(applied: Collection[tuple[str, str]]) -> str | None:
    """The sentence for a database that lacks some of an app's former migrations; None where it can be migrated.

    Django would pass such an app by without a word, and the tables that it lacks would be missed much later.
    """
    had = set(applied)
    former = replaced_migrations()
    for app in _OURS:
        initial = (app, _INITIAL)
        missing = sorted({initial, *former.get(initial, ())} - had)
        if missing and any(one == app for one, _ in had):
            names = ", ".join(f"{app}.{name}" for app, name in missing[:3])
            return (
                f"It was made by an unreleased version and lacks {len(missing)} of its migrations ({names}). "
                f"Check out commit {LAST_UNSQUASHED}, run its manage.py migrate, then come back to this version "
                "and run manage.py migrate. Nothing was changed."
            )
    return None


def explain_error(connection: BaseDatabaseWrapper, error: DatabaseError) -> str | None:
    """None for any other fault, which is ours and keeps its traceback. A file without a table, which looking made, is removed."""
    place = f"The database {connection.settings_dict['NAME']}"
    if _NO_TABLE.search(str(error)):
        _remove_empty(connection)
        return (
            f"{place} has no tables. If the service keeps its data elsewhere, name the same DATA_DIR or DATABASE_URL "
            "for this command (`make token DATA_DIR=…`); else make the tables with `manage.py migrate`, or start with `make up`."
        )
    if connection.vendor == "postgresql" and isinstance(error, OperationalError):
        return f"{place} doesn't answer: {str(error).strip().splitlines()[-1].removesuffix('.')}. Start it, or set DATABASE_URL right."
    return None


def _remove_empty(connection: BaseDatabaseWrapper) -> None:
    if connection.vendor != "sqlite":
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM sqlite_master")
        [tables] = cursor.fetchone()
    connection.close()
    if not tables:
        for ending in ("", "-wal", "-shm"):
            Path(f"{settings.DATABASES['default']['NAME']}{ending}").unlink(missing_ok=True)
