"""The first hundred histories, a day each; `make prove-simulate` lives through a thousand months."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.simulation import history
from tests.simulation.__main__ import shown
from tests.sizes import IS_PROOF, size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [pytest.mark.slow, pytest.mark.sqlite, pytest.mark.minutes(1), pytest.mark.timeout(1800)]
SEEDS = size(100, 1000)
DAYS = size(1, 30)
TOGETHER = 20
"""Histories of one test."""


@pytest.fixture(autouse=True)
def database(transactional_db: None) -> Iterator[None]:
    with history.in_memory():
        yield


@pytest.mark.parametrize("first", range(1, SEEDS + 1, TOGETHER))
def test_promises_hold_in_each_history(first: int, record_property: Callable[[str, object], None]) -> None:
    steps = 0
    for seed in range(first, first + TOGETHER):
        told = history.run(seed, DAYS)
        assert not told.faults, shown(told, DAYS)
        steps += told.steps
    record_property("told", f"{TOGETHER} histories of {DAYS} days, {steps} steps")


def test_seed_is_a_history() -> None:
    once, another, again = (history.run(seed, 0.2) for seed in (7, 8, 7))
    assert (once.hash, once.tail) == (again.hash, again.tail)
    assert once.hash != another.hash


@pytest.mark.skipif(not IS_PROOF, reason="The same is asked within one process.")
def test_another_process_lives_through_the_same_histories() -> None:
    there = set()
    for hash_seed in ("1", "2"):
        told = subprocess.check_output(
            [sys.executable, "-m", "tests.simulation"],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "SEEDS": "1-20", "DAYS": str(DAYS)},
            text=True,
        )
        there.add("\n".join(line for line in told.splitlines() if line.startswith("seed")))
    here = "\n".join(
        f"seed {told.seed}: {told.steps} steps, hash {told.hash}"
        for told in (history.run(seed, DAYS) for seed in range(1, 21))
    )
    assert there == {here}
