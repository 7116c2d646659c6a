"""Measures how late publications are that fall due together, on a simulated platform that takes 200 ms to answer.

Two workers send them. Lateness is the time from the due time to the moment at which the platform accepted the post, by the
platform's ledger, which also shows what came early, twice or never. The floor of posts that are due at one instant is
calculated: rounds of as many calls as there are slots. `--set publication.kills=1` also kills a worker every five seconds.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from benchmarks import layouts, seed
from benchmarks.floor import public_letters
from benchmarks.table import Row, percentile

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from uuid import UUID

    from benchmarks.service import Service, Session

ON: Final = ("postgres",)
SIZES: Final = {
    "rounds": (3, 1),
    # Posts due at even distances over a minute.
    "minute": (5000, 5),
    "minute_seconds": (60.0, 1.0),
    # Posts due at one instant.
    "few": (200, 5),
    "more": (500, 0),
    "most": (10_000, 0),
    # With 1, 3,000 posts over a minute while workers are killed.
    "kills": (0, 0),
    # Posts due at one instant on a platform that takes 300 ms, for each number of workers.
    "scale": (1000, 0),
    "workspaces": (10, 2),
    "starts_after": (12.0, 1.0),
}
LATENCY_SECONDS: Final = 0.2
SLOW_SECONDS: Final = 0.3
WORKERS: Final = 2
KILL_INTERVAL_SECONDS: Final = 5.0
MAX_P99_SECONDS: Final = 1.0
MAX_LAST_SECONDS: Final = 120.0
TIMEOUT_SECONDS: Final = 400.0
BODY: Final = "The city council approved the new tram line on Monday evening after six hours of debate. " * 3


def measure(session: Session) -> Iterator[Row]:
    size = session.size
    yield from measure_lateness(session, size.minute, size.minute_seconds, rounds=1, p99=MAX_P99_SECONDS)
    # For 500 posts, 48 slots call a platform that takes 200 ms 11 times.
    yield from measure_lateness(session, size.few, 0.0, rounds=size.rounds, p99=MAX_P99_SECONDS)
    yield from measure_lateness(session, size.more, 0.0, rounds=size.rounds)
    yield from measure_lateness(session, size.most, 0.0, rounds=1, last=MAX_LAST_SECONDS)
    yield from measure_scaling(session, size.scale)
    if size.kills:
        yield from measure_lateness(session, 3000, 60.0, rounds=1, is_killing=True)


def measure_scaling(session: Session, count: int) -> Iterator[Row]:
    """Yield the posts a second by 1, 2 and 4 workers; the floor is the rate of their slots without other work."""
    for workers in (1, 2, 4) if count else ():
        latency = f"{SLOW_SECONDS * 1000:.0f}"
        with session.service(workers=workers, SIMULATED_LATENCY_MS=latency) as service:
            lateness, faults = publish(session, service, count, 0.0, is_killing=False)
            rate = count / max(lateness, default=math.inf)
        floor = workers * layouts.PUBLISH_SLOTS / SLOW_SECONDS
        label = f"{count:,} posts due at one instant, {latency} ms each, {workers} workers"
        yield Row(label, "/s", [rate], [floor], unsound="; ".join(faults))


def measure_lateness(
    session: Session,
    count: int,
    spread: float,
    *,
    rounds: int,
    p99: float | None = None,
    last: float | None = None,
    is_killing: bool = False,
) -> Iterator[Row]:
    """Yield the rows of `count` posts that are due over `spread` seconds."""
    if not count:
        return
    # A killed worker's row is due again after its lease.
    lease = {"LEASE_SECONDS": "10"} if is_killing else {}
    medians, p99s, lasts, faults = [], [], [], []
    with session.service(workers=WORKERS, **lease) as service:
        for _ in range(rounds):
            lateness, round_faults = publish(session, service, count, spread, is_killing=is_killing)
            medians.append(percentile(lateness, 0.5))
            p99s.append(percentile(lateness, 0.99))
            lasts.append(max(lateness, default=math.inf))
            faults += round_faults
    period = f"over {spread:.0f} s" if spread else "at one instant"
    label = f"{count:,} posts due {period}{', a worker killed every 5 s' if is_killing else ''}:"
    unsound = "; ".join(faults)
    if spread:
        yield Row(f"{label} lateness p50", "s", medians, [LATENCY_SECONDS] * rounds, unsound=unsound)
        yield Row(f"{label} lateness p99", "s", p99s, [LATENCY_SECONDS] * rounds, maximum=p99)
    else:
        slots = WORKERS * layouts.PUBLISH_SLOTS
        floor = [math.ceil(count / slots) * LATENCY_SECONDS] * rounds
        yield Row(f"{label} p99", "s", p99s, floor, maximum=p99, unsound=unsound, note=f"{slots} slots")
        yield Row(f"{label} last", "s", lasts, floor, maximum=last)


def publish(
    session: Session, service: Service, count: int, spread: float, *, is_killing: bool
) -> tuple[list[float], list[str]]:
    """Publish the posts, and return the lateness of each in seconds, and the faults by the platform's ledger."""
    from django.db import connection  # noqa: PLC0415  Django is set up by then
    from django.utils import timezone  # noqa: PLC0415

    from pipeline.models import Publication  # noqa: PLC0415

    due_times = schedule_posts(session, count, spread)
    owners = Publication.everywhere.filter(pk__in=due_times).values_list("workspace", flat=True).distinct()
    # Other scripts' rows may be due in years.
    publications = Publication.everywhere.filter(workspace__in=list(owners))
    start = min(due_times.values())
    next_kill, kill_count = start, 0
    deadline = start + timedelta(seconds=spread + TIMEOUT_SECONDS)
    while timezone.now() < deadline:
        time.sleep(0.2)
        connection.close()
        if not publications.filter(status__in=["scheduled", "publishing", "unknown"]).exists():
            break
        if is_killing and timezone.now() >= next_kill:
            role = f"worker{kill_count % WORKERS}"
            service.kill(role)
            service.start_part(role)
            kill_count, next_kill = kill_count + 1, timezone.now() + timedelta(seconds=KILL_INTERVAL_SECONDS)
    return check_ledger(due_times)


def check_ledger(due_times: dict[UUID, datetime]) -> tuple[list[float], list[str]]:
    """Return the lateness of each accepted post in seconds, and the faults: early, twice and never."""
    from pipeline.models import SimulatedPost  # noqa: PLC0415

    by_ref = {f"pub_{public_letters(key.int)}": time for key, time in due_times.items()}
    ledger = SimulatedPost.everywhere.filter(is_accepted=True).values_list("ref", "created_at")
    accepted = [(ref, time) for ref, time in ledger if ref in by_ref]
    lateness = [(time - by_ref[ref]).total_seconds() for ref, time in accepted]
    times = Counter(ref for ref, _ in accepted)
    fault_counts = {
        "early": sum(seconds < 0 for seconds in lateness),
        "twice": sum(count > 1 for count in times.values()),
        "never": len(by_ref) - len(times),
    }
    return lateness, [f"{count} came {fault}" for fault, count in fault_counts.items() if count]


def schedule_posts(session: Session, count: int, spread: float) -> dict[UUID, datetime]:
    """Schedule items in several workspaces, and return when each of their publications is due."""
    from django.utils import timezone  # noqa: PLC0415

    from pipeline.models import GeneratedItem, Generation, Outlet, Publication, Revision  # noqa: PLC0415

    owners = [seed.unlimited_workspace(session.name("Publishers")) for _ in range(session.size.workspaces)]
    outlets = [Outlet.everywhere.get(workspace=owner, platform="simulated") for owner in owners]
    runs = [
        Generation.everywhere.create(workspace=owner, engine="short_post", status="done") for owner in owners
    ]
    start = timezone.now() + timedelta(seconds=session.size.starts_after + count / 1000)
    items, revisions, rows = [], [], []
    for number in range(count):
        outlet = outlets[number % len(outlets)]
        due_at = start + timedelta(seconds=spread * number / count)
        item = GeneratedItem(
            workspace_id=outlet.workspace_id,
            bucket="text",
            engine_output="Short Post",
            engine_version=1,
            generation=runs[number % len(runs)],
            variant_group=uuid4(),
            status="scheduled",
            revision=1,
            body=BODY,
            body_format="text",
            publish_at=due_at,
            ready_at=start,
        )
        common = {"workspace_id": outlet.workspace_id, "item": item}
        items.append(item)
        revisions.append(Revision(**common, number=1, body=BODY, body_format="text", made_by="engine"))
        rows.append(
            Publication(
                **common, outlet=outlet, platform="simulated", revision=1, due_at=due_at, wake_at=due_at
            )
        )
    for model, rows_made in ((GeneratedItem, items), (Revision, revisions), (Publication, rows)):
        model.everywhere.bulk_create(rows_made, batch_size=1000)
    return {row.pk: row.due_at for row in rows if row.due_at}
