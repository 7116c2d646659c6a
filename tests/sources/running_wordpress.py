"""A WordPress of this machine's package, with a database server of its own, for the tests that need a real one."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path("/usr/share/wordpress")
THEME = "twentytwentythree"
SCRIPTS = Path(__file__).parent / "real_wordpress"
PROGRAMS = ("php", "mariadbd", "mariadb-install-db", "mariadb")
PATIENCE_SECONDS = 180


def missing() -> list[str]:
    found = [program for program in PROGRAMS if shutil.which(program) is None]
    found += [] if (PACKAGE / "wp-load.php").exists() else ["wordpress"]
    found += [] if (PACKAGE / "wp-content/themes" / THEME).exists() else [f"wordpress-theme-{THEME}"]
    if not found:
        modules = (
            subprocess.run(["php", "-m"], capture_output=True, text=True, check=True).stdout.lower().split()
        )
        found += [f"php-{name}" for name in ("mysqli", "simplexml", "mbstring") if name not in modules]
    return found


def wait_until(is_so, what: str) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        if time.monotonic() > until:
            pytest.fail(f"{what} did not come within {PATIENCE_SECONDS} seconds")
        time.sleep(0.2)


class WordPress:
    """One site with a database server of its own; everything goes with its folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._site = folder / "site"
        self._processes: list[subprocess.Popen[bytes]] = []
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{probe.getsockname()[1]}"
        self._environment = {
            "PATH": os.environ["PATH"],
            "WORDPRESS_URL": self.url,
            "WORDPRESS_DATABASE": "wordpress",
            "WORDPRESS_USER": "root",
            "WORDPRESS_SOCKET": str(folder / "db.sock"),
        }
        self._at = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=3)

    def start(self) -> None:
        self._start_database()
        shutil.copytree(
            PACKAGE, self._site, symlinks=False, ignore=shutil.ignore_patterns(".htaccess", "wp-config.php")
        )
        for script in SCRIPTS.glob("*.php"):
            shutil.copy(script, self._site)
        self.act("install", theme=THEME)
        address = self.url.removeprefix("http://")
        # What a test writes counts at once: a compiled plugin of the test before lives for two seconds else.
        fresh = ["-d", "opcache.revalidate_freq=0"]
        self._run("php", *fresh, "-S", address, "-t", str(self._site), str(self._site / "router.php"))
        wait_until(self._answers, "WordPress")

    def stop(self) -> None:
        for process in reversed(self._processes):
            process.kill()
            process.wait()
        # 200 MB that pytest would keep.
        shutil.rmtree(self._folder, ignore_errors=True)

    def act(self, act: str, **given: str):
        """What WordPress says to it; each act has a later moment than the one before."""
        self._at += timedelta(minutes=1)
        at = self._at.strftime("%Y-%m-%d %H:%M:%S")
        done = subprocess.run(
            ["php", str(self._site / "act.php"), json.dumps({"act": act, "at": at, **given})],
            capture_output=True,
            text=True,
            check=False,
            env=self._environment,
            timeout=PATIENCE_SECONDS,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        told = json.loads(done.stdout.splitlines()[-1])
        assert told, done.stdout
        assert not isinstance(told, dict), told
        return told

    def _start_database(self) -> None:
        data = self._folder / "db"
        # Both refuse to run as root without being told so.
        user = ["--user=root"] if os.geteuid() == 0 else []
        subprocess.run(
            [
                "mariadb-install-db",
                "--no-defaults",
                f"--datadir={data}",
                "--auth-root-authentication-method=normal",
                *user,
            ],
            check=True,
            capture_output=True,
            timeout=PATIENCE_SECONDS,
        )
        self._run(
            "mariadbd",
            "--no-defaults",
            f"--datadir={data}",
            f"--socket={self._environment['WORDPRESS_SOCKET']}",
            f"--pid-file={self._folder / 'db.pid'}",
            "--skip-networking",
            *user,
        )
        wait_until(lambda: self._ask("SELECT 1").returncode == 0, "MariaDB")
        assert self._ask("CREATE DATABASE wordpress CHARACTER SET utf8mb4").returncode == 0

    def _ask(self, statement: str) -> subprocess.CompletedProcess[bytes]:
        command = ["mariadb", "--no-defaults", "-uroot", f"--socket={self._environment['WORDPRESS_SOCKET']}"]
        return subprocess.run([*command, "-e", statement], capture_output=True, check=False)

    def _run(self, *command: str) -> None:
        with (self._folder / f"{command[0]}.log").open("wb") as log:
            started = subprocess.Popen(
                command, env=self._environment, stdout=log, stderr=subprocess.STDOUT, cwd=self._folder
            )
        self._processes.append(started)

    def _answers(self) -> bool:
        try:
            with urlopen(f"{self.url}/", timeout=60) as answer:
                return answer.status == 200
        except (HTTPError, URLError, OSError):
            return False


@contextlib.contextmanager
def running(folder: Path) -> Iterator[WordPress]:
    """A site that is started and stopped; the test is skipped where the machine lacks what it needs."""
    lacking = missing()
    if lacking:
        message = f"There is no WordPress to ask; missing: {', '.join(lacking)}."
        if os.environ.get("REQUIRE_SERVICES") == "1":
            pytest.fail(message)
        pytest.skip(message)
    made = WordPress(folder)
    try:
        # Two database servers that are set up at once on a small machine get in each other's way.
        with (Path(tempfile.gettempdir()) / "wordpress-tests.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            made.start()
        yield made
    finally:
        made.stop()
