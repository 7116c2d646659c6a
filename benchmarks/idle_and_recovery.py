"""What the service costs and takes beside its work, with the settings that it comes with.

- Idle CPU of all our processes, in % of a core, once everything has started.
- Memory after the start and after a load: RSS and, where what processes share is counted once, PSS. The floor is a
  process that has loaded the project.
- kill -9 of all our processes, a start 0.1 s later: seconds until `/readyz` answers 200, and until a row that was begun, a
  delivery that hung, is begun again. The floor is the time in which Python loads the project.
- With `--fresh-clone`: seconds from `git clone` to the first item that is ready, with `make up`.
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
from benchmarks.service import ROOT, Service, Session, bearer, free_port, memory, plain_session, wait_until
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
SETTLED_AFTER_SECONDS: Final = 10.0
LOAD_RATE: Final = 5.0
KILLED_FOR_SECONDS: Final = 0.1
BEGUN_AGAIN_SECONDS: Final = 300.0
FRESH_SECONDS: Final = 1800.0
LOADED: Final = "import config.wsgi, time; print('loaded', flush=True); time.sleep(600)"


def measure(session: Session) -> Iterator[Row]:
    with session.service() as service:
        room = seed.newsroom(session.name("Operation"))
        yield from idle(session, service)
        yield from remembered(session, service, room)
        yield from killed(session, service, room)
    if session.size.fresh_clone and session.database == "sqlite":
        yield Row("fresh clone to the first item ready", "s", [fresh_clone()])


def idle(session: Session, service: Service) -> Iterator[Row]:
    if not session.is_smallest:
        time.sleep(SETTLED_AFTER_SECONDS)
    shares = []
    for _ in range(session.size.idle_rounds):
        used, began = service.cpu(), time.monotonic()
        time.sleep(session.size.idle_seconds)
        shares.append(100 * (service.cpu() - used) / (time.monotonic() - began))
    parts = ", ".join(service.commands)
    yield Row(f"idle CPU, {service.layout}", "% of a core", shares, note=f"processes: {parts}")


def remembered(session: Session, service: Service, room: seed.Newsroom) -> Iterator[Row]:
    """What memory holds after the start and after a load."""
    _, floor = load_project()
    sides = {"after start": memory(service.pids())}
    ends, number = time.monotonic() + session.size.load_seconds, 0
    while time.monotonic() < ends:
        service.push(room.token, **seed.story(f"load-{number}"))
        service.http.get(f"{service.url}/v1/generated", headers=bearer(room.token), timeout=60)
        number += 1
        time.sleep(1 / LOAD_RATE)
    sides[f"after {session.size.load_seconds:.0f} s of load"] = memory(service.pids())
    for when, kinds in sides.items():
        for kind, megabytes in kinds.items():
            yield Row(f"memory, {service.layout}, {when}: {kind.upper()}", "MB", [megabytes], [floor[kind]])


def load_project() -> tuple[float, dict[str, float]]:
    """Seconds in which a process loads the project, and its memory then."""
    began = time.monotonic()
    with subprocess.Popen([sys.executable, "-c", LOADED], cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        took, held = time.monotonic() - began, memory([process.pid])
        process.kill()
    return took, held


def killed(session: Session, service: Service, room: seed.Newsroom) -> Iterator[Row]:
    ready, again, floors = [], [], []
    for number in range(session.size.kills):
        path = f"/hang/{session.name('killed').replace(' ', '-')}"
        seed.add_endpoint(room.workspace, session.receiver, path, events=["raw.ingested"])
        session.receiver.forget()
        service.push(room.token, **seed.story(f"killed-{number}"))
        wait_until(partial(has_hung, session, 0), BEGUN_AGAIN_SECONDS, "a delivery")
        hung = session.receiver.counts()["hung"]
        service.kill()
        at = time.monotonic()
        time.sleep(KILLED_FOR_SECONDS)
        ready.append(service.start())
        wait_until(partial(has_hung, session, hung), BEGUN_AGAIN_SECONDS, "it again")
        again.append(time.monotonic() - at)
        Endpoint.everywhere.filter(workspace=room.workspace).update(is_on=False)
        floors.append(load_project()[0])
    lease = service.environment.get("LEASE_SECONDS", "as by default")
    yield Row(f"kill -9 of all, {service.layout}: /readyz", "s", ready, floors)
    yield Row(
        f"kill -9 of all, {service.layout}: a begun delivery again", "s", again, note=f"LEASE_SECONDS {lease}"
    )


def has_hung(session: Session, before: int) -> bool:
    """Whether the endpoint that hangs was sent to more often than that."""
    return bool(session.receiver.counts()["hung"] > before)


def fresh_clone() -> float:
    """Seconds; what pip has in its cache is taken from there."""
    kept = (
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
        environment = {name: os.environ[name] for name in kept if name in os.environ} | {"PORT": str(port)}
        began = time.monotonic()
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        with subprocess.Popen(["make", "up"], cwd=clone, env=environment, stdout=subprocess.DEVNULL) as up:
            try:
                http, url = plain_session(), f"http://127.0.0.1:{port}"
                wait_until(lambda: _is_ok(http, f"{url}/readyz"), FRESH_SECONDS, "/readyz", every=0.2)
                told = subprocess.run(
                    ["make", "--silent", "token"],
                    cwd=clone,
                    env=environment,
                    check=True,
                    capture_output=True,
                    text=True,
                )
                head = bearer(told.stdout.split()[-1])
                pushed = http.post(f"{url}/v1/raw", json=seed.story("first"), headers=head, timeout=60)
                raw = pushed.json()["id"]
                wait_until(lambda: _is_made(http, url, head, raw), FRESH_SECONDS, "the first item", every=0.2)
                return time.monotonic() - began
            finally:
                up.terminate()


def _is_ok(http: requests.Session, url: str) -> bool:
    try:
        return http.get(url, timeout=3).ok
    except requests.RequestException:
        return False


def _is_made(http: requests.Session, url: str, head: dict[str, str], raw: str) -> bool:
    item = http.get(f"{url}/v1/raw/{raw}", headers=head, timeout=60).json()
    return item["status"] == "processed" and any(one["outcome"] == "made" for one in item["outcomes"])
