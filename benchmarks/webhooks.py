"""Webhooks of two worker processes to a local sink: how many a second, how soon beside one that hangs, and how long one
that drips is waited for.

`python -m benchmarks webhooks [--quick] [throughput|hanging|dripping]`, on PostgreSQL and Redis, on a database of its own.

- `throughput`: events are written as fast as they are delivered, for a minute. The floor posts the same bytes with
  pooled `requests` sessions from as many processes and threads, before and after. The sink verifies all of them. Beside
  the rates it says what one delivery costs in CPU time, which a busy machine distorts less.
- `hanging`: 1,000 events for an endpoint that never answers; beside it, how long others wait from the commit of their
  event to its arrival.
- `dripping`: answers of a byte a second, in the head and in the body, are broken off.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any, Final, Self

import requests

from benchmarks import fresh_services
from benchmarks.__main__ import machine
from benchmarks.publishing import WORKERS, Workers, empty, share

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

THREADS: Final = 12
"""Of each floor process, as many as a worker has hands for deliveries."""
WORKSPACES: Final = 10
ENDPOINTS: Final = 2
"""Of each workspace; every event goes to both."""
RATE: Final = 100
WAITING: Final = 3000
"""Deliveries that the feeder keeps ahead of the workers."""
WARM_SECONDS: Final = 4.0
RATIO_LEAST: Final = 0.2
PER_SECOND_LEAST: Final = 200
HANGING_EVENTS: Final = 1000
P99_MOST_SECONDS: Final = 1.0
DRIP_MOST_SECONDS: Final = 15.5
WORKER_NAME: Final = f"benchmark-worker-{os.getpid()}"
CLOCK_TICKS: Final = os.sysconf("SC_CLK_TCK")


# --- The sink --------------------------------------------------------------------------------------------------------


class Sink:
    def __init__(self, secret: str) -> None:
        command = [sys.executable, "-m", "benchmarks.sink", secret]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.url = f"http://127.0.0.1:{int(self.process.stdout.readline())}"
        self._session = requests.Session()
        self._session.trust_env = False

    def told(self) -> dict[str, Any]:
        found: dict[str, Any] = self._session.get(f"{self.url}/told", timeout=30).json()
        return found

    def arrivals(self) -> dict[str, float]:
        found: dict[str, float] = self._session.get(f"{self.url}/arrivals", timeout=30).json()
        return found

    def forget(self) -> None:
        self._session.post(f"{self.url}/forget", timeout=30)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def sink_of(secret: str) -> Iterator[Sink]:
    sink = Sink(secret)
    try:
        yield sink
    finally:
        sink.end()


# --- CPU time --------------------------------------------------------------------------------------------------------


def cpu_seconds(pids: Sequence[int]) -> float:
    """What these processes have used, as far as they are on this machine and still there."""
    total = 0
    for pid in pids:
        status = Path(f"/proc/{pid}/stat")
        if status.exists():
            total += sum(map(int, status.read_text().rpartition(") ")[2].split()[11:13]))
    return total / CLOCK_TICKS


def start_workers() -> Workers:
    """Their connections carry a name, by which PostgreSQL's processes for them are found."""
    os.environ["PGAPPNAME"] = WORKER_NAME
    try:
        return Workers()
    finally:
        del os.environ["PGAPPNAME"]


def backends() -> list[int]:
    """PostgreSQL's processes for the workers."""
    from django.db import connection  # noqa: PLC0415  it needs Django

    with connection.cursor() as cursor:
        cursor.execute("SELECT pid FROM pg_stat_activity WHERE application_name = %s", [WORKER_NAME])
        return [row[0] for row in cursor.fetchall()]


# --- The floor -------------------------------------------------------------------------------------------------------


def post_for_ever(url: str, secret: str, bodies: Sequence[bytes], threads: int) -> None:
    """One process of the floor: each thread has a session with its kept connection; what is signed was signed before."""
    from django.utils import timezone  # noqa: PLC0415

    from webhooks import signing  # noqa: PLC0415  it needs Django

    now = timezone.now()
    ready = []
    for body in bodies:
        event_id = json.loads(body)["id"]
        headers = {
            "content-type": "application/json",
            "webhook-id": event_id,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": signing.sign([secret], event_id, now, body),
        }
        ready.append((body, headers))

    def run(start: int) -> None:
        with requests.Session() as session:
            session.trust_env = False
            for body, headers in itertools.cycle(ready[start:] + ready[:start]):
                session.post(url, data=body, headers=headers, timeout=30)

    for number in range(threads):
        threading.Thread(target=run, args=(number * len(ready) // threads,), daemon=True).start()
    threading.Event().wait()


def floor(sink: Sink, secret: str, bodies: Sequence[bytes], seconds: float) -> dict[str, float]:
    given = json.dumps([body.decode() for body in bodies])
    program = (
        "import sys, json, django; django.setup(); from benchmarks.webhooks import post_for_ever; "
        "url, secret, threads = sys.argv[1:]; "
        "post_for_ever(url, secret, [one.encode() for one in json.load(sys.stdin)], int(threads))"
    )
    command = [sys.executable, "-c", program, f"{sink.url}/floor", secret, str(THREADS)]
    running = [subprocess.Popen(command, stdin=subprocess.PIPE, text=True) for _ in range(WORKERS)]
    try:
        for one in running:
            assert one.stdin is not None
            one.stdin.write(given)
            one.stdin.close()
        return _measured(sink, [one.pid for one in running], seconds, counts="verified")
    finally:
        for one in running:
            one.kill()
            one.wait()


def _measured(sink: Sink, pids: Sequence[int], seconds: float, *, counts: str) -> dict[str, float]:
    """Deliveries a second once they flow, and the CPU time of one in milliseconds."""
    sink.forget()
    while sink.told()["verified"] < 10:
        time.sleep(0.1)
    time.sleep(WARM_SECONDS)
    groups = {"cpu_ms": [*pids], "sink_cpu_ms": [sink.process.pid]}
    before, began = sink.told(), time.monotonic()
    used = {name: cpu_seconds(group) for name, group in groups.items()}
    database = backends()
    used_there = cpu_seconds(database)
    time.sleep(seconds)
    after, took = sink.told(), time.monotonic() - began
    count = after[counts] - before[counts]
    told = {
        "per_second": round(count / took, 1),
        **{
            name: round(1000 * (cpu_seconds(group) - used[name]) / count, 3) for name, group in groups.items()
        },
        "database_cpu_ms": round(1000 * (cpu_seconds(database) - used_there) / count, 3),
        "refused": after["refused"],
        "twice": after["verified"] - after["unique"],
    }
    full = sorted(int(second) for second in after["seconds"])[2:-1]
    tens = [sum(after["seconds"].get(str(second + n), 0) for n in range(10)) / 10 for second in full[:-9]]
    return {**told, "worst_ten_seconds": min(tens, default=told["per_second"])}


# --- What is delivered -----------------------------------------------------------------------------------------------


def make_workspaces(secret: str, url: str) -> list[Any]:
    from accounts import workspaces  # noqa: PLC0415  it needs Django
    from webhooks.models import Endpoint  # noqa: PLC0415

    owners = []
    for number in range(WORKSPACES):
        owners.append(workspaces.create(f"Receivers {number}"))
        workspaces.whitelist(owners[-1], "benchmark")
        for place in range(ENDPOINTS):
            Endpoint.everywhere.create(
                workspace=owners[-1], url=f"{url}/in/{number}/{place}", secret=secret, rate=RATE
            )
    return owners


def example() -> dict[str, Any]:
    """An item as `generated.ready` tells of it, of a usual size."""
    return json.loads(Path("docs/examples/event-generated.ready.json").read_text())["data"]


def make_events(workspace_ids: Sequence[Any], count: int, data: dict[str, Any]) -> list[bytes]:
    """They wait for the dispatcher, as if many requests had committed them at once; gives their bodies.

    Copied in with bodies that differ in their ids alone, so that writing them takes little from what is measured.
    """
    from django.db import connection  # noqa: PLC0415  it needs Django
    from django.utils import timezone  # noqa: PLC0415

    from config.ground.ids import encode, uuid7  # noqa: PLC0415
    from pipeline import events  # noqa: PLC0415

    now, example_id = timezone.now(), uuid7()
    named = encode("evt", example_id).encode()
    around = {
        one: events.envelope(example_id, "generated.ready", one, data, now).split(named)
        for one in workspace_ids
    }
    bodies = []
    columns = "id, workspace_id, test, type, body, request_id, created_at"
    connection.ensure_connection()
    with (
        connection.connection.cursor() as cursor,
        cursor.copy(f"COPY event ({columns}) FROM STDIN") as copy,
    ):
        for number in range(count):
            event_id, workspace_id = uuid7(), workspace_ids[number % len(workspace_ids)]
            body = encode("evt", event_id).encode().join(around[workspace_id])
            copy.write_row((event_id, workspace_id, False, "generated.ready", body, "", now))
            bodies.append(body)
    return bodies


class Feeder:
    """Keeps so many deliveries waiting, from a thread of its own."""

    def __init__(self, sink: Sink, workspace_ids: Sequence[Any], data: dict[str, Any]) -> None:
        self.written = 0
        self._sink, self._ids, self._data = sink, workspace_ids, data
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()

    def _run(self) -> None:
        from django.db import connection  # noqa: PLC0415  it needs Django

        session = requests.Session()
        session.trust_env = False
        while not self._ends.is_set():
            arrived = session.get(f"{self._sink.url}/told", timeout=30).json()["unique"]
            if self.written - arrived < WAITING:
                self.written += ENDPOINTS * len(make_events(self._ids, 500, self._data))
            else:
                self._ends.wait(0.1)
        connection.close()


def throughput(*, is_quick: bool) -> bool:
    from webhooks import signing  # noqa: PLC0415  it needs Django

    secret, data = signing.make_secret(), example()
    seconds, floor_seconds = (12.0, 5.0) if is_quick else (60.0, 15.0)
    with sink_of(secret) as sink:
        ids = [owner.pk for owner in make_workspaces(secret, sink.url)]
        bodies = make_events(ids, 200, data)
        floors = [floor(sink, secret, bodies, floor_seconds)]
        sink.forget()
        workers = start_workers()
        try:
            with Feeder(sink, ids, data):
                ours = _measured(sink, [one.pid for one in workers.running], seconds, counts="unique")
        finally:
            workers.end()
        floors.append(floor(sink, secret, bodies, floor_seconds))
    ratio = ours["per_second"] / mean(one["per_second"] for one in floors)
    is_good = (
        ratio >= RATIO_LEAST
        and ours["per_second"] >= PER_SECOND_LEAST
        and not ours["refused"]
        and not any(one["refused"] for one in floors)
    )
    report = {"ratio": round(ratio, 3), "seconds": seconds, "ours": ours, "floors": floors}
    return _show(f"throughput, {len(bodies[0])} bytes each", report, good=is_good)


# --- One that hangs --------------------------------------------------------------------------------------------------


def hanging(*, is_quick: bool) -> bool:
    from config import celery  # noqa: PLC0415, F401  so that events ask for looks as in the service
    from webhooks import signing  # noqa: PLC0415
    from webhooks.models import Endpoint  # noqa: PLC0415

    secret, data = signing.make_secret(), example()
    with sink_of(secret) as sink:
        owners = make_workspaces(secret, sink.url)
        Endpoint.everywhere.create(
            workspace=owners[0], url=f"{sink.url}/hang", secret=secret, events=["raw.failed"]
        )
        workers = start_workers()
        try:
            _record(owners[0], data, "generated.ready")
            while sink.told()["unique"] < ENDPOINTS:
                time.sleep(0.1)
            for _ in range(HANGING_EVENTS):
                _record(owners[0], data, "raw.failed")
            while not sink.told()["most_hanging"]:
                time.sleep(0.1)
            committed = {}
            for number in range(100 if is_quick else 600):
                # Every other one in the workspace of the one that hangs.
                owner = owners[0] if number % 2 else owners[1 + number // 2 % (WORKSPACES - 1)]
                event_id = _record(owner, data, "generated.ready")
                committed[event_id] = time.time()
                time.sleep(0.05)
            time.sleep(5)
        finally:
            workers.end()
        told, arrivals = sink.told(), sink.arrivals()
    waits = sorted(
        at - committed[event_id]
        for event_id, at in ((key.partition(" ")[0], at) for key, at in arrivals.items())
        if event_id in committed
    )
    missing = ENDPOINTS * len(committed) - len(waits)
    report = {
        "hanging_events": HANGING_EVENTS,
        "others": len(waits),
        "missing": missing,
        "most_hanging": told["most_hanging"],
        "p50": share(waits, 0.5),
        "p99": share(waits, 0.99),
        "worst": share(waits, 1.0),
    }
    is_good = bool(waits) and not missing and share(waits, 0.99) <= P99_MOST_SECONDS
    return _show("beside one that hangs", report, good=is_good)


def _record(owner: Any, data: dict[str, Any], event_type: str) -> str:
    from django.db import transaction  # noqa: PLC0415  it needs Django

    from config.ground.ids import encode  # noqa: PLC0415
    from pipeline import events  # noqa: PLC0415

    with transaction.atomic():
        event = events.record(event_type, workspace_id=owner.pk, test=False, data=data)
    return encode("evt", event.pk)


# --- One that drips --------------------------------------------------------------------------------------------------


def dripping() -> bool:
    from webhooks import signing  # noqa: PLC0415  it needs Django
    from webhooks.models import Delivery, DeliveryAttempt, Endpoint  # noqa: PLC0415

    secret, data = signing.make_secret(), example()
    with sink_of(secret) as sink:
        [owner, *_] = make_workspaces(secret, sink.url)
        Endpoint.everywhere.update(is_on=False)
        for part in ("head", "body"):
            Endpoint.everywhere.create(workspace=owner, url=f"{sink.url}/drip/{part}", secret=secret)
        workers = start_workers()
        try:
            make_events([owner.pk], 1, data)
            until = time.monotonic() + 60
            while DeliveryAttempt.everywhere.count() < 2 and time.monotonic() < until:
                time.sleep(0.2)
            dripped = sink.told()["dripped"]
        finally:
            workers.end()
    recorded = [one.duration_ms / 1000 for one in DeliveryAttempt.everywhere.all()]
    told = set(
        Delivery.everywhere.filter(endpoint__is_on=True).values_list("status", "last_status", "last_error")
    )
    report = {"seconds_at_the_sink": dripped, "seconds_recorded": recorded, "outcome": sorted(map(str, told))}
    is_good = len(dripped) == len(recorded) == 2 and max(*dripped.values(), *recorded) <= DRIP_MOST_SECONDS
    return _show("one that drips", report, good=is_good)


def _show(what: str, report: dict[str, Any], *, good: bool) -> bool:
    print(f"{what}: {'ok' if good else 'MISSED'} {json.dumps(report)}", flush=True)
    return good


def main(arguments: Sequence[str]) -> int:
    print(machine(), flush=True)
    is_quick = "--quick" in arguments
    modes = [one for one in arguments if one in {"throughput", "hanging", "dripping"}]
    try:
        with fresh_services.own_services(OUTBOUND_ALLOW_LOOPBACK="1"):
            is_good = measure(modes or ["throughput", "hanging", "dripping"], is_quick=is_quick)
    except fresh_services.NotRun as error:
        return fresh_services.missing(error)
    return 0 if is_good else 1


def measure(modes: Sequence[str], *, is_quick: bool) -> bool:
    is_good = True
    for mode in modes:
        empty()
        if mode == "throughput":
            is_good &= throughput(is_quick=is_quick)
        elif mode == "hanging":
            is_good &= hanging(is_quick=is_quick)
        else:
            is_good &= dripping()
    return is_good


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
