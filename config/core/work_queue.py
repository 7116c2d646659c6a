"""Claims due rows and begins their tasks.

A row has a promise (`due_at`), the time at which it is next claimed (`wake_at`), and a token.

The row is the queue; a message only names a row and the token of its claim. A claim takes rows by `wake_at`,
sets `wake_at` a few seconds ahead and raises the token. The task begins the row under that token, which sets
`wake_at` one lease ahead and counts the try. Every later write names the token, so a task that lost its lease,
or was overtaken by a person's change, can write nothing.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import random
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

from django.db import connection, connections, models
from django.db.models import F

from config.core import clock, counters
from config.core.clock import utc_now
from config.core.database import server_clock
from config.core.database.plan_cache import keyed_cursor
from config.core.database.prepared_queries import Prepared
from config.core.database.raw_sql import MAY_BE_LOST, adapt_datetime, adapt_id, as_uuid

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from datetime import datetime, timedelta
    from uuid import UUID

    from django.db.models import QuerySet


class DueModel(models.Model):
    """Base of rows that may wait for a task; `wake_at` is `None` if nothing waits."""

    due_at = models.DateTimeField(null=True)
    wake_at = models.DateTimeField(null=True)
    lease_token = models.BigIntegerField(default=0)
    attempts = models.PositiveIntegerField(default=0)
    """Tries that began since the last success; a limit on it ends a crash loop."""

    everywhere: ClassVar[models.Manager[Any]]
    begins_with: ClassVar[tuple[str, ...]] = ()
    """The related rows that a task reads together with its row; an empty tuple means none, unlike in Django."""

    class Meta:
        abstract = True

    def under_lease(self) -> QuerySet[Any]:
        """Return a query for the row; it is empty if this instance's lease was lost."""
        return type(self).everywhere.filter(pk=self.pk, lease_token=self.lease_token)

    def sleep_until(self, wake_at: datetime | None, **changes: Any) -> bool:
        """Give the row back until `wake_at` with `changes`; return False, writing nothing, if the lease was lost."""
        is_held = bool(self.under_lease().update(wake_at=wake_at, **changes))
        if not is_held:
            counters.note_lost_lease()
        return is_held

    def renew_lease(self, lease: timedelta) -> bool:
        """Renew the lease before a call that may take long; return False if it was lost."""
        return self.sleep_until(database_now() + lease)


def claim_indexes(name: str, *, group: str = "workspace", of: str = "") -> list[models.Index]:
    """Return the two indexes that tell whether any row is due, and which rows `claim()` takes.

    `group` is the relation whose rows share the claims: the workspace, or a holder. `of` is the column that
    tells jobs apart, for a model whose rows belong to several jobs.
    """
    waiting = models.Q(wake_at__isnull=False)
    job = [of] if of else []
    return [
        # Read by the dispatcher each second, to find out whether any row is due.
        models.Index(fields=[*job, "wake_at"], name=f"{name}_wake", condition=waiting),
        # Read by the claim: the workspaces (or groups) with waiting rows, then the earliest rows of each.
        models.Index(
            fields=[*job, f"{group}_id", "wake_at"], name=f"{name}_wake_by_{group}", condition=waiting
        ),
    ]


def overtake() -> dict[str, Any]:
    """Return the changes for each write of a person to a due row: they end its lease and reset its tries."""
    return {"lease_token": F("lease_token") + 1, "attempts": 0}


def database_now() -> datetime:
    """Return the database's time, by which all machines measure leases; or the time that was frozen."""
    if clock.frozen_moment() is None and connection.vendor == "postgresql":
        return server_clock.now()
    return utc_now()


Row = TypeVar("Row", bound=DueModel)
ReadShares: TypeAlias = "Callable[[Collection[UUID]], Mapping[UUID, tuple[int, datetime]]]"
"""Returns how many rows each workspace had lately, and since when it waits: first the fewest, then the longest."""


@dataclass(frozen=True)
class ClaimedRow:
    """A claimed row, for which a message is sent that has to name the token."""

    pk: UUID
    token: int
    workspace_id: UUID


def claim(
    model: type[DueModel],
    *,
    limit: int,
    per_workspace: int,
    lease: timedelta,
    now: datetime | None = None,
    busy: Mapping[UUID, int] | None = None,
    where: Mapping[str, str] | None = None,
    read_shares: ReadShares | None = None,
) -> list[ClaimedRow]:
    """Claim up to `limit` due rows, which aren't due again for `lease`, and return them in order of `due_at`.

    `busy` counts the queued and running tasks of each workspace, which with the claimed rows has at most
    `per_workspace`. The workspace with the fewest comes first, in random order among equals, so that many busy
    ones can't starve a quiet one; `read_shares` adds the rows that each had lately. `where` has columns and their
    values, for a table whose rows belong to several jobs. No row is claimed twice, however many processes claim
    at once. The try isn't counted here, but by `begin()`.
    """
    now = now or database_now()
    table = model._meta.db_table
    if limit < 1:
        return []
    waiting = find_holders_of_due_rows(table, "workspace_id", now, where)
    recent_shares: Mapping[UUID, tuple[int, datetime]] = {}
    if read_shares is not None and len(waiting) > 1:
        recent_shares = read_shares([as_uuid(raw) for raw in waiting])
    shares = _deal_shares(waiting, limit, per_workspace, busy or {}, recent_shares)
    if not shares:
        return []
    sql, parameters = _take_statement(
        table, "workspace_id", shares, now, now + lease, begins=False, where=where
    )
    with connection.cursor() as cursor:
        cursor.execute(f"{sql} RETURNING due_at, id, lease_token, workspace_id", parameters)
        claimed = [
            (due_at, ClaimedRow(as_uuid(pk), token, as_uuid(holder)))
            for due_at, pk, token, holder in cursor.fetchall()
        ]
    # `due_at` is a datetime, or text on SQLite; rows without one come first.
    claimed.sort(key=lambda row: (row[0] is not None, row[0], row[1].pk))
    return [row for _, row in claimed]


def _conditions_sql(where: Mapping[str, str] | None) -> str:
    """Return conditions with literal values, which are our code's, so that the planner can use the job's index."""
    return "".join(f" AND {column} = '{value}'" for column, value in (where or {}).items())


@cache
def _prepared_rows(model: type[Row]) -> Prepared[Row]:
    return Prepared(lambda pk: model.everywhere.select_related(*model.begins_with or (None,)).filter(pk=pk))


def begin(
    model: type[Row],
    pk: UUID,
    token: int,
    *,
    lease: timedelta,
    now: datetime | None = None,
    read: Prepared[Row] | None = None,
) -> Row | None:
    """Begin the row that was claimed under `token`: count the try and set `wake_at` one `lease` ahead.

    Returns the row, loaded by `read`, or `None` if it was overtaken or deleted.
    """
    sql = f"""UPDATE {model._meta.db_table} SET wake_at = %s, attempts = attempts + 1
              WHERE id = %s AND lease_token = %s {MAY_BE_LOST}"""  # noqa: S608
    with keyed_cursor(connection) as cursor:
        cursor.execute(sql, [adapt_datetime((now or database_now()) + lease), adapt_id(pk), token])
        if not cursor.rowcount:
            return None
    rows = (read or _prepared_rows(model)).ask(pk=pk)
    row: Row | None = rows[0] if rows else None
    # If it was overtaken between the two statements, whoever did that takes care of the row.
    return row if row is not None and row.lease_token == token else None


def take(model: type[Row], column: str, holder: UUID, *, limit: int, lease: timedelta) -> list[Row]:
    """Claim and begin up to `limit` of the earliest due rows whose `column` is `holder`, and return them."""
    now = database_now()
    sql, parameters = _take_statement(
        model._meta.db_table, column, {adapt_id(holder): limit}, now, now + lease, begins=True
    )
    # RETURNING saves a second query for the rows.
    return sorted(
        model.everywhere.raw(f"{sql} RETURNING *", parameters), key=lambda row: (row.due_at or now, row.pk)
    )


def give_back(model: type[DueModel], pk: UUID, token: int) -> None:
    """Make a claimed row due again at once; a row that was overtaken since stays as it is."""
    sql = f"""UPDATE {model._meta.db_table} SET wake_at = %s
              WHERE id = %s AND lease_token = %s {MAY_BE_LOST}"""  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(sql, [adapt_datetime(database_now()), adapt_id(pk), token])


def lock_holder(table: str, holder: UUID) -> None:
    """Lock the holder until the transaction ends, against others who call this before they take its rows."""
    # On SQLite, BEGIN IMMEDIATE holds the only write lock already.
    if connection.vendor != "postgresql":
        return
    key = int.from_bytes(hashlib.blake2b(f"{table}:{holder}".encode(), digest_size=8).digest(), signed=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [key])


def count_due(
    table: str, column: str, holders: Collection[Any], now: datetime, *, max_count: int
) -> Counter[UUID]:
    """Return how many rows of each holder are due, counted up to `max_count`."""
    # BETWEEN and the order, so that the planner takes the index of both columns.
    due = f"""SELECT 1 FROM {table} WHERE {column} BETWEEN asked.holder AND asked.holder AND wake_at <= %s
              ORDER BY {column}, wake_at LIMIT {max_count:d}"""  # noqa: S608
    ids: Any = list(holders)
    if connection.vendor == "postgresql":
        holders_sql = "unnest(%s::uuid[]) AS asked(holder)"
    else:
        holders_sql, ids = "(SELECT value AS holder FROM json_each(%s)) AS asked", json.dumps(ids)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT asked.holder, (SELECT count(*) FROM ({due}) AS due) FROM {holders_sql}",  # noqa: S608
            [adapt_datetime(now), ids],
        )
        return Counter({as_uuid(holder): count for holder, count in cursor.fetchall()})


def find_names_with_work(
    tables: Mapping[str, tuple[str, Mapping[str, str]]], waits: Mapping[str, str]
) -> set[str]:
    """Return the names of `tables` with a due row, and the names of `waits` whose statement finds a row.

    Each table comes with the column values that narrow its rows.
    """
    # Each probe is a subquery, so that it keeps its order, and with the order its index.
    rows = [f"SELECT '{name}' FROM (SELECT 1 FROM {table} WHERE wake_at <= %s{_conditions_sql(where)} ORDER BY wake_at LIMIT 1) one"  # noqa: S608
            for name, (table, where) in tables.items()]  # fmt: skip
    others = [f"SELECT '{name}' FROM ({statement} LIMIT 1) one" for name, statement in waits.items()]  # noqa: S608
    if not rows and not others:
        return set()
    with keyed_cursor(connection) as cursor:
        cursor.execute(" UNION ALL ".join(rows + others), [adapt_datetime(database_now())] * len(rows))
        return {name for (name,) in cursor.fetchall()}


def find_holders_of_due_rows(
    table: str, column: str, now: datetime, where: Mapping[str, str] | None = None
) -> list[Any]:
    """Return the holders with due rows; the cost grows with the holders that have waiting rows, not with the rows."""
    narrowing = _conditions_sql(where)
    if connection.vendor == "postgresql":
        # Ordered by both columns, which only the claim's own index can give: by the first alone the planner
        # takes the foreign key's index, and with it reads every row that was done long ago.
        sql = f"""
            WITH RECURSIVE waiting(holder, wake_at) AS (
                (SELECT {column}, wake_at FROM {table} WHERE wake_at IS NOT NULL{narrowing}
                 ORDER BY {column}, wake_at LIMIT 1)
                UNION ALL
                SELECT following.* FROM waiting CROSS JOIN LATERAL (
                    SELECT t.{column}, t.wake_at FROM {table} t
                    WHERE t.wake_at IS NOT NULL{narrowing} AND t.{column} > waiting.holder
                    ORDER BY t.{column}, t.wake_at LIMIT 1
                ) AS following
            )
            SELECT holder FROM waiting WHERE wake_at <= %s
        """  # noqa: S608
    else:
        sql = f"""
            WITH RECURSIVE waiting(holder) AS (
                SELECT * FROM (SELECT {column} FROM {table} WHERE wake_at IS NOT NULL{narrowing}
                               ORDER BY {column} LIMIT 1) AS first
                UNION ALL
                SELECT (SELECT t.{column} FROM {table} t
                        WHERE t.wake_at IS NOT NULL{narrowing} AND t.{column} > waiting.holder
                        ORDER BY t.{column} LIMIT 1)
                FROM waiting WHERE waiting.holder IS NOT NULL
            )
            SELECT holder FROM waiting
            WHERE holder IS NOT NULL
              AND EXISTS (SELECT 1 FROM {table} t WHERE t.{column} = waiting.holder AND t.wake_at <= %s{narrowing})
        """  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(sql, [adapt_datetime(now)])
        return [row[0] for row in cursor.fetchall()]


def _deal_shares(
    workspaces: list[Any],
    limit: int,
    per_workspace: int,
    busy: Mapping[UUID, int],
    recent_shares: Mapping[UUID, tuple[int, datetime]],
) -> dict[Any, int]:
    """Return how many rows to take of each workspace, dealt one by one to the one with the fewest so far."""
    shares: Counter[Any] = Counter()
    waiting = []
    for workspace in workspaces:
        active = busy.get(as_uuid(workspace), 0)
        recent, since = recent_shares.get(as_uuid(workspace), (0, None))
        waits_since = since.timestamp() if since is not None else 0.0
        # Workspaces that have as much and have waited as long come in random order.
        waiting.append((recent + active, waits_since, random.random(), active, workspace))  # noqa: S311
    heapq.heapify(waiting)
    while limit > 0 and waiting:
        total, waits_since, tiebreaker, active, workspace = heapq.heappop(waiting)
        if active >= per_workspace:
            continue
        shares[workspace] += 1
        limit -= 1
        heapq.heappush(waiting, (total + 1, waits_since, tiebreaker, active + 1, workspace))
    return dict(shares)


def deal_slots(
    free: Mapping[UUID, tuple[UUID, int]], *, limit: int, per_workspace: int, busy: Mapping[UUID, int]
) -> list[UUID]:
    """Return the holders that get a slot, one entry for each slot, at most `limit`.

    The workspaces alternate, and a workspace's slots go to its holders at random. `free` has the workspace of
    each holder, and how many free slots the holder has; `busy` has the tasks of each workspace, which count
    against `per_workspace`.
    """
    tickets: defaultdict[UUID, list[UUID]] = defaultdict(list)
    for holder, (workspace_id, count) in free.items():
        tickets[workspace_id] += [holder] * count
    shares = []
    for workspace_id, holders in tickets.items():
        random.shuffle(holders)
        shares.append(holders[: max(0, per_workspace - busy.get(workspace_id, 0))])
    random.shuffle(shares)
    rounds = max((len(holders) for holders in shares), default=0)
    return [holders[index] for index in range(rounds) for holders in shares if index < len(holders)][:limit]


def _take_statement(
    table: str,
    column: str,
    shares: Mapping[Any, int],
    now: datetime,
    until: datetime,
    *,
    begins: bool,
    where: Mapping[str, str] | None = None,
) -> tuple[str, list[Any]]:
    """Return the statement, without RETURNING, and the parameters that claim each holder's share of rows."""
    parameters: list[Any] = [adapt_datetime(until)]
    narrowing = _conditions_sql(where)
    if connection.vendor == "postgresql":
        # BETWEEN, because with "=" the planner may walk all that is due in order of time, and filter.
        picked = f"""SELECT picked.id FROM unnest(%s::uuid[], %s::int[]) AS share(holder, rows)
            CROSS JOIN LATERAL (
                SELECT t.id FROM {table} t
                WHERE t.{column} BETWEEN share.holder AND share.holder AND t.wake_at <= %s{narrowing}
                ORDER BY t.{column}, t.wake_at LIMIT share.rows FOR UPDATE SKIP LOCKED
            ) AS picked"""  # noqa: S608
        # As an array, because for a subquery the planner expects thousands of ids and reads the whole table.
        picked = f"= ANY(ARRAY({picked}))"
        parameters += [list(shares), list(shares.values()), now]
    else:
        select_sql = f"""SELECT id FROM (SELECT id FROM {table} WHERE {column} = %s AND wake_at <= %s{narrowing}
                  ORDER BY wake_at LIMIT %s)"""  # noqa: S608
        picked = f"IN ({' UNION ALL '.join([select_sql] * len(shares))})"
        for holder, count in shares.items():
            parameters += [holder, adapt_datetime(now), count]
    count_try = ", attempts = attempts + 1" if begins else ""
    # One statement: on SQLite it has the only write lock; PostgreSQL skips rows that another claim holds.
    sql = f"""UPDATE {table} SET wake_at = %s, lease_token = lease_token + 1{count_try}
              WHERE id {picked} {MAY_BE_LOST}"""  # noqa: S608
    return sql, parameters


def release_connections() -> None:
    """Give this thread's connections back, at its end or before it waits for another machine."""
    for database in connections.all(initialized_only=True):
        # Django's close_old_connections() would also break off the transaction that a test runs in.
        if not database.in_atomic_block:
            database.close_if_unusable_or_obsolete()
