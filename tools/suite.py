"""Runs the test suite in its two environments: SQLite with nothing else, then PostgreSQL and Redis.

Services are looked up in TEST_DATABASE_URL and TEST_REDIS_URL, then DATABASE_URL and REDIS_URL, then at the standard
local ports. If they don't answer, the second environment is left out with a message; with REQUIRE_SERVICES=1 the run fails.
"""

from __future__ import annotations

import getpass
import hashlib
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import redis

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
# The name differs by checkout, because two checkouts on one server must not share a test database.
DATABASE = f"suite_{hashlib.sha256(str(ROOT).encode()).hexdigest()[:8]}"
RINGS = {
    "fast": [["-m", "not slow and not real", "-n", "3"]],
    # Each of these tests starts processes, and waits as much as it computes; some of them measure time.
    "slow": [
        [
            *("-m", "slow and not alone", "-n", "3", "--dist", "loadgroup", "--no-loadscope-reorder"),
            # The slowest tests, which are the next to be shortened.
            "--durations=12",
        ],
        ["-m", "alone", "tests/faults"],
    ],
    # Real servers on this machine: WordPress, and Bluesky's PDS.
    "real": [["-m", "real", "-n", "2", "--dist", "loadfile"]],
    "postgres": [["-m", "not slow and not real", "-n", "3"]],
    "coverage": [
        ["-m", "not slow and not real", "-n", "2", "--cov", "--cov-report=term-missing:skip-covered"]
    ],
}
# Rings that don't depend on the database.
ON_ONE_DATABASE = {"real", "coverage"}
NO_TESTS_COLLECTED = 5
# Proofs that take too long for each run, at their full size (tests/sizes.py): `make prove-NAME`.
PROOFS = {
    "kills": ["tests/faults", "tests/operations/test_backup.py", "-m", "not alone"],
    "fairness": ["tests/faults/test_fairness.py"],
    "never-twice": ["tests/pipeline/publish/test_never_twice.py"],
    "fuzz": ["tests/fuzzing"],
    "frames": ["tests/render/video/test_lengths.py", "tests/pipeline/generate/test_narration.py"],
    "feeds": ["tests/sources/test_hostile_markup.py", "tests/sources/test_rss_mutated.py"],
    "simulate": ["tests/simulation"],
    "access": ["tests/browser/test_every_page.py"],
    "pages": ["tests/browser"],
    "image": ["tests/operations/test_image.py"],
    "clients": ["tests/clients"],
    "first-day": ["tests/first_day", "tests/pipeline/ingest/test_first_day.py"],
    "properties": [
        "tests/analytics",
        "tests/engines",
        "tests/grounding",
        "tests/writers",
        "tests/pipeline/generate/test_paid_once.py",
        "tests/pipeline/outlets/test_simulated_server.py",
        "tests/pipeline/schedule/planning",
    ],
}
REPORTED_LINE = re.compile(r"^(tests/\S+: |PASSED|FAILED|ERROR|\d+ passed|\d+ failed)")
MAX_TESTS_NAMED = 500
# Without this variable compiled modules are kept; otherwise hundreds of processes would compile the same ones.
DROPPED_VARIABLES = ("PYTHONDONTWRITEBYTECODE",)
OWN_VARIABLES = (
    "DATABASE_URL", "REDIS_URL", "MODE", "DATA_DIR", "PORT", "PUBLIC_URL", "SECRET_KEY", "FIELD_KEYS",
    "POSTGRES_FOLLOWS", "STATEMENTS", "MARKED_ONLY", "PROOF",
)  # fmt: skip


def find_postgres() -> tuple[str | None, str]:
    """Return the address of a PostgreSQL that answers and "", or `None` and the reason."""
    configured = os.environ.get("TEST_DATABASE_URL") or os.environ.get("DATABASE_URL")
    users = dict.fromkeys([os.environ.get("PGUSER") or getpass.getuser(), "postgres", "postgres:postgres"])
    candidates = (
        [configured] if configured else [f"postgres://{user}@127.0.0.1:5432/{DATABASE}" for user in users]
    )
    reason = ""
    for candidate in candidates:
        head, _, _name = candidate.rpartition("/")
        try:
            # The database need not exist, because tests create other ones on the same server.
            psycopg.connect(f"{head}/postgres", connect_timeout=3).close()
        except psycopg.OperationalError as error:
            reason = reason or str(error).strip().splitlines()[-1]
        else:
            return candidate, ""
    return None, f"PostgreSQL does not answer ({reason})"


def find_redis() -> tuple[str | None, str]:
    """Return the address of a Redis that answers and "", or `None` and the reason."""
    configured = os.environ.get("TEST_REDIS_URL") or os.environ.get("REDIS_URL")
    candidate = configured or "redis://127.0.0.1:6379/15"
    try:
        redis.Redis.from_url(candidate, socket_connect_timeout=3, socket_timeout=3).ping()
    except redis.RedisError as error:
        return None, f"Redis does not answer ({error})"
    return candidate, ""


def run_ring(title: str, ring: str, surroundings: dict[str, str]) -> bool:
    """Run a ring in one environment, print its result, and return whether it passed."""
    data_dir = ROOT / "var" / "test" / title.split(maxsplit=1)[0].lower()
    data_dir.mkdir(parents=True, exist_ok=True)
    environment = environment_with({"DATA_DIR": str(data_dir), **surroundings})
    print(f"\n== {ring}: {title}", flush=True)
    started = time.monotonic()
    with migrated_database(data_dir, environment) as environment["MIGRATED"]:
        codes = [run_pytest(options, environment) for options in RINGS[ring]]
    # A part named on the command line may have tests for one environment only.
    passed = 0 in codes and set(codes) <= {0, NO_TESTS_COLLECTED}
    print(
        f"== {ring}: {title}: {'passed' if passed else 'FAILED'} in {time.monotonic() - started:.0f} s",
        flush=True,
    )
    return passed


@contextmanager
def migrated_database(data_dir: Path, environment: dict[str, str]) -> Iterator[str]:
    """Make the database from which all others of the ring are copied (tests/migrated.py).

    Yields its name, or the path of its file. A database on a server is dropped at the end.
    """
    folder = data_dir / "migrated"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    environment = {**environment, "DATA_DIR": str(folder)}
    if "DATABASE_URL" not in environment:
        migrate(environment)
        file = folder / "db.sqlite3"
        # The last connection to close writes the journal into the file, and only the file is copied.
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


def run_pytest(options: list[str], environment: dict[str, str]) -> int:
    """Run pytest once and return its exit code. There is no second try, because a test that needs one is wrong."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, *sys.argv[2:]]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def commit_described() -> str:
    """Return the commit that is run, with `-dirty` if something isn't committed."""
    return subprocess.check_output(["git", "describe", "--always", "--dirty"], cwd=ROOT, text=True).strip()


def prove(name: str) -> int:
    """Run a proof on every database that answers, and return the exit code.

    Its output, with date and commit, is written to docs/proofs/<name>.txt.
    """
    database, _ = find_postgres()
    broker, _ = find_redis()
    passes: list[tuple[str, dict[str, str]]] = [("SQLite alone", {})]
    if database and broker:
        passes.append(("PostgreSQL and Redis", {"DATABASE_URL": database, "REDIS_URL": broker}))
    lines = [
        f"make prove-{name}",
        f"{time.strftime('%Y-%m-%d')}, commit {commit_described()}, {os.cpu_count()} cores",
        "",
    ]
    passed = True
    for title, surroundings in passes:
        data_dir = ROOT / "var" / "test" / f"proof-{title.split(maxsplit=1)[0].lower()}"
        data_dir.mkdir(parents=True, exist_ok=True)
        environment = environment_with({"PROOF": "1", "DATA_DIR": str(data_dir), **surroundings})
        if database and broker and not surroundings:
            environment["POSTGRES_FOLLOWS"] = "1"
        started = time.monotonic()
        with migrated_database(data_dir, environment) as environment["MIGRATED"]:
            command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-rA", *PROOFS[name]]
            completed = subprocess.run(
                command, cwd=ROOT, env=environment, check=False, stdout=subprocess.PIPE, text=True
            )
        print(completed.stdout, flush=True)
        passed &= completed.returncode in {0, NO_TESTS_COLLECTED}
        lines += [f"== {title}, {time.monotonic() - started:.0f} s", *reported_lines(completed.stdout), ""]
    path = ROOT / "docs" / "proofs" / f"{name}.txt"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines))
    print(f"Written: {path.relative_to(ROOT)}")
    return 0 if passed else 1


def reported_lines(output: str) -> list[str]:
    """Return the lines of a proof's report; more than `MAX_TESTS_NAMED` passed tests are counted by file."""
    lines = [line for line in output.splitlines() if REPORTED_LINE.match(line)]
    passed = [line for line in lines if line.startswith("PASSED ")]
    if len(passed) <= MAX_TESTS_NAMED:
        return lines
    counts = Counter(line.removeprefix("PASSED ").partition("::")[0] for line in passed)
    others = [line for line in lines if not line.startswith("PASSED ")]
    return [*others, *(f"{count} passed in {file}" for file, count in sorted(counts.items()))]


def environment_with(overrides: dict[str, str]) -> dict[str, str]:
    """Return the environment without the service's variables, and with the overrides."""
    inherited = {
        name: value for name, value in os.environ.items() if name not in OWN_VARIABLES + DROPPED_VARIABLES
    }
    return {**inherited, "ENV_FILE": "tests/settings.env", **overrides}


def main() -> int:
    if sys.argv[1] == "prove":
        return prove(sys.argv[2])
    ring = sys.argv[1]
    database, database_reason = find_postgres()
    broker, broker_reason = find_redis()
    has_second_pass = bool(database and broker) and ring not in ON_ONE_DATABASE
    # The second pass of the fast ring runs on PostgreSQL each statement that the first ran on SQLite; that of the other
    # rings runs the tests that are marked for it (tests/conftest.py).
    statements = ROOT / "var" / "test" / "statements"
    shutil.rmtree(statements, ignore_errors=True)
    recording = {"STATEMENTS": str(statements)} if ring == "fast" else {}
    second_environment = recording or {"MARKED_ONLY": "1"}
    if ring == "postgres":
        passed, second_environment = True, {}
    else:
        passed = run_ring(
            "SQLite alone", ring, {"POSTGRES_FOLLOWS": "1", **recording} if has_second_pass else {}
        )
    if ring in ON_ONE_DATABASE:
        return 0 if passed else 1
    if database and broker:
        passed &= run_ring(
            "PostgreSQL and Redis",
            ring,
            {"DATABASE_URL": database, "REDIS_URL": broker, **second_environment},
        )
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
