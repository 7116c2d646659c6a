"""How late publications are that fall due together, on a simulated platform that takes 200 ms to answer.

Two workers. Lateness is from the promise to the moment at which the platform took the post, by its own ledger, which also
says what came early, twice or never. The floor of what is due at one instant is arithmetic: rounds of as many calls as there
are slots. `--set publication.kills=1` also kills a worker every five seconds.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from benchmarks import layouts, seed
from benchmarks.floor import letters
from benchmarks.table import Row, percentile

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from uuid import UUID

    from benchmarks.service import Service, Session

ON: Final = ("postgres",)
SIZES: Final = {
    "rounds": (3, 1),
    # Due at even distances over a minute.
    "minute": (5000, 5),
    "minute_seconds": (60.0, 1.0),
    # Due at one instant.
    "few": (200, 5),
    "more": (500, 0),
    "most": (10_000, 0),
    # 3,000 over a minute while workers are killed.
    "kills": (0, 0),
    # Due at one instant on a platform that takes 300 ms, for each number of workers.
    "scale": (1000, 0),
    "workspaces": (10, 2),
    "starts_after": (12.0, 1.0),
}
LATENCY_SECONDS: Final = 0.2
SLOW_SECONDS: Final = 0.3
WORKERS: Final = 2
KILL_EVERY_SECONDS: Final = 5.0
P99_MOST_SECONDS: Final = 1.0
LAST_MOST_SECONDS: Final = 120.0
GIVE_UP_SECONDS: Final = 400.0
BODY: Final = "The city council approved the new tram line on Monday evening after six hours of debate. " * 3


def measure(session: Session) -> Iterator[Row]:
    size = session.size
    yield from due(session, size.minute, size.minute_seconds, rounds=1, p99=P99_MOST_SECONDS)
    # A platform that takes 200 ms is asked for 500 posts 11 times by 48 slots.
    yield from due(session, size.few, 0.0, rounds=size.rounds, p99=P99_MOST_SECONDS)
    yield from due(session, size.more, 0.0, rounds=size.rounds)
    yield from due(session, size.most, 0.0, rounds=1, last=LAST_MOST_SECONDS)
    yield from scale(session, size.scale)
    if size.kills:
        yield from due(session, 3000, 60.0, rounds=1, is_killing=True)


def scale(session: Session, count: int) -> Iterator[Row]:
    """Posts a second by 1, 2 and 4 workers; the floor is as many as their slots would send with no work beside."""
    for workers in (1, 2, 4) if count else ():
        latency = f"{SLOW_SECONDS * 1000:.0f}"
        with session.service(workers=workers, SIMULATED_LATENCY_MS=latency) as service:
            late, wrong = run(session, service, count, 0.0, is_killing=False)
            rate = count / max(late, default=math.inf)
        floor = workers * layouts.PUBLISH_SLOTS / SLOW_SECONDS
        what = f"{count:,} posts due at one instant, {latency} ms each, {workers} workers"
        yield Row(what, "/s", [rate], [floor], unsound="; ".join(wrong))


def due(
    session: Session,
    count: int,
    spread: float,
    *,
    rounds: int,
    p99: float | None = None,
    last: float | None = None,
    is_killing: bool = False,
) -> Iterator[Row]:
    """The rows of so many that are due over so many seconds."""
    if not count:
        return
    # A killed worker's row is due again after its lease.
    lease = {"LEASE_SECONDS": "10"} if is_killing else {}
    halves, lates, lasts, faults = [], [], [], []
    with session.service(workers=WORKERS, **lease) as service:
        for _ in range(rounds):
            late, wrong = run(session, service, count, spread, is_killing=is_killing)
            halves.append(percentile(late, 0.5))
            lates.append(percentile(late, 0.99))
            lasts.append(max(late, default=math.inf))
            faults += wrong
    over = f"over {spread:.0f} s" if spread else "at one instant"
    what = f"{count:,} posts due {over}{', a worker killed every 5 s' if is_killing else ''}:"
    unsound = "; ".join(faults)
    if spread:
        yield Row(f"{what} lateness p50", "s", halves, [LATENCY_SECONDS] * rounds, unsound=unsound)
        yield Row(f"{what} lateness p99", "s", lates, [LATENCY_SECONDS] * rounds, most=p99)
    else:
        slots = WORKERS * layouts.PUBLISH_SLOTS
        floor = [math.ceil(count / slots) * LATENCY_SECONDS] * rounds
        yield Row(f"{what} p99", "s", lates, floor, most=p99, unsound=unsound, note=f"{slots} slots")
        yield Row(f"{what} last", "s", lasts, floor, most=last)


def run(
    session: Session, service: Service, count: int, spread: float, *, is_killing: bool
) -> tuple[list[float], list[str]]:
    """How late each was, in seconds, and what the platform's ledger finds wrong."""
    from django.db import connection  # noqa: PLC0415  Django is set up by then
    from django.utils import timezone  # noqa: PLC0415

    from pipeline.models import Publication  # noqa: PLC0415

    promised = schedule(session, count, spread)
    owners = Publication.everywhere.filter(pk__in=promised).values_list("workspace", flat=True).distinct()
    # Rows of other scripts may be due in years.
    mine = Publication.everywhere.filter(workspace__in=list(owners))
    start = min(promised.values())
    next_kill, eldest = start, 0
    until = start + timedelta(seconds=spread + GIVE_UP_SECONDS)
    while timezone.now() < until:
        time.sleep(0.2)
        connection.close()
        if not mine.filter(status__in=["scheduled", "publishing", "unknown"]).exists():
            break
        if is_killing and timezone.now() >= next_kill:
            role = f"worker{eldest % WORKERS}"
            service.kill(role)
            service.start_part(role)
            eldest, next_kill = eldest + 1, timezone.now() + timedelta(seconds=KILL_EVERY_SECONDS)
    return judge(promised)


def judge(promised: dict[UUID, datetime]) -> tuple[list[float], list[str]]:
    from pipeline.models import SimulatedPost  # noqa: PLC0415

    by_ref = {f"pub_{letters(key.int)}": at for key, at in promised.items()}
    ledger = SimulatedPost.everywhere.filter(is_accepted=True).values_list("ref", "created_at")
    taken = [(ref, at) for ref, at in ledger if ref in by_ref]
    late = [(at - by_ref[ref]).total_seconds() for ref, at in taken]
    times = Counter(ref for ref, _ in taken)
    wrong = {
        "early": sum(seconds < 0 for seconds in late),
        "twice": sum(count > 1 for count in times.values()),
        "never": len(by_ref) - len(times),
    }
    return late, [f"{count} came {how}" for how, count in wrong.items() if count]


def schedule(session: Session, count: int, spread: float) -> dict[UUID, datetime]:
    """Scheduled items in several workspaces; when each of their publications is due."""
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
    for model, made in ((GeneratedItem, items), (Revision, revisions), (Publication, rows)):
        model.everywhere.bulk_create(made, batch_size=1000)
    return {row.pk: row.due_at for row in rows if row.due_at}
