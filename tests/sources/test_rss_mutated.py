"""20,000 broken feeds: none crashes the reader, and it loses nothing that feedparser alone can read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sizes import size
from tests.sources.mutations import mutated, samples

pytestmark = [pytest.mark.slow, pytest.mark.minutes(2)]

ROOT = Path(__file__).parents[2]
FEEDS = size(4_000, 20_000)
WORKERS = 2


def test_a_feed_s_number_makes_it():
    found = samples()
    assert [mutated(number, found) for number in range(50)] == [
        mutated(number, found) for number in range(50)
    ]
    assert len({mutated(number, found)[1] for number in range(1000)}) > 900


def test_twenty_thousand_broken_feeds_are_read_as_far_as_they_go():
    share = FEEDS // WORKERS
    workers = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.sources.mutations", str(first), str(share)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for first in range(0, FEEDS, share)
    ]
    try:
        told = [worker.communicate(timeout=800) for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    assert [(worker.returncode, errors) for worker, (_, errors) in zip(workers, told, strict=True)] == [
        (0, "")
    ] * WORKERS
    reports = [json.loads(said) for said, _ in told]
    assert [report["crashed"] for report in reports] == [[]] * WORKERS
    assert [report["lost"] for report in reports] == [[]] * WORKERS
    assert sum(sum(report["outcomes"].values()) for report in reports) == FEEDS
    # The mutations leave enough to read for the comparison to mean something.
    assert sum(report["outcomes"]["read"] for report in reports) > FEEDS / 2
