"""Measures how late polls are when many fall due together, and what one costs from a feed's bytes to stored raw items.

- Two workers poll sources that fall due within a minute, on hosts that each take 200 ms to answer "not modified". No host
  may get two polls at once.
- Feeds have 100 new entries each. The CPU time of all our processes for one feed is measured, with every entry stored and
  no items made. The floor is feedparser alone on the same bytes.
"""

from __future__ import annotations

import io
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from benchmarks import seed
from benchmarks.receiver import ENTRIES, feed_document
from benchmarks.service import Service, Session, wait_until
from benchmarks.table import Row, percentile

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from uuid import UUID

ON: Final = ("postgres",)
SIZES: Final = {
    "sources": (2000, 6),
    "hosts": (200, 2),
    "spread": (60.0, 1.0),
    "rounds": (5, 1),
    # Documents of each round.
    "documents": (10, 1),
}
WORKERS: Final = 2
SOURCES_PER_WORKSPACE: Final = 20
MAX_P99_SECONDS: Final = 60.0
MAX_CPU_RATIO: Final = 1 / 0.6
TIMEOUT_SECONDS: Final = 240.0


def measure(session: Session) -> Iterator[Row]:
    with session.service(workers=WORKERS) as service:
        yield from measure_polls(session)
        yield from measure_entries(session, service)


def measure_polls(session: Session) -> Iterator[Row]:
    """Yield the lateness of polls that fall due together."""
    from pipeline.models import Source  # noqa: PLC0415  Django is set up by then

    session.receiver.forget()
    due_at = add_sites(session)
    sources = Source.everywhere.filter(pk__in=due_at)
    start = min(due_at.values())

    def are_all_polled() -> bool:
        return sources.filter(last_polled_at__gte=start).count() == len(due_at)

    missing = ""
    try:
        wait_until(are_all_polled, TIMEOUT_SECONDS, "all polls", interval=0.5)
    except TimeoutError as error:
        missing = str(error)
    poll_times = sources.filter(last_polled_at__gte=start).values_list("pk", "last_polled_at")
    lateness = [(polled_at - due_at[key]).total_seconds() for key, polled_at in poll_times]
    max_at_once = session.receiver.counts()["most_open"]
    unsound = missing or (f"a host had {max_at_once} polls at once" if max_at_once > 1 else "")
    label = f"{len(due_at):,} polls due over {session.size.spread:.0f} s on {session.size.hosts} hosts:"
    yield Row(f"{label} lateness p50", "s", [percentile(lateness, 0.5)], unsound=unsound)
    yield Row(f"{label} lateness p99", "s", [percentile(lateness, 0.99)], maximum=MAX_P99_SECONDS)


def add_sites(session: Session) -> dict[UUID, datetime]:
    """Add sources that were read before, so that their servers answer "not modified"; return when each is due."""
    from django.utils import timezone  # noqa: PLC0415

    from pipeline.models import Source  # noqa: PLC0415

    size = session.size
    count = -(-size.sources // SOURCES_PER_WORKSPACE)
    owners = [seed.unlimited_workspace(session.name("Readers")) for _ in range(count)]
    start = timezone.now() + timedelta(seconds=1 if session.is_smallest else 10)
    rows = []
    for number in range(size.sources):
        host = number % size.hosts
        url = f"http://127.0.{1 + host // 100}.{1 + host % 100}:{session.receiver.port}/304/{number}"
        fetch_state = {
            "url": url,
            "etag": '"1"',
            "last_modified": "",
            "body_sha256": "0" * 64,
            "wait_seconds": 0,
        }
        due_at = start + timedelta(seconds=size.spread * number / size.sources)
        rows.append(
            Source(
                workspace=owners[number % len(owners)],
                name=f"Feed {number}",
                type="rss",
                config={"url": url},
                fetch_state=fetch_state,
                last_polled_at=start - timedelta(days=1),
                due_at=due_at,
                wake_at=due_at,
            )
        )
    Source.everywhere.bulk_create(rows)
    return {row.pk: row.due_at for row in rows if row.due_at}


def measure_entries(session: Session, service: Service) -> Iterator[Row]:
    """Yield the CPU time of a feed whose entries are all new, against its floor."""
    size = session.size
    owner = seed.unlimited_workspace(session.name("Feeds"))
    read_feeds(session, service, owner, [10**6])
    ours, floors = [], []
    for round_number in range(size.rounds):
        numbers = [round_number * size.documents + index for index in range(size.documents)]
        for side in ("ours", "floor") if round_number % 2 else ("floor", "ours"):
            if side == "ours":
                ours.append(1000 * read_feeds(session, service, owner, numbers) / size.documents)
            else:
                floors.append(1000 * parse_feeds(numbers) / size.documents)
    yield Row(
        f"CPU of a feed of {ENTRIES} new entries, stored", "ms", ours, floors, max_ratio=round(MAX_CPU_RATIO, 2),
        note=f"{len(feed_document(0)) // 1024} KiB each; what the service uses when idle is in it",
    )  # fmt: skip


def read_feeds(session: Session, service: Service, owner: Any, numbers: list[int]) -> float:
    """Add sources of these feeds, and return the CPU seconds of all our processes until every entry is stored."""
    from django.utils import timezone  # noqa: PLC0415

    from pipeline.models import RawItem, Source  # noqa: PLC0415

    cpu_before, now = service.cpu(), timezone.now()
    rows = [
        Source(
            workspace=owner,
            name=f"Feed {number}",
            type="rss",
            config={"url": f"{session.receiver.url}/feed/{number}"},
            first_poll="none",
            due_at=now,
            wake_at=now,
        )
        for number in numbers
    ]
    Source.everywhere.bulk_create(rows)
    stored = RawItem.everywhere.filter(source__in=rows)
    wait_until(lambda: stored.count() >= ENTRIES * len(numbers), TIMEOUT_SECONDS, "the entries", interval=0.1)
    time.sleep(0.3)
    return service.cpu() - cpu_before


def parse_feeds(numbers: list[int]) -> float:
    """Return the CPU seconds of feedparser alone. Raises `RuntimeError` if it doesn't read all entries."""
    import feedparser  # type: ignore[import-untyped, unused-ignore]  # noqa: PLC0415

    documents = [feed_document(number) for number in numbers]
    started = time.thread_time()
    for feed in documents:
        if len(feedparser.parse(io.BytesIO(feed))["entries"]) != ENTRIES:
            raise RuntimeError("The floor didn't read all entries.")
    return time.thread_time() - started
