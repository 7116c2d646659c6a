"""`make bench`: the comparison on SQLite, then on PostgreSQL where it answers, as a table.

Each database is made for the run and dropped after it. `--quick` takes fewer and shorter rounds; the name of a database
(`sqlite`, `postgres`) runs that one alone. With REQUIRE_SERVICES=1 a PostgreSQL that doesn't answer is a failure.
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import sql

from tools.suite import find_postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

OURS = ("DATABASE_URL", "REDIS_URL", "MODE", "DATA_DIR", "PORT", "PUBLIC_URL", "SECRET_KEY", "FIELD_KEYS")
PACKAGES = ("django", "djangorestframework", "gunicorn", "psycopg")


@contextmanager
def scratch_postgres(address: str) -> Iterator[str]:
    """A database of its own beside the one that was named; dropped at the end."""
    head, _, _ = address.partition("?")[0].rpartition("/")
    name = f"benchmark_{token_hex(4)}"
    with psycopg.connect(f"{head}/postgres", autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield f"{head}/{name}"
        finally:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def measure(surroundings: dict[str, str], *, is_quick: bool) -> dict[str, Any]:
    environment = {name: value for name, value in os.environ.items() if name not in OURS}
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        environment |= {
            "ENV_FILE": "tests/settings.env",
            "LOG_LEVEL": "WARNING",
            "DATA_DIR": folder,
            **surroundings,
        }
        environment["DJANGO_SETTINGS_MODULE"] = "config.settings"
        command = [sys.executable, "-m", "benchmarks.measure", *(["--quick"] if is_quick else [])]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as measuring:
            try:
                told, _ = measuring.communicate()
            finally:
                # It ends its own server when it is asked to.
                measuring.terminate()
                measuring.wait()
    if measuring.returncode:
        raise SystemExit(measuring.returncode)
    report: dict[str, Any] = json.loads(told.splitlines()[-1])
    return report


def machine() -> str:
    model = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    if information.exists():
        names = [
            line.partition(":")[2].strip()
            for line in information.read_text().splitlines()
            if "model name" in line
        ]
        model = names[0] if names else model
    load = os.getloadavg()[0]
    return f"{os.cpu_count()} × {model}, {platform.system()}, load {load:.1f} at the start"


def show(report: dict[str, Any]) -> None:
    rows = ", ".join(f"{count:,} {table}" for table, count in report["rows"].items())
    print(f"\n{report['database']}: {rows}; seeded in {report['seed_seconds']} s")
    print(
        f"{report['rounds']} rounds of {report['seconds']} s for each side, {report['connections']} connections; "
        f"the floor's SQL for one list: {report['floor_sql_ms']:.2f} ms"
    )
    head = (
        "",
        "ratio",
        "lowest–highest",
        "at least",
        "floor/s",
        "ours/s",
        "floor p50/p99 ms",
        "ours p50/p99 ms",
    )
    lines = [head]
    lines += [
        (
            one["what"],
            f"{one['ratio']:.2f}",
            f"{one['lowest']:.2f}–{one['highest']:.2f}",
            f"{one['least']:.2f} {'ok' if one['ratio'] >= one['least'] else 'MISSED'}",
            f"{one['floor_per_second']:.0f}",
            f"{one['ours_per_second']:.0f}",
            f"{one['floor_p50']:.1f} / {one['floor_p99']:.1f}",
            f"{one['ours_p50']:.1f} / {one['ours_p99']:.1f}",
        )
        for one in report["compared"]
    ]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    for line in lines:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())
    counted = ", ".join(f"{count:,} {table}" for table, count in report["held"].items())
    print(f"Pages of a workspace with {counted}, rendered:")
    for page in report["pages"]:
        print(
            f"  {page['name']:10} p50 {page['p50']:5.1f} ms, p95 {page['p95']:5.1f} ms, {page['queries']:2} statements: "
            f"{'ok' if page['is_good'] else 'MISSED'}"
        )
    deep = report["deep"]
    verdict = "ok" if deep["is_good"] else "MISSED"
    times = f"{deep['first_ms']:.2f} and {deep['deep_ms']:.2f} ms"
    if deep["first_buffers"] is None:
        print(f"Page 1 and page 4,000: {times}; the plan is {deep['plan']}: {verdict}")
    else:
        print(
            f"Page 1 and page 4,000: {deep['first_buffers']} and {deep['deep_buffers']} shared buffers "
            f"(at most +10 %), {times}: {verdict}"
        )


def main() -> int:
    # What was made is dropped then too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # Each is imported when it is wanted: they need the settings, libraries of their own, or this module.
    for name in ("publishing", "webhooks", "reviewing", "video"):
        if name in sys.argv:
            return int(importlib.import_module(f"benchmarks.{name}").main(sys.argv[1:]))
    for name in ("grounding", "tokens"):
        if name in sys.argv:
            return int(importlib.import_module(f"benchmarks.{name}").main())
    is_quick = "--quick" in sys.argv
    wanted = [name for name in sys.argv[1:] if not name.startswith("-")] or ["sqlite", "postgres"]
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    print(f"{machine()}\nPython {platform.python_version()}, {versions}", flush=True)
    reports = []
    if "sqlite" in wanted:
        reports.append(measure({}, is_quick=is_quick))
        show(reports[-1])
    if "postgres" in wanted:
        address, reason = find_postgres()
        if address:
            with scratch_postgres(address) as own:
                reports.append(measure({"DATABASE_URL": own}, is_quick=is_quick))
            show(reports[-1])
        else:
            print(f"\nNOT RUN on PostgreSQL: {reason}.")
            if os.environ.get("REQUIRE_SERVICES") == "1":
                return 1
    return 0 if all(report["passed"] for report in reports) else 1


if __name__ == "__main__":
    sys.exit(main())
