"""Sums facts by day: each writer of a fact marks its day, and a task sums the day again.

A day's rollups are computed from its facts alone, so repeating that gives the same, and late or corrected facts
need nothing but their mark. The mark is written in the transaction of the fact and takes the day from a task
that is summing it, so a task that has read too few facts can't mark the day as current. As long as a day isn't
current, answers read its facts.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, Final

import structlog
from django.db import connection, transaction
from django.db.models import Value

from analytics.calendar_periods import DateBuckets
from analytics.fact_sums import (
    COLUMNS,
    Slice,
    hit_groups,
    measurement_groups,
    measurement_groups_of_rollups,
    outcome_groups,
    outcome_groups_of_rollups,
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
"""The wait after a day's first new fact, so that facts that come together are summed once."""
WAIT_OF_HITS: Final = timedelta(minutes=15)
"""The wait after a day's first new clicks and fetches, which come all day long."""
RETRY_AFTER_GIVING_UP: Final = timedelta(days=1)
"""The wait after a day couldn't be summed; answers read its facts meanwhile."""

ATTRIBUTIONS: Final = {"received": "at", "published": "published_at"}
"""The date field of a measurement by which each attribution counts."""
_DELETED_AT_ONCE: Final = 500
"""Rows of one deletion."""
_QUARTERS: Final = DateBuckets(QUARTER, (), 0, "day")


def mark(facts: Iterable[tuple[UUID, bool, datetime]], wait: timedelta = WAIT) -> None:
    """Mark the UTC days of facts (workspace id, `test`, moment) that this transaction writes."""
    # The days are locked in one order, so that two writers of the same days don't deadlock.
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
    placeholders = f"({', '.join(['%s'] * len(fields))})"
    # A day that waits already keeps its earlier time; one that a task is summing is taken from it.
    sql = f"""INSERT INTO rollup_day ({", ".join(fields)}) VALUES {", ".join([placeholders] * len(rows))}
        ON CONFLICT (workspace_id, test, day) DO UPDATE SET
            is_current = excluded.is_current, attempts = 0, lease_token = rollup_day.lease_token + 1,
            due_at = excluded.due_at,
            wake_at = CASE WHEN rollup_day.wake_at < excluded.wake_at THEN rollup_day.wake_at
                           ELSE excluded.wake_at END"""  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(sql, values)


def mark_hits(facts: Iterable[tuple[UUID, bool, datetime]]) -> None:
    """Mark days of clicks and fetches, with the longer `WAIT_OF_HITS`."""
    mark(facts, wait=WAIT_OF_HITS)


def roll_up(row: RollupDay) -> None:
    """Sum one claimed day and mark it as current; nothing is written if a fact of it came meanwhile."""
    crash_point("rollup.claimed")
    try:
        with transaction.atomic():
            _replace_rollups(row)
            crash_point("rollup.written")
            if not row.sleep_until(None, is_current=True, attempts=0, last_error=""):
                raise _LeaseLost
    except _LeaseLost:
        log.info("rollup_overtaken", day=row.day.isoformat())


def give_up(row: RollupDay) -> None:
    """Log an error, and try the day again after `RETRY_AFTER_GIVING_UP`; answers read its facts meanwhile."""
    message = "Adding up this day failed several times; the log has the reason."
    log.error("rollup_given_up", day=row.day.isoformat(), workspace=str(row.workspace_id))
    row.sleep_until(utc_now() + RETRY_AFTER_GIVING_UP, attempts=0, last_error=message)


class _LeaseLost(Exception):
    pass


def _replace_rollups(row: RollupDay) -> None:
    """Delete the day's rollups and insert them again from its facts, by quarter of an hour and by day."""
    start = datetime.combine(row.day, time(), tzinfo=UTC)
    for model in (OutcomeRollup, MeasurementRollup, HitRollup):
        model.everywhere.filter(workspace_id=row.workspace_id, test__in=[row.test], day=row.day).delete()
    columns = ["start", *COLUMNS]
    hits = with_items(_facts_of_day(HitCount, row, "start", start)).annotate(quarter=_quarter_of("start"))
    _insert_quarters(row, HitRollup, hit_groups(hits, ["quarter", *COLUMNS]), [*columns, "kind", "count"])
    _insert_days(row, HitRollup, hit_groups, ["kind", "count"])
    _insert_quarters(
        row,
        OutcomeRollup,
        outcome_groups(_facts_by_quarter(Outcome, row, "at", start), columns),
        [*columns, "known", "published_count", "failed_count"],
    )
    _insert_days(row, OutcomeRollup, outcome_groups_of_rollups, ["known", "published_count", "failed_count"])
    for attribution, date_field in ATTRIBUTIONS.items():
        _insert_quarters(
            row,
            MeasurementRollup,
            measurement_groups(_facts_by_quarter(Measurement, row, date_field, start), columns),
            [*columns, "availability", *METRICS],
            attribution=attribution,
        )
        _insert_days(
            row,
            MeasurementRollup,
            measurement_groups_of_rollups,
            ["availability", *METRICS],
            attribution=attribution,
        )


def _facts_by_quarter(model: type[Any], row: RollupDay, date_field: str, start: datetime) -> QuerySet[Any]:
    """Return the day's facts with the start of their quarter of an hour."""
    facts: QuerySet[Any] = _facts_of_day(model, row, date_field, start).annotate(
        start=_quarter_of(date_field)
    )
    return facts


def _quarter_of(date_field: str) -> Any:
    """Return an expression for the start of the field's quarter of an hour, in seconds since 1970."""
    return Slice(date_field, _QUARTERS) * Value(QUARTER)


def _facts_of_day(model: type[Any], row: RollupDay, date_field: str, start: datetime) -> QuerySet[Any]:
    end = start + timedelta(days=1)
    rows: QuerySet[Any] = model.everywhere.filter(
        workspace_id=row.workspace_id,
        test__in=[row.test],
        **{f"{date_field}__gte": start, f"{date_field}__lt": end},
    )
    return rows


def _insert_quarters(
    row: RollupDay, model: type[Any], groups: QuerySet[Any], columns: Sequence[str], **constants: str
) -> None:
    """Insert sums by quarter of an hour, from the facts to the rollups within the database."""
    _insert_from(model, groups, columns, _constants(row, unit=QUARTER, **constants))


def _insert_days(
    row: RollupDay, model: type[Any], group_rows: Any, columns: Sequence[str], **filters: str
) -> None:
    """Insert the sums of the whole day, from the quarters that were just written."""
    quarters = model.everywhere.filter(
        workspace_id=row.workspace_id, test__in=[row.test], day=row.day, unit=QUARTER, **filters
    )
    start = int(datetime.combine(row.day, time(), tzinfo=UTC).timestamp())
    constants = _constants(row, unit=DAY, start=start, **filters)
    _insert_from(model, group_rows(quarters, COLUMNS), [*COLUMNS, *columns], constants)


def _constants(row: RollupDay, **values: Any) -> dict[str, Any]:
    return {"workspace_id": row.workspace_id, "test": row.test, "day": row.day, **values}


def _insert_from(
    model: type[Any], groups: QuerySet[Any], columns: Sequence[str], constants: dict[str, Any]
) -> None:
    """Insert the groups with the constant columns, in one statement within the database."""
    fields = {field.attname: field for field in model._meta.concrete_fields}
    constant_values = [fields[name].get_db_prep_save(value, connection) for name, value in constants.items()]
    # On PostgreSQL a parameter in a SELECT has no type of its own; on SQLite a cast would change its value.
    is_typed = connection.vendor == "postgresql"
    constant_expressions = ", ".join(
        f"CAST(%s AS {fields[name].db_type(connection)})" if is_typed else "%s" for name in constants
    )
    selected, parameters = groups.query.sql_with_params()
    sql = f"""INSERT INTO {model._meta.db_table} ({", ".join([*constants, *columns])})
              SELECT {constant_expressions}, facts.* FROM ({selected}) AS facts"""  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(sql, [*constant_values, *parameters])


def forget_hits(now: datetime) -> int:
    """Delete up to `_DELETED_AT_ONCE` rollups of hits whose counts are deleted too, and return how many."""
    old = HitRollup.everywhere.filter(day__lt=(now - limits.HIT_COUNTS_KEPT).astimezone(UTC).date())
    ids = list(old.order_by("day").values_list("pk", flat=True)[:_DELETED_AT_ONCE])
    if ids:
        HitRollup.everywhere.filter(pk__in=ids).delete()
    return len(ids)


def find_current_days(workspace_id: UUID, *, test: bool, first: date, last: date) -> set[date]:
    """Return the days from `first` to `last` whose rollups hold every fact."""
    rows = RollupDay.objects.of(workspace_id).filter(
        test__in=[test], day__gte=first, day__lte=last, is_current=True
    )
    return set(rows.values_list("day", flat=True))
