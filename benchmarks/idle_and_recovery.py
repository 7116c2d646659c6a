"""Measures what the service uses while it has no work, and how fast it starts, with its default settings.

- The idle CPU of all our processes, in % of a core, once everything has started.
- The memory after the start and after a load: RSS, and PSS, which counts memory that processes share once. The floor is a
  process that has loaded the project.
- After a kill -9 of all our processes and a start 0.1 s later, the seconds until `/readyz` answers 200, and until an
  interrupted row, a delivery that hung, is claimed again. The floor is the time in which Python loads the project.
- With `--fresh-clone`, the seconds from `git clone` to the first item that is ready, with `make up`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import requests

from benchmarks import seed
from benchmarks.service import (
    ROOT,
    Service,
    Session,
    bearer,
    free_port,
    memory_usage,
    session_without_proxy,
    wait_until,
)
from benchmarks.table import Row
from webhooks.models import Endpoint

if TYPE_CHECKING:
    from collections.abc import Iterator

ON: Final = ("sqlite", "postgres")
SIZES: Final = {
    "idle_rounds": (3, 1),
    "idle_seconds": (60.0, 1.0),
    "load_seconds": (120.0, 0.5),
    "kills": (5, 1),
}
SETTLING_SECONDS: Final = 10.0
LOAD_RATE: Final = 5.0
DOWN_SECONDS: Final = 0.1
RECOVERY_TIMEOUT_SECONDS: Final = 300.0
FRESH_CLONE_TIMEOUT_SECONDS: Final = 1800.0
LOAD_PROGRAM: Final = "import config.wsgi, time; print('loaded', flush=True); time.sleep(600)"


def measure(session: Session) -> Iterator[Row]:
    with session.service() as service:
        room = seed.make_newsroom(session.name("Operation"))
        yield from measure_idle(session, service)
        yield from measure_memory(session, service, room)
        yield from measure_kills(session, service, room)
    if session.size.fresh_clone and session.database == "sqlite":
        yield Row("fresh clone to the first item ready", "s", [fresh_clone()])


def measure_idle(session: Session, service: Service) -> Iterator[Row]:
    if not session.is_smallest:
        time.sleep(SETTLING_SECONDS)
    shares = []
    for _ in range(session.size.idle_rounds):
        cpu_before, started = service.cpu(), time.monotonic()
        time.sleep(session.size.idle_seconds)
        shares.append(100 * (service.cpu() - cpu_before) / (time.monotonic() - started))
    parts = ", ".join(service.commands)
    yield Row(f"idle CPU, {service.layout}", "% of a core", shares, note=f"processes: {parts}")


def measure_memory(session: Session, service: Service, room: seed.Newsroom) -> Iterator[Row]:
    """Yield the memory after the start and after a load."""
    _, floor = load_project()
    usage_by_time = {"after start": memory_usage(service.pids())}
    deadline, number = time.monotonic() + session.size.load_seconds, 0
    while time.monotonic() < deadline:
        service.push(room.token, **seed.make_story(f"load-{number}"))
        service.http.get(f"{service.url}/v1/generated", headers=bearer(room.token), timeout=60)
        number += 1
        time.sleep(1 / LOAD_RATE)
    usage_by_time[f"after {session.size.load_seconds:.0f} s of load"] = memory_usage(service.pids())
    for when, kinds in usage_by_time.items():
        for kind, mebibytes in kinds.items():
            yield Row(f"memory, {service.layout}, {when}: {kind.upper()}", "MiB", [mebibytes], [floor[kind]])


def load_project() -> tuple[float, dict[str, float]]:
    """Return the seconds in which a process loads the project, and its memory by kind, in MiB."""
    started = time.monotonic()
    with subprocess.Popen([sys.executable, "-c", LOAD_PROGRAM], cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        seconds, usage = time.monotonic() - started, memory_usage([process.pid])
        process.kill()
    return seconds, usage


def measure_kills(session: Session, service: Service, room: seed.Newsroom) -> Iterator[Row]:
    """Yield the seconds from a start after a kill until the service is ready, and from the kill to the delivery."""
    ready_seconds, recovery_seconds, floors = [], [], []
    for number in range(session.size.kills):
        path = f"/hang/{session.name('killed').replace(' ', '-')}"
        seed.add_endpoint(room.workspace, session.receiver, path, events=["raw.ingested"])
        session.receiver.forget()
        service.push(room.token, **seed.make_story(f"killed-{number}"))
        wait_until(partial(has_hung_again, session, 0), RECOVERY_TIMEOUT_SECONDS, "a delivery")
        hung = session.receiver.counts()["hung"]
        service.kill()
        killed_at = time.monotonic()
        time.sleep(DOWN_SECONDS)
        ready_seconds.append(service.start())
        wait_until(partial(has_hung_again, session, hung), RECOVERY_TIMEOUT_SECONDS, "it again")
        recovery_seconds.append(time.monotonic() - killed_at)
        Endpoint.everywhere.filter(workspace=room.workspace).update(is_on=False)
        floors.append(load_project()[0])
    lease = service.environment.get("LEASE_SECONDS", "as by default")
    yield Row(f"kill -9 of all, {service.layout}: /readyz", "s", ready_seconds, floors)
    yield Row(
        f"kill -9 of all, {service.layout}: a begun delivery again",
        "s",
        recovery_seconds,
        note=f"LEASE_SECONDS {lease}",
    )


def has_hung_again(session: Session, before: int) -> bool:
    """Return whether the endpoint that hangs was sent to more than `before` times."""
    return bool(session.receiver.counts()["hung"] > before)


def fresh_clone() -> float:
    """Return the seconds from a clone to the first item; packages that pip has in its cache aren't downloaded."""
    inherited = (
        "PATH",
        "HOME",
        "LANG",
        "USER",
        "PIP_INDEX_URL",
        "SSL_CERT_FILE",
        "REQUESTS_CA_BUNDLE",
        "UV_CACHE_DIR",
    )
    with tempfile.TemporaryDirectory(prefix="benchmark-clone-") as folder:
        clone, port = Path(folder) / "clone", free_port()
        environment = {name: os.environ[name] for name in inherited if name in os.environ} | {
            "PORT": str(port)
        }
        started = time.monotonic()
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        with subprocess.Popen(["make", "up"], cwd=clone, env=environment, stdout=subprocess.DEVNULL) as up:
            try:
                http, url = session_without_proxy(), f"http://127.0.0.1:{port}"
                wait_until(
                    lambda: _is_ok(http, f"{url}/readyz"),
                    FRESH_CLONE_TIMEOUT_SECONDS,
                    "/readyz",
                    interval=0.2,
                )
                output = subprocess.run(
                    ["make", "--silent", "token"],
                    cwd=clone,
                    env=environment,
                    check=True,
                    capture_output=True,
                    text=True,
                )
                headers = bearer(output.stdout.split()[-1])
                response = http.post(
                    f"{url}/v1/raw", json=seed.make_story("first"), headers=headers, timeout=60
                )
                raw = response.json()["id"]
                wait_until(
                    lambda: _is_processed(http, url, headers, raw),
                    FRESH_CLONE_TIMEOUT_SECONDS,
                    "the first item",
                    # A workspace may not ask more often for longer than a minute.
                    interval=1.0,
                )
                return time.monotonic() - started
            finally:
                up.terminate()


def _is_ok(http: requests.Session, url: str) -> bool:
    try:
        return http.get(url, timeout=3).ok
    except requests.RequestException:
        return False


def _is_processed(http: requests.Session, url: str, head: dict[str, str], raw: str) -> bool:
    response = http.get(f"{url}/v1/raw/{raw}", headers=head, timeout=60)
    response.raise_for_status()
    item = response.json()
    return item["status"] == "processed" and any(outcome["outcome"] == "made" for outcome in item["outcomes"])
