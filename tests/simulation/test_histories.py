"""The first hundred histories, a day each; `make prove-simulate` lives through a thousand months.

In processes of their own: what other tests of this one have left would be a part of a history.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.sizes import IS_PROOF, size

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.slow,
    pytest.mark.sqlite,
    pytest.mark.minutes(1),
    pytest.mark.timeout(size(600, 3600)),
]
SEEDS = size(100, 1000)
DAYS = size(1, 30)


def live(seeds: str, days: float, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.simulation"],
        env={**os.environ, "SEEDS": seeds, "DAYS": str(days), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("seeds", [f"{first}-{first + 99}" for first in range(1, SEEDS + 1, 100)])
def test_promises_hold_in_each_history(seeds: str, record_property: Callable[[str, object], None]) -> None:
    """By the hundred, so that a proof tells which broke before its end."""
    told = live(seeds, DAYS)
    assert told.returncode == 0, told.stdout[-5000:] + told.stderr[-2000:]
    record_property("told", told.stdout.splitlines()[-1])


def test_seed_is_a_history_in_every_process() -> None:
    seeds, days = ("1-20", float(DAYS)) if IS_PROOF else ("7-8", 0.2)
    once, again = (
        [
            line
            for line in live(seeds, days, PYTHONHASHSEED=seed).stdout.splitlines()
            if line.startswith("seed")
        ]
        for seed in ("1", "2")
    )
    assert once == again
    hashes = {line.rpartition(" ")[2] for line in once}
    assert len(hashes) == len(once) > 1
