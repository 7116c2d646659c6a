"""How a row becomes work: the promise (`due_at`), when it is next taken (`wake_at`), the token, `claim()` and `begin()`.

The row is the queue; a message only names a row and the token that it was claimed under. A claim takes rows by
`wake_at`, sets `wake_at` a few seconds ahead and raises the token. The task begins the row under that token, which sets
`wake_at` one lease ahead and counts the try; every later write names the token, so a task that lost its lease, or was
overtaken by a person's change, can write nothing.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import random
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar
from uuid import UUID

from django.db import connection, connections, models
from django.db.models import F

from config.core import clock, counters
from config.core.clock import utc_now
from config.core.database.plan_cache import keyed_cursor
from config.core.database.prepared_queries import Prepared
from config.core.database.relaxed_durability import MAY_BE_LOST

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from datetime import datetime, timedelta

    from django.db.models import QuerySet


class DueModel(models.Model):
    """A row that may wait for a task. `wake_at` is None where nothing waits."""

    due_at = models.DateTimeField(null=True)
    wake_at = models.DateTimeField(null=True)
    lease_token = models.BigIntegerField(default=0)
    attempts = models.PositiveIntegerField(default=0)
    """Tries that began since the last success; a crash loop ends by it."""

    everywhere: ClassVar[models.Manager[Any]]
    begins_with: ClassVar[tuple[str, ...]] = ()
    """Rows that its task reads at once, as `select_related` names them."""

    class Meta:
        abstract = True

    def under_lease(self) -> QuerySet[Any]:
        """The row itself, if the lease that this instance was claimed with still holds."""
        return type(self).everywhere.filter(pk=self.pk, lease_token=self.lease_token)

    def sleep_until(self, wake_at: datetime | None, **changes: Any) -> bool:
        """Give the row back; False where the lease is no longer ours, and then nothing was written."""
        is_ours = bool(self.under_lease().update(wake_at=wake_at, **changes))
        if not is_ours:
            counters.note_lost_lease()
        return is_ours

    def renew_lease(self, lease: timedelta) -> bool:
        """Begin the lease anew before a call that may take long; False where it isn't ours any more."""
        return self.sleep_until(database_now() + lease)


def claim_indexes(name: str, *, group: str = "workspace", of: str = "") -> list[models.Index]:
    """The two indexes that `claim()` reads: is anything due, and whose.

    A model that is claimed in groups names one, `group`; one whose rows are of several jobs names the column that tells
    them apart, `of`.
    """
    waiting = models.Q(wake_at__isnull=False)
    job = [of] if of else []
    return [
        # Read by the dispatcher each second: is there a row whose time has come?
        models.Index(fields=[*job, "wake_at"], name=f"{name}_wake", condition=waiting),
        # Read by the claim: the workspaces (or groups) with waiting rows, then each one's earliest.
        models.Index(
            fields=[*job, f"{group}_id", "wake_at"], name=f"{name}_wake_by_{group}", condition=waiting
        ),
    ]


def overtake() -> dict[str, Any]:
    """What every write of a person to a due row carries: whoever holds the lease has lost it."""
    return {"lease_token": F("lease_token") + 1, "attempts": 0}


def database_now() -> datetime:
    """The database's clock, so that leases of several machines are measured by one; or the one that is handed in."""
    if clock.frozen_moment() is None and connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT clock_timestamp()")
            now: datetime = cursor.fetchone()[0]
            return now
    return utc_now()


Row = TypeVar("Row", bound=DueModel)
Turns: TypeAlias = "Callable[[Collection[UUID]], Mapping[UUID, tuple[int, datetime]]]"
"""How much each of these workspaces had lately, and since when it waits: those with the least, and the longest, come first."""


@dataclass(frozen=True)
class ClaimedRow:
    """A row that a message may be sent for, and the token that the message must name."""

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
    turns: Turns | None = None,
) -> list[ClaimedRow]:
    """At most `limit` rows whose time has come, at most `per_workspace` of one workspace; none is due again for `lease`.

    `busy` counts what is queued and running of each workspace. The one with the least comes first, in a random order
    where several have as much, so that many busy ones can't starve a quiet one. `where` names columns and their values,
    for rows that are of several jobs. Nothing is claimed twice, however many claim at once. No try is counted yet: that
    is for `begin()`.
    """
    now = now or database_now()
    table = model._meta.db_table
    if limit < 1:
        return []
    waiting = holders_of_due_rows(table, "workspace_id", now, where)
    had = turns([as_uuid(raw) for raw in waiting]) if turns is not None and len(waiting) > 1 else {}
    shares = _shares(waiting, limit, per_workspace, busy or {}, had)
    if not shares:
        return []
    sql, parameters = _take_statement(
        table, "workspace_id", shares, now, now + lease, begins=False, where=where
    )
    with connection.cursor() as cursor:
        cursor.execute(f"{sql} RETURNING due_at, id, lease_token, workspace_id", parameters)
        taken = [
            (due_at, ClaimedRow(as_uuid(pk), token, as_uuid(holder)))
            for due_at, pk, token, holder in cursor.fetchall()
        ]
    # A promise is a moment, or text on SQLite; a row without one comes first.
    taken.sort(key=lambda row: (row[0] is not None, row[0], row[1].pk))
    return [row for _, row in taken]


def _narrowed(where: Mapping[str, str] | None) -> str:
    """As SQL, and not as parameters: the planner has to see which index holds them. Both are names of our own code."""
    return "".join(f" AND {column} = '{value}'" for column, value in (where or {}).items())


@cache
def _rows_of(model: type[Row]) -> Prepared[Row]:
    return Prepared(lambda pk: model.everywhere.select_related(*model.begins_with).filter(pk=pk))


def begin(
    model: type[Row],
    pk: UUID,
    token: int,
    *,
    lease: timedelta,
    now: datetime | None = None,
    read: Prepared[Row] | None = None,
) -> Row | None:
    """The row claimed under `token`, as `read` asks for it by its `pk`, ours for one `lease`; None: it was overtaken."""
    sql = f"""UPDATE {model._meta.db_table} SET wake_at = %s, attempts = attempts + 1
              WHERE id = %s AND lease_token = %s {MAY_BE_LOST}"""  # noqa: S608
    with keyed_cursor(connection) as cursor:
        cursor.execute(sql, [_moment((now or database_now()) + lease), _id(pk), token])
        if not cursor.rowcount:
            return None
    found = (read or _rows_of(model)).ask(pk=pk)
    row: Row | None = found[0] if found else None
    # Overtaken between the two statements: whoever did it has seen to the row.
    return row if row is not None and row.lease_token == token else None


def take(model: type[Row], column: str, holder: UUID, *, limit: int, lease: timedelta) -> list[Row]:
    """Claimed and begun at once: the earliest due rows whose `column` is `holder`."""
    now = database_now()
    sql, parameters = _take_statement(
        model._meta.db_table, column, {_id(holder): limit}, now, now + lease, begins=True
    )
    # Without a second question for what was written.
    return sorted(
        model.everywhere.raw(f"{sql} RETURNING *", parameters), key=lambda row: (row.due_at or now, row.pk)
    )


def give_back(model: type[DueModel], pk: UUID, token: int) -> None:
    """A claimed row whose message couldn't be sent is due again at once."""
    sql = f"""UPDATE {model._meta.db_table} SET wake_at = %s
              WHERE id = %s AND lease_token = %s {MAY_BE_LOST}"""  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(sql, [_moment(database_now()), _id(pk), token])


def lock_holder(table: str, holder: UUID) -> None:
    """Until the transaction ends, nobody else who asks for it takes rows of this holder."""
    # On SQLite BEGIN IMMEDIATE has the only write lock already.
    if connection.vendor != "postgresql":
        return
    key = int.from_bytes(hashlib.blake2b(f"{table}:{holder}".encode(), digest_size=8).digest(), signed=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [key])


def count_due(
    table: str, column: str, holders: Collection[Any], now: datetime, *, most: int
) -> Counter[UUID]:
    """How many rows of each holder are due, counted up to `most`."""
    # BETWEEN and the order, so that the planner takes the index of both columns.
    due = f"""SELECT 1 FROM {table} WHERE {column} BETWEEN asked.holder AND asked.holder AND wake_at <= %s
              ORDER BY {column}, wake_at LIMIT {most:d}"""  # noqa: S608
    given: Any = list(holders)
    if connection.vendor == "postgresql":
        asked = "unnest(%s::uuid[]) AS asked(holder)"
    else:
        asked, given = "(SELECT value AS holder FROM json_each(%s)) AS asked", json.dumps(given)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT asked.holder, (SELECT count(*) FROM ({due}) AS due) FROM {asked}",  # noqa: S608
            [_moment(now), given],
        )
        return Counter({as_uuid(holder): count for holder, count in cursor.fetchall()})


def names_with_work(
    tables: Mapping[str, tuple[str, Mapping[str, str]]], waits: Mapping[str, str]
) -> set[str]:
    """Of `tables`, each with what narrows its rows, the names of those with a row whose time has come, and of `waits`
    those whose statement finds a row.
    """
    # In a subquery of its own each probe keeps its order, and so its index.
    rows = [f"SELECT '{name}' FROM (SELECT 1 FROM {table} WHERE wake_at <= %s{_narrowed(where)} ORDER BY wake_at LIMIT 1) one"  # noqa: S608
            for name, (table, where) in tables.items()]  # fmt: skip
    others = [f"SELECT '{name}' FROM ({statement} LIMIT 1) one" for name, statement in waits.items()]  # noqa: S608
    if not rows and not others:
        return set()
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(rows + others), [_moment(database_now())] * len(rows))
        return {name for (name,) in cursor.fetchall()}


def holders_of_due_rows(
    table: str, column: str, now: datetime, where: Mapping[str, str] | None = None
) -> list[Any]:
    """Skips from workspace to workspace (or group to group) along the index, however many rows each has waiting."""
    only = _narrowed(where)
    if connection.vendor == "postgresql":
        # Ordered by both columns, which only the claim's own index can give: by the first alone the planner takes
        # the foreign key's index, and with it reads every row that was done long ago.
        sql = f"""
            WITH RECURSIVE waiting(holder, wake_at) AS (
                (SELECT {column}, wake_at FROM {table} WHERE wake_at IS NOT NULL{only}
                 ORDER BY {column}, wake_at LIMIT 1)
                UNION ALL
                SELECT following.* FROM waiting CROSS JOIN LATERAL (
                    SELECT t.{column}, t.wake_at FROM {table} t
                    WHERE t.wake_at IS NOT NULL{only} AND t.{column} > waiting.holder
                    ORDER BY t.{column}, t.wake_at LIMIT 1
                ) AS following
            )
            SELECT holder FROM waiting WHERE wake_at <= %s
        """  # noqa: S608
    else:
        sql = f"""
            WITH RECURSIVE waiting(holder) AS (
                SELECT * FROM (SELECT {column} FROM {table} WHERE wake_at IS NOT NULL{only}
                               ORDER BY {column} LIMIT 1) AS first
                UNION ALL
                SELECT (SELECT t.{column} FROM {table} t
                        WHERE t.wake_at IS NOT NULL{only} AND t.{column} > waiting.holder
                        ORDER BY t.{column} LIMIT 1)
                FROM waiting WHERE waiting.holder IS NOT NULL
            )
            SELECT holder FROM waiting
            WHERE holder IS NOT NULL
              AND EXISTS (SELECT 1 FROM {table} t WHERE t.{column} = waiting.holder AND t.wake_at <= %s{only})
        """  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(sql, [_moment(now)])
        return [row[0] for row in cursor.fetchall()]


def _shares(
    workspaces: list[Any],
    limit: int,
    per_workspace: int,
    busy: Mapping[UUID, int],
    had: Mapping[UUID, tuple[int, datetime]],
) -> dict[Any, int]:
    """How many rows to take of each workspace: one after another of the one that has the fewest at that point."""
    shares: Counter[Any] = Counter()
    waiting = []
    for workspace in workspaces:
        in_hand = busy.get(as_uuid(workspace), 0)
        lately, since = had.get(as_uuid(workspace), (0, None))
        first = since.timestamp() if since is not None else 0.0
        # Among those that have as much and waited as long, in a random order.
        waiting.append((lately + in_hand, first, random.random(), in_hand, workspace))  # noqa: S311
    heapq.heapify(waiting)
    while limit > 0 and waiting:
        has, first, place, in_hand, workspace = heapq.heappop(waiting)
        if in_hand >= per_workspace:
            continue
        shares[workspace] += 1
        limit -= 1
        heapq.heappush(waiting, (has + 1, first, place, in_hand + 1, workspace))
    return dict(shares)


def deal_places(
    free: Mapping[UUID, tuple[UUID, int]], *, limit: int, per_workspace: int, busy: Mapping[UUID, int]
) -> list[UUID]:
    """Which holders are served, one place each: one for each workspace in turn, of any of its holders with a free one.

    `free` says whose each holder is, and how many free places it has.
    """
    tickets: defaultdict[UUID, list[UUID]] = defaultdict(list)
    for holder, (workspace_id, count) in free.items():
        tickets[workspace_id] += [holder] * count
    dealt = []
    for workspace_id, places in tickets.items():
        random.shuffle(places)
        dealt.append(places[: max(0, per_workspace - busy.get(workspace_id, 0))])
    random.shuffle(dealt)
    rounds = max((len(places) for places in dealt), default=0)
    return [places[turn] for turn in range(rounds) for places in dealt if turn < len(places)][:limit]


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
    """The statement by which so many of the earliest rows of each holder become ours, up to what it returns of them."""
    parameters: list[Any] = [_moment(until)]
    only = _narrowed(where)
    if connection.vendor == "postgresql":
        # BETWEEN, because with "=" the planner may walk all that is due in order of time, and filter.
        picked = f"""SELECT picked.id FROM unnest(%s::uuid[], %s::int[]) AS share(holder, rows)
            CROSS JOIN LATERAL (
                SELECT t.id FROM {table} t
                WHERE t.{column} BETWEEN share.holder AND share.holder AND t.wake_at <= %s{only}
                ORDER BY t.{column}, t.wake_at LIMIT share.rows FOR UPDATE SKIP LOCKED
            ) AS picked"""  # noqa: S608
        # As an array, because for a subquery the planner expects thousands of ids and reads the whole table.
        picked = f"= ANY(ARRAY({picked}))"
        parameters += [list(shares), list(shares.values()), now]
    else:
        one = f"""SELECT id FROM (SELECT id FROM {table} WHERE {column} = %s AND wake_at <= %s{only}
                  ORDER BY wake_at LIMIT %s)"""  # noqa: S608
        picked = f"IN ({' UNION ALL '.join([one] * len(shares))})"
        for holder, count in shares.items():
            parameters += [holder, _moment(now), count]
    counted = ", attempts = attempts + 1" if begins else ""
    # One statement: on SQLite it has the only write lock; PostgreSQL skips rows that another claim holds.
    sql = f"""UPDATE {table} SET wake_at = %s, lease_token = lease_token + 1{counted}
              WHERE id {picked} {MAY_BE_LOST}"""  # noqa: S608
    return sql, parameters


def _moment(moment: datetime) -> Any:
    return connection.ops.adapt_datetimefield_value(moment)


def _id(value: UUID) -> Any:
    return value if connection.vendor == "postgresql" else value.hex


def as_uuid(value: Any) -> UUID:
    """SQLite gives text."""
    return value if isinstance(value, UUID) else UUID(value)


def release_connections() -> None:
    """Give this thread's connections back: at its end, and before a wait for another machine."""
    for each in connections.all(initialized_only=True):
        # Django's own close_old_connections() would break off the transaction that a test runs in.
        if not each.in_atomic_block:
            each.close_if_unusable_or_obsolete()
