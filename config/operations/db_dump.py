"""The database as one file, and back: SQLite's own backup, or PostgreSQL's client programs."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from contextlib import closing
from datetime import UTC, datetime
from time import monotonic, sleep
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import OperationalError, connection

from config.operations import unfinished_restore
from config.operations.backup_archive import UnusableBackup

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SESSIONS: Final = ("usersessions_usersession", "django_session")
LOCK_WAIT_SECONDS: Final = 10
LEAVES_SECONDS: Final = 3.0
"""A server process of a connection that has just been closed needs a moment to end."""
STILL_RUNNING: Final = "Something else still uses the database. Stop web, workers and beat, then restore."


def dump_database(to: Path) -> None:
    """Into an empty file: a whole state of the database, however many write meanwhile.

    But for the sessions: whoever finds a backup would be logged in as everybody who was.
    """
    if connection.vendor == "postgresql":
        left_out = [f"--exclude-table-data={table}" for table in SESSIONS]
        _run("pg_dump", "--format=custom", "--no-owner", "--no-acl", *left_out, f"--file={to}", _name())
        return
    connection.ensure_connection()
    with closing(sqlite3.connect(to)) as copy:
        connection.connection.backup(copy)
        # Overwritten with zeros, not only let go.
        copy.execute("PRAGMA secure_delete = ON")
        there = {name for (name,) in copy.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        for table in SESSIONS:
            if table in there:
                copy.execute(f"DELETE FROM {table}")  # noqa: S608  our own names
        copy.commit()


def refuse_unless_alone() -> None:
    """Raises `UnusableBackup` while any other process has the database open."""
    if connection.vendor == "postgresql":
        _close_all()
        until = monotonic() + LEAVES_SECONDS
        others = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
            "AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        while int(_run("psql", "-XAtq", "--command", others, _name())):
            if monotonic() > until:
                raise UnusableBackup(STILL_RUNNING)
            sleep(0.2)
        return
    try:
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA busy_timeout = 1000")
            # SQLite leaves the write-ahead log only where nobody else has the file open; the next connection is
            # back in it.
            cursor.execute("PRAGMA journal_mode = DELETE")
    except OperationalError as error:
        raise UnusableBackup(STILL_RUNNING) from error
    finally:
        connection.close()


def prepare_load(kept: Path) -> Path:
    """Make ready what `load_database` will read, and mark it as half restored; what can't be read fails here, with nothing
    changed.
    """
    since = datetime.now(UTC).isoformat()
    if connection.vendor == "postgresql":
        script = kept.with_name(f"{kept.name}.sql")
        # Written out first: a restore that broke off in the middle of a pipe would look like one that ended.
        _run("pg_restore", "--no-owner", "--no-acl", f"--file={script}", str(kept))
        with script.open("a", encoding="utf-8") as file:
            file.write(f"\nSET search_path = public;\n{unfinished_restore.CREATE};\n")
            file.write(f"INSERT INTO {unfinished_restore.TABLE} VALUES ('{since}');\n")  # noqa: S608  our own words
        return script
    try:
        with closing(sqlite3.connect(kept)) as copy:
            if copy.execute("PRAGMA quick_check").fetchone() != ("ok",):
                message = "The database in the backup is damaged. Nothing was changed."
                raise UnusableBackup(message)
            copy.execute(unfinished_restore.CREATE)
            copy.execute(f"INSERT INTO {unfinished_restore.TABLE} VALUES (?)", [since])  # noqa: S608  our own name
            copy.commit()
    except sqlite3.DatabaseError as error:
        message = f"The database in the backup can't be read ({error}). Nothing was changed."
        raise UnusableBackup(message) from error
    return kept


def load_database(prepared: Path) -> None:
    """Replace the whole database in one transaction: killed in the middle, the former one is still there."""
    if connection.vendor == "postgresql":
        _close_all()
        _run(
            "psql",
            "--no-psqlrc",
            "--quiet",
            "--single-transaction",
            "--set=ON_ERROR_STOP=1",
            # Not pg_restore's --clean, which knows nothing of tables that came after the backup was made.
            "--command=DROP SCHEMA public CASCADE",
            "--command=CREATE SCHEMA public",
            f"--file={prepared}",
            _name(),
        )
        return
    connection.ensure_connection()
    with closing(sqlite3.connect(prepared)) as kept:
        kept.backup(connection.connection)
    # Not a connection that has seen the former tables.
    connection.close()


def _close_all() -> None:
    connection.close()
    close_pool = getattr(connection, "close_pool", None)
    if close_pool is not None:
        close_pool()


def _name() -> str:
    return str(settings.DATABASES["default"]["NAME"])


def _run(program: str, *arguments: str) -> str:
    found = shutil.which(program)
    if found is None:
        message = f"{program} is not installed; install PostgreSQL's client programs of the server's version."
        raise UnusableBackup(message)
    # Not in the arguments, which every user of the machine can read.
    environment = {**os.environ, **dict(_libpq())}
    done = subprocess.run([found, *arguments], env=environment, capture_output=True, text=True, check=False)  # noqa: S603  our own words
    if done.returncode:
        message = f"{program} failed: {done.stderr.strip()[-500:]}"
        raise UnusableBackup(message)
    return done.stdout


def _libpq() -> Iterator[tuple[str, str]]:
    database = settings.DATABASES["default"]
    names = {"PGHOST": "HOST", "PGPORT": "PORT", "PGUSER": "USER", "PGPASSWORD": "PASSWORD"}
    for variable, name in names.items():
        if database.get(name):
            yield variable, str(database[name])
    yield "PGOPTIONS", f"-c lock_timeout={LOCK_WAIT_SECONDS}s"
