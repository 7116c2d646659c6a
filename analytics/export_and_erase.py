"""Exports the analytics' part of a workspace, and erases it with the workspace or its samples."""

from __future__ import annotations

from datetime import UTC, datetime, time
from typing import TYPE_CHECKING, Any, Final

from accounts.export import iterate_rows
from analytics import rollup
from analytics.models import (
    HitRollup,
    Measurement,
    MeasurementRollup,
    Measuring,
    MonthlySummary,
    Outcome,
    OutcomeRollup,
    RollupDay,
)
from config.core.datetimes import format_utc
from config.core.ids import encode
from pipeline.models import Publication
from pipeline.platforms.base import METRICS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from accounts.export import Part
    from accounts.models import Workspace

_ERASED_MODELS: Final[tuple[tuple[type[Any], str], ...]] = (
    (Measurement, "workspace_id"),
    # Filtered through its publication, whose index begins with the workspace.
    (Measuring, "publication__workspace_id"),
    (Outcome, "workspace_id"),
    (MeasurementRollup, "workspace_id"),
    (OutcomeRollup, "workspace_id"),
    (HitRollup, "workspace_id"),
    (RollupDay, "workspace_id"),
    (MonthlySummary, "workspace_id"),
)


def collect_parts(workspace: Workspace) -> Iterator[Part]:
    """Yield the analytics' part of an export: the measurements."""
    yield (
        "measurements.jsonl",
        (_measurement_json(row) for row in iterate_rows(Measurement.objects.of(workspace))),
    )


def _measurement_json(row: Measurement) -> dict[str, Any]:
    return {
        "publication": encode("pub", row.publication_id),
        "number": row.number,
        "at": format_utc(row.at),
        **{name: getattr(row, name) for name in METRICS},
    }


def remove_samples(workspace_id: UUID, max_rows: int) -> int:
    """Delete up to `max_rows` facts of sample items' publications; return how many, or 0 if none are left.

    The schedules of measurements come first, so that a worker loses its lease before it writes another fact.
    """
    publications = Publication.everywhere.filter(workspace_id=workspace_id, item__is_sample=True)
    for model in (Measuring, Measurement, Outcome):
        facts = model.everywhere.filter(publication_id__in=publications.values("pk"))
        ids = list(facts.order_by("pk").values_list("pk", flat=True)[:max_rows])
        if ids:
            model.everywhere.filter(pk__in=ids).delete()
            return len(ids)
    return 0


def add_up_again(workspace_id: UUID, max_rows: int) -> int:
    """Mark every day of the workspace, so that its rollups are computed again.

    Until then answers come from the facts that are left. It removes no rows, so it returns 0.
    """
    del max_rows
    days = RollupDay.objects.of(workspace_id).values_list("test", "day")
    rollup.mark((workspace_id, test, datetime.combine(day, time(), UTC)) for test, day in days)
    return 0


def erase(workspace_id: UUID, max_rows: int) -> int:
    """Delete up to `max_rows` of the analytics' rows of a workspace; return how many, or 0 if none are left."""
    for model, workspace_field in _ERASED_MODELS:
        ids = list(
            model.everywhere.filter(**{workspace_field: workspace_id}).values_list("pk", flat=True)[:max_rows]
        )
        if ids:
            model.everywhere.filter(pk__in=ids).delete()
            return len(ids)
    return 0
