"""What a command says where the database has no tables, or doesn't answer: which one it looked in, and what to do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import OperationalError

if TYPE_CHECKING:
    from django.db import DatabaseError
    from django.db.backends.base.base import BaseDatabaseWrapper

_NO_TABLE: Final = re.compile(r'no such table|relation "\S+" does not exist')


def reason(connection: BaseDatabaseWrapper, error: DatabaseError) -> str | None:
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
