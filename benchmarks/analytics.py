"""Measures what an answer of the analytics costs, on PostgreSQL.

Three workspaces have measurements of 20 outlets, five kinds and 90 days each, eight of each publication at growing ages.
SQL makes them with the checks of foreign keys off, so that they need no items. The service's workers add the days up.

Compared in turn are the rows of 90 days by day, outlet and kind as `GET /v1/analytics` sends them, the same sums by the best
SQL over the rollups, and the same groups by SQL over the measurements and outcomes alone. Then the time to add a day up is
measured, from the moment at which 90 are due, while the table holds one workspace, and again when it holds three.
"""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from benchmarks import seed
from benchmarks.service import Service, Session, bearer, wait_until
from benchmarks.table import Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from uuid import UUID

ON: Final = ("postgres",)
SIZES: Final = {"measurements": (1_000_000, 240), "days": (90, 3), "rounds": (9, 1), "fact_rounds": (3, 1)}
WORKSPACES: Final = 3
OUTLETS: Final = 20
KINDS: Final = ("video", "image", "text", "blog", "newsletter")
AGE_HOURS: Final = (1, 6, 12, 24, 48, 72, 168, 720)
"""The ages of a publication's measurements."""
MEASUREMENTS_EACH: Final = len(AGE_HOURS)
START: Final = datetime(2026, 7, 1, tzinfo=UTC)
# The goals, as multiples of each row's floor.
MAX_ROLLUP_RATIO: Final = 1.5
MIN_FACT_RATIO: Final = 100.0
MAX_DAY_RATIO: Final = 1.5
ADD_UP_TIMEOUT_SECONDS: Final = 1800.0

_PUBLICATIONS: Final = """
    SELECT md5(%(workspace)s::text || p)::uuid AS id, %(workspace)s::uuid AS workspace_id,
        (%(outlets)s::uuid[])[p %% 20 + 1] AS outlet_id, (%(kinds)s::text[])[p / 20 %% 5 + 1] AS content_type,
        %(start)s::timestamptz + make_interval(secs => %(days)s * 86400.0 * p / %(count)s) AS published_at, p
    FROM generate_series(0, %(count)s - 1) AS p
"""
INSERT_OUTCOMES: Final = f"""
    INSERT INTO outcome (id, workspace_id, test, event_id, publication_id, is_published, at, outlet_id, content_type,
        engine_output)
    SELECT id, workspace_id, FALSE, gen_random_uuid(), id, TRUE, published_at, outlet_id, content_type, 'Short Post'
    FROM ({_PUBLICATIONS}) AS made
"""
INSERT_MEASUREMENTS: Final = f"""
    INSERT INTO measurement (id, workspace_id, test, publication_id, number, at, published_at, outlet_id, content_type,
        engine_output, availability, impressions, views, likes, comments, shares, clicks, impressions_delta, views_delta,
        likes_delta, comments_delta, shares_delta, clicks_delta)
    SELECT gen_random_uuid(), workspace_id, FALSE, id, number, published_at + age, published_at, outlet_id, content_type,
        'Short Post', '{{"clicks": "unsupported"}}'::jsonb, number * 100, number * 40, number * 7, number, number, NULL,
        100, 40, 7, 1, 1, NULL
    FROM ({_PUBLICATIONS}) AS made, unnest(%(ages)s::interval[]) WITH ORDINALITY AS aged (age, number)
"""
_SUMS: Final = ", ".join(
    f"SUM({{{name}}})" for name in ("impressions", "views", "likes", "comments", "shares", "clicks")
)
BY_ROLLUP: Final = (
    f"""
    SELECT start, outlet_id, content_type, availability,
        {_SUMS.format(**{n: n for n in ("impressions", "views", "likes", "comments", "shares", "clicks")})}
    FROM measurement_rollup
    WHERE workspace_id = %s AND test = FALSE AND attribution = 'received' AND unit = 86400 AND start >= %s AND start < %s
    GROUP BY 1, 2, 3, 4
    """,
    """
    SELECT start, outlet_id, content_type, known, SUM(published_count), SUM(failed_count)
    FROM outcome_rollup
    WHERE workspace_id = %s AND test = FALSE AND unit = 86400 AND start >= %s AND start < %s
    GROUP BY 1, 2, 3, 4
    """,
)
BY_FACT: Final = (
    f"""
    SELECT date_trunc('day', at AT TIME ZONE 'UTC'), outlet_id, content_type, availability,
        {_SUMS.format(**{n: f"{n}_delta" for n in ("impressions", "views", "likes", "comments", "shares", "clicks")})}
    FROM measurement WHERE workspace_id = %s AND test = FALSE AND at >= %s AND at < %s
    GROUP BY 1, 2, 3, 4
    """,
    """
    SELECT date_trunc('day', at AT TIME ZONE 'UTC'), outlet_id, content_type, known,
        COUNT(*) FILTER (WHERE is_published), COUNT(*) FILTER (WHERE NOT is_published)
    FROM outcome LEFT JOIN (
        SELECT publication_id, MAX(CASE
            WHEN COALESCE(impressions, views, likes, comments, shares, clicks) IS NULL THEN 0 ELSE 1 END) AS known
        FROM measurement WHERE workspace_id = %s AND test = FALSE GROUP BY 1
    ) AS asked USING (publication_id)
    WHERE workspace_id = %s AND test = FALSE AND at >= %s AND at < %s
    GROUP BY 1, 2, 3, 4
    """,
)


def measure(session: Session) -> Iterator[Row]:
    """Yield the times of an answer, and of adding up a day with and without further workspaces in the table."""
    from django.db import connection  # noqa: PLC0415  Django is set up by then

    with connection.cursor() as cursor:
        # To make these rows, and to sum the facts, takes longer than a request may.
        cursor.execute("SET statement_timeout = 0")
    with session.service() as service:
        bench = AnalyticsBench(session, service)
        first, *others = bench.outlets
        bench.fill(first)
        bench.add_up(None)
        rounds = session.size.fact_rounds
        alone = [bench.add_up(first) for _ in range(rounds)]
        for workspace in others:
            bench.fill(workspace)
        bench.add_up(None)
        beside = [bench.add_up(first) for _ in range(rounds)]
        yield from measure_answers(session, bench)
    yield Row(
        f"a day of analytics added up, beside {WORKSPACES - 1} more workspaces (floor: alone)", "ms", beside, alone,
        max_ratio=MAX_DAY_RATIO, note="what the wait for the next look takes is in it",
    )  # fmt: skip


class AnalyticsBench:
    """Workspaces with outlets, the means to fill them with measurements, and the three ways to sum those."""

    def __init__(self, session: Session, service: Service) -> None:
        from pipeline.models import Outlet  # noqa: PLC0415

        self.service, self.days = service, session.size.days
        # The smallest size has fewer days to add up.
        hours = range(1, MEASUREMENTS_EACH + 1) if session.is_smallest else AGE_HOURS
        self.ages = [timedelta(hours=hour) for hour in hours]
        self.publications = session.size.measurements // (MEASUREMENTS_EACH * WORKSPACES)
        self.outlets: dict[UUID, list[UUID]] = {}
        self.token = ""
        for _ in range(WORKSPACES):
            room = seed.make_newsroom(session.name("Analytics"))
            self.token = self.token or room.token
            rows = [
                Outlet(workspace=room.workspace, platform="mastodon", name=f"Outlet {number:02}")
                for number in range(OUTLETS)
            ]
            self.outlets[room.workspace.pk] = [row.pk for row in Outlet.everywhere.bulk_create(rows)]
        self.first_workspace = next(iter(self.outlets))

    def fill(self, workspace: UUID) -> None:
        """Insert the workspace's outcomes and measurements."""
        from django.db import connection, transaction  # noqa: PLC0415

        parameters = {
            "workspace": workspace,
            "outlets": self.outlets[workspace],
            "kinds": list(KINDS),
            "start": START,
            "days": self.days,
            "count": self.publications,
            "ages": self.ages,
        }
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = replica")
            cursor.execute(INSERT_OUTCOMES, parameters)
            cursor.execute(INSERT_MEASUREMENTS, parameters)
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE measurement")
            cursor.execute("VACUUM ANALYZE outcome")

    def add_up(self, workspace: UUID | None) -> float:
        """Have the workers add up the days of a workspace again, or of all, and return the milliseconds of a day."""
        from django.core.management import call_command  # noqa: PLC0415
        from django.db.models import F  # noqa: PLC0415
        from django.utils import timezone  # noqa: PLC0415

        from analytics.models import RollupDay  # noqa: PLC0415

        rows = RollupDay.everywhere.all()
        if workspace is None:
            with open(os.devnull, "w") as null_output:  # noqa: PTH123
                call_command("recompute_analytics", stdout=null_output)
        else:
            rows = rows.filter(workspace_id=workspace)
        started, now = time.monotonic(), timezone.now()
        # A marked day normally waits for a while for more facts; here none will come.
        rows.update(is_current=False, due_at=now, wake_at=now, lease_token=F("lease_token") + 1)
        wait_until(
            lambda: not rows.filter(is_current=False).exists(),
            ADD_UP_TIMEOUT_SECONDS,
            "the days",
            interval=0.05,
        )
        return 1000 * (time.monotonic() - started) / rows.count()

    def sql(self, statements: tuple[str, ...], *, in_seconds: bool) -> list[Any]:
        """Return the rows of each statement for the first workspace; rollups have their times in seconds."""
        from django.db import connection  # noqa: PLC0415

        end = START + timedelta(days=self.days)
        span: list[Any] = [int(START.timestamp()), int(end.timestamp())] if in_seconds else [START, end]
        results: list[Any] = []
        with connection.cursor() as cursor:
            for statement in statements:
                # The last two parameters are the span; all before them are the workspace.
                cursor.execute(statement, [*[self.first_workspace] * (statement.count("%s") - 2), *span])
                results.append(cursor.fetchall())
        return results

    def get(self) -> bytes:
        end = START + timedelta(days=self.days)
        response = self.service.http.get(
            f"{self.service.url}/v1/analytics",
            params={"from": START.date().isoformat(), "to": end.date().isoformat()},
            headers=bearer(self.token),
            timeout=120,
        )
        if response.status_code != 200:
            raise RuntimeError(response.text[:2000])
        return response.content


def measure_answers(session: Session, bench: AnalyticsBench) -> Iterator[Row]:
    """Yield the times of an answer against SQL over the rollups, and of SQL over the facts against an answer."""
    views = sum(row[5] for row in bench.sql(BY_ROLLUP, in_seconds=True)[0])
    facts = sum(row[5] for row in bench.sql(BY_FACT, in_seconds=False)[0])
    answer = json.loads(bench.get())
    answered_views = answer["totals"]["metrics"]["views"]
    unsound = ""
    if not facts == views == answered_views:
        unsound = f"the sides say {facts}, {views} and {answered_views} views"
    sides: dict[str, Callable[[], Any]] = {
        "rollups": lambda: bench.sql(BY_ROLLUP, in_seconds=True),
        "get": bench.get,
    }
    times: dict[str, list[float]] = {"rollups": [], "get": [], "facts": []}

    def time_call(name: str, call: Callable[[], Any], *, is_counted: bool = True) -> None:
        started = time.perf_counter()
        call()
        if is_counted:
            times[name].append((time.perf_counter() - started) * 1000)

    for round_number in range(-1, session.size.rounds):
        # The sides take turns to begin; the first round, -1, warms them up.
        for name in list(sides) if round_number % 2 else list(reversed(sides)):
            time_call(name, sides[name], is_counted=round_number >= 0)
    for _ in range(session.size.fact_rounds):
        time_call("facts", lambda: bench.sql(BY_FACT, in_seconds=False))
    label = f"GET /v1/analytics of {bench.days} days"
    yield Row(
        f"{label} (floor: SQL over the rollups)", "ms", times["get"], times["rollups"],
        max_ratio=MAX_ROLLUP_RATIO, unsound=unsound, note=f"{len(answer['data']):,} rows",
    )  # fmt: skip
    rounds = min(len(times["facts"]), len(times["get"]))
    yield Row(
        f"SQL over the facts (floor: {label})", "ms", times["facts"][:rounds], times["get"][:rounds],
        min_ratio=MIN_FACT_RATIO,
    )  # fmt: skip
