"""The Dockerfile, replayed step by step in a clean root: the service in it becomes healthy and ends gracefully."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys

import pytest

from config import server
from tests.documents.text import ROOT
from tests.operations.deployment import dockerfile_steps, image
from tests.sizes import IS_PROOF

TOOL = ROOT / "tools/replay_dockerfile.py"
NEEDED = ("debootstrap", "unshare", "chroot", "mount")


def tool():
    spec = importlib.util.spec_from_file_location("replay_dockerfile", TOOL)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def why_not():
    if not IS_PROOF:
        return "NOT REPLAYED: it takes minutes; `make prove-image` does."
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if os.geteuid() != 0:
        return "NOT REPLAYED: it needs root for its mounts."
    return f"NOT REPLAYED: {', '.join(missing)} is not installed." if missing else ""


def test_everything_that_is_copied_is_there_and_let_through():
    let = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {
        source
        for word, rest in dockerfile_steps()
        if word == "COPY" and not rest.startswith("--from")
        for source in rest.split()[:-1]
    }
    assert copied == let
    assert [name for name in sorted(copied) if not (ROOT / name).exists()] == []


def test_every_package_of_the_service_is_copied():
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    copied = {rest.split()[0] for word, rest in dockerfile_steps() if word == "COPY"}
    assert packages - copied == {"tests", "benchmarks"}


def test_it_does_not_run_as_root():
    made = image()
    assert (made.user, "--uid 10001" in " ".join(made.runs)) == ("service", True)


def test_the_replay_knows_every_instruction():
    known = {name.removeprefix("do_").upper() for name in dir(tool().Replay) if name.startswith("do_")}
    assert {word for word, _ in dockerfile_steps()} - known == set()


@pytest.mark.slow
@pytest.mark.sqlite  # What runs in the image has settings of its own, whatever the suite runs on.
def test_the_steps_make_a_service_that_is_healthy_and_ends(record_property):
    reason = why_not()
    if reason:
        record_property("told", reason)
        pytest.skip(reason)
    done = subprocess.run(
        [sys.executable, str(TOOL)], capture_output=True, text=True, timeout=880, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    told = json.loads(done.stdout.strip().splitlines()[-1])
    record_property("told", json.dumps(told))
    assert told["user_ids"] == [10001]
    assert (told["exit_code"], told["ended_seconds"] < server.GRACE_SECONDS) == (0, True)
    assert {told[name] for name in ("readyz", "login", "static")} == {200}
