"""Builds queries that sum outcomes, measurements and hits by group, from their facts or from rollups.

A group from either has the same columns, so that days with and without rollups add up to one answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db.models import (
    BigIntegerField,
    Case,
    Count,
    F,
    Func,
    IntegerField,
    Max,
    OuterRef,
    Q,
    Subquery,
    Sum,
    Value,
    When,
)
from django.db.models.functions import Coalesce

from analytics.models import Measurement
from pipeline.platforms.base import METRICS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models import QuerySet
    from django.db.models.sql.compiler import SQLCompiler

    from analytics.calendar_periods import Buckets

COLUMNS: Final = ("outlet_id", "content_type", "source_id", "engine_output", "persona_id")
"""The dimensions of facts, without their time."""


class Slice(Func):
    """Computes the number of the slice of time that a moment falls into, as `Buckets` defines it."""

    output_field = BigIntegerField()
    arity = 1

    def __init__(self, moment: str, buckets: Buckets) -> None:
        super().__init__(moment)
        self.buckets = buckets

    def as_sqlite(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any
    ) -> tuple[str, Any]:
        # Percent signs are doubled for the template, and again for the parameters.
        seconds = "CAST(strftime('%%%%s', %(expressions)s) AS INTEGER)"
        template = f"(({seconds} + {self._offset(seconds)}) / {self.buckets.step})"
        return self.as_sql(compiler, connection, template=template, **context)

    def as_postgresql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any
    ) -> tuple[str, Any]:
        seconds = "EXTRACT(EPOCH FROM %(expressions)s)"
        template = f"FLOOR(({seconds} + {self._offset(seconds)}) / {self.buckets.step})::bigint"
        return self.as_sql(compiler, connection, template=template, **context)

    def _offset(self, seconds: str) -> str:
        """Return the SQL of the offset to add at that time."""
        if not self.buckets.offsets:
            return str(self.buckets.last_offset)
        cases = " ".join(f"WHEN {seconds} < {until} THEN {offset}" for until, offset in self.buckets.offsets)
        return f"CASE {cases} ELSE {self.buckets.last_offset} END"


class SliceOfSeconds(Slice):
    """Computes the same for a column of seconds since 1970, which are whole and not negative."""

    def as_sqlite(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any
    ) -> tuple[str, Any]:
        seconds = "%(expressions)s"
        template = f"(({seconds} + {self._offset(seconds)}) / {self.buckets.step})"
        return self.as_sql(compiler, connection, template=template, **context)

    as_postgresql = as_sqlite


def outcome_groups(rows: QuerySet[Any], columns: Sequence[str]) -> QuerySet[Any]:
    """Count outcomes by `columns`, which are annotated already, and by what is known of each publication.

    The column `known` is 1 if any number of the publication is known, 0 if its platform gave none, or `None` if
    the publication wasn't measured.
    """
    has_any_metric = Q()
    for metric in METRICS:
        has_any_metric |= Q(**{f"{metric}__isnull": False})
    # Filtered by the publication only: with the workspace too, SQLite reads all of the workspace's
    # measurements for each outcome instead of the publication's few.
    known_by_publication = (
        Measurement.everywhere.filter(publication_id=OuterRef("publication_id"))
        .order_by()
        .values("publication_id")
        .annotate(known=Max(Case(When(has_any_metric, then=1), default=0, output_field=IntegerField())))
        .values("known")
    )
    groups: QuerySet[Any] = (
        rows.annotate(known=Subquery(known_by_publication, output_field=IntegerField()))
        .values(*columns, "known")
        .annotate(
            published=Count("pk", filter=Q(is_published=True)),
            failed=Count("pk", filter=Q(is_published=False)),
        )
        .order_by()
    )
    return groups


def measurement_groups(
    rows: QuerySet[Any], columns: Sequence[str], *, reasons: str = "availability"
) -> QuerySet[Any]:
    """Sum the increases since the measurement before; those of a publication add up to its newest known value.

    `reasons` is the column with the reasons for missing metrics, by which the groups are split too.
    """
    groups: QuerySet[Any] = (
        # A platform has few patterns of missing metrics, so grouping by them adds few rows.
        rows.values(*columns, reasons)
        .annotate(**{f"sum_{metric}": Sum(f"{metric}_delta") for metric in METRICS})
        .order_by()
    )
    return groups


def with_items(hits: QuerySet[Any]) -> QuerySet[Any]:
    """Annotate counts of hits with the dimensions of their items; those of feed fetches are empty."""
    annotated: QuerySet[Any] = hits.annotate(
        content_type=Coalesce(F("publication__item__bucket"), Value("")),
        source_id=F("publication__item__source_id"),
        engine_output=Coalesce(F("publication__item__engine_output"), Value("")),
        persona_id=F("publication__item__persona_id"),
    )
    return annotated


def hit_groups(rows: QuerySet[Any], columns: Sequence[str]) -> QuerySet[Any]:
    """Sum clicks and feed fetches by `columns` and kind, from counts or from rollups."""
    groups: QuerySet[Any] = rows.values(*columns, "kind").annotate(total=Sum("count")).order_by()
    return groups


def outcome_groups_of_rollups(rows: QuerySet[Any], columns: Sequence[str]) -> QuerySet[Any]:
    """Return what `outcome_groups` returns, from rollups."""
    sums = {"published": Sum("published_count"), "failed": Sum("failed_count")}
    groups: QuerySet[Any] = rows.values(*columns, "known").annotate(**sums).order_by()
    return groups


def measurement_groups_of_rollups(
    rows: QuerySet[Any], columns: Sequence[str], *, reasons: str = "availability"
) -> QuerySet[Any]:
    """Return what `measurement_groups` returns, from rollups."""
    sums = {f"sum_{metric}": Sum(metric) for metric in METRICS}
    groups: QuerySet[Any] = rows.values(*columns, reasons).annotate(**sums).order_by()
    return groups
