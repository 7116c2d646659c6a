"""Dumps the database to a file and loads it back, with SQLite's backup or PostgreSQL's client programs."""

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

SESSION_TABLES: Final = ("usersessions_usersession", "django_session")
LOCK_WAIT_SECONDS: Final = 10
"""The longest wait of PostgreSQL's client programs for a lock."""
CONNECTION_CLOSE_SECONDS: Final = 3.0
"""The longest time that the server process of a closed connection may take to end."""
STILL_RUNNING_MESSAGE: Final = (
    "Something else still uses the database. Stop web, workers and beat, then restore."
)


def dump_database(target: Path) -> None:
    """Write a consistent state of the database into an empty file, however many processes write meanwhile.

    Sessions are left out, because a stolen backup would let the thief in as everybody who was logged in. Raises
    `UnusableBackup` if PostgreSQL's client program is missing or fails.
    """
    if connection.vendor == "postgresql":
        exclusions = [f"--exclude-table-data={table}" for table in SESSION_TABLES]
        _run(
            "pg_dump",
            "--format=custom",
            "--no-owner",
            "--no-acl",
            *exclusions,
            f"--file={target}",
            _database_name(),
        )
        return
    connection.ensure_connection()
    with closing(sqlite3.connect(target)) as copy:
        connection.connection.backup(copy)
        # Deleted rows are overwritten with zeros, not only freed.
        copy.execute("PRAGMA secure_delete = ON")
        tables = {name for (name,) in copy.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        for table in SESSION_TABLES:
            if table in tables:
                copy.execute(f"DELETE FROM {table}")  # noqa: S608  our own names
        copy.commit()


def refuse_unless_alone() -> None:
    """Raise `UnusableBackup` if another process has the database open, or PostgreSQL's client program fails."""
    if connection.vendor == "postgresql":
        _close_connections()
        deadline = monotonic() + CONNECTION_CLOSE_SECONDS
        count_others = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
            "AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        while int(_run("psql", "-XAtq", "--command", count_others, _database_name())):
            if monotonic() > deadline:
                raise UnusableBackup(STILL_RUNNING_MESSAGE)
            sleep(0.2)
        return
    try:
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA busy_timeout = 1000")
            # SQLite leaves WAL mode only if nobody else has the file open; the next connection switches back to it.
            cursor.execute("PRAGMA journal_mode = DELETE")
    except OperationalError as error:
        raise UnusableBackup(STILL_RUNNING_MESSAGE) from error
    finally:
        connection.close()


def prepare_load(dump: Path) -> Path:
    """Return the file that `load_database` reads, with the mark of an unfinished restore in it.

    Raises `UnusableBackup` if the dump can't be read, or PostgreSQL's client program fails; then nothing is changed.
    """
    since = datetime.now(UTC).isoformat()
    if connection.vendor == "postgresql":
        script = dump.with_name(f"{dump.name}.sql")
        # Written to a file first: a pg_restore that fails in the middle of a pipe would look like one that ended.
        _run("pg_restore", "--no-owner", "--no-acl", f"--file={script}", str(dump))
        with script.open("a", encoding="utf-8") as file:
            file.write(f"\nSET search_path = public;\n{unfinished_restore.CREATE_TABLE_SQL};\n")
            file.write(f"INSERT INTO {unfinished_restore.TABLE} VALUES ('{since}');\n")  # noqa: S608  our own words
        return script
    try:
        with closing(sqlite3.connect(dump)) as copy:
            if copy.execute("PRAGMA quick_check").fetchone() != ("ok",):
                message = "The database in the backup is damaged. Nothing was changed."
                raise UnusableBackup(message)
            copy.execute(unfinished_restore.CREATE_TABLE_SQL)
            copy.execute(f"INSERT INTO {unfinished_restore.TABLE} VALUES (?)", [since])  # noqa: S608  our own name
            copy.commit()
    except sqlite3.DatabaseError as error:
        message = f"The database in the backup can't be read ({error}). Nothing was changed."
        raise UnusableBackup(message) from error
    return dump


def load_database(prepared: Path) -> None:
    """Replace the whole database in one transaction, so that a kill in between leaves the old one.

    Raises `UnusableBackup` if PostgreSQL's client program is missing or fails.
    """
    if connection.vendor == "postgresql":
        _close_connections()
        _run(
            "psql",
            "--no-psqlrc",
            "--quiet",
            "--single-transaction",
            "--set=ON_ERROR_STOP=1",
            # pg_restore's --clean wouldn't drop tables that came after the backup was made.
            "--command=DROP SCHEMA public CASCADE",
            "--command=CREATE SCHEMA public",
            f"--file={prepared}",
            _database_name(),
        )
        return
    connection.ensure_connection()
    with closing(sqlite3.connect(prepared)) as copy:
        copy.backup(connection.connection)
    # A connection that has seen the old tables must not be reused.
    connection.close()


def _close_connections() -> None:
    """Close this process's connections and its pool."""
    connection.close()
    close_pool = getattr(connection, "close_pool", None)
    if close_pool is not None:
        close_pool()


def _database_name() -> str:
    return str(settings.DATABASES["default"]["NAME"])


def _run(program: str, *arguments: str) -> str:
    """Return a PostgreSQL client program's output. Raises `UnusableBackup` if it is missing or fails."""
    command = shutil.which(program)
    if command is None:
        message = f"{program} is not installed; install PostgreSQL's client programs of the server's version."
        raise UnusableBackup(message)
    # The password isn't passed as an argument, which every user of the machine could read.
    environment = {**os.environ, **dict(_libpq_environment())}
    result = subprocess.run(  # noqa: S603  the arguments are our own
        [command, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    if result.returncode:
        message = f"{program} failed: {result.stderr.strip()[-500:]}"
        raise UnusableBackup(message)
    return result.stdout


def _libpq_environment() -> Iterator[tuple[str, str]]:
    """Yield the environment variables by which the client programs connect."""
    database = settings.DATABASES["default"]
    names = {"PGHOST": "HOST", "PGPORT": "PORT", "PGUSER": "USER", "PGPASSWORD": "PASSWORD"}
    for variable, name in names.items():
        if database.get(name):
            yield variable, str(database[name])
    yield "PGOPTIONS", f"-c lock_timeout={LOCK_WAIT_SECONDS}s"
