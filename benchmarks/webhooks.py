"""Measures webhooks from two workers to a local receiver, which verifies each of them.

- The deliveries a second, while events are written as fast as they are delivered, and the CPU time of one delivery, which a
  busy machine distorts less. The floor posts the same bytes in turn with pooled `requests` sessions, from as many processes
  and threads.
- The time from the answer to a push, whose event is committed by then, to the event's arrival, while another endpoint, for
  which many events wait, never answers.
- The seconds until an answer of a byte a second, in the head or in the body, is cut off.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final, Self

from uuid_utils.compat import uuid7

from benchmarks import layouts, seed
from benchmarks.floor import public_letters
from benchmarks.service import ROOT, Service, Session, cpu_seconds, session_without_proxy, wait_until
from benchmarks.table import Row, percentile
from webhooks.models import Endpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from uuid import UUID

ON: Final = ("postgres",)
SIZES: Final = {
    "rounds": (3, 1),
    "workspaces": (10, 2),
    "seconds": (30.0, 1.0),
    "floor_seconds": (10.0, 0.5),
    "warm_seconds": (4.0, 0.2),
    "ahead": (3000, 200),
    # Events for the endpoint that hangs, and pushes to others.
    "hanging_events": (1000, 10),
    "others": (600, 6),
    # Time limit of a dripping answer.
    "drip_seconds": (60.0, 0.0),
}
WORKERS: Final = 2
ENDPOINTS_PER_WORKSPACE: Final = 2
"""Every event goes to both endpoints."""
MIN_RATIO: Final = 0.2
MIN_PER_SECOND: Final = 200.0
MAX_P99_BESIDE_SECONDS: Final = 1.0
MAX_DRIP_SECONDS: Final = 15.5
SHORT_BODY: Final = "Too short."
"""The text of a push from which nothing is made, so that its event is nearly all of the work."""


def measure(session: Session) -> Iterator[Row]:
    with session.service(workers=WORKERS) as service:
        yield from measure_throughput(session, service)
    with session.service(workers=WORKERS) as service:
        yield from measure_beside_hanging(session, service)
    if session.size.drip_seconds:
        with session.service(workers=WORKERS) as service:
            yield from measure_dripping(session, service)


# --- Throughput ------------------------------------------------------------------------------------------------------


def measure_throughput(session: Session, service: Service) -> Iterator[Row]:
    """Yield the deliveries a second and the CPU time of one, ours and the floor's in turn."""
    size, receiver = session.size, session.receiver
    workspaces = [seed.make_newsroom(session.name("Receivers")).workspace for _ in range(size.workspaces)]
    owners = [workspace.pk for workspace in workspaces]
    for number, workspace in enumerate(workspaces):
        for endpoint_number in range(ENDPOINTS_PER_WORKSPACE):
            seed.add_endpoint(
                workspace, receiver, f"/bulk/{number}/{endpoint_number}", events=["generated.ready"]
            )
    bodies = write_events(owners, 200)
    rates, cpu_ms, floor_rates, floor_cpus, refused_count = [], [], [], [], 0
    for _ in range(size.rounds):
        with EventFeeder(session, owners):
            wait_until(lambda: receiver.counts()["verified"] > 10, 60, "deliveries", interval=0.1)
            time.sleep(size.warm_seconds)
            rate, cpu = count_deliveries(session, service.cpu, size.seconds)
        refused_count += receiver.counts()["refused"]
        rates.append(rate)
        cpu_ms.append(cpu)
        with floor_processes(session, bodies) as pids:
            rate, cpu = count_deliveries(session, partial(cpu_seconds, pids), size.floor_seconds)
        floor_rates.append(rate)
        floor_cpus.append(cpu)
    unsound = f"{refused_count} signatures were refused" if refused_count else ""
    note = f"{len(bodies[0])} bytes each"
    yield Row(
        "webhooks delivered", "/s", rates, floor_rates,
        minimum=MIN_PER_SECOND, min_ratio=MIN_RATIO, note=note, unsound=unsound,
    )  # fmt: skip
    yield Row("CPU of one delivery", "ms", cpu_ms, floor_cpus)


def count_deliveries(session: Session, cpu: Callable[[], float], seconds: float) -> tuple[float, float]:
    """Wait for so many seconds, and return the deliveries a second in that time, and the CPU milliseconds of one."""
    before, started, cpu_before = session.receiver.counts(), time.monotonic(), cpu()
    time.sleep(seconds)
    after, elapsed, cpu_used = session.receiver.counts(), time.monotonic() - started, cpu() - cpu_before
    arrived = max(after["verified"] - before["verified"], 1)
    return arrived / elapsed, 1000 * cpu_used / arrived


class floor_processes:  # noqa: N801  used as a context manager
    """Posts signed bodies from as many processes and threads as the workers have; yields the processes' ids."""

    def __init__(self, session: Session, bodies: Sequence[bytes]) -> None:
        self._receiver, self._bodies, self._warm = session.receiver, bodies, session.size.warm_seconds

    def __enter__(self) -> list[int]:
        bodies_json = json.dumps([body.decode() for body in self._bodies])
        command = [sys.executable, "-m", "benchmarks.client", f"{self._receiver.url}/bulk/floor"]
        command += [self._receiver.secret, str(layouts.WEBHOOK_SLOTS)]
        self._processes = [
            subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, text=True) for _ in range(WORKERS)
        ]
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write(bodies_json)
            process.stdin.close()
        self._receiver.forget()
        wait_until(lambda: self._receiver.counts()["verified"] > 10, 60, "the floor", interval=0.1)
        time.sleep(self._warm)
        return [process.pid for process in self._processes]

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
            process.wait()


def write_events(owners: Sequence[UUID], count: int, *, event_type: str = "generated.ready") -> list[bytes]:
    """Write events for the dispatcher, as if many requests had committed them at once, and return their bodies.

    COPY writes them, with bodies that differ in their ids alone, so that writing takes little time from the measurement.
    """
    from django.db import connection  # noqa: PLC0415  Django is set up by then

    now = datetime.now(UTC)
    data = json.loads((ROOT / "docs/examples/event-generated.ready.json").read_text())["data"]
    columns = "id, workspace_id, test, type, body, request_id, created_at"
    bodies = []
    connection.ensure_connection()
    with connection.connection.cursor() as cursor, cursor.copy(f"COPY event ({columns}) FROM STDIN") as copy:
        body_rest = {
            owner: json.dumps(
                {
                    "type": event_type,
                    "timestamp": now.isoformat(timespec="milliseconds")[:-6] + "Z",
                    "workspace": f"ws_{public_letters(owner.int)}",
                    "data": data,
                }
            )[1:].encode()
            for owner in owners
        }
        for number in range(count):
            event_id, owner = uuid7(), owners[number % len(owners)]
            body = b'{"id": "evt_%s", ' % public_letters(event_id.int).encode() + body_rest[owner]
            copy.write_row((event_id, owner, False, event_type, body, "", now))
            bodies.append(body)
    return bodies


class EventFeeder:
    """Writes events from a thread, so that deliveries always wait; at its end it waits until all have arrived."""

    def __init__(self, session: Session, owners: Sequence[UUID]) -> None:
        self._session, self._owners = session, owners
        self._written = 0
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._session.receiver.forget()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()
        counts = self._session.receiver.counts
        wait_until(lambda: counts()["unique"] >= self._written, 120, "what is left", interval=0.2)

    def _run(self) -> None:
        from django.db import connection  # noqa: PLC0415

        http = session_without_proxy()
        while not self._ends.is_set():
            arrived = http.get(f"{self._session.receiver.url}/counts", timeout=30).json()["unique"]
            if self._written - arrived < self._session.size.ahead:
                events = min(500, self._session.size.ahead)
                self._written += ENDPOINTS_PER_WORKSPACE * len(write_events(self._owners, events))
            else:
                self._ends.wait(0.1)
        connection.close()


# --- Endpoints that hang or drip -------------------------------------------------------------------------------------


def measure_beside_hanging(session: Session, service: Service) -> Iterator[Row]:
    """Yield the times from pushes to their webhooks while another endpoint hangs."""
    size, receiver = session.size, session.receiver
    # Every second push is in the workspace of the endpoint that hangs.
    rooms = [seed.make_newsroom(session.name("Beside")) for _ in range(2)]
    for number, room in enumerate(rooms):
        seed.add_endpoint(room.workspace, receiver, f"/in/beside-{number}", events=["raw.ingested"])
    seed.add_endpoint(rooms[0].workspace, receiver, "/hang", events=["generated.ready"])
    receiver.forget()
    write_events([rooms[0].workspace.pk], size.hanging_events)
    wait_until(lambda: receiver.counts()["most_hanging"] > 0, 60, "one that hangs")
    answered = {}
    for number in range(size.others):
        name = f"beside-{number}"
        raw = service.push(rooms[number % 2].token, external_id=name, title=name, body=SHORT_BODY)
        answered[raw] = time.time()
        time.sleep(0.05)
    arrivals: dict[str, float] = {}

    def are_all_arrived() -> bool:
        arrivals.update(
            {key.partition(" ")[0]: arrived_at for key, arrived_at in receiver.arrivals().items()}
        )
        return answered.keys() <= arrivals.keys()

    with suppress(TimeoutError):
        wait_until(are_all_arrived, 60, "the others", interval=0.2)
    missing = len(answered.keys() - arrivals.keys())
    # An event may arrive before the answer to its push.
    seconds = [
        max(arrivals[raw] - answered_at, 0) for raw, answered_at in answered.items() if raw in arrivals
    ]
    hanging = receiver.counts()["most_hanging"]
    unsound = f"{missing} of {len(answered)} are missing" if missing else ""
    note = f"{size.hanging_events} events for the one that hangs, {hanging} at once"
    yield Row(
        "webhook beside an endpoint that hangs: p50",
        "s",
        [percentile(seconds, 0.5)],
        note=note,
        unsound=unsound,
    )
    yield Row(
        "webhook beside an endpoint that hangs: p99",
        "s",
        [percentile(seconds, 0.99)],
        maximum=MAX_P99_BESIDE_SECONDS,
    )
    Endpoint.everywhere.filter(workspace__in=[room.workspace for room in rooms]).update(is_on=False)


def measure_dripping(session: Session, service: Service) -> Iterator[Row]:
    """Yield the seconds until a dripping answer is cut off."""
    receiver, parts = session.receiver, ("head", "body")
    room = seed.make_newsroom(session.name("Dripping"))
    for part in parts:
        seed.add_endpoint(room.workspace, receiver, f"/drip/{part}", events=["raw.ingested"])
    receiver.forget()
    service.push(room.token, **seed.make_story("drip"))
    wait_until(
        lambda: len(receiver.counts()["dripped"]) == len(parts),
        session.size.drip_seconds,
        "an end",
        interval=0.2,
    )
    yield Row(
        "an answer that drips is broken off",
        "s",
        [max(receiver.counts()["dripped"].values())],
        maximum=MAX_DRIP_SECONDS,
    )
