"""Days of facts added up: who writes a fact marks its day, and a task adds the day up anew.

A day's rollups are made from its facts alone, so doing it again gives the same, and late or restated facts need nothing
but their mark. The mark is written in the transaction of the fact and takes the day away from a task that is at it:
whatever that hand has read, it can't call the day current. Until it is, answers ask the facts of that day themselves.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, Final

import structlog
from django.db import connection, transaction
from django.db.models import Value

from analytics.fact_sums import (
    COLUMNS,
    Slice,
    hit_groups,
    measurement_groups,
    outcome_groups,
    rolled_measurement_groups,
    rolled_outcome_groups,
    with_items,
)
from analytics.models import (
    DAY,
    QUARTER,
    HitRollup,
    Measurement,
    MeasurementRollup,
    Outcome,
    OutcomeRollup,
    RollupDay,
)
from analytics.periods import DateBuckets
from config.core.clock import utc_now
from config.core.crash_points import crash_point
from pipeline import limits
from pipeline.models import HitCount
from pipeline.platforms.base import METRICS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID

    from django.db.models import QuerySet

log = structlog.get_logger(__name__)

LEASE: Final = timedelta(minutes=5)
MAX_TRIES: Final = 5
WAIT: Final = timedelta(seconds=30)
"""From a day's first new fact until it is added up, so that facts that come together are added up once."""
WAIT_OF_HITS: Final = timedelta(minutes=15)
GIVEN_UP_FOR: Final = timedelta(days=1)
"""A day that couldn't be added up is answered from its facts meanwhile."""

ATTRIBUTIONS: Final = {"received": "at", "published": "published_at"}
"""Which moment of a measurement each is by."""
_FORGOTTEN_AT_ONCE: Final = 500
_QUARTERS: Final = DateBuckets(QUARTER, (), 0, "day")


def mark(facts: Iterable[tuple[UUID, bool, datetime]], wait: timedelta = WAIT) -> None:
    """Facts of a workspace (live or test) at these moments were written in this transaction."""
    # In one order, so that two writers of the same days don't wait for each other in a circle.
    days = sorted({(workspace, test, at.astimezone(UTC).date()) for workspace, test, at in facts})
    if not days:
        return
    wake_at = utc_now() + wait
    fields = {str(field.column): field for field in RollupDay._meta.concrete_fields}
    rows = [
        RollupDay(workspace_id=workspace, test=test, day=day, wake_at=wake_at, due_at=wake_at)
        for workspace, test, day in days
    ]
    values = [
        field.get_db_prep_save(getattr(row, field.attname), connection)
        for row in rows
        for field in fields.values()
    ]
    one = f"({', '.join(['%s'] * len(fields))})"
    # A day that waits already keeps its earlier time; one that a task is at is taken from it.
    sql = f"""INSERT INTO rollup_day ({", ".join(fields)}) VALUES {", ".join([one] * len(rows))}
        ON CONFLICT (workspace_id, test, day) DO UPDATE SET
            is_current = excluded.is_current, attempts = 0, lease_token = rollup_day.lease_token + 1,
            due_at = excluded.due_at,
            wake_at = CASE WHEN rollup_day.wake_at < excluded.wake_at THEN rollup_day.wake_at
                           ELSE excluded.wake_at END"""  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(sql, values)


def mark_hits(facts: Iterable[tuple[UUID, bool, datetime]]) -> None:
    """Clicks and fetches come all day long; their day is added up a few times an hour."""
    mark(facts, wait=WAIT_OF_HITS)


def roll_up(row: RollupDay) -> None:
    """Add one claimed day up; writes nothing where a fact of it came meanwhile."""
    crash_point("rollup.claimed")
    try:
        with transaction.atomic():
            _replace(row)
            crash_point("rollup.written")
            if not row.sleep_until(None, is_current=True, attempts=0, last_error=""):
                raise _Overtaken
    except _Overtaken:
        log.info("rollup_overtaken", day=row.day.isoformat())


def give_up(row: RollupDay) -> None:
    """It stays to be answered from its facts, and is tried again after a day."""
    message = "Adding this day up failed again and again; the log has the reason."
    log.error("rollup_given_up", day=row.day.isoformat(), workspace=str(row.workspace_id))
    row.sleep_until(utc_now() + GIVEN_UP_FOR, attempts=0, last_error=message)


class _Overtaken(Exception):
    pass


def _replace(row: RollupDay) -> None:
    start = datetime.combine(row.day, time(), tzinfo=UTC)
    for model in (OutcomeRollup, MeasurementRollup, HitRollup):
        model.everywhere.filter(workspace_id=row.workspace_id, test__in=[row.test], day=row.day).delete()
    columns = ["start", *COLUMNS]
    hits = with_items(_of_day(HitCount, row, "start", start)).annotate(quarter=_quarter_of("start"))
    _insert(row, HitRollup, hit_groups(hits, ["quarter", *COLUMNS]), [*columns, "kind", "count"])
    _insert_days(row, HitRollup, hit_groups, ["kind", "count"])
    _insert(
        row,
        OutcomeRollup,
        outcome_groups(_quartered(Outcome, row, "at", start), columns),
        [*columns, "known", "published_count", "failed_count"],
    )
    _insert_days(row, OutcomeRollup, rolled_outcome_groups, ["known", "published_count", "failed_count"])
    for attribution, moment in ATTRIBUTIONS.items():
        _insert(
            row,
            MeasurementRollup,
            measurement_groups(_quartered(Measurement, row, moment, start), columns),
            [*columns, "availability", *METRICS],
            attribution=attribution,
        )
        _insert_days(
            row,
            MeasurementRollup,
            rolled_measurement_groups,
            ["availability", *METRICS],
            attribution=attribution,
        )


def _quartered(model: type[Any], row: RollupDay, moment: str, start: datetime) -> QuerySet[Any]:
    found: QuerySet[Any] = _of_day(model, row, moment, start).annotate(start=_quarter_of(moment))
    return found


def _quarter_of(moment: str) -> Any:
    return Slice(moment, _QUARTERS) * Value(QUARTER)


def _of_day(model: type[Any], row: RollupDay, moment: str, start: datetime) -> QuerySet[Any]:
    end = start + timedelta(days=1)
    rows: QuerySet[Any] = model.everywhere.filter(
        workspace_id=row.workspace_id,
        test__in=[row.test],
        **{f"{moment}__gte": start, f"{moment}__lt": end},
    )
    return rows


def _insert(
    row: RollupDay, model: type[Any], groups: QuerySet[Any], columns: Sequence[str], **same: str
) -> None:
    """Groups of quarters of an hour, from the facts to the rollups within the database."""
    _insert_from(model, groups, columns, _constants(row, unit=QUARTER, **same))


def _insert_days(row: RollupDay, model: type[Any], grouped: Any, columns: Sequence[str], **same: str) -> None:
    """The whole day, from the quarters that were just written."""
    quarters = model.everywhere.filter(
        workspace_id=row.workspace_id, test__in=[row.test], day=row.day, unit=QUARTER, **same
    )
    start = int(datetime.combine(row.day, time(), tzinfo=UTC).timestamp())
    constants = _constants(row, unit=DAY, start=start, **same)
    _insert_from(model, grouped(quarters, COLUMNS), [*COLUMNS, *columns], constants)


def _constants(row: RollupDay, **given: Any) -> dict[str, Any]:
    return {"workspace_id": row.workspace_id, "test": row.test, "day": row.day, **given}


def _insert_from(
    model: type[Any], groups: QuerySet[Any], columns: Sequence[str], constants: dict[str, Any]
) -> None:
    fields = {field.attname: field for field in model._meta.concrete_fields}
    given = [fields[name].get_db_prep_save(value, connection) for name, value in constants.items()]
    # A parameter in a SELECT has no type of its own on PostgreSQL; on SQLite a cast would change its value.
    is_typed = connection.vendor == "postgresql"
    typed = ", ".join(
        f"CAST(%s AS {fields[name].db_type(connection)})" if is_typed else "%s" for name in constants
    )
    selected, parameters = groups.query.sql_with_params()
    sql = f"""INSERT INTO {model._meta.db_table} ({", ".join([*constants, *columns])})
              SELECT {typed}, facts.* FROM ({selected}) AS facts"""  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(sql, [*given, *parameters])


def forget_hits(now: datetime) -> int:
    """Sums of clicks and fetches whose counts are forgotten, some at a time."""
    old = HitRollup.everywhere.filter(day__lt=(now - limits.HIT_COUNTS_KEPT).astimezone(UTC).date())
    some = list(old.order_by("day").values_list("pk", flat=True)[:_FORGOTTEN_AT_ONCE])
    if some:
        HitRollup.everywhere.filter(pk__in=some).delete()
    return len(some)


def current_days(workspace_id: UUID, *, test: bool, first: date, last: date) -> set[date]:
    """Return those of the days between the two, both included, whose rollups hold every fact."""
    rows = RollupDay.objects.of(workspace_id).filter(
        test__in=[test], day__gte=first, day__lte=last, is_current=True
    )
    return set(rows.values_list("day", flat=True))
