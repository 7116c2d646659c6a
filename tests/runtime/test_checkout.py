"""The commands of a checkout that is new: `make install` makes its settings, and then each command runs bare."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import venv
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

import pytest
import requests

from tests.faults.instance import free_port

ROOT = Path(__file__).resolve().parents[2]
NOT_OF_THE_TREE = shutil.ignore_patterns(
    ".git", ".venv", ".env", "var", "__pycache__", ".*_cache", ".hypothesis"
)
TEXT = (
    "The harbour ferry leaves at seven from now on, twenty minutes earlier than before. The first boat of the day takes "
    "bicycles free of charge until the end of March. Tickets are sold on board and at the kiosk beside pier four."
)


class Checkout:
    """A copy of the tree, with what is installed here behind its `.venv`, and nothing in its environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(ROOT, folder, ignore=NOT_OF_THE_TREE)
        venv.create(folder / ".venv", with_pip=False, symlinks=True)
        packages = next((folder / ".venv/lib").glob("python*/site-packages"))
        (packages / "installed-here.pth").write_text(sysconfig.get_path("purelib") + "\n")
        locks = [sha256(path.read_bytes()).hexdigest() for path in folder.glob("requirements*.lock")]
        for marker in ("installed-lock", "installed-extras"):
            (folder / ".venv" / marker).write_text("\n".join(locks))
        programs = os.pathsep.join([str(folder / ".venv/bin"), str(Path(sys.executable).parent)])
        self.environment = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "HOME": str(folder)}

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )

    @contextmanager
    def running(self, *command, ends_by=signal.SIGTERM):
        """Yields what gives all that it printed until now."""
        printed = self.folder / f"{command[0]}.log"
        with printed.open("wb") as output:
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=self.environment,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        try:
            yield printed.read_text
        finally:
            os.killpg(process.pid, ends_by)
            process.wait(60)


@pytest.mark.slow
@pytest.mark.sqlite
def test_up_prints_its_steps_its_guide_and_what_fails(tmp_path):
    checkout = Checkout(tmp_path / "checkout")
    port = free_port()
    folder = tmp_path / "data"
    log = folder / "log/service.log"
    command = ("make", "up", f"PORT={port}", f"DATA_DIR={folder}")
    with checkout.running(*command, ends_by=signal.SIGINT) as printed:
        wait_for(lambda: "Ctrl-C stops everything; the data stays." in printed(), 200)
        # The server's only child is killed, and started again.
        (worker,) = children_of_serve(folder)
        os.kill(worker, signal.SIGKILL)
        wait_for(lambda: "Failed: " in printed())
        wait_for(lambda: answers(f"http://127.0.0.1:{port}/readyz"))
    steps, guide, after = printed().split("─" * 78)
    lines = [line for line in steps.strip().splitlines() if "still at it" not in line]
    assert [line.partition(" in ")[0] for line in lines] == [
        "Wrote .env: settings for development, with keys of its own.",
        "Preparing the database …",
        "  done",
        "Preparing the demo workspace …",
        "  done",
        "Starting. Ctrl-C stops everything.",
        f"  its log is {log}",
    ]
    assert f"  Log             {log}\n" in guide
    assert re.search(r"^\d{4}-\d\d-\d\dT", guide, re.MULTILINE) is None
    failed, *rest = after.strip().splitlines()
    assert failed.startswith(f"Failed: Worker (pid:{worker}) was sent SIGKILL!")
    assert failed.endswith(f". More in {log}")
    assert [line for line in rest if line] == ["Stopped."]
    # What isn't printed is in the log: the demo's requests, for one.
    assert "request" in log.read_text()
    assert not answers(f"http://127.0.0.1:{port}/healthz")
    assert children_of_serve(folder) == []


def children_of_serve(folder):
    """The process ids of gunicorn's workers of the service with this folder."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words, environment = ((path / name).read_bytes() for name in ("cmdline", "environ"))
            if b"serve" in words.split(b"\0") and f"DATA_DIR={folder}".encode() in environment.split(b"\0"):
                found[int(path.name)] = int((path / "stat").read_text().rpartition(") ")[2].split()[1])
    return [pid for pid, parent in found.items() if parent in found]


def wait_for(what, seconds=60):
    until = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < until
        time.sleep(0.2)
    return found


def answers(url):
    try:
        return requests.get(url, timeout=3).ok
    except requests.ConnectionError:
        return False


@pytest.mark.slow
@pytest.mark.sqlite  # It has settings of its own, whatever the suite runs on.
def test_bare_commands_run_in_a_new_checkout(tmp_path):
    checkout = Checkout(tmp_path / "checkout")
    # Without settings: what to do, in one sentence; but tests need none.
    refused = checkout.run("python", "manage.py", "check")
    assert (refused.returncode, len(refused.stderr.splitlines())) == (1, 1)
    assert refused.stderr.startswith("The settings can't be used: PUBLIC_URL must be set:")
    assert "`make install`, which writes .env" in refused.stderr
    assert "docs/running.md" in refused.stderr
    done = checkout.run("pytest", "-q", "tests/states/test_tables.py")
    assert done.returncode == 0, done.stdout + done.stderr

    done = checkout.run("make", "install")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (checkout.folder / ".env").exists()
    port = free_port()
    with (checkout.folder / ".env").open("a") as file:
        file.write(f"PORT={port}\n")
    done = checkout.run("python", "manage.py", "check")
    assert (done.returncode, done.stderr) == (0, "")
    done = checkout.run("pytest", "-q", "--collect-only")
    assert done.returncode == 0, done.stdout[-3000:]
    done = checkout.run("python", "manage.py", "test", "-q", "tests/states/test_tables.py")
    assert (done.returncode, " passed" in done.stdout) == (0, True), done.stdout + done.stderr
    assert checkout.run("python", "manage.py", "test", "-q", "tests/none").returncode == 4
    # Tests leave the data of development alone.
    assert not (checkout.folder / "var/db.sqlite3").exists()

    done = checkout.run("python", "manage.py", "migrate", "-v", "0")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    url = f"http://127.0.0.1:{port}"
    with (
        checkout.running("python", "manage.py", "runserver"),
        checkout.running("celery", "-A", "config", "worker"),
    ):
        wait_for(lambda: answers(f"{url}/healthz"))
        assert_an_item_is_made(checkout, url)


def assert_an_item_is_made(checkout, url):
    """Of a text that is pushed to the one process by the other."""
    words = ("--workspace", "Alice's newsroom", "--create", "--whitelist", "--json")
    done = checkout.run("python", "manage.py", "issue_token", *words)
    assert done.returncode == 0, done.stderr
    token = done.stdout.split('"token": "')[1].split('"')[0]
    headers = {"Authorization": f"Bearer {token}"}
    pushed = requests.post(
        f"{url}/v1/raw", json={"title": "The ferry leaves earlier", "body": TEXT}, headers=headers, timeout=20
    )
    assert pushed.status_code == 202, pushed.text
    items = wait_for(
        lambda: [
            one
            for one in requests.get(f"{url}/v1/generated", headers=headers, timeout=20).json()["data"]
            if one["status"] == "ready"
        ]
    )
    assert "ferry" in str(items[0])
