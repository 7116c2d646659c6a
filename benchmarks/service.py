"""Starts the service that is measured, and reads its CPU time and memory from /proc."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import requests

from benchmarks import layouts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import SimpleNamespace

ROOT: Final = Path(__file__).resolve().parent.parent
READY_SECONDS: Final = 120.0
"""The longest wait for a service to be ready."""
_TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_until(is_true: Callable[[], Any], seconds: float, label: str, *, interval: float = 0.02) -> float:
    """Wait until `is_true`, and return the seconds that this took. Raises `TimeoutError` after `seconds`."""
    started = time.monotonic()
    while not is_true():
        if time.monotonic() - started > seconds:
            raise TimeoutError(f"{label}: not within {seconds:.0f} s")
        time.sleep(interval)
    return time.monotonic() - started


def session_without_proxy() -> requests.Session:
    """Return a session that ignores the environment's proxy."""
    session = requests.Session()
    session.trust_env = False
    return session


# --- /proc -----------------------------------------------------------------------------------------------------------


def cpu_seconds(pids: Sequence[int]) -> float:
    """Return the CPU seconds, user and system, of these processes and of the children that they have waited for."""
    ticks = 0
    for pid in pids:
        with suppress(OSError):
            stat = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
            ticks += sum(map(int, stat[11:15]))
    return ticks / _TICKS_PER_SECOND


def memory_usage(pids: Sequence[int]) -> dict[str, float]:
    """Return the RSS and PSS of these processes together, in MiB; PSS counts shared memory once."""
    sums = {"Rss": 0, "Pss": 0}
    for pid in pids:
        with suppress(OSError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                name = line.partition(":")[0]
                if name in sums:
                    sums[name] += int(line.split()[1])
    return {name: kibibytes / 1024 for name, kibibytes in sums.items()}


def _pids_of_sessions(leaders: set[int]) -> list[int]:
    """Return the ids of all processes of these sessions."""
    pids = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if int((entry / "stat").read_text().rpartition(") ")[2].split()[3]) in leaders:
                    pids.append(int(entry.name))
    return pids


# --- The service -----------------------------------------------------------------------------------------------------


class Service:
    """A running service. Each part leads a separate session, so that a kill takes all of the part's processes."""

    def __init__(self, layout: str, *, log: Path, environment: Mapping[str, str], workers: int = 1) -> None:
        self.layout, self.port, self.log = layout, free_port(), log
        self.url = f"http://127.0.0.1:{self.port}"
        self.commands = layouts.process_commands(layout, workers=workers)
        self.environment = {**os.environ, "PORT": str(self.port), "PUBLIC_URL": self.url}
        self.environment |= {"WEB_PROCESSES": "1", **environment}
        self.parts: dict[str, subprocess.Popen[bytes]] = {}
        self.http = session_without_proxy()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> float:
        """Start all parts and return the seconds until the service is ready."""
        started = time.monotonic()
        for role in self.commands:
            self.start_part(role)
        self.wait_until_ready()
        return time.monotonic() - started

    def start_part(self, role: str) -> None:
        """Start one part of the layout."""
        with self.log.open("ab") as output:
            self.parts[role] = subprocess.Popen(
                self.commands[role], cwd=ROOT, env=self.environment, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            )  # fmt: skip

    def wait_until_ready(self) -> None:
        """Wait for `/readyz`. Raises `RuntimeError` if a part ends, and `TimeoutError` if it takes too long."""

        def is_ready() -> bool:
            ended = [role for role, part in self.parts.items() if part.poll() is not None]
            if ended:
                raise RuntimeError(
                    f"{', '.join(ended)} ended: {self.log.read_text(errors='replace')[-3000:]}"
                )
            with suppress(requests.RequestException):
                return self.http.get(f"{self.url}/readyz", timeout=3).ok
            return False

        wait_until(is_ready, READY_SECONDS, "/readyz")

    def kill(self, *roles: str) -> None:
        """Kill the named parts, or all, as `kill -9` does."""
        chosen_roles = roles or tuple(self.parts)
        for role in chosen_roles:
            with suppress(ProcessLookupError):
                os.killpg(self.parts[role].pid, signal.SIGKILL)
        for role in chosen_roles:
            self.parts.pop(role).wait()

    def pids(self) -> list[int]:
        return _pids_of_sessions({part.pid for part in self.parts.values()})

    def cpu(self) -> float:
        return cpu_seconds(self.pids())

    def push(self, token: str, **fields: Any) -> str:
        """Push a raw item and return its id. Raises `RuntimeError` if it isn't accepted as new."""
        response = self.http.post(f"{self.url}/v1/raw", json=fields, headers=bearer(token), timeout=60)
        if response.status_code != 202:
            raise RuntimeError(f"A push was answered {response.status_code}: {response.text[:500]}")
        return str(response.json()["id"])


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


class Receiver:
    """The receiver's process (`benchmarks.receiver`), and access to its counts."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "benchmarks.receiver"]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.port, self.secret = self.process.stdout.readline().split()
        self.url = f"http://127.0.0.1:{self.port}"
        self._http = session_without_proxy()

    def counts(self) -> dict[str, Any]:
        counts: dict[str, Any] = self._http.get(f"{self.url}/counts", timeout=30).json()
        return counts

    def arrivals(self) -> dict[str, float]:
        """Return when each event first arrived, by the receiver's clock and the keys of `benchmarks.receiver`."""
        arrivals: dict[str, float] = self._http.get(f"{self.url}/arrivals", timeout=30).json()
        return arrivals

    def forget(self) -> None:
        self._http.post(f"{self.url}/forget", timeout=30)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


# --- A session: one database, and what was started on it -------------------------------------------------------------


@dataclass
class Session:
    """The means with which a script measures. Django is set up on the session's database."""

    database: str
    """`sqlite` or `postgres`."""
    is_smallest: bool
    folder: Path
    size: SimpleNamespace
    """The sizes of the script that runs, from its `SIZES`."""
    _shared_service: Service | None = None
    _receiver: Receiver | None = None
    _names: Iterator[int] = field(default_factory=lambda: iter(range(10**9)))

    @property
    def layout(self) -> str:
        return "embedded" if self.database == "sqlite" else "split"

    @property
    def receiver(self) -> Receiver:
        if self._receiver is None:
            self._receiver = Receiver()
        return self._receiver

    def name(self, prefix: str) -> str:
        """Return a name that nothing else in the session has."""
        return f"{prefix} {next(self._names)}"

    @contextmanager
    def service(self, *, workers: int = 1, **environment: str) -> Iterator[Service]:
        """Start a new service with these variables; at the smallest size all scripts share one, without them."""
        common = {"SIMULATED_LATENCY_MS": "200", "OUTBOUND_ALLOW_LOOPBACK": "1"}
        log = self.folder / "service.log"
        if not self.is_smallest:
            with Service(self.layout, log=log, environment=common | environment, workers=workers) as service:
                yield service
            return
        if self._shared_service is None:
            self._shared_service = Service(self.layout, log=log, environment=common | {"LEASE_SECONDS": "2"})
            self._shared_service.start()
        yield self._shared_service

    def end(self) -> None:
        if self._shared_service is not None:
            self._shared_service.kill()
        if self._receiver is not None:
            self._receiver.end()


@contextmanager
def redis_server(folder: Path) -> Iterator[str]:
    """Start a Redis that keeps nothing on disk, and yield its address."""
    port = free_port()
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    server = subprocess.Popen([*command, "--dir", str(folder)], stdout=subprocess.DEVNULL)
    try:
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        server.kill()
        server.wait()
