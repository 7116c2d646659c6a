"""Adds zeros to what the service counts itself: clicks on short links and fetches of its feeds.

Both count at the quarter of an hour in which they came, whatever the attribution. A fetch belongs to an
outlet and to no item, so it shows only in rows grouped by outlet and date, or neither. Clicks are 0 if an
outlet counted them by then for that type of content, and None if none did: what nobody counted isn't 0.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Final

from pipeline.models import HitKind, Outlet
from pipeline.outlets.outlet_client import platform_if_known
from pipeline.outlets.short_links import counted_types

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime
    from uuid import UUID

    from analytics.aggregate import Fold
    from analytics.calendar_periods import Buckets
    from analytics.queries import Question, RowKey

METRIC_BY_HIT_KIND: Final = {HitKind.CLICK: "clicks", HitKind.FETCH: "feed_fetches"}


def add_zeros(
    question: Question,
    buckets: Buckets | None,
    total: Fold,
    cuts: Iterable[Mapping[RowKey, Fold]],
) -> None:
    """Make `clicks` 0 instead of None in each row whose outlet was already counting at that time.

    `cuts` are the rows of each grouping by their key; rows with clicks stay as they are. One statement.
    """
    first_places = _first_places(question, buckets)
    if not first_places:
        return
    # The total has no date: an outlet that counted at any time is enough.
    total.mark_counted("clicks")
    for folds in cuts:
        for key, fold in folds.items():
            counted_since = first_places.get((key.outlet, key.content_type))
            if counted_since is not None and (key.place is None or key.place >= counted_since):
                fold.mark_counted("clicks")


def _first_places(question: Question, buckets: Buckets | None) -> dict[tuple[UUID | None, str | None], int]:
    """Return the bucket from which on clicks were counted, by outlet and content type; 0 without buckets."""
    first_places: dict[tuple[UUID | None, str | None], int] = {}
    for outlet_id, platform, since in _counting_outlets(question):
        place = _place_at(buckets, since)
        # None stands for all outlets, or all types.
        for scope in product((outlet_id, None), (*_counted_types(platform, question), None)):
            first_places[scope] = min(place, first_places.get(scope, place))
    return first_places


def _counting_outlets(question: Question) -> list[tuple[UUID, str, datetime]]:
    """Return the outlets in scope that count clicks: id, platform, and since when."""
    rows = Outlet.objects.of(question.workspace_id).filter(clicks_since__lt=question.period.end)
    if question.outlets is not None:
        rows = rows.filter(pk__in=question.outlets)
    values = rows.values_list("pk", "platform", "clicks_since")
    return [
        (outlet_id, platform, since)
        for outlet_id, platform, since in values
        if since is not None and _counted_types(platform, question)
    ]


def _counted_types(platform: str, question: Question) -> frozenset[str]:
    """Return the content types in scope whose clicks the platform's outlets count."""
    plugin = platform_if_known(platform)
    types = counted_types(plugin) if plugin else frozenset()
    return types if question.content_types is None else types & frozenset(question.content_types)


def _place_at(buckets: Buckets | None, moment: datetime) -> int:
    """Return the place of the bucket of a moment; 0 without buckets."""
    if buckets is None:
        return 0
    seconds = int(moment.timestamp())
    offset = next(
        (bucket_offset for until, bucket_offset in buckets.offsets if seconds < until), buckets.last_offset
    )
    return buckets.place_of((seconds + offset) // buckets.step)
