"""How late publications are: many that fall due within a minute, or at one instant, on a platform that takes its time.

`python -m benchmarks publishing [--quick] [minute|instant|kills|rates]`. Two Celery workers on PostgreSQL and Redis, each
on a database of its own; the simulated platform answers after 200 ms. Lateness is from the promise to the platform's
acceptance. `kills` kills a worker every five seconds. In each mode the platform's own ledger says what came early, twice
or never.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from benchmarks import fresh_services
from benchmarks.__main__ import machine

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

LATENCY_MS: Final = 200
WORKERS: Final = 2
WORKSPACES: Final = 10
KILL_EVERY_SECONDS: Final = 5.0
P99_MOST_SECONDS: Final = 1.0
INSTANT_MOST_SECONDS: Final = 120.0
STARTING_SECONDS: Final = 12.0
BODY: Final = "The city council approved the new tram line on Monday evening after six hours of debate. " * 3


def seed(count: int, spread: float) -> datetime:
    """Publications that are due at even distances over so many seconds; returns when the first is."""
    from django.utils import timezone  # noqa: PLC0415  it needs Django

    from accounts import workspaces  # noqa: PLC0415
    from pipeline.models import GeneratedItem, Generation, Outlet, Publication, Revision  # noqa: PLC0415

    outlets, runs = [], []
    for number in range(WORKSPACES):
        owner = workspaces.create(f"Publishers {number}")
        workspaces.whitelist(owner, "benchmark")
        outlets.append(Outlet.everywhere.get(workspace=owner, platform="simulated"))
        runs.append(Generation.everywhere.create(workspace=owner, engine="short_post"))
    start = timezone.now() + timedelta(seconds=STARTING_SECONDS + count / 1000)
    items, revisions, rows = [], [], []
    for number in range(count):
        outlet = outlets[number % WORKSPACES]
        due_at = start + timedelta(seconds=spread * number / count)
        item = GeneratedItem(
            workspace_id=outlet.workspace_id,
            bucket="text",
            engine_output="Short Post",
            engine_version=1,
            generation=runs[number % WORKSPACES],
            variant_group=uuid4(),
            status="scheduled",
            revision=1,
            body=BODY,
            body_format="text",
            publish_at=due_at,
            ready_at=start,
        )
        items.append(item)
        revisions.append(
            Revision(
                workspace_id=outlet.workspace_id,
                item=item,
                number=1,
                body=BODY,
                body_format="text",
                made_by="engine",
            )
        )
        rows.append(
            Publication(
                workspace_id=outlet.workspace_id,
                item=item,
                outlet=outlet,
                platform="simulated",
                revision=1,
                due_at=due_at,
                wake_at=due_at,
            )
        )
    for model, made in ((GeneratedItem, items), (Revision, revisions), (Publication, rows)):
        model.everywhere.bulk_create(made, batch_size=1000)
    return start


class Workers:
    """Celery's own worker processes; each has a session of its own, so that a kill takes all of it."""

    def __init__(self) -> None:
        self.running = [self._start() for _ in range(WORKERS)]
        self.killed = 0

    def _start(self) -> subprocess.Popen[bytes]:
        command = [
            sys.executable,
            "-m",
            "celery",
            "-A",
            "config",
            "worker",
            "-P",
            "threads",
            "--without-mingle",
        ]
        name = f"bench{time.monotonic_ns()}@localhost"
        return subprocess.Popen(
            [*command, "--without-gossip", "-n", name, "-l", "ERROR"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def kill_one(self) -> None:
        """As `kill -9` does; another one takes its place."""
        eldest = self.running.pop(0)
        eldest.kill()
        eldest.wait()
        self.killed += 1
        self.running.append(self._start())

    def end(self) -> None:
        for worker in self.running:
            worker.kill()
            worker.wait()


def run(
    count: int, spread: float, *, is_killing: bool = False, most_seconds: float = 400.0
) -> dict[str, Any]:
    from django.db import connection  # noqa: PLC0415  it needs Django
    from django.utils import timezone  # noqa: PLC0415

    from pipeline.models import Publication  # noqa: PLC0415

    empty()
    workers = Workers()
    try:
        start = seed(count, spread)
        until = start + timedelta(seconds=spread + most_seconds)
        next_kill = start + timedelta(seconds=KILL_EVERY_SECONDS)
        while timezone.now() < until:
            time.sleep(0.5)
            connection.close()
            is_open = Publication.everywhere.filter(
                status__in=["scheduled", "publishing", "unknown"]
            ).exists()
            if not is_open:
                break
            if is_killing and timezone.now() >= next_kill:
                workers.kill_one()
                next_kill = timezone.now() + timedelta(seconds=KILL_EVERY_SECONDS)
    finally:
        workers.end()
    return {"count": count, "over_seconds": spread, "killed": workers.killed, **_told(start)}


def _told(start: datetime) -> dict[str, Any]:
    """By the platform's own ledger: when it took each, what it took early, twice or not at all."""
    from config.ground.ids import encode  # noqa: PLC0415  it needs Django
    from pipeline.models import Publication, SimulatedPost  # noqa: PLC0415

    promised = {encode("pub", key): at for key, at in Publication.everywhere.values_list("pk", "due_at")}
    taken = list(SimulatedPost.everywhere.filter(is_accepted=True).values_list("ref", "created_at"))
    late = sorted((at - promised[ref]).total_seconds() for ref, at in taken)
    times = Counter(ref for ref, _ in taken)
    statuses = Counter(Publication.everywhere.values_list("status", flat=True))
    return {
        "early": sum(seconds < 0 for seconds in late),
        "twice": sum(count > 1 for count in times.values()),
        "lost": len(promised) - len(times),
        "statuses": dict(statuses),
        "p50": share(late, 0.5),
        "p99": share(late, 0.99),
        "worst": share(late, 1.0),
        "done_after": round((max(at for _, at in taken) - start).total_seconds(), 2) if taken else None,
    }


def share(sorted_numbers: Sequence[float], share: float) -> float | None:
    if not sorted_numbers:
        return None
    return round(sorted_numbers[min(int(len(sorted_numbers) * share), len(sorted_numbers) - 1)], 3)


def empty() -> None:
    from django.core.management import call_command  # noqa: PLC0415  it needs Django

    call_command("flush", verbosity=0, interactive=False)


def is_sound(report: dict[str, Any]) -> bool:
    return not (report["early"] or report["twice"] or report["lost"])


def measure(modes: Sequence[str], *, is_quick: bool) -> bool:
    is_good = True
    scale = 10 if is_quick else 1
    if "minute" in modes:
        report = run(5000 // scale, 60.0 / scale)
        is_good &= _show("5,000 a minute", report, good=report["p99"] <= P99_MOST_SECONDS)
    if "instant" in modes:
        report = run(10_000 // scale, 0.0)
        is_good &= _show(
            "10,000 at one instant", report, good=report["done_after"] <= INSTANT_MOST_SECONDS / scale
        )
    if "kills" in modes:
        report = run(3000 // scale, 60.0 / scale, is_killing=True)
        is_good &= _show("a kill every 5 s", report, good=True)
    if "rates" in modes:
        for rate in (1500, 2500, 3500, 4500, 6000, 8000):
            report = run(rate // 3, 20.0)
            if not _show(f"{rate} a minute", report, good=report["p99"] <= P99_MOST_SECONDS):
                break
    return is_good


def _show(what: str, report: dict[str, Any], *, good: bool) -> bool:
    is_good = good and is_sound(report)
    print(f"{what}: {'ok' if is_good else 'MISSED'} {json.dumps(report)}", flush=True)
    return is_good


def main(arguments: Sequence[str]) -> int:
    print(machine(), flush=True)
    modes = [one for one in arguments if one in {"minute", "instant", "kills", "rates"}]
    try:
        # A killed hand's row is due again after its lease.
        with fresh_services.own_services(SIMULATED_LATENCY_MS=str(LATENCY_MS), LEASE_SECONDS="10"):
            is_good = measure(modes or ["minute", "instant", "kills"], is_quick="--quick" in arguments)
    except fresh_services.NotRun as error:
        return fresh_services.missing(error)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
