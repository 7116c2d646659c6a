"""Sets clicks on short links to 0 instead of `None` in rows whose outlets counted clicks and got none.

The service counts clicks on short links and fetches of its feeds itself. Both count at the quarter of an hour
in which they came, whatever the attribution. A fetch belongs to an outlet and to no item, so it shows only in
rows grouped by outlet, date, both or neither, and is never set to 0. Clicks stay `None` if no outlet in a row's
scope counted them by then for that type of content, because what nobody counted isn't 0.
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
"""The metric of `FIRST_PARTY` in which each kind of hit counts."""


def add_zeros(
    question: Question,
    buckets: Buckets | None,
    total: Fold,
    grouped_rows: Iterable[Mapping[RowKey, Fold]],
) -> None:
    """Make `clicks` 0 instead of `None` in each row with an outlet that was already counting at that time.

    `grouped_rows` has the rows of each grouping by their key; rows with clicks stay as they are. It takes one
    statement.
    """
    first_buckets = _find_first_buckets(question, buckets)
    if not first_buckets:
        return
    # The total has no date: an outlet that counted at any time is enough.
    total.mark_counted("clicks")
    for rows in grouped_rows:
        for key, fold in rows.items():
            first_bucket = first_buckets.get((key.outlet, key.content_type))
            if first_bucket is not None and (key.bucket is None or key.bucket >= first_bucket):
                fold.mark_counted("clicks")


def _find_first_buckets(
    question: Question, buckets: Buckets | None
) -> dict[tuple[UUID | None, str | None], int]:
    """Return the first bucket in which clicks were counted, by outlet and content type, or 0 without buckets.

    `None` as an outlet or a content type stands for all of them.
    """
    first_buckets: dict[tuple[UUID | None, str | None], int] = {}
    for outlet_id, platform, since in _read_counting_outlets(question):
        bucket = _bucket_at(buckets, since)
        for scope in product((outlet_id, None), (*_counted_types(platform, question), None)):
            first_buckets[scope] = min(bucket, first_buckets.get(scope, bucket))
    return first_buckets


def _read_counting_outlets(question: Question) -> list[tuple[UUID, str, datetime]]:
    """Return id, platform and start of counting of each outlet in scope that counts clicks."""
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


def _bucket_at(buckets: Buckets | None, moment: datetime) -> int:
    """Return the number of the bucket that a moment falls into, or 0 without buckets."""
    if buckets is None:
        return 0
    seconds = int(moment.timestamp())
    # Slices are of local time, as `fact_sums.Slice` computes them in SQL, so the zone's offset is added first.
    offset = next(
        (offset_before for until, offset_before in buckets.offsets if seconds < until), buckets.last_offset
    )
    return buckets.bucket_of((seconds + offset) // buckets.step)
