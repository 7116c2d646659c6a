"""How the pipeline itself did in a period, and which of its posts did best: read from the newest publications of it.

At most `READ_MOST` are looked at, so that a page costs the same however much was published; `is_whole` says whether
those were all.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from analytics.aggregate import ENGAGING
from pipeline import plugins
from pipeline.dashboard.counts import first_id_of
from pipeline.models import GeneratedItem, Publication
from pipeline.platforms.base import Platform

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from django.db.models import QuerySet

    from analytics.queries import Question

READ_MOST: Final = 5000
BEST: Final = 10
ON_TIME_SECONDS: Final = 60


@dataclass(frozen=True)
class TopPost:
    item_id: UUID
    title: str
    outlet: str
    published_at: datetime
    value: int | float


@dataclass(frozen=True)
class Lateness:
    """In seconds after the promised moment; of what was handed over to a person nothing is said."""

    count: int
    median: float
    worst_twentieth: float
    """Nineteen of twenty were not later."""
    on_time_percent: float


@dataclass(frozen=True)
class Punctuality:
    lateness: Lateness | None
    """None where nothing was published."""
    made: int
    not_made: int
    """Items that failed before there was anything to publish."""
    is_whole: bool

    @property
    def not_made_percent(self) -> float | None:
        return _percent(self.not_made, self.made + self.not_made)


@dataclass(frozen=True)
class Doing(Punctuality):
    best: tuple[TopPost, ...]


def doing(question: Question, metric: str) -> Doing:
    """`metric` is one that a post can have; three statements."""
    rows = _newest(question)
    values = ((_value(row["metrics"] or {}, metric), row) for row in rows)
    known = [(value, row["pk"]) for value, row in values if value is not None]
    made, not_made, are_all_items = _made(question)
    return Doing(
        best=_posts(question, heapq.nlargest(BEST, known)),
        lateness=_lateness(rows),
        made=made,
        not_made=not_made,
        is_whole=len(rows) < READ_MOST and are_all_items,
    )


def punctuality(question: Question) -> Punctuality:
    """Without the posts; two statements."""
    rows = _newest(question, but=("metrics",))
    made, not_made, are_all_items = _made(question)
    return Punctuality(_lateness(rows), made, not_made, len(rows) < READ_MOST and are_all_items)


def _newest(question: Question, *, but: Sequence[str] = ()) -> list[dict[str, Any]]:
    """`but` are columns that nobody needs."""
    period = question.period
    published = Publication.objects.of(question.workspace_id).published()
    rows = published.filter(test=question.test, published_at__gte=period.start, published_at__lt=period.end)
    if question.outlets is not None:
        rows = rows.filter(outlet_id__in=question.outlets)
    if question.content_types is not None:
        rows = rows.filter(item__bucket__in=question.content_types)
    columns = [
        name for name in ("pk", "metrics", "published_at", "due_at", "step", "platform") if name not in but
    ]
    found: QuerySet[Any] = rows.order_by("-published_at").values(*columns)
    return list(found[:READ_MOST])


def _value(metrics: Mapping[str, int | None], metric: str) -> int | float | None:
    if metric not in {"engagements", "engagement_rate"}:
        return metrics.get(metric)
    engaged = [value for name in ENGAGING if (value := metrics.get(name)) is not None]
    if metric == "engagements" or not engaged:
        return sum(engaged) if engaged else None
    impressions = metrics.get("impressions")
    return round(sum(engaged) / impressions, 4) if impressions else None


def _posts(question: Question, best: Sequence[tuple[int | float, UUID]]) -> tuple[TopPost, ...]:
    rows = Publication.objects.of(question.workspace_id).select_related("item", "outlet")
    found = rows.in_bulk([pk for _, pk in best])
    return tuple(
        TopPost(one.item_id, one.item.title or one.item.excerpt, one.outlet.name, one.published_at, value)
        for value, pk in best
        if (one := found.get(pk)) is not None and one.published_at is not None
    )


def _lateness(rows: Sequence[dict[str, Any]]) -> Lateness | None:
    by_hand = {one.kind for one in plugins.every("platforms", Platform) if one.is_by_hand}
    late = sorted(
        max((row["published_at"] - row["due_at"]).total_seconds(), 0.0)
        for row in rows
        if row["due_at"] is not None and row["step"] != Publication.BY_HAND and row["platform"] not in by_hand
    )
    if not late:
        return None
    on_time = sum(seconds <= ON_TIME_SECONDS for seconds in late)
    return Lateness(
        count=len(late),
        median=late[(len(late) - 1) // 2],
        worst_twentieth=late[-(-len(late) * 19 // 20) - 1],
        on_time_percent=_percent(on_time, len(late)) or 0.0,
    )


def _made(question: Question) -> tuple[int, int, bool]:
    """Of the items whose making began in the period: how many were made, how many failed, and whether that is all."""
    rows = GeneratedItem.objects.of(question.workspace_id).filter(
        test__in=[question.test],
        id__gte=first_id_of(question.period.start),
        id__lt=first_id_of(question.period.end),
    )
    if question.content_types is not None:
        rows = rows.filter(bucket__in=question.content_types)
    found = list(rows.order_by("-id").values_list("status", "ready_at")[:READ_MOST])
    made = sum(ready_at is not None for _, ready_at in found)
    failed = sum(status == "failed" and ready_at is None for status, ready_at in found)
    return made, failed, len(found) < READ_MOST


def _percent(part: int, whole: int) -> float | None:
    return round(part * 100 / whole, 1) if whole else None
