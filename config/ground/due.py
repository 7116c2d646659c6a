"""How a row becomes work: the promise (`due_at`), the next look (`wake_at`), the lease, `claim()`.

The row is the queue; a message only says that somebody should look. A claim takes rows by `wake_at`, sets `wake_at`
one lease ahead and raises the token; every later write names the token, so a hand that lost its lease, or was
overtaken by a person's change, can write nothing.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypeVar
from uuid import UUID

from django.db import connection, models, transaction
from django.db.models import F

from config.ground import clock, tallies
from config.ground.clock import utc_now
from config.ground.prepared import Prepared

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from datetime import datetime, timedelta

    from django.db.models import QuerySet


class DueModel(models.Model):
    """A row that may wait for a hand. `wake_at` is None where nothing waits."""

    due_at = models.DateTimeField(null=True)
    wake_at = models.DateTimeField(null=True)
    lease_token = models.BigIntegerField(default=0)
    attempts = models.PositiveIntegerField(default=0)
    """Claims since the last success; a crash loop ends by it."""

    everywhere: ClassVar[models.Manager[Any]]

    class Meta:
        abstract = True

    def under_lease(self) -> QuerySet[Any]:
        """The row itself, if the lease that this instance was claimed with still holds."""
        return type(self).everywhere.filter(pk=self.pk, lease_token=self.lease_token)

    def sleep_until(self, wake_at: datetime | None, **changes: Any) -> bool:
        """Give the row back; False where the lease is no longer ours, and then nothing was written."""
        is_ours = bool(self.under_lease().update(wake_at=wake_at, **changes))
        if not is_ours:
            tallies.note_lost_lease()
        return is_ours

    def renew_lease(self, lease: timedelta) -> bool:
        """Begin the lease anew before a call that may take long; False where it isn't ours any more."""
        return self.sleep_until(database_now() + lease)


def claim_indexes(name: str, *, group: str = "workspace") -> list[models.Index]:
    """The two indexes that `claim()` reads: is anything due, and whose. A model that is claimed in groups names one."""
    waiting = models.Q(wake_at__isnull=False)
    return [
        # Read by every tick: is there a row whose time has come?
        models.Index(fields=["wake_at"], name=f"{name}_wake", condition=waiting),
        # Read by the claim: the workspaces (or groups) with waiting rows, then each one's earliest.
        models.Index(fields=[f"{group}_id", "wake_at"], name=f"{name}_wake_by_{group}", condition=waiting),
    ]


def overtake() -> dict[str, Any]:
    """What every write of a person to a due row carries: whoever holds the lease has lost it."""
    return {"lease_token": F("lease_token") + 1, "attempts": 0}


def database_now() -> datetime:
    """The database's clock, so that leases of several machines are measured by one; or the one that is handed in."""
    if clock.handed_in() is None and connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT clock_timestamp()")
            now: datetime = cursor.fetchone()[0]
            return now
    return utc_now()


Row = TypeVar("Row", bound=DueModel)

CLAIM_TRIES: Final = 3
"""How often a claim in groups picks again when another process took the last free slots of the groups it picked."""


@dataclass(frozen=True)
class Slots:
    """Of one group: whose it is, and how many of its rows may be in hand at once, in all processes together."""

    workspace_id: UUID
    most: int


class Pace(Protocol):
    """How many rows of each group may be claimed within a second; asked last, and told, under the groups' lock."""

    def left(self, groups: Collection[UUID]) -> Mapping[UUID, int]:
        """How many more of each may be claimed now; a group that it leaves out has no such limit."""

    def used(self, taken: Mapping[UUID, int]) -> None:
        """So many of each were claimed just now."""


@dataclass(frozen=True)
class Group:
    """What rows are counted by, beside the workspace: `column` names a UUID whose rows all have one workspace.

    `slots` answers for many groups at once; a group that it leaves out, or gives 0, is passed by. A row is in hand
    while its `attempts` is above 0 and its lease runs, so the work must write `attempts=0` when it gives a row back.
    With `pace` a group is also passed by while it has had as many claims as it may.
    """

    column: str
    slots: Callable[[Collection[UUID]], Mapping[UUID, Slots]]
    pace: Pace | None = None


def claim(
    model: type[Row],
    *,
    limit: int,
    per_workspace: int,
    lease: timedelta,
    now: datetime | None = None,
    busy: Mapping[UUID, int] | None = None,
    group: Group | None = None,
) -> list[Row]:
    """At most `limit` rows whose time has come, at most `per_workspace` of one workspace, ours for one `lease`.

    `busy` counts the rows of each workspace that this process already has in hand. Workspaces are served in a
    random order, so that many busy ones can't starve a quiet one. Rows come with the token that they were claimed
    under; nothing is claimed twice, however many hands claim at once. With `group`, a group whose slots are all in
    use is passed by too, whichever process uses them.
    """
    now = now or database_now()
    table = model._meta.db_table
    if limit < 1 or not _is_anything_due(table, now):
        return []
    ids: Sequence[UUID]
    if group is None:
        shares = _shares(_holders_of_due_rows(table, "workspace_id", now), limit, per_workspace, busy or {})
        ids = list(_take(table, "workspace_id", shares, now, now + lease)) if shares else []
    else:
        ids = _take_in_groups(
            table, group, limit=limit, per_workspace=per_workspace, now=now, lease=lease, busy=busy or {}
        )
    if not ids:
        return []
    rows: list[Row] = _rows_of(model).ask(pk__in=list(ids))
    rows.sort(key=lambda row: (row.due_at or now, row.pk))
    return rows


@cache
def _rows_of(model: type[DueModel]) -> Prepared[Any]:
    return Prepared(lambda pk__in: model.everywhere.filter(pk__in=pk__in))


def _is_anything_due(table: str, now: datetime) -> bool:
    with connection.cursor() as cursor:
        # The order makes PostgreSQL read the index. Without it the planner hopes to meet a due row soon in the
        # table itself, where all those that were done long ago come first.
        cursor.execute(
            f"SELECT 1 FROM {table} WHERE wake_at <= %s ORDER BY wake_at LIMIT 1",  # noqa: S608
            [_moment(now)],
        )
        return cursor.fetchone() is not None


def names_with_work(tables: Mapping[str, str], waits: Mapping[str, str]) -> set[str]:
    """Of `tables` the names of those with a row whose time has come, of `waits` those whose statement finds a row."""
    # In a subquery of its own each probe keeps its order, and so its index.
    rows = [f"SELECT '{name}' FROM (SELECT 1 FROM {table} WHERE wake_at <= %s ORDER BY wake_at LIMIT 1) one"  # noqa: S608
            for name, table in tables.items()]  # fmt: skip
    others = [f"SELECT '{name}' FROM ({statement} LIMIT 1) one" for name, statement in waits.items()]  # noqa: S608
    if not rows and not others:
        return set()
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(rows + others), [_moment(database_now())] * len(rows))
        return {name for (name,) in cursor.fetchall()}


def _holders_of_due_rows(table: str, column: str, now: datetime) -> list[Any]:
    """Skips from workspace to workspace (or group to group) along the index, however many rows each has waiting."""
    if connection.vendor == "postgresql":
        # Ordered by both columns, which only the claim's own index can give: by the first alone the planner takes
        # the foreign key's index, and with it reads every row that was done long ago.
        sql = f"""
            WITH RECURSIVE waiting(holder, wake_at) AS (
                (SELECT {column}, wake_at FROM {table} WHERE wake_at IS NOT NULL
                 ORDER BY {column}, wake_at LIMIT 1)
                UNION ALL
                SELECT following.* FROM waiting CROSS JOIN LATERAL (
                    SELECT t.{column}, t.wake_at FROM {table} t
                    WHERE t.wake_at IS NOT NULL AND t.{column} > waiting.holder
                    ORDER BY t.{column}, t.wake_at LIMIT 1
                ) AS following
            )
            SELECT holder FROM waiting WHERE wake_at <= %s
        """  # noqa: S608
    else:
        sql = f"""
            WITH RECURSIVE waiting(holder) AS (
                SELECT * FROM (SELECT {column} FROM {table} WHERE wake_at IS NOT NULL
                               ORDER BY {column} LIMIT 1) AS first
                UNION ALL
                SELECT (SELECT t.{column} FROM {table} t
                        WHERE t.wake_at IS NOT NULL AND t.{column} > waiting.holder
                        ORDER BY t.{column} LIMIT 1)
                FROM waiting WHERE waiting.holder IS NOT NULL
            )
            SELECT holder FROM waiting
            WHERE holder IS NOT NULL
              AND EXISTS (SELECT 1 FROM {table} t WHERE t.{column} = waiting.holder AND t.wake_at <= %s)
        """  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(sql, [_moment(now)])
        return [row[0] for row in cursor.fetchall()]


def _shares(
    workspaces: list[Any], limit: int, per_workspace: int, busy: Mapping[UUID, int]
) -> dict[Any, int]:
    """How many rows to take of each workspace: round after round, one each, in a random order."""
    in_hand = {_key(workspace): count for workspace, count in busy.items()}
    left = {
        workspace: per_workspace - in_hand.get(_key(workspace), 0)
        for workspace in random.sample(workspaces, len(workspaces))
    }
    shares: Counter[Any] = Counter()
    while limit > 0:
        willing = [workspace for workspace, count in left.items() if count > shares[workspace]]
        if not willing:
            break
        for workspace in willing[:limit]:
            shares[workspace] += 1
        limit -= len(willing[:limit])
    return dict(shares)


def _take_in_groups(
    table: str,
    group: Group,
    *,
    limit: int,
    per_workspace: int,
    now: datetime,
    lease: timedelta,
    busy: Mapping[UUID, int],
) -> Sequence[UUID]:
    waiting = {_as_uuid(raw): raw for raw in _holders_of_due_rows(table, group.column, now)}
    slots = {holder: given for holder, given in group.slots(waiting).items() if given.most > 0}
    for _ in range(CLAIM_TRIES if slots else 0):
        in_hand = _in_hand(table, group.column, now, lease)
        wanted = _deal(_at_pace(group, slots), in_hand, limit, per_workspace, busy)
        if not wanted:
            break
        with transaction.atomic():
            _lock_groups(table, wanted)
            # Counted again under the lock: another process may have claimed since the first count.
            in_hand = _in_hand(table, group.column, now, lease)
            left = group.pace.left(wanted) if group.pace else {}
            free = {
                holder: min(count, slots[holder].most - in_hand[holder], left.get(holder, count))
                for holder, count in wanted.items()
            }
            shares = {waiting[holder]: count for holder, count in free.items() if count > 0}
            taken = _take(table, group.column, shares, now, now + lease) if shares else {}
            if taken and group.pace:
                group.pace.used(Counter(taken.values()))
        if taken:
            return list(taken)
    return []


def _at_pace(group: Group, slots: Mapping[UUID, Slots]) -> dict[UUID, Slots]:
    """Without the groups that have had their turns; so that they don't cost a lock, nor take another group's place."""
    left = group.pace.left(slots) if group.pace else {}
    return {holder: given for holder, given in slots.items() if left.get(holder, 1) > 0}


def _in_hand(table: str, column: str, now: datetime, lease: timedelta) -> Counter[UUID]:
    """How many rows of each group are claimed and not given back yet."""
    # The upper end keeps the count off the rows that wait for a distant retry. It is two leases away, because
    # other processes may have claimed later than our `now`.
    sql = f"""SELECT {column}, count(*) FROM {table}
              WHERE wake_at > %s AND wake_at <= %s AND attempts > 0 GROUP BY {column}"""  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(sql, [_moment(now), _moment(now + 2 * lease)])
        return Counter({_as_uuid(holder): count for holder, count in cursor.fetchall()})


def _deal(
    slots: Mapping[UUID, Slots],
    in_hand: Mapping[UUID, int],
    limit: int,
    per_workspace: int,
    busy: Mapping[UUID, int],
) -> Counter[UUID]:
    """How many rows to take of each group: one for each workspace in turn, of any of its groups with a free slot."""
    tickets: defaultdict[UUID, list[UUID]] = defaultdict(list)
    for holder, given in slots.items():
        tickets[given.workspace_id] += [holder] * (given.most - in_hand.get(holder, 0))
    hands = []
    for workspace_id, held in tickets.items():
        random.shuffle(held)
        hands.append(held[: max(0, per_workspace - busy.get(workspace_id, 0))])
    random.shuffle(hands)
    rounds = max((len(held) for held in hands), default=0)
    in_turn = [held[turn] for turn in range(rounds) for held in hands if turn < len(held)]
    return Counter(in_turn[:limit])


def _lock_groups(table: str, groups: Collection[UUID]) -> None:
    """Until the transaction ends, no other claim counts or takes rows of these groups."""
    # On SQLite BEGIN IMMEDIATE has the only write lock already.
    if connection.vendor != "postgresql":
        return
    keys = [
        int.from_bytes(hashlib.blake2b(f"{table}:{holder}".encode(), digest_size=8).digest(), signed=True)
        for holder in groups
    ]
    with connection.cursor() as cursor:
        # One order for everybody, or two claims could wait for each other; unnest() keeps it.
        cursor.execute("SELECT pg_advisory_xact_lock(key) FROM unnest(%s::bigint[]) AS key", [sorted(keys)])


def _take(
    table: str, column: str, shares: Mapping[Any, int], now: datetime, until: datetime
) -> dict[UUID, UUID]:
    """The rows that are ours now, each with whose it is."""
    parameters: list[Any] = [_moment(until)]
    if connection.vendor == "postgresql":
        # BETWEEN, because with "=" the planner may walk all that is due in order of time, and filter.
        picked = f"""SELECT picked.id FROM unnest(%s::uuid[], %s::int[]) AS share(holder, rows)
            CROSS JOIN LATERAL (
                SELECT t.id FROM {table} t WHERE t.{column} BETWEEN share.holder AND share.holder AND t.wake_at <= %s
                ORDER BY t.{column}, t.wake_at LIMIT share.rows FOR UPDATE SKIP LOCKED
            ) AS picked"""  # noqa: S608
        # As an array, because for a subquery the planner expects thousands of ids and reads the whole table.
        picked = f"= ANY(ARRAY({picked}))"
        parameters += [list(shares), list(shares.values()), now]
    else:
        one = f"""SELECT id FROM (SELECT id FROM {table} WHERE {column} = %s AND wake_at <= %s
                  ORDER BY wake_at LIMIT %s)"""  # noqa: S608
        picked = f"IN ({' UNION ALL '.join([one] * len(shares))})"
        for holder, count in shares.items():
            parameters += [holder, _moment(now), count]
    sql = f"""UPDATE {table} SET wake_at = %s, lease_token = lease_token + 1, attempts = attempts + 1
              WHERE id {picked} RETURNING id, {column}"""  # noqa: S608
    # Under BEGIN IMMEDIATE on SQLite the statement has the only write lock; PostgreSQL skips rows that another
    # claim holds.
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return {_as_uuid(pk): _as_uuid(holder) for pk, holder in cursor.fetchall()}


def _moment(moment: datetime) -> Any:
    return connection.ops.adapt_datetimefield_value(moment)


def _key(workspace: Any) -> str:
    return str(workspace).replace("-", "")


def _as_uuid(value: Any) -> UUID:
    """SQLite gives text."""
    return value if isinstance(value, UUID) else UUID(value)
