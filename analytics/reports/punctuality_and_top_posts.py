"""Computes a period's punctuality, its best posts and its rankings from its newest publications and items.

At most `MAX_ROWS_READ` of each are read, so that a page costs the same however much was published;
`is_complete` says whether there were fewer.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from analytics.aggregate import ENGAGEMENT_METRICS
from analytics.reports.rankings import COLUMNS, RankedGroup, rank_by
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

MAX_ROWS_READ: Final = 5000
MAX_BEST_POSTS: Final = 10
_PUNCTUALITY_COLUMNS: Final = ("published_at", "due_at", "step", "platform")
ON_TIME_SECONDS: Final = 60
"""Seconds after the scheduled moment within which a publication is on time."""


@dataclass(frozen=True)
class TopPost:
    """A post with the metric's value by which it is ranked."""

    item_id: UUID
    title: str
    engine_output: str
    outlet: str
    published_at: datetime
    value: int | float


@dataclass(frozen=True)
class Lateness:
    """Delays after the scheduled moment, in seconds; posts that a person publishes by hand aren't counted."""

    count: int
    """The number of posts with a scheduled moment."""
    median: float
    worst_twentieth: float
    """The 95th percentile, which 19 of 20 delays don't exceed."""
    on_time_percent: float


@dataclass(frozen=True)
class Punctuality:
    """How late a period's posts were published, and how many of its items were generated."""

    lateness: Lateness | None
    """`None` if nothing was published at a scheduled moment."""
    made: int
    not_made: int
    """Items that failed before there was anything to publish."""
    is_complete: bool
    """Whether fewer than `MAX_ROWS_READ` publications and items were found."""

    @property
    def not_made_percent(self) -> float | None:
        return _percent(self.not_made, self.made + self.not_made)


@dataclass(frozen=True)
class Performance(Punctuality):
    """The punctuality with the best posts by one metric."""

    best: tuple[TopPost, ...]
    known: int
    """The number of posts with a known value."""
    rankings: Mapping[str, tuple[RankedGroup, ...]]
    """The best groups by dimension, none if too little is known to rank them."""


def compute_performance(question: Question, metric: str, *, dimensions: Sequence[str] = ()) -> Performance:
    """Return the punctuality, and the best posts and rankings by a metric of posts, in three statements."""
    columns = [column for dimension in dimensions for column in COLUMNS[dimension]]
    rows = _newest_publications(question, ["pk", "metrics", *_PUNCTUALITY_COLUMNS, *columns])
    values = ((_value(row["metrics"] or {}, metric), row) for row in rows)
    known = [(value, row) for value, row in values if value is not None]
    best = heapq.nlargest(MAX_BEST_POSTS, ((value, row["pk"]) for value, row in known))
    made, not_made, are_all_items = _count_made(question)
    return Performance(
        best=_load_posts(question, best),
        known=len(known),
        rankings={name: rank_by(name, known, question.period.zone) for name in dimensions},
        lateness=_lateness(rows),
        made=made,
        not_made=not_made,
        is_complete=len(rows) < MAX_ROWS_READ and are_all_items,
    )


def compute_punctuality(question: Question) -> Punctuality:
    """Return the punctuality without the best posts, in two statements."""
    rows = _newest_publications(question, _PUNCTUALITY_COLUMNS)
    made, not_made, are_all_items = _count_made(question)
    return Punctuality(_lateness(rows), made, not_made, len(rows) < MAX_ROWS_READ and are_all_items)


def _newest_publications(question: Question, columns: Sequence[str]) -> list[dict[str, Any]]:
    """Return the question's newest published publications, up to `MAX_ROWS_READ`, as dicts of the columns."""
    period = question.period
    published = Publication.objects.of(question.workspace_id).published()
    rows = published.filter(test=question.test, published_at__gte=period.start, published_at__lt=period.end)
    if question.outlets is not None:
        rows = rows.filter(outlet_id__in=question.outlets)
    if question.content_types is not None:
        rows = rows.filter(item__bucket__in=question.content_types)
    newest: QuerySet[Any] = rows.order_by("-published_at").values(*columns)
    return list(newest[:MAX_ROWS_READ])


def _value(metrics: Mapping[str, int | None], metric: str) -> int | float | None:
    """Return a post's metric, or `None` if it is unknown, or a rate without impressions."""
    if metric not in {"engagements", "engagement_rate"}:
        return metrics.get(metric)
    known_engagements = [value for name in ENGAGEMENT_METRICS if (value := metrics.get(name)) is not None]
    if metric == "engagements" or not known_engagements:
        return sum(known_engagements) if known_engagements else None
    impressions = metrics.get("impressions")
    return round(sum(known_engagements) / impressions, 4) if impressions else None


def _load_posts(question: Question, best: Sequence[tuple[int | float, UUID]]) -> tuple[TopPost, ...]:
    """Return the posts of these values and publications, without those that were deleted meanwhile."""
    rows = Publication.objects.of(question.workspace_id).select_related("item", "outlet")
    publications = rows.in_bulk([pk for _, pk in best])
    return tuple(
        TopPost(
            publication.item_id,
            publication.item.title or publication.item.excerpt,
            publication.item.engine_output,
            publication.outlet.name,
            publication.published_at,
            value,
        )
        for value, pk in best
        if (publication := publications.get(pk)) is not None and publication.published_at is not None
    )


def _lateness(rows: Sequence[dict[str, Any]]) -> Lateness | None:
    """Return the delays of the publications that had a scheduled moment, or `None` if none had one."""
    manual_platforms = {plugin.kind for plugin in plugins.every("platforms", Platform) if plugin.is_by_hand}
    delays = sorted(
        max((row["published_at"] - row["due_at"]).total_seconds(), 0.0)
        for row in rows
        if row["due_at"] is not None
        and row["step"] != Publication.BY_HAND
        and row["platform"] not in manual_platforms
    )
    if not delays:
        return None
    on_time = sum(seconds <= ON_TIME_SECONDS for seconds in delays)
    return Lateness(
        count=len(delays),
        median=delays[(len(delays) - 1) // 2],
        # The count of 19 in 20, rounded up, less one for the index.
        worst_twentieth=delays[-(-len(delays) * 19 // 20) - 1],
        on_time_percent=_percent(on_time, len(delays)) or 0.0,
    )


def _count_made(question: Question) -> tuple[int, int, bool]:
    """Count the period's newest items: return how many were generated and failed, and if all were read."""
    rows = GeneratedItem.objects.of(question.workspace_id).filter(
        test__in=[question.test],
        id__gte=first_id_of(question.period.start),
        id__lt=first_id_of(question.period.end),
    )
    if question.content_types is not None:
        rows = rows.filter(bucket__in=question.content_types)
    statuses = list(rows.order_by("-id").values_list("status", "ready_at")[:MAX_ROWS_READ])
    made = sum(ready_at is not None for _, ready_at in statuses)
    failed = sum(status == "failed" and ready_at is None for status, ready_at in statuses)
    return made, failed, len(statuses) < MAX_ROWS_READ


def _percent(count: int, total: int) -> float | None:
    return round(count * 100 / total, 1) if total else None
