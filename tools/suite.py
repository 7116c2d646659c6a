"""Runs the test suite in its two surroundings: SQLite with nothing else, then PostgreSQL and Redis.

Services are looked for in TEST_DATABASE_URL and TEST_REDIS_URL, then DATABASE_URL and REDIS_URL, then at the standard
local ports. Where they don't answer it says so; with REQUIRE_SERVICES=1 that is a failure.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import redis

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
# Two checkouts on one server must not share a test database.
DATABASE = f"suite_{hashlib.sha256(str(ROOT).encode()).hexdigest()[:8]}"
RINGS = {
    "fast": [["-m", "not slow and not real", "-n", "2"]],
    # Each of these starts processes of its own, and waits for them as often as it works; some of them measure time.
    "slow": [
        ["-m", "slow and not alone", "-n", "3", "--dist", "loadfile", "--no-loadscope-reorder"],
        ["-m", "alone"],
    ],
    # Servers that the world runs: WordPress and a PDS of Bluesky's, on this machine.
    "real": [["-m", "real", "-n", "2", "--dist", "loadfile"]],
    "coverage": [
        ["-m", "not slow and not real", "-n", "2", "--cov", "--cov-report=term-missing:skip-covered"]
    ],
}
SOME_TEST_FAILED = 1
NO_TEST_WAS_CHOSEN = 5
FAILURES_TRIED_AGAIN = 5
# Compiled modules are kept: hundreds of processes would spend most of their time in compiling the same ones.
NOT_HERE = ("PYTHONDONTWRITEBYTECODE",)
OURS = (
    "DATABASE_URL",
    "REDIS_URL",
    "MODE",
    "DATA_DIR",
    "PORT",
    "PUBLIC_URL",
    "SECRET_KEY",
    "FIELD_KEYS",
    "POSTGRES_FOLLOWS",
)


def find_postgres() -> tuple[str | None, str]:
    """An address that answers, or None; and what was tried."""
    given = os.environ.get("TEST_DATABASE_URL") or os.environ.get("DATABASE_URL")
    users = dict.fromkeys([os.environ.get("PGUSER") or getpass.getuser(), "postgres", "postgres:postgres"])
    candidates = [given] if given else [f"postgres://{user}@127.0.0.1:5432/{DATABASE}" for user in users]
    reason = ""
    for candidate in candidates:
        head, _, _name = candidate.rpartition("/")
        try:
            # The database itself need not exist: tests make their own beside it.
            psycopg.connect(f"{head}/postgres", connect_timeout=3).close()
        except psycopg.OperationalError as error:
            reason = reason or str(error).strip().splitlines()[-1]
        else:
            return candidate, ""
    return None, f"PostgreSQL does not answer ({reason})"


def find_redis() -> tuple[str | None, str]:
    given = os.environ.get("TEST_REDIS_URL") or os.environ.get("REDIS_URL")
    candidate = given or "redis://127.0.0.1:6379/15"
    try:
        redis.Redis.from_url(candidate, socket_connect_timeout=3, socket_timeout=3).ping()
    except redis.RedisError as error:
        return None, f"Redis does not answer ({error})"
    return candidate, ""


def run(title: str, ring: str, surroundings: dict[str, str]) -> bool:
    data_dir = ROOT / "var" / "test" / title.split(maxsplit=1)[0].lower()
    data_dir.mkdir(parents=True, exist_ok=True)
    environment = {name: value for name, value in os.environ.items() if name not in OURS + NOT_HERE}
    environment |= {"MODE": "development", "DATA_DIR": str(data_dir), **surroundings}
    print(f"\n== {ring}: {title}", flush=True)
    started = time.monotonic()
    with migrated(data_dir, environment) as environment["MIGRATED"]:
        codes = [pytest(number, options, data_dir, environment) for number, options in enumerate(RINGS[ring])]
    # A part that was named on the command line may have tests for one pass only.
    passed = 0 in codes and set(codes) <= {0, NO_TEST_WAS_CHOSEN}
    print(
        f"== {ring}: {title}: {'passed' if passed else 'FAILED'} in {time.monotonic() - started:.0f} s",
        flush=True,
    )
    return passed


@contextmanager
def migrated(data_dir: Path, environment: dict[str, str]) -> Iterator[str]:
    """A database that every other one of the ring is copied from (tests/migrated.py): its name, or its file's path."""
    folder = data_dir / "migrated"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    environment = {**environment, "DATA_DIR": str(folder)}
    if "DATABASE_URL" not in environment:
        migrate(environment)
        file = folder / "db.sqlite3"
        # The last one to leave writes the journal into the file, and only the file is copied.
        sqlite3.connect(file).execute("PRAGMA wal_checkpoint(TRUNCATE)").connection.close()
        yield str(file)
        return
    name = f"{DATABASE}_migrated"
    head, _, _name = environment["DATABASE_URL"].rpartition("/")
    with psycopg.connect(f"{head}/postgres", autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {name}")
    migrate({**environment, "DATABASE_URL": f"{head}/{name}"})
    try:
        yield name
    finally:
        with psycopg.connect(f"{head}/postgres", autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def migrate(environment: dict[str, str]) -> None:
    command = [sys.executable, "manage.py", "migrate", "--no-input", "-v", "0"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)


def pytest(number: int, options: list[str], data_dir: Path, environment: dict[str, str]) -> int:
    """The exit code of one pass. A few tests that failed are run again, with nothing beside them: processes are started,
    killed and timed, servers are waited for, and a machine that is busy with something else for a while is no fault of
    ours. What fails then has failed; what passes is named as passed at the second try, so that it can be mended.
    """
    cache = data_dir / f"cache-{number}"
    shutil.rmtree(cache, ignore_errors=True)
    command = [sys.executable, "-m", "pytest", "-o", f"cache_dir={cache}", *options, *sys.argv[2:]]
    code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    failed = cache / "v" / "cache" / "lastfailed"
    if code != SOME_TEST_FAILED or not failed.exists():
        return code
    names = sorted(json.loads(failed.read_text()))
    if len(names) > FAILURES_TRIED_AGAIN:
        return code
    print(f"\n== {len(names)} that failed, once more with nothing beside them:", flush=True)
    code = subprocess.run(
        [*command, "--last-failed", "-n", "0"], cwd=ROOT, env=environment, check=False
    ).returncode
    if code == 0:
        print("== passed at the second try:", *names, sep="\n   ", flush=True)
    return code


def main() -> int:
    ring = sys.argv[1]
    database, database_reason = find_postgres()
    broker, broker_reason = find_redis()
    follows = bool(database and broker) and ring != "coverage"
    # What tests/conftest.py leaves to the second pass.
    passed = run("SQLite alone", ring, {"POSTGRES_FOLLOWS": "1"} if follows else {})
    if ring == "coverage":
        return 0 if passed else 1
    if database and broker:
        passed &= run("PostgreSQL and Redis", ring, {"DATABASE_URL": database, "REDIS_URL": broker})
    else:
        missing = " and ".join(reason for reason in (database_reason, broker_reason) if reason)
        print(f"\n== {ring}: NOT RUN on PostgreSQL and Redis: {missing}.", flush=True)
        print("== Start them, or name them in TEST_DATABASE_URL and TEST_REDIS_URL.", flush=True)
        if os.environ.get("REQUIRE_SERVICES") == "1":
            print("== REQUIRE_SERVICES=1 makes that a failure.", flush=True)
            passed = False
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
