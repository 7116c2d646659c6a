"""A database that is migrated already: what tests, and the services they start, begin with.

`tools/suite.py` has one migrated for each ring and names it in MIGRATED: a file of SQLite's, or a database of PostgreSQL's.
Where pytest is called by hand, the first run keeps its database of SQLite's in the data folder for those after it, until
a migration changes; databases of PostgreSQL's are then migrated each by itself, which takes seconds.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import django
import psycopg
from django.apps import apps
from django.conf import settings
from django.db import connection, connections, transaction
from django.test import TransactionTestCase

NAME = os.environ.get("MIGRATED", "")
# After each migration, with a row for each model and permission.
FILLED_BY_DJANGO = {"django_content_type", "auth_permission"}
JOURNALS = ("-wal", "-shm", "-journal")


def make_file(data_dir: Path) -> bool:
    """The database of SQLite in a folder that has none. False where there is nothing to copy."""
    source = kept_file()
    if source.exists():
        _copy(source, data_dir / "db.sqlite3")
    return source.exists()


def kept_file() -> Path:
    """The migrated database of SQLite's: the suite's, or the one that is kept, whose name changes with the migrations."""
    if NAME:
        return Path(NAME)
    digest = hashlib.sha256(django.__version__.encode())
    for config in sorted(apps.get_app_configs(), key=lambda one: one.label):
        for file in sorted(Path(config.path).glob("migrations/*.py")):
            digest.update(file.read_bytes())
    return settings.DATA_DIR / f"migrated-{digest.hexdigest()[:16]}.sqlite3"


def _copy(source: Path, path: Path) -> None:
    """A journal that an earlier database of the same name left would be played into this one as soon as it is opened."""
    for journal in JOURNALS:
        Path(f"{path}{journal}").unlink(missing_ok=True)
    shutil.copyfile(source, path)


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
    if settings.IS_POSTGRES:
        if NAME:
            settings.DATABASES["default"]["TEST"]["TEMPLATE"] = NAME
        return
    source = kept_file()
    creation = connection.creation
    make_empty, make = creation._create_test_db, creation.create_test_db

    def make_copy(*arguments: object, **options: object) -> str:
        path = make_empty(*arguments, **options)
        if source.exists():
            _copy(source, Path(path))
        return path

    def make_and_keep(*arguments: object, **options: object) -> str:
        name = make(*arguments, **options)
        if not source.exists():
            keep(source)
        return name

    creation._create_test_db, creation.create_test_db = make_copy, make_and_keep


def keep(path: Path) -> None:
    """Whole or not at all, whoever else keeps it at the same time."""
    partial = path.with_suffix(f".{os.getpid()}")
    with connection.cursor() as cursor:
        cursor.execute("VACUUM INTO %s", [str(partial)])
    for former in path.parent.glob("migrated-*.sqlite3"):
        former.unlink(missing_ok=True)
    partial.replace(path)


def empty_by_deleting() -> None:
    """After a test that commits, delete its rows: to truncate a hundred tables and to fill two anew takes a second."""
    TransactionTestCase._fixture_teardown = _delete_rows


def _delete_rows(case: TransactionTestCase) -> None:
    for alias in case._databases_names(include_mirrors=False):
        opened = connections[alias]
        tables = opened.introspection.django_table_names(only_existing=True, include_views=False)
        with transaction.atomic(alias), opened.cursor() as cursor:
            for table in sorted({*tables} - FILLED_BY_DJANGO):
                cursor.execute(f"DELETE FROM {opened.ops.quote_name(table)}")
