"""Sums a workspace's use since a moment: the credits by engine, and the cost of its model calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import Count, OuterRef, Subquery, Sum

from accounts.models import LedgerEntry
from config.core.ids import lowest_id_at
from pipeline import plugins
from pipeline.engines.base import Engine
from pipeline.models import Generation, ModelCall

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from uuid import UUID

    from accounts.models import Workspace


@dataclass(frozen=True)
class EngineUse:
    """An engine's settled runs; `name` is empty if the runs were deleted or the engine was removed."""

    name: str
    bucket: str
    runs: int
    credits: int


@dataclass(frozen=True)
class ModelCost:
    """The cost of a number of model calls, in millionths of a US dollar."""

    own: int
    """The cost of the calls with the workspace's key."""
    total: int
    """The cost of all calls, which the workspace's spending cap limits."""
    calls: int


def credits_by_engine(workspace: Workspace, since: datetime) -> list[EngineUse]:
    """Return the runs and credits of each engine, those with the most credits first."""
    engines = {engine.kind: engine for engine in plugins.every("engines", Engine)}
    engine_of_run = Generation.everywhere.filter(pk=OuterRef("subject")).values("engine")[:1]
    rows = (
        # The filter is by id, which rises with time, so that the list's index finds the entries.
        LedgerEntry.objects.of(workspace)
        .filter(kind=LedgerEntry.Kind.SETTLE, pk__gte=lowest_id_at(since))
        .annotate(engine=Subquery(engine_of_run))
        .values("engine")
        .annotate(runs=Count("pk"), credits=Sum("used_change"))
        .order_by("-credits", "engine")
    )
    return [
        EngineUse(
            name=engines[row["engine"]].name if row["engine"] in engines else "",
            bucket=engines[row["engine"]].bucket if row["engine"] in engines else "",
            runs=row["runs"],
            credits=row["credits"],
        )
        for row in rows
    ]


def engine_names_by_run(workspace: Workspace, runs: Iterable[UUID]) -> dict[UUID, str]:
    """Return the engine name of each run that still exists and whose engine is installed."""
    names_by_kind = {engine.kind: engine.name for engine in plugins.every("engines", Engine)}
    rows = Generation.objects.of(workspace).filter(pk__in=list(runs)).values_list("pk", "engine")
    return {run: names_by_kind[kind] for run, kind in rows if kind in names_by_kind}


def model_cost(workspace: Workspace, since: datetime) -> ModelCost:
    """Return the cost and the number of the workspace's model calls since the moment."""
    rows = ModelCall.objects.of(workspace).filter(created_at__gte=since)
    by_key = {
        row["is_own_key"]: row
        for row in rows.values("is_own_key").annotate(cost=Sum("cost_micro_usd"), calls=Count("pk"))
    }
    own = by_key[True]["cost"] if True in by_key else 0
    total = sum(row["cost"] for row in by_key.values())
    return ModelCost(own=own, total=total, calls=sum(row["calls"] for row in by_key.values()))
