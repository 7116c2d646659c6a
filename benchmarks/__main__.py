"""`make bench`: runs every benchmark against its floor and writes one table, benchmarks/results/latest.txt.

`python -m benchmarks [NAME …]` runs some of them; their names are those of the scripts. Each runs on databases of its own,
which are made for it and dropped after it: SQLite with the embedded service, PostgreSQL and a Redis of its own with the
split one. `--smallest` runs each once, at a size that says nothing about speed, to test that it still runs.
`--set generation.texts=300` changes one size; `--help` lists them.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from contextlib import ExitStack, contextmanager
from pathlib import Path
from secrets import token_hex
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg import sql

from benchmarks.service import ROOT, Session, redis_server
from benchmarks.table import Row, render_table
from tools.suite import commit_described, find_postgres

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType

SCRIPTS: Final = {
    "generation": "a text from push to webhook: CPU, throughput, latency under load",
    "idle_and_recovery": "idle CPU, memory, restart after kill -9, fresh clone",
    "webhooks": "deliveries a second, beside one that hangs, one that drips",
    "publication": "lateness of what is due together",
    "collection": "lateness of polls, entries of a feed",
    "api": "lists, pushes, deep pages and pages of a workspace",
    "review": "the review queue",
    "analytics": "an answer over a million measurements",
    "components": "grounding, pictures and films by themselves",
    "tokens": "what a model's calls cost",
}
DATABASES: Final = ("sqlite", "postgres")
RESULTS: Final = ROOT / "benchmarks" / "results"
NOT_RUN_PREFIX: Final = "NOT RUN"
"""The beginning of a failure that says which service is missing."""
OWN_VARIABLES: Final = {
    "DATABASE_URL", "REDIS_URL", "MODE", "DATA_DIR", "PORT", "PUBLIC_URL", "SECRET_KEY", "FIELD_KEYS",
}  # fmt: skip


def read_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SCRIPTS)}")
    parser.add_argument("--smallest", action="store_true", help="run each once, at its smallest size")
    parser.add_argument("--on", choices=DATABASES, action="append", help="on this database alone")
    parser.add_argument("--set", action="append", default=[], metavar="NAME.SIZE=NUMBER")
    parser.add_argument(
        "--fresh-clone", action="store_true", help="also from a clone to the first item (minutes)"
    )
    parser.add_argument("--migrated", metavar="NAME", help="copy this migrated database instead of migrating")
    parser.add_argument(
        "--output", type=Path, help=f"where the table is kept (default: {RESULTS.name}/latest.txt)"
    )
    # The file of a session's rows, for the process that this command starts.
    parser.add_argument("--rows", help=argparse.SUPPRESS)
    parser.epilog = "Scripts:\n" + "\n".join(
        f"  {name:12} {description}" for name, description in SCRIPTS.items()
    )
    parsed = parser.parse_args(arguments)
    unknown = set(parsed.names) - set(SCRIPTS)
    if unknown:
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(SCRIPTS)}")
    return parsed


# --- The process of a session ----------------------------------------------------------------------------------------


def run_session(arguments: argparse.Namespace) -> int:
    """Run the named scripts on the environment's database, and append each row to a file as it comes."""
    import django  # noqa: PLC0415  the environment comes first

    django.setup()
    from django.core.management import call_command  # noqa: PLC0415
    from django.db import connections  # noqa: PLC0415

    if not arguments.migrated:
        call_command("migrate", verbosity=0)
    session = Session(arguments.on[0], arguments.smallest, Path(os.environ["DATA_DIR"]), SimpleNamespace())
    failed = 0
    with Path(arguments.rows).open("a") as rows:
        try:
            for name in arguments.names:
                script = importlib.import_module(f"benchmarks.{name}")
                if session.database not in script.ON:
                    continue
                session.size = script_sizes(script, name, arguments)
                started = time.monotonic()
                try:
                    for row in script.measure(session):
                        rows.write(json.dumps(row.as_json()) + "\n")
                        rows.flush()
                # The other scripts are measured all the same.
                except Exception:  # noqa: BLE001
                    traceback.print_exc()
                    failed = 1
                print(
                    f"{name} on {session.database}: {time.monotonic() - started:.1f} s",
                    file=sys.stderr,
                    flush=True,
                )
        finally:
            session.end()
            connections.close_all()
    return failed


def script_sizes(script: Any, name: str, arguments: argparse.Namespace) -> SimpleNamespace:
    """Return the script's sizes, with those of `--set`. Ends the program if the script has no size of that name."""
    sizes = {size: values[arguments.smallest] for size, values in script.SIZES.items()}
    for option in arguments.set:
        key, _, number = option.partition("=")
        owner, _, size = key.partition(".")
        if owner == name:
            if size not in sizes:
                raise SystemExit(f"{name} has no size {size}; it has {', '.join(sizes)}.")
            sizes[size] = type(sizes[size])(float(number))
    return SimpleNamespace(**sizes, fresh_clone=arguments.fresh_clone)


# --- The command -----------------------------------------------------------------------------------------------------


class ServiceMissing(Exception):
    """Raised if a service is missing; the message names it."""


@contextmanager
def session_environment(database: str, migrated: str | None) -> Iterator[dict[str, str]]:
    """Yield the environment of a session on a new database. Raises `ServiceMissing` if it can't be made."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="benchmark-")))
        environment = {name: value for name, value in os.environ.items() if name not in OWN_VARIABLES} | {
            "ENV_FILE": "tests/settings.env",
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "LOG_LEVEL": "ERROR",
            "DATA_DIR": str(folder),
        }
        # With this variable hundreds of processes would spend most of their time compiling the same modules.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        if database == "sqlite":
            if migrated:
                shutil.copyfile(migrated, folder / "db.sqlite3")
        else:
            address, reason = find_postgres()
            if not address or not shutil.which("redis-server"):
                raise ServiceMissing(reason or "there is no redis-server")
            environment["DATABASE_URL"] = stack.enter_context(scratch_postgres(address, migrated))
            environment["REDIS_URL"] = stack.enter_context(redis_server(folder))
        yield environment


@contextmanager
def scratch_postgres(address: str, migrated: str | None = None) -> Iterator[str]:
    """Create a database on the server of the address, yield its address, and drop it at the end."""
    head, _, _ = address.partition("?")[0].rpartition("/")
    name = f"benchmark_{token_hex(4)}"
    create = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
        sql.Identifier(name), sql.Identifier(migrated or "template1")
    )
    with psycopg.connect(f"{head}/postgres", autocommit=True) as connection:
        connection.execute(create)
        try:
            yield f"{head}/{name}"
        finally:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def run_scripts(names: Sequence[str], database: str, arguments: argparse.Namespace) -> tuple[list[Row], bool]:
    """Run these scripts in a new session, and return their rows, and whether all of them ran."""
    with session_environment(database, arguments.migrated) as environment:
        file = Path(environment["DATA_DIR"]) / "rows.jsonl"
        options = [f"--set={option}" for option in arguments.set]
        options += ["--smallest"] if arguments.smallest else []
        options += ["--fresh-clone"] if arguments.fresh_clone else []
        options += [f"--migrated={arguments.migrated}"] if arguments.migrated else []
        command = [
            sys.executable,
            "-m",
            "benchmarks",
            *names,
            "--on",
            database,
            "--rows",
            str(file),
            *options,
        ]
        with subprocess.Popen(command, cwd=ROOT, env=environment) as session:
            try:
                code = session.wait()
            except BaseException:
                # The session ends what it has started when it is terminated.
                session.terminate()
                session.wait()
                raise
        lines = file.read_text().splitlines() if file.exists() else []
    return [Row(**json.loads(line)) for line in lines], code == 0


def describe_machine() -> str:
    """Return the machine's processors, system and Python."""
    model = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    if information.exists():
        names = [line for line in information.read_text().splitlines() if line.startswith("model name")]
        model = names[0].partition(":")[2].strip() if names else model
    return f"{os.cpu_count()} × {model}, {platform.system()}, Python {platform.python_version()}"


def exit_on_signal(number: int, _frame: FrameType | None) -> None:
    """Exit, ignoring further signals, so that databases and processes are removed too."""
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


def table_text(head: str, rows: Sequence[Row], commit: str, failures: Sequence[str]) -> str:
    return "\n".join([head, "", render_table(rows, commit), *dict.fromkeys(failures)])


def write_table(output: Path | None, text: str) -> None:
    if output:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(f"{text}\n")


def main() -> int:
    signal.signal(signal.SIGTERM, exit_on_signal)
    arguments = read_arguments(sys.argv[1:])
    if arguments.rows:
        return run_session(arguments)
    names = arguments.names or list(SCRIPTS)
    databases = arguments.on or DATABASES
    commit = commit_described()
    head = f"{time.strftime('%Y-%m-%d %H:%M')}, commit {commit}\n{describe_machine()}, load {os.getloadavg()[0]:.1f} at the start"
    print(head, flush=True)
    # Each script has a separate database, so that none is measured together with the rows of another.
    groups = [names] if arguments.smallest else [[name] for name in names]
    output = arguments.output or (None if arguments.smallest or arguments.names else RESULTS / "latest.txt")
    rows: list[Row] = []
    failures: list[str] = []
    for group in groups:
        for database in databases:
            try:
                script_rows, is_complete = run_scripts(group, database, arguments)
            except ServiceMissing as error:
                failures.append(f"{NOT_RUN_PREFIX} on {database}: {error}.")
                continue
            rows += script_rows
            if not is_complete:
                failures.append(f"FAILED on {database}: {', '.join(group)}, as told above.")
            # The table is written after each script, so that an interruption loses no other script's rows.
            write_table(output, table_text(head, rows, commit, failures))
    text = table_text(head, rows, commit, failures)
    print(f"\n{text}", flush=True)
    write_table(output, text)
    return exit_code(rows, failures)


def exit_code(rows: Sequence[Row], failures: Sequence[str]) -> int:
    """Return 1 if a script failed or was unsound, or if REQUIRE_SERVICES=1 is set and a service is missing."""
    missing = [failure for failure in failures if failure.startswith(NOT_RUN_PREFIX)]
    is_broken = len(failures) > len(missing) or any(row.unsound for row in rows)
    return 1 if is_broken or (missing and os.environ.get("REQUIRE_SERVICES") == "1") else 0


if __name__ == "__main__":
    sys.exit(main())
