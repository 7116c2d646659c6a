"""How late polls are: sources that fall due within one minute on many hosts, each of which takes its time to answer.

`python -m benchmarks.polling [--quick]`. 2,000 sources on 200 hosts (with `--quick` 400 on 40, due within 12 s) of a
local server that answers 304 after 200 ms; two worker processes. Says how late each poll began, and how many
connections one host had at once. Runs on PostgreSQL where it answers, on a database of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, cast

from benchmarks.__main__ import OURS, machine, scratch_postgres
from tools.suite import find_postgres

LATENCY_SECONDS: Final = 0.2
WORKERS: Final = 2
P99_MOST_SECONDS: Final = 60.0
GIVE_UP_SECONDS: Final = 240.0
PER_WORKSPACE: Final = 20


class Site(ThreadingHTTPServer):
    """Every address of 127.0.0.0/8 is a host of its own; `most` is what each had open at once."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self) -> None:
        super().__init__(("0.0.0.0", 0), Feed)
        self.open: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.answered = 0
        self.lock = threading.Lock()


class Feed(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        site = cast("Site", self.server)
        host = self.headers["Host"]
        with site.lock:
            site.open[host] += 1
            site.most[host] = max(site.most[host], site.open[host])
        time.sleep(LATENCY_SECONDS)
        with site.lock:
            site.open[host] -= 1
            site.answered += 1
        self.send_response(304)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Nothing: the log would be longer than the report."""


def work() -> None:
    """One worker process: it looks every second, and once more for each row that it found."""
    import django  # noqa: PLC0415  each process sets it up for itself

    django.setup()
    from config.ground import hands  # noqa: PLC0415

    hands.kinds()
    hands.send_looks_with(hands.serve)
    while True:
        hands.serve("pipeline.collect")
        time.sleep(1)


def seed(port: int, sources: int, hosts: int, spread: float) -> None:
    """Sources that were read before, so that their servers may answer "not modified"."""
    from django.utils import timezone  # noqa: PLC0415  it needs Django

    from accounts import workspaces  # noqa: PLC0415
    from accounts.models import Workspace  # noqa: PLC0415
    from pipeline.models import Source  # noqa: PLC0415

    owners = []
    for number in range(sources // PER_WORKSPACE):
        owners.append(workspaces.create(f"Readers {number}"))
        workspaces.whitelist(owners[-1], "benchmark")
    Workspace.everywhere.update(is_unlimited=True)
    start = timezone.now() + timedelta(seconds=3)
    rows = []
    for number in range(sources):
        host = number % hosts
        url = f"http://127.0.{1 + host // 100}.{1 + host % 100}:{port}/{number}"
        memory = {"url": url, "etag": '"1"', "last_modified": "", "body_sha256": "0" * 64, "wait_seconds": 0}
        due_at = start + timedelta(seconds=spread * number / sources)
        owner = owners[number % len(owners)]
        rows.append(
            Source(
                workspace=owner,
                name=f"Feed {number}",
                type="rss",
                config={"url": url},
                fetch_state=memory,
                last_polled_at=start - timedelta(days=1),
                due_at=due_at,
                wake_at=due_at,
            )
        )
    Source.everywhere.bulk_create(rows)


def measure(*, is_quick: bool) -> dict[str, Any]:
    import django  # noqa: PLC0415  after the environment is as it is to be

    django.setup()
    from django.core.management import call_command  # noqa: PLC0415
    from django.db import connection  # noqa: PLC0415

    from pipeline.models import Source  # noqa: PLC0415

    sources, hosts, spread = (400, 40, 12.0) if is_quick else (2000, 200, 60.0)
    call_command("migrate", verbosity=0)
    site = Site()
    threading.Thread(target=site.serve_forever, daemon=True).start()
    seed(site.server_address[1], sources, hosts, spread)
    promised = dict(Source.everywhere.filter(type="rss").values_list("pk", "due_at"))
    command = [sys.executable, "-c", "from benchmarks.polling import work; work()"]
    workers = [subprocess.Popen(command) for _ in range(WORKERS)]
    try:
        late = _lateness(promised)
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    failed = Source.everywhere.filter(type="rss", failures__gt=0).count()
    return {
        "database": connection.vendor,
        "sources": sources,
        "hosts": hosts,
        "answered": site.answered,
        "unpolled": sources - len(late),
        "failed": failed,
        "most_at_once": max(site.most.values(), default=0),
        "p50": late[len(late) // 2],
        "p99": late[int(len(late) * 0.99)],
        "worst": late[-1],
    }


def _lateness(promised: dict[Any, Any]) -> list[float]:
    """Seconds between each promise and the beginning of its poll."""
    from pipeline.models import Source  # noqa: PLC0415

    until = time.monotonic() + GIVE_UP_SECONDS
    earliest = min(promised.values())
    while time.monotonic() < until:
        rows = Source.everywhere.filter(type="rss", last_polled_at__gte=earliest)
        began = dict(rows.values_list("pk", "last_polled_at"))
        if len(began) == len(promised):
            break
        time.sleep(1)
    return sorted((began[pk] - promised[pk]).total_seconds() for pk in began)


def main() -> int:
    is_quick = "--quick" in sys.argv
    print(machine(), flush=True)
    address, reason = find_postgres()
    if not address:
        print(f"NOT RUN on PostgreSQL: {reason}.")
        return 1 if os.environ.get("REQUIRE_SERVICES") == "1" else 0
    environment = {name: value for name, value in os.environ.items() if name not in OURS}
    with scratch_postgres(address) as own, tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        os.environ.clear()
        os.environ.update(environment)
        os.environ |= {
            "ENV_FILE": "tests/settings.env",
            "LOG_LEVEL": "ERROR",
            "DATA_DIR": folder,
            "DATABASE_URL": own,
            "OUTBOUND_ALLOW_LOOPBACK": "1",
            "DJANGO_SETTINGS_MODULE": "config.settings",
        }
        report = measure(is_quick=is_quick)
        from django.db import connections  # noqa: PLC0415

        connections.close_all()
    is_good = report["p99"] <= P99_MOST_SECONDS and report["most_at_once"] == 1 and not report["unpolled"]
    print(json.dumps(report))
    print("ok" if is_good else "MISSED")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
