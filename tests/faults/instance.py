"""A service of its own for one test: `manage.py serve` with fresh data, which can be killed and started again."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import psycopg
import redis
import requests
from django.conf import settings

from tests import migrated

if TYPE_CHECKING:
    import random

ROOT = Path(__file__).resolve().parents[2]
OURS = ("DATABASE_URL", "REDIS_URL", "MODE", "DATA_DIR", "PORT", "PUBLIC_URL", "CRASH_AT")


class Instance:
    """On SQLite alone, or on a database and a Redis of its own where the suite runs on PostgreSQL."""

    command: tuple[str, ...] = (sys.executable, "manage.py", "serve")

    def __init__(self, data_dir: Path, *, crash_at: str = "", **environment: str) -> None:
        self.data_dir = data_dir
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = data_dir / "serve.log"
        self._process: subprocess.Popen | None = None
        self._session = requests.Session()
        self._session.trust_env = False
        self._database = self._redis = ""
        self.started_in = 0.0
        """Seconds from the last start until it was ready."""
        self.environment = {name: value for name, value in os.environ.items() if name not in OURS}
        self.environment |= {"MODE": "development", "DATA_DIR": str(data_dir), "PORT": str(self.port)}
        # A killed hand's rows come back soon, so that a test needn't wait a minute for each kill.
        self.environment |= {"LEASE_SECONDS": "3", **environment}
        if crash_at:
            self.environment["CRASH_AT"] = crash_at
        if not self._make_database():
            self.manage("migrate", "--no-input")

    def _make_database(self) -> bool:
        """Whether it is migrated."""
        return self._use_services() if settings.IS_POSTGRES else migrated.make_file(self.data_dir)

    def _use_services(self) -> bool:
        self._database = f"fault_{uuid4().hex[:12]}"
        is_migrated = migrated.make_database(self._database)
        self.environment["DATABASE_URL"] = migrated.url_of(self._database)
        if settings.REDIS_URL:
            worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
            # The suite's own is number 15 by default.
            self._redis = _with_path(settings.REDIS_URL, str(14 - int(worker)))
            redis.Redis.from_url(self._redis).flushdb()
            self.environment["REDIS_URL"] = self._redis
        return is_migrated

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            # Else it would go on in the background of every later test.
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        if self._redis:
            redis.Redis.from_url(self._redis).flushdb()
        if self._database:
            migrated.administer(f"DROP DATABASE {self._database} WITH (FORCE)")

    # --- Life ---------------------------------------------------------------------------------------------------------

    def start(self, *, waits: bool = True) -> None:
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                self.command,
                cwd=ROOT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        if waits:
            self.wait_until_ready()

    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def is_ready(self) -> bool:
        with suppress(requests.RequestException):
            return self._session.get(f"{self.url}/readyz", timeout=3).ok
        return False

    def wait_until_ready(self, seconds: float = 120) -> None:
        began = time.monotonic()
        while not self.is_ready():
            assert self.is_running(), f"The service ended:\n{self.tail()}"
            assert time.monotonic() < began + seconds, f"The service did not become ready:\n{self.tail()}"
            time.sleep(0.1)
        self.started_in = time.monotonic() - began

    def processes(self) -> list[int]:
        """The arbiter first, then its worker."""
        if not self.is_running():
            return []
        arbiter = self._process.pid
        return [arbiter, *children_of(arbiter)]

    def kill_one(self, chance: random.Random) -> str:
        """kill -9 of the arbiter or of the worker; returns which."""
        running = self.processes()
        if not running:
            return "none"
        chosen = chance.choice(running)
        with suppress(ProcessLookupError):
            os.kill(chosen, signal.SIGKILL)
        if chosen == running[0]:
            self._process.wait()
            return "arbiter"
        return "worker"

    def revive(self) -> None:
        """Start again what no arbiter starts again."""
        if not self.is_running():
            self.start(waits=False)

    def stop(self, number: int = signal.SIGTERM, seconds: float = 40) -> float:
        """Returns how long it took; nothing of it is left afterwards."""
        if self._process is None:
            return 0.0
        started = time.monotonic()
        group = self._process.pid
        if self.is_running():
            os.kill(group, number) if number == signal.SIGTERM else os.killpg(group, number)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=seconds)
        took = time.monotonic() - started
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
        self._process.wait()
        return took

    def tail(self, lines: int = 40) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    # --- Use ----------------------------------------------------------------------------------------------------------

    def manage(self, *arguments: str, timeout: float = 120) -> str:
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def token(self, workspace: str = "Faults", *options: str) -> str:
        said = self.manage(
            "issue_token", "--workspace", workspace, "--create", "--whitelist", *options, "--json"
        )
        return json.loads(said.strip().splitlines()[-1])["token"]

    def call(
        self, method: str, path: str, token: str, body: object = None, **headers: str
    ) -> requests.Response:
        return requests.request(
            method,
            f"{self.url}{path}",
            json=body,
            headers={"Authorization": f"Bearer {token}", **headers},
            timeout=15,
            proxies={"http": ""},
        )

    def call_until_answered(
        self, method: str, path: str, token: str, body: object = None, seconds: float = 90, **headers: str
    ) -> requests.Response:
        """As a sensible client does: the same again, with the same key, until there is an answer that isn't a 5xx."""
        until = time.monotonic() + seconds
        while True:
            try:
                answer = self.call(method, path, token, body, **headers)
            except requests.RequestException:
                answer = None
            if answer is not None and answer.status_code < 500:
                return answer
            assert time.monotonic() < until, f"{method} {path} was never answered:\n{self.tail()}"
            time.sleep(0.1)

    def every(self, path: str, token: str, *, cursor_name: str = "cursor") -> list[dict]:
        """All rows of a list, page by page."""
        rows: list[dict] = []
        cursor = ""
        while True:
            joint = "&" if "?" in path else "?"
            page = self.call("GET", f"{path}{joint}limit=100{cursor}", token)
            assert page.status_code == 200, page.text
            rows += page.json()["data"]
            if not page.json()["has_more"]:
                return rows
            cursor = f"&{cursor_name}={page.json()['next_cursor']}"

    def query(self, sql: str) -> list[tuple]:
        """What the database itself says, past the service."""
        if self._database:
            with psycopg.connect(self.environment["DATABASE_URL"]) as connection:
                return connection.execute(sql).fetchall()
        import sqlite3

        with sqlite3.connect(self.data_dir / "db.sqlite3", timeout=20) as connection:
            return connection.execute(sql).fetchall()


def free_port() -> int:
    """Below the range from which the kernel takes the ports of outgoing connections.

    One of those would take the port while the service is down; a client that tries a closed port often enough even
    connects to itself.
    """
    while True:
        port = secrets.choice(range(20_000, 32_000))
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def children_of(parent: int) -> list[int]:
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True, check=False
    )
    return [int(pid) for pid in listed.stdout.split()]


def _with_path(url: str, path: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{path}"))
