"""What the service counted itself, beside the platforms' numbers: clicks on short links and fetches of its feeds.

They count at the quarter of an hour in which they came, whatever the attribution. A fetch belongs to an outlet and to no
item, so that it stands only where nothing but outlets and dates are told apart. Clicks are 0 where an outlet counted
them by then for that type of content, and None where none did: what nobody counted isn't nothing.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, Final

from pipeline.models import HitKind, Outlet
from pipeline.outlets.outlet_client import platform_if_known
from pipeline.outlets.short_links import counted_types

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from analytics.aggregate import Fold
    from analytics.periods import Buckets
    from analytics.queries import Question

NAMES: Final = {HitKind.CLICK: "clicks", HitKind.FETCH: "feed_fetches"}


def add_zeros(
    question: Question,
    buckets: Buckets | None,
    total: Fold,
    cuts: Iterable[tuple[tuple[str, ...], Mapping[tuple[Any, ...], Fold]]],
) -> None:
    """Rows in whose time an outlet of theirs was counting clicks have some number of them, if only none; one statement."""
    begins: dict[tuple[Any, str | None], int] = {}
    for outlet, platform, since in _counting(question):
        place = _place_at(buckets, since)
        for scope in product((outlet, None), (*_types_of(platform, question), None)):
            begins[scope] = min(place, begins.get(scope, place))
    if not begins:
        return
    total.add_hits("clicks", 0, "")
    for group_by, folds in cuts:
        for key, fold in folds.items():
            scope = (key[1] if "outlet" in group_by else None, key[2] if "content_type" in group_by else None)
            begun = begins.get(scope)
            is_dated = buckets is not None and "date" in group_by
            if begun is not None and (not is_dated or key[0] >= begun):
                fold.add_hits("clicks", 0, "")


def _counting(question: Question) -> list[tuple[Any, str, datetime]]:
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
    known = platform_if_known(platform)
    types = counted_types(known) if known else frozenset()
    return types if question.content_types is None else types & frozenset(question.content_types)


def _place_at(buckets: Buckets | None, moment: datetime) -> int:
    if buckets is None:
        return 0
    seconds = int(moment.timestamp())
    offset = next((one for until, one in buckets.offsets if seconds < until), buckets.last_offset)
    return buckets.place_of((seconds + offset) // buckets.step)
