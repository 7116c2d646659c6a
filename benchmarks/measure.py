"""One database's share of the benchmarks: seed, serve, compare in rounds, read plans; prints a JSON report."""

from __future__ import annotations

import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import django

django.setup()

from django.conf import settings  # noqa: E402  these need Django
from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from django.test import Client  # noqa: E402
from django.urls import reverse  # noqa: E402

from benchmarks import client, seed  # noqa: E402
from benchmarks.client import UnexpectedAnswer, request_bytes  # noqa: E402
from benchmarks.server import floor  # noqa: E402
from pipeline.models import GeneratedItem, Publication, RawItem  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

    from accounts.models import Workspace

LIST_LEAST: Final = 0.33
PUSH_LEAST: Final = 0.3
DEEP_PAGE: Final = 4_000
PAGE_MOST_MS: Final = 100.0
PAGE_QUERIES: Final = 20
_PAGE_TIMES: Final = 100
PAGES: Final = ("home", "keys", "webhooks", "members", "usage", "defaults", "notices", "workspace")
DEEP_MOST: Final = 1.1
"""Shared buffers of the deep page in those of the first."""
PAGE: Final = 25
_WALK: Final = 100
"""Rows of a page on the way to the deep one: a cursor fits every page size."""
_SQL_TIMES: Final = 200
_START_SECONDS: Final = 30.0


@dataclass(frozen=True)
class Effort:
    """`rounds` pairs of stretches of `seconds` each, after `warm_up` that don't count."""

    rounds: int
    seconds: float
    warm_up: int = 2


THOROUGH: Final = Effort(rounds=25, seconds=0.6)
QUICK: Final = Effort(rounds=7, seconds=0.5)


@dataclass(frozen=True)
class Compared:
    """`ratio` is the median over the rounds of ours ÷ floor in requests a second; latencies in milliseconds."""

    what: str
    ratio: float
    lowest: float
    highest: float
    least: float
    floor_per_second: float
    ours_per_second: float
    floor_p50: float
    floor_p99: float
    ours_p50: float
    ours_p99: float


@dataclass(frozen=True)
class Deep:
    """What the first page and the deep one cost; buffers only where the database counts them."""

    first_buffers: int | None
    deep_buffers: int | None
    first_ms: float
    deep_ms: float
    plan: str

    @property
    def is_good(self) -> bool:
        if self.first_buffers is None or self.deep_buffers is None:
            # Where there are no counts, the plan tells: it seeks in the index of the list and sorts nothing.
            return "generated_item_list" in self.plan and "TEMP B-TREE" not in self.plan
        return self.deep_buffers <= self.first_buffers * DEEP_MOST


@dataclass(frozen=True)
class PageTime:
    """A page of a workspace as its owner gets it, rendered: milliseconds and statements."""

    name: str
    p50: float
    p95: float
    queries: int

    @property
    def is_good(self) -> bool:
        # Only PostgreSQL has the promise; SQLite is for less than that.
        is_fast = connection.vendor != "postgresql" or self.p95 <= PAGE_MOST_MS
        return is_fast and self.queries <= PAGE_QUERIES


def main() -> None:
    effort = QUICK if "--quick" in sys.argv else THOROUGH
    call_command("migrate", verbosity=0)
    started = time.monotonic()
    seeded = seed.seed()
    seed_seconds = time.monotonic() - started
    deep = _measure_depth(seeded.token)
    floor_sql_ms = _floor_sql_ms(seeded.workspace)
    with _serving() as port:
        _refuse_unless_equal(port, seeded.token)
        listed = _compare(
            "GET /v1/generated",
            effort,
            LIST_LEAST,
            *(_listing(port, seeded.token, path) for path in ("/floor/generated", "/v1/generated")),
        )
        pushed = _compare(
            "POST /v1/raw",
            effort,
            PUSH_LEAST,
            *(_pushing(port, seeded.push_token, path) for path in ("/floor/raw", "/v1/raw")),
        )
    pages = _measure_pages(seeded.workspace)
    report = {
        "pages": [{**asdict(one), "is_good": one.is_good} for one in pages],
        "held": _held(seeded.workspace),
        "database": _database_version(),
        "rows": seeded.rows,
        "seed_seconds": round(seed_seconds, 1),
        "rounds": effort.rounds,
        "seconds": effort.seconds,
        "connections": client.CONNECTIONS,
        "floor_sql_ms": floor_sql_ms,
        "compared": [asdict(listed), asdict(pushed)],
        "deep": {**asdict(deep), "is_good": deep.is_good},
        "passed": listed.ratio >= LIST_LEAST
        and pushed.ratio >= PUSH_LEAST
        and deep.is_good
        and all(one.is_good for one in pages),
    }
    sys.stdout.write(json.dumps(report) + "\n")


# --- The server ------------------------------------------------------------------------------------------------------


class _serving:  # noqa: N801  used as a context manager
    """The project's own gunicorn settings with one worker; gives the port."""

    def __enter__(self) -> int:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
        command = [
            sys.executable,
            "-m",
            "gunicorn",
            "benchmarks.server:application",
            "--config",
            "gunicorn.conf.py",
        ]
        self._process = subprocess.Popen(
            [*command, "--bind", f"127.0.0.1:{port}", "--workers", "1"], env={**os.environ, "PORT": str(port)}
        )
        until = time.monotonic() + _START_SECONDS
        while True:
            try:
                client.ask(port, request_bytes("GET", "/healthz", ""))
            except OSError:
                if self._process.poll() is not None or time.monotonic() > until:
                    self.__exit__()
                    raise
                time.sleep(0.1)
            else:
                return port

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()


def _refuse_unless_equal(port: int, token: str) -> None:
    """The floor is worth nothing unless it answers the same."""
    shown = []
    for path in ("/v1/generated", "/floor/generated"):
        status, _, body = client.ask(port, request_bytes("GET", path, token))
        if status != 200:
            raise UnexpectedAnswer(body.decode())
        shown.append(json.loads(body)["data"])
    ours, its = (json.dumps(data).encode() for data in shown)
    if ours != its or len(shown[0]) != PAGE:
        message = f"The floor's `data` isn't ours: {ours[:500]!r} and {its[:500]!r}"
        raise UnexpectedAnswer(message)
    if not any(item["publications"] for item in shown[0]) or not any(item["assets"] for item in shown[0]):
        message = "The first page holds no publications, or no files: the comparison would leave them out."
        raise UnexpectedAnswer(message)


# --- Rounds ----------------------------------------------------------------------------------------------------------


@dataclass
class Asking:
    """One side of a comparison: `make` gives the request of each number; no number comes twice."""

    port: int
    make: Callable[[int], bytes]
    status: int
    numbers: count[int] = field(default_factory=count)

    def __call__(self, seconds: float) -> client.Measured:
        return client.run(self.port, self.make, seconds=seconds, status=self.status, numbers=self.numbers)


def _listing(port: int, token: str, path: str) -> Asking:
    request = request_bytes("GET", path, token)
    return Asking(port, lambda _: request, 200)


def _pushing(port: int, token: str, path: str) -> Asking:
    def make(number: int) -> bytes:
        # Every push is of something new.
        return request_bytes("POST", path, token, json.dumps(_pushed(f"{path[1:3]}-{number}")).encode())

    return Asking(port, make, 202)


def _pushed(name: str) -> dict[str, str]:
    return {
        "external_id": name,
        "url": f"https://news.example/stories/{name}",
        "title": "Harbour ferries to run every ten minutes",
        "body": "From Monday on, the ferries cross the harbour every ten minutes between six and ten. " * 6,
    }


def _compare(
    what: str,
    effort: Effort,
    least: float,
    of_floor: Asking,
    of_ours: Asking,
) -> Compared:
    """Floor and ours in turn, so that whatever else the machine does meets both."""
    floors, ours, ratios = [], [], []
    for number in range(-effort.warm_up, effort.rounds):
        pair = {}
        # Who begins changes from round to round.
        for side in ("floor", "ours") if number % 2 else ("ours", "floor"):
            pair[side] = (of_floor if side == "floor" else of_ours)(effort.seconds)
        if number < 0:
            continue
        floors.append(pair["floor"])
        ours.append(pair["ours"])
        ratios.append(pair["ours"].per_second / pair["floor"].per_second)
    return Compared(
        what=what,
        ratio=statistics.median(ratios),
        lowest=min(ratios),
        highest=max(ratios),
        least=least,
        floor_per_second=statistics.median(one.per_second for one in floors),
        ours_per_second=statistics.median(one.per_second for one in ours),
        floor_p50=_percentile(floors, 50),
        floor_p99=_percentile(floors, 99),
        ours_p50=_percentile(ours, 50),
        ours_p99=_percentile(ours, 99),
    )


def _percentile(stretches: list[client.Measured], percent: int) -> float:
    latencies = [one for stretch in stretches for one in stretch.latencies]
    return statistics.quantiles(latencies, n=100)[percent - 1]


# --- The database ----------------------------------------------------------------------------------------------------


def _floor_sql_ms(workspace: Workspace) -> float:
    """Milliseconds of the statements behind the floor's list: items, publications, files; the driver's work included."""
    own = floor.connection()
    key = workspace.pk if connection.vendor == "postgresql" else workspace.pk.hex
    times = []
    for _ in range(_SQL_TIMES):
        started = time.perf_counter()
        floor.read_rows(own, key)
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times)


def _database_version() -> str:
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SHOW server_version")
            return f"PostgreSQL {cursor.fetchone()[0].split()[0]}"
        cursor.execute("SELECT sqlite_version()")
        return f"SQLite {cursor.fetchone()[0]}"


def _measure_depth(token: str) -> Deep:
    """The statement that the endpoint itself runs for the first page and for the deep one, explained."""
    asking = Client(headers={"Authorization": f"Bearer {token}", "Host": "127.0.0.1"})
    statements: list[tuple[str, Any]] = []

    def watch(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:  # noqa: FBT001  Django's
        if 'FROM "generated_item"' in sql:
            statements.append((sql, params))
        return execute(sql, params, many, context)

    def get(query: str) -> dict[str, Any]:
        answer = asking.get(f"/v1/generated{query}")
        if answer.status_code != 200:
            raise UnexpectedAnswer(answer.content.decode())
        body: dict[str, Any] = answer.json()
        return body

    before = (DEEP_PAGE - 1) * PAGE
    sizes = [_WALK] * (before // _WALK) + [PAGE] * (before % _WALK // PAGE)
    body, cursor = {}, ""
    for size in sizes:
        body = get(f"?limit={size}{cursor}")
        cursor = f"&cursor={body['next_cursor']}"
    with connection.execute_wrapper(watch):
        get(f"?limit={PAGE}")
        get(f"?limit={PAGE}{cursor}")
    first, deep = (_explain(*statement) for statement in statements)
    return Deep(first[0], deep[0], first[1], deep[1], deep[2])


def _measure_pages(workspace: Workspace) -> list[PageTime]:
    owner = seed.make_lively(workspace, datetime.now(UTC))
    asking = Client(headers={"Host": "127.0.0.1"})
    asking.force_login(owner)
    return [_measure_page(asking, name, reverse(name, kwargs={"ws": workspace.pk})) for name in PAGES]


def _measure_page(asking: Client, name: str, path: str) -> PageTime:
    statements = 0

    def watch(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:  # noqa: FBT001  Django's
        nonlocal statements
        statements += 1
        return execute(sql, params, many, context)

    times = []
    for number in range(-10, _PAGE_TIMES):
        started = time.perf_counter()
        answer = asking.get(path)
        took = (time.perf_counter() - started) * 1000
        if answer.status_code != 200:
            raise UnexpectedAnswer(answer.content.decode())
        if number >= 0:
            times.append(took)
    with connection.execute_wrapper(watch):
        asking.get(path)
    cuts = statistics.quantiles(times, n=100)
    return PageTime(name, cuts[49], cuts[94], statements)


def _held(workspace: Workspace) -> dict[str, int]:
    """What the workspace has so much of."""
    return {
        model._meta.db_table: model.everywhere.filter(workspace=workspace).count()
        for model in (GeneratedItem, Publication, RawItem)
    }


def _explain(sql: str, params: Any) -> tuple[int | None, float, str]:
    """Shared buffers, milliseconds, and the plan as text."""
    is_postgres = connection.vendor == "postgresql"
    prefix = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)" if is_postgres else "EXPLAIN QUERY PLAN"
    with connection.cursor() as cursor:
        times = []
        for _ in range(20):
            started = time.perf_counter()
            cursor.execute(sql, params)
            cursor.fetchall()
            times.append((time.perf_counter() - started) * 1000)
        cursor.execute(f"{prefix} {sql}", params)
        found = cursor.fetchall()
    took = statistics.median(times)
    if not is_postgres:
        return None, took, "; ".join(row[-1] for row in found)
    told = found[0][0] if not isinstance(found[0][0], str) else json.loads(found[0][0])
    plan = told[0]["Plan"]
    return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"], took, json.dumps(plan)


if __name__ == "__main__":
    if not settings.IS_DEVELOPMENT:
        sys.exit("The benchmarks run in development mode, on a database of their own.")
    # The server ends with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    main()
