"""A service of separate processes for one test, with a Redis of its own: each can be killed and started again."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import redis

from tests.faults.instance import ROOT, Instance, free_port

if TYPE_CHECKING:
    from pathlib import Path

CELERY = (sys.executable, "-m", "celery", "-A", "config")
ROLES = {
    "web": (sys.executable, "-m", "gunicorn", "config.wsgi"),
    "worker": (*CELERY, "worker", "-P", "threads", "--without-mingle", "--without-gossip"),
    "beat": (*CELERY, "beat"),
}
IS_POSSIBLE = shutil.which("redis-server") is not None


class Separate(Instance):
    """Web, worker and beat as docs/running.md starts them, each in a session of its own."""

    def __init__(self, data_dir: Path, **environment: str) -> None:
        self.redis_port = free_port()
        super().__init__(
            data_dir, REDIS_URL=f"redis://127.0.0.1:{self.redis_port}/0", WEB_PROCESSES="1", **environment
        )
        # What the suite shares is left to the others.
        self._redis = ""
        self.environment["REDIS_URL"] = f"redis://127.0.0.1:{self.redis_port}/0"
        self.parts: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, *, waits: bool = True) -> None:
        for role in ("redis", *ROLES):
            self.start_part(role)
        if waits:
            self.wait_until_ready()

    def start_part(self, role: str) -> None:
        """A role, `redis`, or another worker by its name."""
        another = (*ROLES["worker"], "-n", f"{role}@%h") if role.startswith("worker") else ()
        command = (
            ROLES.get(role)
            or another
            or (
                *("redis-server", "--port", str(self.redis_port), "--bind", "127.0.0.1"),
                *("--save", "", "--appendonly", "no", "--dir", str(self.data_dir)),
            )
        )
        with self.log.open("ab") as output:
            self.parts[role] = subprocess.Popen(
                command,
                cwd=ROOT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def kill_part(self, role: str) -> None:
        """kill -9 of the process and of all that it started; it is started again at once."""
        self._end(role)
        self.start_part(role)

    def _end(self, role: str) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.parts[role].pid, signal.SIGKILL)
        self.parts[role].wait()

    def flush_redis(self) -> None:
        with suppress(redis.RedisError):
            redis.Redis(port=self.redis_port, socket_timeout=3).flushall()

    def is_running(self) -> bool:
        return all(part.poll() is None for part in self.parts.values())

    def stop(self, number: int = signal.SIGTERM, seconds: float = 40) -> float:
        for role in self.parts:
            self._end(role)
        self.parts.clear()
        return 0.0
