"""`make simulate SEEDS=1-100`: histories by their seeds; one that breaks a promise is told, and is the same again.

SEEDS is a seed (`17`), or a first and a last one (`1-100`). DAYS is how long each lasts, PROCESSES by how many they are
shared; with one it is this process. With STOP=1 the first that breaks ends it.
"""

from __future__ import annotations

import os
import sys
import time
from multiprocessing import get_context
from typing import TYPE_CHECKING

# Before Django looks at them.
os.environ.setdefault("ENV_FILE", "tests/settings.env")
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import django

django.setup()

from django.core.management import call_command
from django.db import connections

from tests import migrated
from tests.simulation import history

if TYPE_CHECKING:
    from collections.abc import Iterator

SHOWN_MOST = 50


def seeds_of(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def make_template() -> None:
    """The migrated database that every history begins with, where an earlier run has left none."""
    file = migrated.kept_file()
    if not file.exists():
        call_command("migrate", verbosity=0)
        migrated.keep(file)
        connections.close_all()


def run_one(given: tuple[int, float]) -> history.Told:
    with history.in_memory():
        return history.run(*given)


def run_all(given: list[tuple[int, float]], processes: int) -> Iterator[history.Told]:
    if processes == 1:
        yield from map(run_one, given)
        return
    with get_context("fork").Pool(processes) as pool:
        yield from pool.imap(run_one, given)


def shown(told: history.Told, days: float) -> str:
    lines = [
        *told.tail,
        *told.faults,
        told.error,
        f"seed {told.seed} broke; again: make simulate SEEDS={told.seed} DAYS={days:g}",
    ]
    return "\n".join(line for line in lines if line)


def main() -> int:
    seeds = seeds_of(os.environ.get("SEEDS", "1-20"))
    days = float(os.environ.get("DAYS", "30"))
    processes = min(int(os.environ.get("PROCESSES", "2")), len(seeds))
    make_template()
    began, done, broken, steps = time.monotonic(), 0, 0, 0
    for told in run_all([(seed, days) for seed in seeds], processes):
        done, steps, broken = done + 1, steps + told.steps, broken + bool(told.faults)
        if told.faults:
            print(shown(told, days), flush=True)
            if os.environ.get("STOP"):
                break
        elif len(seeds) <= SHOWN_MOST:
            print(f"seed {told.seed}: {told.steps} steps, hash {told.hash}", flush=True)
    print(
        f"{done} histories of {days:g} days: {broken} broken, {steps} steps, {time.monotonic() - began:.0f} s"
    )
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
