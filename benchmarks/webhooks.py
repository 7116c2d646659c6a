"""Webhooks of two workers to a local receiver, which verifies each of them.

- Deliveries a second: events are written as fast as they are delivered. The floor posts the same bytes with pooled `requests`
  sessions from as many processes and threads, before and after. Beside the rates stands the CPU time of one delivery,
  which a busy machine distorts less.
- Beside an endpoint that never answers, with many events waiting for it: from the answer to a push, whose event is
  committed by then, to the event's arrival at others.
- Answers of a byte a second, in the head and in the body: seconds until they are broken off.
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
from benchmarks.floor import letters
from benchmarks.service import ROOT, Service, Session, cpu_seconds, plain_session, wait_until
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
    # Events for the endpoint that hangs, and pushes beside it.
    "hanging_events": (1000, 10),
    "others": (600, 6),
    # How long a dripping answer is looked at.
    "drip_seconds": (60.0, 0.0),
}
WORKERS: Final = 2
ENDPOINTS: Final = 2
"""Of each workspace; every event goes to both."""
RATIO_LEAST: Final = 0.2
PER_SECOND_LEAST: Final = 200.0
BESIDE_MOST_SECONDS: Final = 1.0
DRIP_MOST_SECONDS: Final = 15.5
SHORT: Final = "Too short."
"""A push of which nothing is made, so that its event is nearly all of its work."""


def measure(session: Session) -> Iterator[Row]:
    with session.service(workers=WORKERS) as service:
        yield from throughput(session, service)
    with session.service(workers=WORKERS) as service:
        yield from beside_one_that_hangs(session, service)
    if session.size.drip_seconds:
        with session.service(workers=WORKERS) as service:
            yield from dripping(session, service)


# --- Throughput ------------------------------------------------------------------------------------------------------


def throughput(session: Session, service: Service) -> Iterator[Row]:
    size, receiver = session.size, session.receiver
    workspaces = [seed.newsroom(session.name("Receivers")).workspace for _ in range(size.workspaces)]
    owners = [workspace.pk for workspace in workspaces]
    for number, workspace in enumerate(workspaces):
        for place in range(ENDPOINTS):
            seed.add_endpoint(workspace, receiver, f"/bulk/{number}/{place}", events=["generated.ready"])
    bodies = write_events(owners, 200)
    rates, cpus, floor_rates, floor_cpus, refused = [], [], [], [], 0
    for _ in range(size.rounds):
        with Feeder(session, owners):
            wait_until(lambda: receiver.counts()["verified"] > 10, 60, "deliveries", every=0.1)
            time.sleep(size.warm_seconds)
            rate, cpu = count(session, service.cpu, size.seconds)
        refused += receiver.counts()["refused"]
        rates.append(rate)
        cpus.append(cpu)
        with floor(session, bodies) as pids:
            rate, cpu = count(session, partial(cpu_seconds, pids), size.floor_seconds)
        floor_rates.append(rate)
        floor_cpus.append(cpu)
    unsound = f"{refused} signatures were refused" if refused else ""
    note = f"{len(bodies[0])} bytes each"
    yield Row(
        "webhooks delivered", "/s", rates, floor_rates,
        least=PER_SECOND_LEAST, least_ratio=RATIO_LEAST, note=note, unsound=unsound,
    )  # fmt: skip
    yield Row("CPU of one delivery", "ms", cpus, floor_cpus)


def count(session: Session, cpu: Callable[[], float], seconds: float) -> tuple[float, float]:
    """Deliveries a second, and the CPU milliseconds of one."""
    before, began, used = session.receiver.counts(), time.monotonic(), cpu()
    time.sleep(seconds)
    after, took, spent = session.receiver.counts(), time.monotonic() - began, cpu() - used
    arrived = max(after["verified"] - before["verified"], 1)
    return arrived / took, 1000 * spent / arrived


class floor:  # noqa: N801  used as a context manager
    """As many processes and threads as the workers have, posting what was signed before; gives their ids."""

    def __init__(self, session: Session, bodies: Sequence[bytes]) -> None:
        self._receiver, self._bodies, self._warm = session.receiver, bodies, session.size.warm_seconds

    def __enter__(self) -> list[int]:
        given = json.dumps([body.decode() for body in self._bodies])
        command = [sys.executable, "-m", "benchmarks.client", f"{self._receiver.url}/bulk/floor"]
        command += [self._receiver.secret, str(layouts.WEBHOOK_SLOTS)]
        self._running = [
            subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, text=True) for _ in range(WORKERS)
        ]
        for one in self._running:
            assert one.stdin is not None
            one.stdin.write(given)
            one.stdin.close()
        self._receiver.forget()
        wait_until(lambda: self._receiver.counts()["verified"] > 10, 60, "the floor", every=0.1)
        time.sleep(self._warm)
        return [one.pid for one in self._running]

    def __exit__(self, *_: object) -> None:
        for one in self._running:
            one.kill()
            one.wait()


def write_events(owners: Sequence[UUID], count: int, *, event_type: str = "generated.ready") -> list[bytes]:
    """They wait for the dispatcher, as if many requests had committed them at once; gives their bodies.

    Copied in with bodies that differ in their ids alone, so that writing them takes little from what is measured.
    """
    from django.db import connection  # noqa: PLC0415  Django is set up by then

    now = datetime.now(UTC)
    data = json.loads((ROOT / "docs/examples/event-generated.ready.json").read_text())["data"]
    columns = "id, workspace_id, test, type, body, request_id, created_at"
    bodies = []
    connection.ensure_connection()
    with (
        connection.connection.cursor() as cursor,
        cursor.copy(f"COPY event ({columns}) FROM STDIN") as copy,
    ):
        rest = {
            owner: json.dumps(
                {
                    "type": event_type,
                    "timestamp": now.isoformat(timespec="milliseconds")[:-6] + "Z",
                    "workspace": f"ws_{letters(owner.int)}",
                    "data": data,
                }
            )[1:].encode()
            for owner in owners
        }
        for number in range(count):
            event_id, owner = uuid7(), owners[number % len(owners)]
            body = b'{"id": "evt_%s", ' % letters(event_id.int).encode() + rest[owner]
            copy.write_row((event_id, owner, False, event_type, body, "", now))
            bodies.append(body)
    return bodies


class Feeder:
    """Keeps so many deliveries waiting, from a thread of its own; at its end it waits until all have arrived."""

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
        wait_until(lambda: counts()["unique"] >= self._written, 120, "what is left", every=0.2)

    def _run(self) -> None:
        from django.db import connection  # noqa: PLC0415

        http = plain_session()
        while not self._ends.is_set():
            arrived = http.get(f"{self._session.receiver.url}/counts", timeout=30).json()["unique"]
            if self._written - arrived < self._session.size.ahead:
                events = min(500, self._session.size.ahead)
                self._written += ENDPOINTS * len(write_events(self._owners, events))
            else:
                self._ends.wait(0.1)
        connection.close()


# --- One that hangs, one that drips ----------------------------------------------------------------------------------


def beside_one_that_hangs(session: Session, service: Service) -> Iterator[Row]:
    size, receiver = session.size, session.receiver
    # Every other push is in the workspace of the one that hangs.
    rooms = [seed.newsroom(session.name("Beside")) for _ in range(2)]
    for number, room in enumerate(rooms):
        seed.add_endpoint(room.workspace, receiver, f"/in/beside-{number}", events=["raw.ingested"])
    seed.add_endpoint(rooms[0].workspace, receiver, "/hang", events=["generated.ready"])
    receiver.forget()
    write_events([rooms[0].workspace.pk], size.hanging_events)
    wait_until(lambda: receiver.counts()["most_hanging"] > 0, 60, "one that hangs")
    answered = {}
    for number in range(size.others):
        name = f"beside-{number}"
        raw = service.push(rooms[number % 2].token, external_id=name, title=name, body=SHORT)
        answered[raw] = time.time()
        time.sleep(0.05)
    arrivals: dict[str, float] = {}

    def have_arrived() -> bool:
        arrivals.update({key.partition(" ")[0]: at for key, at in receiver.arrivals().items()})
        return answered.keys() <= arrivals.keys()

    with suppress(TimeoutError):
        wait_until(have_arrived, 60, "the others", every=0.2)
    missing = len(answered.keys() - arrivals.keys())
    # An event may arrive before its push is answered.
    waits = [max(arrivals[raw] - at, 0) for raw, at in answered.items() if raw in arrivals]
    hanging = receiver.counts()["most_hanging"]
    unsound = f"{missing} of {len(answered)} are missing" if missing else ""
    note = f"{size.hanging_events} events for the one that hangs, {hanging} at once"
    yield Row(
        "webhook beside an endpoint that hangs: p50",
        "s",
        [percentile(waits, 0.5)],
        note=note,
        unsound=unsound,
    )
    yield Row(
        "webhook beside an endpoint that hangs: p99", "s", [percentile(waits, 0.99)], most=BESIDE_MOST_SECONDS
    )
    Endpoint.everywhere.filter(workspace__in=[room.workspace for room in rooms]).update(is_on=False)


def dripping(session: Session, service: Service) -> Iterator[Row]:
    receiver, parts = session.receiver, ("head", "body")
    room = seed.newsroom(session.name("Dripping"))
    for part in parts:
        seed.add_endpoint(room.workspace, receiver, f"/drip/{part}", events=["raw.ingested"])
    receiver.forget()
    service.push(room.token, **seed.story("drip"))
    wait_until(
        lambda: len(receiver.counts()["dripped"]) == len(parts),
        session.size.drip_seconds,
        "an end",
        every=0.2,
    )
    yield Row(
        "an answer that drips is broken off",
        "s",
        [max(receiver.counts()["dripped"].values())],
        most=DRIP_MOST_SECONDS,
    )
