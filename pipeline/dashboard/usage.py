"""What a workspace has used since a moment: credits by engine, and the cost of its calls of a model.

Costs are millionths of a US dollar.
"""

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
    """One engine's settled runs; `name` is empty for runs that are gone, and for an engine that was taken out."""

    name: str
    bucket: str
    runs: int
    credits: int


@dataclass(frozen=True)
class ModelCost:
    """Micro US dollars of the month: with the workspace's own key, and in all, which is what its cap counts."""

    own: int
    total: int
    calls: int


def credits_by_engine(workspace: Workspace, since: datetime) -> list[EngineUse]:
    """The dearest first."""
    known = {engine.kind: engine for engine in plugins.every("engines", Engine)}
    kind = Generation.everywhere.filter(pk=OuterRef("subject")).values("engine")[:1]
    rows = (
        # By id, which rises with time: the list's index finds the month's entries without reading those before.
        LedgerEntry.objects.of(workspace)
        .filter(kind=LedgerEntry.Kind.SETTLE, pk__gte=lowest_id_at(since))
        .annotate(engine=Subquery(kind))
        .values("engine")
        .annotate(runs=Count("pk"), credits=Sum("used_change"))
        .order_by("-credits", "engine")
    )
    return [
        EngineUse(
            name=known[row["engine"]].name if row["engine"] in known else "",
            bucket=known[row["engine"]].bucket if row["engine"] in known else "",
            runs=row["runs"],
            credits=row["credits"],
        )
        for row in rows
    ]


def engine_names_by_run(workspace: Workspace, runs: Iterable[UUID]) -> dict[UUID, str]:
    """The engine's name of each of these runs; those that are gone are left out."""
    known = {engine.kind: engine.name for engine in plugins.every("engines", Engine)}
    rows = Generation.objects.of(workspace).filter(pk__in=list(runs)).values_list("pk", "engine")
    return {run: known[kind] for run, kind in rows if kind in known}


def model_cost(workspace: Workspace, since: datetime) -> ModelCost:
    """What its calls of a model have cost since then, and how many they were."""
    rows = ModelCall.objects.of(workspace).filter(created_at__gte=since)
    by_key = {
        row["is_own_key"]: row
        for row in rows.values("is_own_key").annotate(cost=Sum("cost_micro_usd"), calls=Count("pk"))
    }
    own = by_key[True]["cost"] if True in by_key else 0
    total = sum(row["cost"] for row in by_key.values())
    return ModelCost(own=own, total=total, calls=sum(row["calls"] for row in by_key.values()))
