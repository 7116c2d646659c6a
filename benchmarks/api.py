"""Measures `GET /v1/generated` and `POST /v1/raw` against the floor (benchmarks/floor.py), and pages of a full workspace.

- The requests a second of four kept connections, floor and ours in turn, by one gunicorn process that serves both.
- The shared buffers that PostgreSQL reads for page 4,000 and for page 1. SQLite doesn't count them; there the plan has to
  seek in the list's index and sort nothing.
- Searches of `GET /v1/generated` among items with texts from five thousand words, against the list without `q`, in this
  process. They have one or two words, common or rare, and the last is often cut short.
- The milliseconds and the number of statements of pages as a member gets them, rendered in this process.
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
from typing import TYPE_CHECKING, Any, Final, NamedTuple

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
    # How often each statement, and each page, is requested.
    "times": (100, 2),
}
WARM_UP: Final = 2
"""The rounds before the measured ones."""
MIN_LIST_RATIO: Final = 0.33
MIN_PUSH_RATIO: Final = 0.3
MAX_PAGE_MS: Final = 100.0
MAX_PAGE_STATEMENTS: Final = 20
PAGES: Final = ("home", "keys", "webhooks", "members", "usage", "defaults", "notices", "workspace")
MAX_SEARCH_MS: Final = 150.0
MAX_DEEP_PAGE_RATIO: Final = 1.1
"""The shared buffers of the deep page, as a multiple of those of the first."""
PAGE_SIZE: Final = 25
WALK_PAGE_SIZE: Final = 100
"""The rows of a page on the way to the deep one, which may be more because a cursor is valid for every page size."""


def measure(session: Session) -> Iterator[Row]:
    """Yield the rows of lists, pushes, the deep page, searches and pages of a full workspace."""
    size = session.size
    seeded = seed.seed_list(size.items)
    database = session.database
    with serve(session) as port:
        refuse_different_answers(port, seeded.token)
        yield compare_with_floor(
            session, f"GET /v1/generated, {database}", MIN_LIST_RATIO,
            *(list_requests(port, seeded.token, path) for path in ("/floor/generated", "/v1/generated")),
        )  # fmt: skip
        yield compare_with_floor(
            session, f"POST /v1/raw, {database}", MIN_PUSH_RATIO,
            *(push_requests(port, seeded.push_token, path) for path in ("/floor/raw", "/v1/raw")),
        )  # fmt: skip
    yield measure_deep_page(session, seeded.token)
    yield from measure_searches(session, seeded)
    yield from measure_pages(session, seeded.workspace)


# --- The server ------------------------------------------------------------------------------------------------------


@contextmanager
def serve(session: Session) -> Iterator[int]:
    """Serve with the project's gunicorn settings in one process, and yield the port."""
    port = free_port()
    command = [sys.executable, "-m", "gunicorn", "benchmarks.floor:application"]
    command += ["--config", "gunicorn.conf.py"]
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


def refuse_different_answers(port: int, token: str) -> None:
    """Raise `UnexpectedAnswer` if floor and project answer differently, or without files or publications."""
    answers = []
    for path in ("/v1/generated", "/floor/generated"):
        status, _, body = client.ask(port, request_bytes("GET", path, token))
        if status != 200:
            raise UnexpectedAnswer(body.decode())
        answers.append(json.loads(body)["data"])
    ours, floors = answers
    if len(ours) != PAGE_SIZE or _in_order(ours) != _in_order(floors):
        difference = next(
            (f"{name}: {own[name]!r} and {floor_item.get(name)!r}"
             for own, floor_item in zip(ours, floors, strict=False)
             for name in own if _in_order(own[name]) != _in_order(floor_item.get(name))),
            f"its fields are {list(ours[0])} and {list(floors[0])}",
        )  # fmt: skip
        raise UnexpectedAnswer(f"The floor's `data` isn't ours: {difference}")
    if not any(item["publications"] for item in ours) or not any(item["assets"] for item in ours):
        raise UnexpectedAnswer(
            "The first page holds no publications, or no files: the comparison would leave them out."
        )


def _in_order(value: Any) -> str:
    """Return JSON with its names in order, so that the order of fields doesn't matter; 1 and true differ."""
    return json.dumps(value, sort_keys=True)


# --- Rounds ----------------------------------------------------------------------------------------------------------


@dataclass
class RequestLoop:
    """Sends the requests of one side of a comparison: `make` returns that of a number, and no number comes twice."""

    port: int
    make: Callable[[int], bytes]
    status: int
    numbers: count[int] = field(default_factory=count)

    def __call__(self, seconds: float) -> client.MeasuredRequests:
        return client.run_requests(
            self.port, self.make, seconds=seconds, status=self.status, numbers=self.numbers
        )


def list_requests(port: int, token: str, path: str) -> RequestLoop:
    request = request_bytes("GET", path, token)
    return RequestLoop(port, lambda _: request, 200)


def push_requests(port: int, token: str, path: str) -> RequestLoop:
    def make_request(number: int) -> bytes:
        # Every push is new.
        name = f"{path[1:3]}-{number}"
        content = {
            "external_id": name,
            "url": f"https://news.example/stories/{name}",
            "title": "Harbour ferries to run every ten minutes",
            "body": "From Monday on, the ferries cross the harbour every ten minutes between six and ten. "
            * 6,
        }
        return request_bytes("POST", path, token, json.dumps(content).encode())

    return RequestLoop(port, make_request, 202)


def compare_with_floor(
    session: Session, label: str, min_ratio: float, floor_loop: RequestLoop, own_loop: RequestLoop
) -> Row:
    """Measure floor and ours in turn, so that other work of the machine slows both, and return their row."""
    floors: list[client.MeasuredRequests] = []
    ours: list[client.MeasuredRequests] = []
    for number in range(0 if session.is_smallest else -WARM_UP, session.size.rounds):
        # Floor and ours take turns to begin.
        for side in ("floor", "ours") if number % 2 else ("ours", "floor"):
            measured = (floor_loop if side == "floor" else own_loop)(session.size.seconds)
            if number >= 0:
                (floors if side == "floor" else ours).append(measured)
    notes = [
        f"{name} p50 {percentile(latencies, 0.5):.1f} ms, p99 {percentile(latencies, 0.99):.1f} ms"
        for name, sides in (("ours", ours), ("floor", floors))
        if (latencies := [value for measured in sides for value in measured.latencies])
    ]
    return Row(
        label, "/s", [value.per_second for value in ours], [value.per_second for value in floors],
        min_ratio=min_ratio, note="; ".join(notes),
    )  # fmt: skip


# --- The database ----------------------------------------------------------------------------------------------------


def measure_deep_page(session: Session, token: str) -> Row:
    """Explain the endpoint's statement for the first page and for the deep one, and return their row."""
    from django.db import connection  # noqa: PLC0415  Django is set up by then
    from django.test import Client  # noqa: PLC0415

    browser = Client(headers={"Authorization": f"Bearer {token}", "Host": "127.0.0.1"})
    statements: list[tuple[str, Any]] = []

    def record_statement(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:  # noqa: FBT001  Django's
        if 'FROM "generated_item"' in sql:
            statements.append((sql, params))
        return execute(sql, params, many, context)

    def get(query: str) -> dict[str, Any]:
        answer = browser.get(f"/v1/generated{query}")
        if answer.status_code != 200:
            raise UnexpectedAnswer(answer.content.decode())
        body: dict[str, Any] = answer.json()
        return body

    rows_before = (session.size.deep_page - 1) * PAGE_SIZE
    cursor = ""
    large_pages, remaining_rows = divmod(rows_before, WALK_PAGE_SIZE)
    for rows in [WALK_PAGE_SIZE] * large_pages + [PAGE_SIZE] * (remaining_rows // PAGE_SIZE):
        cursor = f"&cursor={get(f'?limit={rows}{cursor}')['next_cursor']}"
    with connection.execute_wrapper(record_statement):
        get(f"?limit={PAGE_SIZE}")
        get(f"?limit={PAGE_SIZE}{cursor}")
    first, deep = (explain_statement(*statement, times=session.size.times) for statement in statements)
    label = f"page {session.size.deep_page:,} beside page 1, {session.database}"
    if first.buffers is not None and deep.buffers is not None:
        note = f"{deep.milliseconds:.2f} and {first.milliseconds:.2f} ms"
        return Row(
            f"{label}: buffers", "", [deep.buffers], [first.buffers], max_ratio=MAX_DEEP_PAGE_RATIO, note=note
        )
    seeks = "generated_item_list" in deep.plan and "TEMP B-TREE" not in deep.plan
    unsound = "" if seeks else f"the plan is {deep.plan}"
    return Row(f"{label}: time", "ms", [deep.milliseconds], [first.milliseconds], unsound=unsound)


def measure_searches(session: Session, seeded: seed.SeededList) -> Iterator[Row]:
    """Yield the times of searches against the list, among all items and among those of a status."""
    from django.test import Client  # noqa: PLC0415

    random = Random(1)
    words = seed.write_texts(seeded.workspace, session.size.searched, random)
    browser = Client(headers={"Authorization": f"Bearer {seeded.token}", "Host": "127.0.0.1"})
    queries = []
    for _ in range(session.size.times):
        # The words are in the order of their frequency; this draws common words as often as rare ones.
        query_words = [words[int(len(words) ** random.random()) - 1] for _ in range(random.randint(1, 2))]
        last = query_words[-1]
        queries.append(" ".join([*query_words[:-1], last[: random.randint(3, len(last))]]))
    for filter_query in ("", "&status=ready"):
        own_ms, floor_ms = [], []
        for query in queries:
            for path, milliseconds in (("limit=25", floor_ms), (f"limit=25&q={query}", own_ms)):
                started = time.perf_counter()
                answer = browser.get(f"/v1/generated?{path}{filter_query}")
                if answer.status_code != 200:
                    raise UnexpectedAnswer(answer.content.decode())
                milliseconds.append((time.perf_counter() - started) * 1000)
        yield Row(
            f"search of {session.size.searched:,} items{filter_query and ', narrowed'}, {session.database}: p95", "ms",
            [percentile(own_ms, 0.95)], [percentile(floor_ms, 0.95)], maximum=MAX_SEARCH_MS,
            note=f"p50 {percentile(own_ms, 0.5):.1f} ms, floor {percentile(floor_ms, 0.5):.1f} ms; longest {max(own_ms):.1f} ms",
        )  # fmt: skip


class ExplainedStatement(NamedTuple):
    """The cost of a statement."""

    buffers: int | None
    """The shared buffers that were read; `None` on SQLite."""
    milliseconds: float
    """The median time of a run."""
    plan: str


def explain_statement(sql: str, params: Any, *, times: int) -> ExplainedStatement:
    """Run a statement so many times, and explain it."""
    from django.db import connection  # noqa: PLC0415

    is_postgres = connection.vendor == "postgresql"
    prefix = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)" if is_postgres else "EXPLAIN QUERY PLAN"
    with connection.cursor() as cursor:
        milliseconds = []
        for _ in range(times):
            started = time.perf_counter()
            cursor.execute(sql, params)
            cursor.fetchall()
            milliseconds.append((time.perf_counter() - started) * 1000)
        cursor.execute(f"{prefix} {sql}", params)
        plan_rows = cursor.fetchall()
    median = statistics.median(milliseconds)
    if not is_postgres:
        return ExplainedStatement(None, median, "; ".join(row[-1] for row in plan_rows))
    plans = plan_rows[0][0] if not isinstance(plan_rows[0][0], str) else json.loads(plan_rows[0][0])
    plan = plans[0]["Plan"]
    buffers = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    return ExplainedStatement(buffers, median, json.dumps(plan))


# --- Pages -----------------------------------------------------------------------------------------------------------


def measure_pages(session: Session, workspace: Workspace) -> Iterator[Row]:
    """Yield the time of each page, and in its note the number of its statements."""
    from django.test import Client  # noqa: PLC0415
    from django.urls import reverse  # noqa: PLC0415

    owner = seed.make_lively(workspace, datetime.now(UTC))
    browser = Client(headers={"Host": "127.0.0.1"})
    browser.force_login(owner)
    for name in PAGES:
        milliseconds, statements = time_page(
            browser, reverse(name, kwargs={"ws": workspace.pk}), session.size.times
        )
        verdict = "ok" if statements <= MAX_PAGE_STATEMENTS else "MISSED"
        # The goal is PostgreSQL's; SQLite is for smaller services.
        max_ms = MAX_PAGE_MS if session.database == "postgres" else None
        yield Row(
            f"page {name}, {session.database}: p95", "ms", [percentile(milliseconds, 0.95)], maximum=max_ms,
            note=f"p50 {percentile(milliseconds, 0.5):.1f} ms; {statements} statements, at most {MAX_PAGE_STATEMENTS}: {verdict}",
        )  # fmt: skip


def time_page(browser: Any, path: str, times: int) -> tuple[list[float], int]:
    """Return the milliseconds of each request, and the statements of one."""
    from django.db import connection  # noqa: PLC0415

    statements = 0

    def count_statement(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:  # noqa: FBT001  Django's
        nonlocal statements
        statements += 1
        return execute(sql, params, many, context)

    milliseconds = []
    for number in range(-max(times // 10, 1), times):
        started = time.perf_counter()
        answer = browser.get(path)
        if answer.status_code != 200:
            raise UnexpectedAnswer(answer.content.decode())
        if number >= 0:
            milliseconds.append((time.perf_counter() - started) * 1000)
    with connection.execute_wrapper(count_statement):
        browser.get(path)
    return milliseconds, statements
