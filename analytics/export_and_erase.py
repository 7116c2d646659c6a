"""What the analytics give to a workspace's export, and what they erase at its end, or with its samples."""

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
from config.core.datetimes import as_z
from config.core.ids import encode
from pipeline.models import Publication
from pipeline.platforms.base import METRICS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from accounts.export import Part
    from accounts.models import Workspace

_PARTS: Final[tuple[tuple[type[Any], str], ...]] = (
    (Measurement, "workspace_id"),
    # Found through its publication, whose index leads with the workspace.
    (Measuring, "publication__workspace_id"),
    (Outcome, "workspace_id"),
    (MeasurementRollup, "workspace_id"),
    (OutcomeRollup, "workspace_id"),
    (HitRollup, "workspace_id"),
    (RollupDay, "workspace_id"),
    (MonthlySummary, "workspace_id"),
)


def collect_parts(workspace: Workspace) -> Iterator[Part]:
    yield "measurements.jsonl", (_measurement(row) for row in iterate_rows(Measurement.objects.of(workspace)))


def _measurement(row: Measurement) -> dict[str, Any]:
    return {
        "publication": encode("pub", row.publication_id),
        "number": row.number,
        "at": as_z(row.at),
        **{name: getattr(row, name) for name in METRICS},
    }


def remove_samples(workspace_id: UUID, rows: int) -> int:
    """The facts of sample items' publications; whoever is about to write another one loses its lease first."""
    publications = Publication.everywhere.filter(workspace_id=workspace_id, item__is_sample=True)
    for model in (Measuring, Measurement, Outcome):
        facts = model.everywhere.filter(publication_id__in=publications.values("pk"))
        some = list(facts.order_by("pk").values_list("pk", flat=True)[:rows])
        if some:
            model.everywhere.filter(pk__in=some).delete()
            return len(some)
    return 0


def add_up_again(workspace_id: UUID, rows: int) -> int:
    """Have every day added up again: until then answers come from the facts that are left."""
    del rows
    days = RollupDay.objects.of(workspace_id).values_list("test", "day")
    rollup.mark((workspace_id, test, datetime.combine(day, time(), UTC)) for test, day in days)
    return 0


def erase(workspace_id: UUID, rows: int) -> int:
    for model, of in _PARTS:
        some = list(model.everywhere.filter(**{of: workspace_id}).values_list("pk", flat=True)[:rows])
        if some:
            model.everywhere.filter(pk__in=some).delete()
            return len(some)
    return 0
