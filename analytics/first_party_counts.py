"""What the service counted itself, beside the platforms' numbers: clicks on short links and fetches of its feeds.

They count at the quarter of an hour in which they came, whatever the attribution. A fetch belongs to an outlet and to no
item, so it shows only in rows grouped by outlet and date, or neither. Clicks are 0 where an outlet counted them by then for
that type of content, and None where none did: what nobody counted isn't nothing.
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
    from analytics.periods import Buckets
    from analytics.queries import Question, RowKey

NAMES: Final = {HitKind.CLICK: "clicks", HitKind.FETCH: "feed_fetches"}


def add_zeros(
    question: Question,
    buckets: Buckets | None,
    total: Fold,
    cuts: Iterable[Mapping[RowKey, Fold]],
) -> None:
    """Make `clicks` 0 instead of None in each row whose time an outlet of it was already counting.

    `cuts` are the rows of each grouping by their key; rows with clicks stay as they are. One statement.
    """
    begins = _begins_by_scope(question, buckets)
    if not begins:
        return
    # The total has no date: one that counted at any time is enough.
    total.counted_none("clicks")
    for folds in cuts:
        for key, fold in folds.items():
            counted_since = begins.get((key.outlet, key.content_type))
            if counted_since is not None and (key.place is None or key.place >= counted_since):
                fold.counted_none("clicks")


def _begins_by_scope(
    question: Question, buckets: Buckets | None
) -> dict[tuple[UUID | None, str | None], int]:
    """The place from which on clicks were counted, by outlet and type of content; 0 without buckets."""
    begins: dict[tuple[UUID | None, str | None], int] = {}
    for outlet, platform, since in _outlets_that_count(question):
        place = _place_at(buckets, since)
        # None stands for all outlets, or all types.
        for scope in product((outlet, None), (*_types_of(platform, question), None)):
            begins[scope] = min(place, begins.get(scope, place))
    return begins


def _outlets_that_count(question: Question) -> list[tuple[UUID, str, datetime]]:
    """Outlets that count clicks of something that is asked for: id, platform, and since when."""
    rows = Outlet.objects.of(question.workspace_id).filter(clicks_since__lt=question.period.end)
    if question.outlets is not None:
        rows = rows.filter(pk__in=question.outlets)
    found = rows.values_list("pk", "platform", "clicks_since")
    return [
        (outlet, platform, since)
        for outlet, platform, since in found
        if since is not None and _types_of(platform, question)
    ]


def _types_of(platform: str, question: Question) -> frozenset[str]:
    """Types of content whose clicks the platform's outlets count, of those that are asked for."""
    known = platform_if_known(platform)
    types = counted_types(known) if known else frozenset()
    return types if question.content_types is None else types & frozenset(question.content_types)


def _place_at(buckets: Buckets | None, moment: datetime) -> int:
    """The place of the bucket in which the moment lies; 0 without buckets."""
    if buckets is None:
        return 0
    seconds = int(moment.timestamp())
    offset = next((one for until, one in buckets.offsets if seconds < until), buckets.last_offset)
    return buckets.place_of((seconds + offset) // buckets.step)
