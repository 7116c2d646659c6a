"""The facts as groups that add up: outcomes and measurements, straight from their tables or from the rollups.

A group of either kind looks the same wherever it was read, so that what is rolled up and what isn't yet fold into one
answer.
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

    from analytics.periods import Buckets

COLUMNS: Final = ("outlet_id", "content_type", "source_id", "engine_output", "persona_id")
"""By which facts are told apart, beside their time."""


class Slice(Func):
    """The number of the slice that a moment falls into, as `Buckets` tells it."""

    output_field = BigIntegerField()
    arity = 1

    def __init__(self, moment: str, buckets: Buckets) -> None:
        super().__init__(moment)
        self.buckets = buckets

    def as_sqlite(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any
    ) -> tuple[str, Any]:
        # Percent signs are doubled once for the template and once for the parameters.
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
        if not self.buckets.offsets:
            return str(self.buckets.last_offset)
        cases = " ".join(f"WHEN {seconds} < {until} THEN {offset}" for until, offset in self.buckets.offsets)
        return f"CASE {cases} ELSE {self.buckets.last_offset} END"


class SliceOfSeconds(Slice):
    """The same of a column of whole seconds since 1970, none of them before it."""

    def as_sqlite(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any
    ) -> tuple[str, Any]:
        seconds = "%(expressions)s"
        template = f"(({seconds} + {self._offset(seconds)}) / {self.buckets.step})"
        return self.as_sql(compiler, connection, template=template, **context)

    as_postgresql = as_sqlite


def outcome_groups(rows: QuerySet[Any], columns: Sequence[str]) -> QuerySet[Any]:
    """Outcomes by `columns`, which are annotated already, and by what is `known` of each publication by now.

    `known` is 1 where a number of the publication is known, 0 where its platform was asked in vain, None where nobody
    asked.
    """
    given = Q()
    for metric in METRICS:
        given |= Q(**{f"{metric}__isnull": False})
    # Bound by the publication alone: with the workspace beside it, SQLite reads all of the workspace's measurements
    # for each outcome instead of the publication's few.
    known = (
        Measurement.everywhere.filter(publication_id=OuterRef("publication_id"))
        .order_by()
        .values("publication_id")
        .annotate(known=Max(Case(When(given, then=1), default=0, output_field=IntegerField())))
        .values("known")
    )
    found: QuerySet[Any] = (
        rows.annotate(known=Subquery(known, output_field=IntegerField()))
        .values(*columns, "known")
        .annotate(
            published=Count("pk", filter=Q(is_published=True)),
            failed=Count("pk", filter=Q(is_published=False)),
        )
        .order_by()
    )
    return found


def measurement_groups(
    rows: QuerySet[Any], columns: Sequence[str], *, reasons: str = "availability"
) -> QuerySet[Any]:
    """Rises since the measurement before: all of a publication add up to its newest known value.

    `reasons` is the column that says why a metric is missing.
    """
    found: QuerySet[Any] = (
        # A platform answers with few patterns of missing metrics, so grouping by them adds few rows.
        rows.values(*columns, reasons)
        .annotate(**{f"sum_{metric}": Sum(f"{metric}_delta") for metric in METRICS})
        .order_by()
    )
    return found


def with_items(hits: QuerySet[Any]) -> QuerySet[Any]:
    """Counts of hits with the columns of their items; a fetch of a feed is of none, and its texts are empty."""
    found: QuerySet[Any] = hits.annotate(
        content_type=Coalesce(F("publication__item__bucket"), Value("")),
        source_id=F("publication__item__source_id"),
        engine_output=Coalesce(F("publication__item__engine_output"), Value("")),
        persona_id=F("publication__item__persona_id"),
    )
    return found


def hit_groups(rows: QuerySet[Any], columns: Sequence[str]) -> QuerySet[Any]:
    """Clicks and fetches, of their counts and of rollups alike."""
    found: QuerySet[Any] = rows.values(*columns, "kind").annotate(total=Sum("count")).order_by()
    return found


def rolled_outcome_groups(rows: QuerySet[Any], columns: Sequence[str]) -> QuerySet[Any]:
    """`outcome_groups`, of rollups."""
    counted = {"published": Sum("published_count"), "failed": Sum("failed_count")}
    found: QuerySet[Any] = rows.values(*columns, "known").annotate(**counted).order_by()
    return found


def rolled_measurement_groups(
    rows: QuerySet[Any], columns: Sequence[str], *, reasons: str = "availability"
) -> QuerySet[Any]:
    """`measurement_groups`, of rollups."""
    sums = {f"sum_{metric}": Sum(metric) for metric in METRICS}
    found: QuerySet[Any] = rows.values(*columns, reasons).annotate(**sums).order_by()
    return found
