"""What an answer of the analytics costs: `python -m benchmarks.analytics [MEASUREMENTS]`, on PostgreSQL.

So many measurements (a million where none is said) of three workspaces, each with 20 outlets, five kinds and 90 days;
eight of each publication, at growing ages. Made by SQL with the checks of foreign keys off, so that they need no items.

Compared in turn, in one run: the rows of 90 days by day, outlet and kind as `queries.answer` gives them and as
`GET /v1/analytics` sends them, by a process that has written past days before and by one that hasn't; the same sums by the best SQL over the rollups; the same groups by SQL over the
measurements and outcomes alone. Then one day is added up anew while the table holds one workspace, and again when it
holds three. The targets: at most 1.5 times the SQL over the rollups, at least 100 times quicker than the measurements,
and a day at most 1.5 times of what it cost before.
"""

from __future__ import annotations

import os
import signal
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

MEASUREMENTS: Final = 1_000_000
WORKSPACES: Final = 3
OUTLETS: Final = 20
KINDS: Final = ("video", "image", "text", "blog", "newsletter")
DAYS: Final = 90
EACH: Final = 8
ROUNDS: Final = 9
RAW_ROUNDS: Final = 3
START: Final = datetime(2026, 7, 1, tzinfo=UTC)
OF_THE_ROLLUPS: Final = 1.5
OF_THE_FACTS: Final = 100
OF_A_DAY: Final = 1.5

_PUBLICATIONS: Final = """
    SELECT md5(%(workspace)s::text || p)::uuid AS id, %(workspace)s::uuid AS workspace_id,
        (%(outlets)s::uuid[])[p %% 20 + 1] AS outlet_id, (%(kinds)s::text[])[p / 20 %% 5 + 1] AS content_type,
        %(start)s::timestamptz + make_interval(secs => %(days)s * 86400.0 * p / %(count)s) AS published_at, p
    FROM generate_series(0, %(count)s - 1) AS p
"""
OUTCOMES: Final = f"""
    INSERT INTO outcome (id, workspace_id, test, event_id, publication_id, is_published, at, outlet_id, content_type,
        engine_output)
    SELECT id, workspace_id, FALSE, gen_random_uuid(), id, TRUE, published_at, outlet_id, content_type, 'Short Post'
    FROM ({_PUBLICATIONS}) AS made
"""
MEASURED: Final = f"""
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


class Bench:
    def __init__(self, measurements: int) -> None:
        from django.test import Client  # noqa: PLC0415  settings come first

        from accounts import tokens, workspaces  # noqa: PLC0415
        from pipeline.models import Outlet  # noqa: PLC0415

        # One for all: each begins by finding every static file.
        self.client = Client()
        self.publications = measurements // (EACH * WORKSPACES)
        self.outlets: dict[UUID, list[UUID]] = {}
        self.token = ""
        for number in range(WORKSPACES):
            made = workspaces.create(f"Analytics {number}", actor="benchmark")
            workspaces.whitelist(made, "benchmark")
            workspaces.lift_limits(made, "benchmark")
            if not number:
                self.token = tokens.mint(made, name="benchmark", actor="benchmark").secret
            rows = [
                Outlet(workspace_id=made.pk, platform="mastodon", name=f"Outlet {place:02}")
                for place in range(OUTLETS)
            ]
            self.outlets[made.pk] = [row.pk for row in Outlet.everywhere.bulk_create(rows)]
        self.first = next(iter(self.outlets))

    def fill(self, workspace: UUID) -> None:
        from django.db import connection, transaction  # noqa: PLC0415

        ages = [timedelta(hours=hours) for hours in (1, 6, 12, 24, 48, 72, 168, 720)]
        given = {
            "workspace": workspace,
            "outlets": self.outlets[workspace],
            "kinds": list(KINDS),
            "start": START,
            "days": DAYS,
            "count": self.publications,
            "ages": ages,
        }
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = replica")
            cursor.execute(OUTCOMES, given)
            cursor.execute(MEASURED, given)
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE measurement")
            cursor.execute("VACUUM ANALYZE outcome")

    def add_up(self) -> int:
        """Every day that waits."""
        from django.core.management import call_command  # noqa: PLC0415
        from django.db import connection  # noqa: PLC0415

        from analytics import rollup  # noqa: PLC0415
        from analytics.models import RollupDay  # noqa: PLC0415
        from config.ground import due  # noqa: PLC0415

        call_command("mark_analytics", stdout=open(os.devnull, "w"))  # noqa: PTH123, SIM115
        soon = datetime.now(UTC) + 2 * rollup.WAIT
        count = 0
        while rows := due.claim(RollupDay, limit=50, per_workspace=50, lease=rollup.LEASE, now=soon):
            for row in rows:
                rollup.roll_up(row)
            count += len(rows)
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE measurement_rollup")
            cursor.execute("VACUUM ANALYZE outcome_rollup")
        return count

    def add_a_day_up(self) -> float:
        """The same full day of the first workspace, in seconds."""
        from analytics import rollup  # noqa: PLC0415
        from analytics.models import RollupDay  # noqa: PLC0415
        from config.ground import due  # noqa: PLC0415

        day = START + timedelta(days=60)
        took = []
        for _ in range(ROUNDS):
            rollup.mark([(self.first, False, day)])
            soon = datetime.now(UTC) + 2 * rollup.WAIT
            (row,) = due.claim(RollupDay, limit=9, per_workspace=9, lease=rollup.LEASE, now=soon)
            began = time.perf_counter()
            rollup.roll_up(row)
            took.append(time.perf_counter() - began)
        if not RollupDay.everywhere.get(workspace_id=self.first, day=day.date()).is_current:
            raise SystemExit("The day wasn't added up.")
        return statistics.median(took)

    def sql(self, statements: tuple[str, ...], *, in_seconds: bool) -> list[Any]:
        from django.db import connection  # noqa: PLC0415

        end = START + timedelta(days=DAYS)
        span = [int(START.timestamp()), int(end.timestamp())] if in_seconds else [START, end]
        found: list[Any] = []
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement, [self.first] * (statement.count("%s") - 2) + span)
                found.append(cursor.fetchall())
        return found

    def answer(self) -> Any:
        from zoneinfo import ZoneInfo  # noqa: PLC0415

        from analytics.periods import Period  # noqa: PLC0415
        from analytics.queries import Question, answer  # noqa: PLC0415

        period = Period(START, START + timedelta(days=DAYS), "day", ZoneInfo("UTC"))
        return answer(Question(workspace_id=self.first, test=False, period=period))

    def get_anew(self) -> Any:
        """By a process that has just started."""
        from analytics import kept  # noqa: PLC0415

        kept.SHELF.clear()
        return self.get()

    def get(self) -> Any:
        end = START + timedelta(days=DAYS)
        query = {"from": START.date().isoformat(), "to": end.date().isoformat()}
        response = self.client.get("/v1/analytics", query, headers={"Authorization": f"Bearer {self.token}"})
        if response.status_code != 200:
            raise SystemExit(response.content)
        return response


def run(measurements: int) -> int:
    import django  # noqa: PLC0415

    django.setup()
    from django.conf import settings  # noqa: PLC0415
    from django.core.management import call_command  # noqa: PLC0415
    from django.db import connection  # noqa: PLC0415

    settings.ALLOWED_HOSTS = ["*"]
    call_command("migrate", verbosity=0)
    with connection.cursor() as cursor:
        # What is made here and summed from the facts takes longer than any request may.
        cursor.execute("SET statement_timeout = 0")
    bench = Bench(measurements)
    began = time.perf_counter()
    bench.fill(bench.first)
    bench.add_up()
    alone = bench.add_a_day_up()
    for workspace in bench.outlets:
        if workspace != bench.first:
            bench.fill(workspace)
    days = bench.add_up()
    beside = bench.add_a_day_up()
    held = bench.publications * EACH * WORKSPACES
    print(f"One day anew: {1000 * alone:.1f} ms alone, {1000 * beside:.1f} ms beside the others")
    print(f"{held:,} measurements, {days} days added up, seeded in {time.perf_counter() - began:.0f} s")

    return judge(bench, beside / alone)


def judge(bench: Bench, a_day: float) -> int:
    """`a_day` is what one costs beside other workspaces by what it cost alone."""
    views = sum(row[5] for row in bench.sql(BY_ROLLUP, in_seconds=True)[0])
    raw = sum(row[5] for row in bench.sql(BY_FACT, in_seconds=False)[0])
    answer = bench.answer()
    if not raw == views == answer.totals.metrics["views"]:
        msg = f"The sides don't agree: {raw}, {views}, {answer.totals.metrics['views']}."
        raise SystemExit(msg)
    sides: dict[str, Callable[[], Any]] = {
        "SQL over the rollups": lambda: bench.sql(BY_ROLLUP, in_seconds=True),
        "queries.answer": bench.answer,
        "GET, nothing kept": bench.get_anew,
        "GET /v1/analytics": bench.get,
    }
    times: dict[str, list[float]] = {name: [] for name in (*sides, "SQL over the measurements")}
    for turn in range(-1, ROUNDS):
        for name in list(sides) if turn % 2 else list(reversed(sides)):
            began = time.perf_counter()
            sides[name]()
            if turn >= 0:
                times[name].append(time.perf_counter() - began)
    for _ in range(RAW_ROUNDS):
        began = time.perf_counter()
        bench.sql(BY_FACT, in_seconds=False)
        times["SQL over the measurements"].append(time.perf_counter() - began)
    took = {name: statistics.median(each) for name, each in times.items()}
    print(f"90 days by day, {len(answer.rows):,} rows; medians, in turn:")
    for name, seconds in took.items():
        low, high = min(times[name]), max(times[name])
        print(f"  {name:26} {1000 * seconds:9.1f} ms ({1000 * low:.1f}-{1000 * high:.1f})")
    ours = took["GET /v1/analytics"]
    judged = [
        ("GET by the SQL over the rollups", ours / took["SQL over the rollups"], OF_THE_ROLLUPS, False),
        (
            "the SQL over the measurements by GET",
            took["SQL over the measurements"] / ours,
            OF_THE_FACTS,
            True,
        ),
        (f"a day beside {WORKSPACES - 1} more workspaces by one alone", a_day, OF_A_DAY, False),
    ]
    anew = took["GET, nothing kept"] / took["SQL over the rollups"]
    print(f"  GET with nothing kept by the SQL over the rollups: {anew:.2f}")
    is_good = True
    for what, ratio, bound, is_least in judged:
        is_met = ratio >= bound if is_least else ratio <= bound
        is_good = is_good and is_met
        word = "at least" if is_least else "at most"
        print(f"  {what}: {ratio:.2f}, {word} {bound}: {'ok' if is_met else 'MISSED'}")
    return 0 if is_good else 1


def main() -> int:
    # The database is dropped then too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    from benchmarks.__main__ import OURS, scratch_postgres  # noqa: PLC0415
    from tools.suite import find_postgres  # noqa: PLC0415

    measurements = int(sys.argv[1].replace("_", "")) if len(sys.argv) > 1 else MEASUREMENTS
    address, reason = find_postgres()
    if not address:
        print(f"NOT RUN on PostgreSQL: {reason}.")
        return 1
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        for name in OURS:
            os.environ.pop(name, None)
        os.environ |= {"ENV_FILE": "tests/settings.env", "LOG_LEVEL": "ERROR", "DATA_DIR": folder}
        os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
        with scratch_postgres(address) as own:
            os.environ["DATABASE_URL"] = own
            try:
                return run(measurements)
            finally:
                from django.db import connections  # noqa: PLC0415

                connections.close_all()


if __name__ == "__main__":
    sys.exit(main())
