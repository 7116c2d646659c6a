"""A database of its own for one test, copied from one that was prepared once, and the steps that are done in it."""

from __future__ import annotations

import json
import os
import shutil
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from uuid import uuid4

from django.conf import settings

from tests import migrated
from tests.faults.forked import run_module
from tests.faults.instance import OURS, ROOT

if TYPE_CHECKING:
    from pathlib import Path

KILLED = -9


@dataclass
class World:
    data_dir: Path
    database: str = ""
    environment: dict[str, str] = field(default_factory=dict)

    def run(self, *steps, crash_at=""):
        """The steps in a process of their own: what each said, or None where the process was killed on its way."""
        environment = {name: value for name, value in os.environ.items() if name not in OURS}
        environment |= {"MODE": "development", "DATA_DIR": str(self.data_dir), "LOG_LEVEL": "ERROR"}
        environment |= self.environment
        if self.database:
            environment["DATABASE_URL"] = migrated.url_of(self.database)
        if crash_at:
            environment["CRASH_AT"] = crash_at
        asked = [step if isinstance(step, (list, tuple)) else (step, {}) for step in steps]
        done = run_module(
            "tests.faults.one_step", json.dumps(asked), cwd=ROOT, environment=environment, seconds=250
        )
        if crash_at:
            said = f"{done.stdout}\n{done.stderr}"
            assert done.returncode == KILLED, (
                f"It never passed {crash_at}, and ended with {done.returncode}:\n{said}"
            )
            return None
        assert done.returncode == 0, done.stderr
        # What a step survived, but should not have met.
        assert done.stderr == "", done.stderr
        return json.loads(done.stdout.strip().splitlines()[-1])

    def copy(self, data_dir: Path) -> World:
        shutil.copytree(self.data_dir, data_dir)
        if not self.database:
            return World(data_dir, environment=self.environment)
        name = f"step_{uuid4().hex[:12]}"
        migrated.administer(f"CREATE DATABASE {name} TEMPLATE {self.database}")
        return World(data_dir, name, self.environment)

    def drop(self) -> None:
        shutil.rmtree(self.data_dir)
        if self.database:
            migrated.administer(f"DROP DATABASE {self.database} WITH (FORCE)")


def make_world(data_dir: Path, receiver: str) -> World:
    """Migrated and prepared; the one that the others are copied from."""
    data_dir.mkdir()
    world = World(data_dir)
    if settings.IS_POSTGRES:
        world.database = f"step_{uuid4().hex[:12]}"
        migrated.make_database(world.database)
    else:
        migrated.make_file(data_dir)
    world.run(("prepare", {"receiver": receiver}))
    return world


# --- The others ------------------------------------------------------------------------------------------------------


@dataclass
class Neighbour:
    """Another machine on loopback: it offers one feed and takes every event, refusing each `refusals` times first."""

    url: str = ""
    feed: bytes = b""
    refusals: int = 0
    received: list[tuple[str, str, bytes]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def forget(self) -> None:
        with self.lock:
            self.received.clear()
            self.refusals = 0

    def take(self, path: str, event: str, body: bytes) -> int:
        with self.lock:
            self.received.append((path, event, body))
            times = sum(one[:2] == (path, event) for one in self.received)
        return 500 if times <= self.refusals else 200

    def times(self) -> dict[tuple[str, str], int]:
        """How often each path got each event."""
        with self.lock:
            keys = [one[:2] for one in self.received]
        return {key: keys.count(key) for key in keys}


class _Handler(BaseHTTPRequestHandler):
    neighbour: Neighbour

    def do_GET(self):
        self._answer(200, self.neighbour.feed)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self._answer(self.neighbour.take(self.path, self.headers["webhook-id"], body))

    def _answer(self, status, body=b""):
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_):
        # Whoever asked was killed before the answer, which is what these tests are about.
        pass


def serve(neighbour: Neighbour) -> _Server:
    server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"neighbour": neighbour}))
    neighbour.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    return server
