"""`GET /v1/generated` and `POST /v1/raw` beside the floor (benchmarks/floor.py), and pages of a workspace full of items.

- Requests a second of four kept connections, floor and ours in turn, by one gunicorn process that serves both.
- What the database reads for page 4,000 beside page 1: shared buffers on PostgreSQL; on SQLite, which doesn't count them, the
  plan has to seek in the list's index and sort nothing.
- Searches of `GET /v1/generated` among items with texts of five thousand words, beside the list without `q`, in this
  process: common words and rare ones, one and two, the last often begun.
- Pages as a member gets them, rendered in this process: milliseconds, and how many statements they ask.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any, Final

from benchmarks import client, seed
from benchmarks.client import UnexpectedAnswer, request_bytes
from benchmarks.service import ROOT, Session, free_port, wait_until
from benchmarks.table import Row, percentile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from accounts.models import Workspace

ON: Final = ("sqlite", "postgres")
SIZES: Final = {
    "rounds": (25, 1),
    "seconds": (0.6, 0.1),
    "items": (200_000, 400),
    "deep_page": (4_000, 8),
    "searched": (50_000, 100),
    # How often each statement, and each page, is asked for.
    "times": (100, 2),
}
WARM_UP: Final = 2
LIST_LEAST: Final = 0.33
PUSH_LEAST: Final = 0.3
PAGE_MOST_MS: Final = 100.0
PAGE_QUERIES: Final = 20
PAGES: Final = ("home", "keys", "webhooks", "members", "usage", "defaults", "notices", "workspace")
SEARCH_MOST_MS: Final = 150.0
DEEP_MOST: Final = 1.1
"""Shared buffers of the deep page in those of the first."""
PAGE: Final = 25
WALK: Final = 100
"""Rows of a page on the way to the deep one: a cursor fits every page size."""


def measure(session: Session) -> Iterator[Row]:
    size = session.size
    seeded = seed.seed(size.items)
    on = session.database
    with serving(session) as port:
        refuse_unless_equal(port, seeded.token)
        yield compare(
            session, f"GET /v1/generated, {on}", LIST_LEAST,
            *(listing(port, seeded.token, path) for path in ("/floor/generated", "/v1/generated")),
        )  # fmt: skip
        yield compare(
            session, f"POST /v1/raw, {on}", PUSH_LEAST,
            *(pushing(port, seeded.push_token, path) for path in ("/floor/raw", "/v1/raw")),
        )  # fmt: skip
    yield depth(session, seeded.token)
    yield from searches(session, seeded)
    yield from pages(session, seeded.workspace)


# --- The server ------------------------------------------------------------------------------------------------------


@contextmanager
def serving(session: Session) -> Iterator[int]:
    """The project's own gunicorn settings with one process; gives the port."""
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "gunicorn",
        "benchmarks.floor:application",
        "--config",
        "gunicorn.conf.py",
    ]
    command += ["--bind", f"127.0.0.1:{port}", "--workers", "1"]
    environment = {**os.environ, "PORT": str(port)}
    with (session.folder / "api.log").open("ab") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)

    def is_up() -> bool:
        if process.poll() is not None:
            raise RuntimeError((session.folder / "api.log").read_text()[-3000:])
        try:
            client.ask(port, request_bytes("GET", "/healthz", ""))
        except OSError:
            return False
        return True

    try:
        wait_until(is_up, 60, "the server")
        yield port
    finally:
        process.terminate()
        process.wait()


def refuse_unless_equal(port: int, token: str) -> None:
    """The floor is worth nothing unless it answers the same."""
    answered = []
    for path in ("/v1/generated", "/floor/generated"):
        status, _, body = client.ask(port, request_bytes("GET", path, token))
        if status != 200:
            raise UnexpectedAnswer(body.decode())
        answered.append(json.loads(body)["data"])
    ours, floors = answered
    if len(ours) != PAGE or json.dumps(ours) != json.dumps(floors):
        told = next(
            (f"{name}: {one[name]!r} and {other.get(name)!r}"
             for one, other in zip(ours, floors, strict=False)
             for name in one if json.dumps(one[name]) != json.dumps(other.get(name))),
            f"its fields are {list(ours[0])} and {list(floors[0])}",
        )  # fmt: skip
        raise UnexpectedAnswer(f"The floor's `data` isn't ours: {told}")
    if not any(item["publications"] for item in ours) or not any(item["assets"] for item in ours):
        raise UnexpectedAnswer(
            "The first page holds no publications, or no files: the comparison would leave them out."
        )


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


def listing(port: int, token: str, path: str) -> Asking:
    request = request_bytes("GET", path, token)
    return Asking(port, lambda _: request, 200)


def pushing(port: int, token: str, path: str) -> Asking:
    def make(number: int) -> bytes:
        # Every push is of something new.
        name = f"{path[1:3]}-{number}"
        pushed = {
            "external_id": name,
            "url": f"https://news.example/stories/{name}",
            "title": "Harbour ferries to run every ten minutes",
            "body": "From Monday on, the ferries cross the harbour every ten minutes between six and ten. "
            * 6,
        }
        return request_bytes("POST", path, token, json.dumps(pushed).encode())

    return Asking(port, make, 202)


def compare(session: Session, what: str, least: float, of_floor: Asking, of_ours: Asking) -> Row:
    """Floor and ours in turn, so that whatever else the machine does meets both."""
    floors: list[client.Measured] = []
    ours: list[client.Measured] = []
    for number in range(0 if session.is_smallest else -WARM_UP, session.size.rounds):
        # Which begins changes from round to round.
        for side in ("floor", "ours") if number % 2 else ("ours", "floor"):
            measured = (of_floor if side == "floor" else of_ours)(session.size.seconds)
            if number >= 0:
                (floors if side == "floor" else ours).append(measured)
    told = [
        f"{name} p50 {percentile(all_of, 0.5):.1f} ms, p99 {percentile(all_of, 0.99):.1f} ms"
        for name, sides in (("ours", ours), ("floor", floors))
        if (all_of := [one for measured in sides for one in measured.latencies])
    ]
    return Row(
        what, "/s", [one.per_second for one in ours], [one.per_second for one in floors],
        least_ratio=least, note="; ".join(told),
    )  # fmt: skip


# --- The database ----------------------------------------------------------------------------------------------------


def depth(session: Session, token: str) -> Row:
    """The statement that the endpoint itself runs for the first page and for the deep one, explained."""
    from django.db import connection  # noqa: PLC0415  Django is set up by then
    from django.test import Client  # noqa: PLC0415

    browser = Client(headers={"Authorization": f"Bearer {token}", "Host": "127.0.0.1"})
    statements: list[tuple[str, Any]] = []

    def watch(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:  # noqa: FBT001  Django's
        if 'FROM "generated_item"' in sql:
            statements.append((sql, params))
        return execute(sql, params, many, context)

    def get(query: str) -> dict[str, Any]:
        answer = browser.get(f"/v1/generated{query}")
        if answer.status_code != 200:
            raise UnexpectedAnswer(answer.content.decode())
        body: dict[str, Any] = answer.json()
        return body

    before = (session.size.deep_page - 1) * PAGE
    cursor = ""
    for rows in [WALK] * (before // WALK) + [PAGE] * (before % WALK // PAGE):
        cursor = f"&cursor={get(f'?limit={rows}{cursor}')['next_cursor']}"
    with connection.execute_wrapper(watch):
        get(f"?limit={PAGE}")
        get(f"?limit={PAGE}{cursor}")
    first, deep = (explain(*statement, times=session.size.times) for statement in statements)
    what = f"page {session.size.deep_page:,} beside page 1, {session.database}"
    if first[0] is not None and deep[0] is not None:
        times = f"{deep[1]:.2f} and {first[1]:.2f} ms"
        return Row(f"{what}: buffers", "", [deep[0]], [first[0]], most_ratio=DEEP_MOST, note=times)
    seeks = "generated_item_list" in deep[2] and "TEMP B-TREE" not in deep[2]
    return Row(
        f"{what}: time", "ms", [deep[1]], [first[1]], unsound="" if seeks else f"the plan is {deep[2]}"
    )


def searches(session: Session, seeded: seed.Seeded) -> Iterator[Row]:
    from django.test import Client  # noqa: PLC0415

    random = Random(1)
    words = seed.write_texts(seeded.workspace, session.size.searched, random)
    browser = Client(headers={"Authorization": f"Bearer {seeded.token}", "Host": "127.0.0.1"})
    asked = []
    for _ in range(session.size.times):
        # As often common as rare.
        chosen = [words[int(len(words) ** random.random()) - 1] for _ in range(random.randint(1, 2))]
        last = chosen[-1]
        asked.append(" ".join([*chosen[:-1], last[: random.randint(3, len(last))]]))
    for narrowed in ("", "&status=ready"):
        took, floors = [], []
        for query in asked:
            for path, spent in (("limit=25", floors), (f"limit=25&q={query}", took)):
                started = time.perf_counter()
                answer = browser.get(f"/v1/generated?{path}{narrowed}")
                if answer.status_code != 200:
                    raise UnexpectedAnswer(answer.content.decode())
                spent.append((time.perf_counter() - started) * 1000)
        yield Row(
            f"search of {session.size.searched:,} items{narrowed and ', narrowed'}, {session.database}: p95", "ms",
            [percentile(took, 0.95)], [percentile(floors, 0.95)], most=SEARCH_MOST_MS,
            note=f"p50 {percentile(took, 0.5):.1f} ms, floor {percentile(floors, 0.5):.1f} ms; longest {max(took):.1f} ms",
        )  # fmt: skip


def explain(sql: str, params: Any, *, times: int) -> tuple[int | None, float, str]:
    """Shared buffers, milliseconds, and the plan as text."""
    from django.db import connection  # noqa: PLC0415

    is_postgres = connection.vendor == "postgresql"
    prefix = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)" if is_postgres else "EXPLAIN QUERY PLAN"
    with connection.cursor() as cursor:
        took = []
        for _ in range(times):
            started = time.perf_counter()
            cursor.execute(sql, params)
            cursor.fetchall()
            took.append((time.perf_counter() - started) * 1000)
        cursor.execute(f"{prefix} {sql}", params)
        found = cursor.fetchall()
    middle = statistics.median(took)
    if not is_postgres:
        return None, middle, "; ".join(row[-1] for row in found)
    told = found[0][0] if not isinstance(found[0][0], str) else json.loads(found[0][0])
    plan = told[0]["Plan"]
    return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"], middle, json.dumps(plan)


# --- Pages -----------------------------------------------------------------------------------------------------------


def pages(session: Session, workspace: Workspace) -> Iterator[Row]:
    from django.test import Client  # noqa: PLC0415
    from django.urls import reverse  # noqa: PLC0415

    owner = seed.make_lively(workspace, datetime.now(UTC))
    browser = Client(headers={"Host": "127.0.0.1"})
    browser.force_login(owner)
    for name in PAGES:
        times, statements = page(browser, reverse(name, kwargs={"ws": workspace.pk}), session.size.times)
        verdict = "ok" if statements <= PAGE_QUERIES else "MISSED"
        # The promise is for PostgreSQL; SQLite is for less than that.
        most = PAGE_MOST_MS if session.database == "postgres" else None
        yield Row(
            f"page {name}, {session.database}: p95", "ms", [percentile(times, 0.95)], most=most,
            note=f"p50 {percentile(times, 0.5):.1f} ms; {statements} statements, at most {PAGE_QUERIES}: {verdict}",
        )  # fmt: skip


def page(browser: Any, path: str, times: int) -> tuple[list[float], int]:
    """Milliseconds of each time, and the statements of one."""
    from django.db import connection  # noqa: PLC0415

    statements = 0

    def watch(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:  # noqa: FBT001  Django's
        nonlocal statements
        statements += 1
        return execute(sql, params, many, context)

    took = []
    for number in range(-max(times // 10, 1), times):
        started = time.perf_counter()
        answer = browser.get(path)
        if answer.status_code != 200:
            raise UnexpectedAnswer(answer.content.decode())
        if number >= 0:
            took.append((time.perf_counter() - started) * 1000)
    with connection.execute_wrapper(watch):
        browser.get(path)
    return took, statements
