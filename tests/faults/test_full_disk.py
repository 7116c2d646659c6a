"""A disk that is full, or takes no writes, and one that has room again: readiness says which, and comes back by itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from config.operations import health
from tests import migrated
from tests.faults import own_postgres
from tests.faults.instance import OURS, ROOT, Instance
from tests.faults.own_postgres import OwnPostgres

pytestmark = [pytest.mark.slow]

SECONDS = 60


@contextmanager
def small_disk(folder: Path, mebibytes: int):
    """Mounted there; skips where that isn't allowed."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs", str(folder)]
    mounted = subprocess.run(command, capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip(f"nothing may be mounted here: {mounted.stderr.decode()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@contextmanager
def filled(folder: Path, but: int = 0):
    """But so many bytes."""
    ballast = folder / "ballast"
    try:
        with ballast.open("wb", buffering=0) as file:
            while (left := shutil.disk_usage(folder).free - but) > 0:
                file.write(bytes(min(left, 2**20)))
        yield
    finally:
        ballast.unlink()


def wait_for(what):
    until = time.monotonic() + SECONDS
    while not (found := what()):
        assert time.monotonic() < until
        time.sleep(0.2)
    return found


@pytest.mark.sqlite
def test_a_service_whose_disk_is_full_says_so_and_comes_back(tmp_path):
    with small_disk(tmp_path, 160), Instance(tmp_path) as instance:
        token = instance.token()

        def told():
            return {
                check["name"]: check["detail"]
                for check in instance.call("GET", "/readyz", "").json()["checks"]
            }

        with filled(tmp_path, 64 * 1024):
            wait_for(lambda: not instance.is_ready())
            found = told()
            assert found["database"] == "The disk of the database is full."
            assert found["media"] == "The disk of media files is full."
            assert str(tmp_path) not in str(found)
            body = {"title": "Tram line approved", "body": "The council approved the tram line. " * 5_000}
            assert instance.call("POST", "/v1/raw", token, body).status_code == 503
            assert instance.call("GET", "/v1/raw", token).status_code == 200
        wait_for(instance.is_ready)
        assert instance.call("POST", "/v1/raw", token, body).status_code == 202


def test_a_folder_on_a_read_only_disk_is_told_from_a_full_one(tmp_path):
    with small_disk(tmp_path, 32):
        assert health._folder_fault(tmp_path, "media files") == ""
        with filled(tmp_path):
            assert health._folder_fault(tmp_path, "media files") == "The disk of media files is full."
        subprocess.run(["mount", "-o", "remount,ro", str(tmp_path)], check=True)
        assert (
            health._folder_fault(tmp_path, "media files") == "The folder of media files can't be written to."
        )
        subprocess.run(["mount", "-o", "remount,rw", str(tmp_path)], check=True)
        assert health._folder_fault(tmp_path, "media files") == ""
        assert not list(tmp_path.iterdir())


# --- What each database says -----------------------------------------------------------------------------------------

SAYS = "import django; django.setup(); from config.operations import health; print(health.writable_database().detail)"


def said_with(**environment):
    """By a process of its own, as one that starts now."""
    surroundings = {name: value for name, value in os.environ.items() if name not in OURS}
    surroundings |= {"MODE": "development", "DJANGO_SETTINGS_MODULE": "config.settings", **environment}
    command = [sys.executable, "-c", SAYS]
    done = subprocess.run(
        command, cwd=ROOT, env=surroundings, capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout.strip()


@pytest.mark.sqlite
def test_a_sqlite_file_on_a_read_only_disk(tmp_path):
    with small_disk(tmp_path, 64):
        migrated.make_file(tmp_path)
        assert said_with(DATA_DIR=str(tmp_path)) == "sqlite"
        subprocess.run(["mount", "-o", "remount,ro", str(tmp_path)], check=True)
        assert said_with(DATA_DIR=str(tmp_path)) == "The database's file is read-only."


@pytest.mark.skipif(not own_postgres.IS_POSSIBLE, reason="no initdb here to make a database of its own with")
def test_a_postgresql_that_takes_no_writes_says_why(tmp_path):
    folder = Path(tempfile.mkdtemp(prefix="small-disk-"))

    def said():
        return said_with(DATA_DIR=str(tmp_path), DATABASE_URL=postgres.url)

    def tell(sql):
        with psycopg.connect(postgres.url, autocommit=True) as opened:
            opened.execute(sql)

    with small_disk(folder, 200), OwnPostgres(folder) as postgres:
        assert said() == "postgresql"
        with filled(folder):
            assert said() == "The disk of the database is full."
        assert said() == "postgresql"
        tell("ALTER SYSTEM SET default_transaction_read_only = on")
        tell("SELECT pg_reload_conf()")
        assert said() == "The database is read-only."
        postgres.stop()
        (postgres.data / "standby.signal").touch()
        postgres.start()
        assert said() == "The database is a standby, which takes no writes."
    folder.rmdir()
