"""From a feed's bytes to stored raw items: `python -m benchmarks.feeds` prints entries a second, against a floor.

The floor is feedparser alone on the same bytes, in the same run and turn by turn, so that whatever else the machine
does meets both. Ours is a whole poll of one worker but for the network: the helper process, identities, judging, and
every entry stored in PostgreSQL (`--sqlite` for SQLite) in a database of its own. Each document has 100 entries that
nobody has seen. The target is 0.6 of the floor. `--quick` takes fewer
rounds, `--profile` tells where the stage's own time goes.
"""

from __future__ import annotations

import cProfile
import io
import os
import pstats
import signal
import statistics
import sys
import tempfile
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ENTRIES = 100
ROUNDS = 15
QUICK_ROUNDS = 4
WARM_UP = 2
TARGET = 0.6

SENTENCE = (
    "The city <b>council</b> approved the <a href='https://news.example/tram'>new tram line</a> on Monday evening "
    "after six hours of debate &amp; two of silence. "
)


def document(number: int) -> bytes:
    """About 2 kB an entry, as a blog gives them."""
    items = "".join(
        f"<item><guid isPermaLink='false'>{number}-{entry}</guid><title>Story {entry} of round {number}</title>"
        f"<link>https://news.example/{number}/{entry}</link><dc:creator>Ada</dc:creator><category>City</category>"
        f"<pubDate>Mon, 02 Nov 2026 {entry % 24:02}:{entry % 60:02}:00 GMT</pubDate>"
        f"<description>Short words on story {entry}</description>"
        f"<content:encoded><![CDATA[<p>{SENTENCE * 10}{number}-{entry}</p>]]></content:encoded></item>"
        for entry in range(ENTRIES)
    )
    return (
        "<?xml version='1.0' encoding='UTF-8'?><rss version='2.0' xmlns:dc='http://purl.org/dc/elements/1.1/' "
        "xmlns:content='http://purl.org/rss/1.0/modules/content/'><channel><title>News</title>"
        f"<link>https://news.example/</link><description>d</description>{items}</channel></rss>"
    ).encode()


class _Bytes:
    """A client that has the document already."""

    def __init__(self) -> None:
        self.body = b""

    def get(self, url: str, **_: Any) -> Any:
        from config.ground.outbound import Response  # noqa: PLC0415  Django's settings come first

        headers: Mapping[str, str] = {"Content-Type": "application/rss+xml"}
        return Response(200, headers, self.body, url, 0.0, truncated=False, redirects=())


class _Ours:
    """Polls of a new source each; `first_poll` says whether what is stored is also queued for the engines."""

    def __init__(self, first_poll: Any) -> None:
        from accounts import workspaces  # noqa: PLC0415
        from accounts.models import Workspace  # noqa: PLC0415
        from pipeline import way_out  # noqa: PLC0415

        made = workspaces.create("Feeds", actor="benchmark")
        workspaces.whitelist(made, "benchmark")
        workspaces.lift_limits(made, "benchmark")
        self.workspace = Workspace.everywhere.select_related("plan").get(pk=made.pk)
        self.first_poll = first_poll
        self.http = _Bytes()
        way_out.client = lambda: self.http  # type: ignore[assignment, return-value]

    def __call__(self, number: int, body: bytes) -> float:
        from pipeline import way_out  # noqa: PLC0415
        from pipeline.models import RawItem  # noqa: PLC0415
        from pipeline.stages import collect  # noqa: PLC0415

        way_out.client = lambda: self.http  # type: ignore[assignment, return-value]
        given = collect.SourceSettings(
            type="rss", config={"url": f"https://{number}.news.example/feed"}, first_poll=self.first_poll
        )
        source = collect.register(self.workspace, given)
        source.refresh_from_db()
        self.http.body = body
        started = time.perf_counter()
        collect.poll(source)
        took = time.perf_counter() - started
        stored = RawItem.everywhere.filter(source=source).count()
        if stored != ENTRIES:
            msg = f"{stored} of {ENTRIES} entries were stored"
            raise SystemExit(msg)
        return took


def floor(_: int, body: bytes) -> float:
    import feedparser  # type: ignore[import-untyped, unused-ignore]  # noqa: PLC0415

    started = time.perf_counter()
    found = feedparser.parse(io.BytesIO(body))
    took = time.perf_counter() - started
    if len(found["entries"]) != ENTRIES:
        raise SystemExit("The floor didn't read all entries.")
    return took


def parsed(_: int, body: bytes) -> float:
    """Our reading alone: the helper, identities, entries."""
    from datetime import UTC, datetime  # noqa: PLC0415

    from pipeline.sources.rss import PLUGIN  # noqa: PLC0415

    http = _Bytes()
    http.body = body
    started = time.perf_counter()
    found = PLUGIN.fetch(
        {"url": "https://news.example/feed"}, {}, http=http, now=datetime.now(UTC), environment={}
    )
    took = time.perf_counter() - started
    if len(found.entries) != ENTRIES:
        raise SystemExit("The reader didn't read all entries.")
    return took


def run(*, with_profile: bool) -> int:
    import django  # noqa: PLC0415

    django.setup()
    from django.core.management import call_command  # noqa: PLC0415
    from django.db import connection  # noqa: PLC0415

    call_command("migrate", verbosity=0)
    sides: dict[str, Callable[[int, bytes], float]] = {
        "feedparser alone": floor,
        "our reading": parsed,
        "stored": _Ours("none"),
        "stored and queued": _Ours("all"),
    }
    times: dict[str, list[float]] = {name: [] for name in sides}
    serial = 0
    rounds = QUICK_ROUNDS if "--quick" in sys.argv else ROUNDS
    for turn in range(-WARM_UP, rounds):
        # Who begins changes from round to round.
        names = list(sides) if turn % 2 else list(reversed(sides))
        for name in names:
            serial += 1
            took = sides[name](serial, document(serial))
            if turn >= 0:
                times[name].append(took)
    print(f"{connection.vendor}, {rounds} rounds of {ENTRIES} entries, {len(document(0)) // 1024} KiB each")
    for name, each in times.items():
        ratios = [base / took for base, took in zip(times["feedparser alone"], each, strict=True)]
        print(
            f"  {name:18} {ENTRIES / statistics.median(each):6.0f} entries/s, {1000 * statistics.median(each):6.0f} ms, "
            f"ratio {statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
        )
    if with_profile:
        watched = cProfile.Profile()
        watched.enable()
        sides["stored"](serial + 1, document(serial + 1))
        watched.disable()
        pstats.Stats(watched).sort_stats("cumulative").print_stats(40)
    ratio = statistics.median(
        base / took for base, took in zip(times["feedparser alone"], times["stored"], strict=True)
    )
    print(
        f"from bytes to stored: {ratio:.2f} of feedparser alone, at least {TARGET}: {'ok' if ratio >= TARGET else 'MISSED'}"
    )
    return 0 if ratio >= TARGET else 1


def main() -> int:
    # The database is dropped then too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    from benchmarks.__main__ import OURS, scratch_postgres  # noqa: PLC0415
    from tools.suite import find_postgres  # noqa: PLC0415

    address, reason = ("", "SQLite was asked for") if "--sqlite" in sys.argv else find_postgres()
    if not address and "--sqlite" not in sys.argv:
        print(f"NOT RUN on PostgreSQL: {reason}.")
        return 1
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        for name in OURS:
            os.environ.pop(name, None)
        os.environ |= {"ENV_FILE": "tests/settings.env", "LOG_LEVEL": "ERROR", "DATA_DIR": folder}
        os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
        with scratch_postgres(address) if address else nullcontext("") as own:
            if own:
                os.environ["DATABASE_URL"] = own
            try:
                return run(with_profile="--profile" in sys.argv)
            finally:
                from django.db import connections  # noqa: PLC0415

                connections.close_all()


if __name__ == "__main__":
    sys.exit(main())
