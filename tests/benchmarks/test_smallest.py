"""Every benchmark still runs: each once, at its smallest size, beside the database of this pass; no time is judged."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from django.conf import settings

from benchmarks.__main__ import SCRIPTS
from benchmarks.service import ROOT
from tests import migrated

pytestmark = [pytest.mark.slow, pytest.mark.both_databases, pytest.mark.minutes(2)]
LONGEST_SECONDS = 540
# Each runs once: what says the same on both, here.
ON_SQLITE = {"review", "components", "tokens"}
ON_POSTGRES = {"generation", "idle_and_recovery", "webhooks", "publication", "collection", "api", "analytics"}


def test_every_benchmark_runs_at_its_smallest_size(tmp_path):
    database, names = ("postgres", ON_POSTGRES) if settings.IS_POSTGRES else ("sqlite", ON_SQLITE)
    command = [sys.executable, "-m", "benchmarks", *sorted(names), "--smallest", "--on", database]
    if migrated.NAME:
        command += ["--migrated", migrated.NAME]
    command += ["--output", str(tmp_path / "table.txt")]
    # A service that is away is a failure here.
    environment = {**os.environ, "REQUIRE_SERVICES": "1"}
    told = tmp_path / "told.txt"
    with (
        told.open("w") as output,
        subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT
        ) as running,
    ):
        try:
            code = running.wait(timeout=LONGEST_SECONDS)
        except subprocess.TimeoutExpired:
            code = "none in time"
            # It ends what it has started when it is asked to.
            running.terminate()
    assert code == 0, told.read_text()
    assert set(re.findall(rf"^(\w+) on {database}: ", told.read_text(), re.MULTILINE)) == names
    rows = [
        line for line in (tmp_path / "table.txt").read_text().splitlines()[3:] if line[:1] not in {"", " "}
    ]
    # A head, and at least a row of each script.
    assert len(rows) > len(names)
    assert not [row for row in rows if re.search(r"\b(inf|nan)\b", row)]


def test_both_databases_have_every_script_between_them():
    assert set(SCRIPTS) == ON_SQLITE | ON_POSTGRES
    assert len(SCRIPTS) <= 10
