"""A database that is migrated already: what tests, and the services they start, begin with.

`tools/suite.py` has one migrated for each ring and names it in MIGRATED: a file of SQLite's, or a database of PostgreSQL's.
Where pytest is called by hand there may be none; then each database is migrated by itself, which takes seconds.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
from django.conf import settings
from django.db import connection

NAME = os.environ.get("MIGRATED", "")
JOURNALS = ("-wal", "-shm", "-journal")


def make_file(data_dir: Path) -> bool:
    """The database of SQLite in a folder that has none. False where there is nothing to copy."""
    if NAME:
        _copy_to(data_dir / "db.sqlite3")
    return bool(NAME)


def _copy_to(path: Path) -> None:
    """A journal that an earlier database of the same name left would be played into this one as soon as it is opened."""
    for journal in JOURNALS:
        Path(f"{path}{journal}").unlink(missing_ok=True)
    shutil.copyfile(NAME, path)


def make_database(name: str) -> bool:
    """A database of PostgreSQL's. False where it is empty."""
    administer(f"CREATE DATABASE {name} TEMPLATE {NAME or 'template1'}")
    return bool(NAME)


def administer(sql: str) -> None:
    with psycopg.connect(url_of("postgres"), autocommit=True) as opened:
        opened.execute(sql)


def url_of(name: str) -> str:
    """The address of another database on the suite's own server."""
    return urlunsplit(urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{name}"))


def begin_with_it() -> None:
    """The test databases of this process are copies, so that Django finds nothing left to migrate."""
    if not NAME:
        return
    if settings.IS_POSTGRES:
        settings.DATABASES["default"]["TEST"]["TEMPLATE"] = NAME
        return
    creation = connection.creation
    create = creation._create_test_db

    def create_copy(*arguments: object, **options: object) -> str:
        path = create(*arguments, **options)
        _copy_to(Path(path))
        return path

    creation._create_test_db = create_copy
