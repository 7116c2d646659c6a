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
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import redis

ROOT = Path(__file__).resolve().parent.parent
# Two checkouts on one server must not share a test database.
DATABASE = f"suite_{hashlib.sha256(str(ROOT).encode()).hexdigest()[:8]}"
RINGS = {
    "fast": [["-m", "not slow and not real", "-n", "2"]],
    # Each of these starts processes of its own, and some of them measure time.
    "slow": [["-m", "slow and not alone", "-n", "2", "--dist", "loadfile"], ["-m", "alone"]],
    # Servers that the world runs: WordPress and a PDS of Bluesky's, on this machine.
    "real": [["-m", "real", "-n", "2", "--dist", "loadfile"]],
    "coverage": [
        ["-m", "not slow and not real", "-n", "2", "--cov", "--cov-report=term-missing:skip-covered"]
    ],
}
SECOND_TRY = ("slow", "real")
SOME_TEST_FAILED = 1
NO_TEST_WAS_CHOSEN = 5
FAILURES_TRIED_AGAIN = 5
OURS = ("DATABASE_URL", "REDIS_URL", "MODE", "DATA_DIR", "PORT", "PUBLIC_URL", "SECRET_KEY", "FIELD_KEYS")


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
    environment = {name: value for name, value in os.environ.items() if name not in OURS}
    environment |= {"MODE": "development", "DATA_DIR": str(data_dir), **surroundings}
    print(f"\n== {ring}: {title}", flush=True)
    started = time.monotonic()
    codes = [
        pytest(number, options, data_dir, environment, tries_again=ring in SECOND_TRY)
        for number, options in enumerate(RINGS[ring])
    ]
    # A part that was named on the command line may have tests for one pass only.
    passed = 0 in codes and set(codes) <= {0, NO_TEST_WAS_CHOSEN}
    print(
        f"== {ring}: {title}: {'passed' if passed else 'FAILED'} in {time.monotonic() - started:.0f} s",
        flush=True,
    )
    return passed


def pytest(
    number: int, options: list[str], data_dir: Path, environment: dict[str, str], *, tries_again: bool
) -> int:
    """The exit code of one pass. In these rings a few tests that failed are run again, with nothing beside them:
    hundreds of processes are started, killed and timed there, and a machine that is busy with something else for a while
    is no fault of ours. What fails then has failed; what passes is named as passed at the second try.
    """
    cache = data_dir / f"cache-{number}"
    shutil.rmtree(cache, ignore_errors=True)
    command = [sys.executable, "-m", "pytest", "-o", f"cache_dir={cache}", *options, *sys.argv[2:]]
    code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    failed = cache / "v" / "cache" / "lastfailed"
    if not tries_again or code != SOME_TEST_FAILED or not failed.exists():
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
    passed = run("SQLite alone", ring, {})
    if ring == "coverage":
        return 0 if passed else 1
    database, database_reason = find_postgres()
    broker, broker_reason = find_redis()
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
