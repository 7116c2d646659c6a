"""What a digest tells: the raw items of the window, ranked, each story once, and none that was told before."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.db.models import Q

from config.ground import ids, limits
from pipeline import likeness
from pipeline.models import GenerationInput, RawItem, RawPrint, SeriesIssue
from pipeline.stages.identity import is_same_title

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime
    from uuid import UUID

    from pipeline.models import Series

_USABLE: Final = Q(status__in=("queued", "processing", "processed", "failed")) | Q(
    # Its source's own engines can make nothing of it; a digest may.
    status="skipped",
    reason__code="nothing_to_make",
)
_COVERAGE: Final = 2.0
"""What another report of the same story is worth, against one for being the newest of the window."""
_SAME_SOURCE: Final = 0.6
"""What each story that is there already of the same source costs."""


@dataclass(frozen=True)
class Choice:
    """`raw_items` in the order in which they are told; `found` are all that could be."""

    raw_items: tuple[RawItem, ...]
    found: int


@dataclass(frozen=True)
class _Story:
    raw_item: RawItem
    bits: int | None
    reports: int


def choose(series: Series, *, now: datetime) -> Choice:
    """The best of the window, the most reported and the newest first, not too many of one source."""
    since = now - timedelta(days=series.window_days)
    rows = (
        RawItem.objects.of(series.workspace_id)
        .filter(_USABLE, test=series.test, created_at__gte=since, deleted_at=None, withdrawn_at=None)
        # The ids rise with the moment, and the list's index has them.
        .filter(id__gte=ids.first_of(since))
        .order_by("-id")
    )
    if series.sources:
        rows = rows.filter(source_id__in=[ids.decode("src", one) for one in series.sources])
    newest = list(rows[: limits.SERIES_LOOKED_AT])
    told = _told(series, now)
    # Without a print there are too few words to tell.
    bits = _bits(row.pk for row in newest)
    fresh = [_Story(row, bits[row.pk], 1) for row in newest if row.pk in bits]
    stories = [one for one in _once(fresh) if not any(_is_same(one, other) for other in told)]
    return Choice(tuple(_ranked(stories, series, now)), len(stories))


def _told(series: Series, now: datetime) -> list[_Story]:
    """What earlier digests of the series hold; a digest that failed holds nothing."""
    made = (
        SeriesIssue.everywhere.filter(series=series, created_at__gte=now - limits.SERIES_MEMORY)
        .exclude(generation__status="failed")
        .values("generation_id")
    )
    keys = GenerationInput.everywhere.filter(generation_id__in=made).values("raw_item_id")
    rows = list(RawItem.everywhere.filter(pk__in=keys))
    bits = _bits(row.pk for row in rows)
    return [_Story(row, bits.get(row.pk), 1) for row in rows]


def _bits(keys: Iterable[UUID]) -> dict[UUID, int]:
    rows = RawPrint.everywhere.filter(pk__in=list(keys), bits__isnull=False)
    return dict(rows.values_list("pk", "bits"))


def _once(reports: Sequence[_Story]) -> list[_Story]:
    """Each story by its newest report, with how many there are."""
    found: list[_Story] = []
    for report in reports:
        for place, story in enumerate(found):
            if _is_same(report, story):
                found[place] = replace(story, reports=story.reports + 1)
                break
        else:
            found.append(report)
    return found


def _is_same(one: _Story, other: _Story) -> bool:
    """The same raw item, nearly the same words, or the same headline."""
    rows = (one.raw_item, other.raw_item)
    if rows[0].pk == rows[1].pk or (rows[0].title and is_same_title(rows[0].title, rows[1].title)):
        return True
    return one.bits is not None and other.bits is not None and likeness.is_near(one.bits, other.bits)


def _ranked(stories: Sequence[_Story], series: Series, now: datetime) -> list[RawItem]:
    window = timedelta(days=series.window_days)
    left = list(stories)
    taken: list[RawItem] = []
    of_source: Counter[UUID] = Counter()

    def worth(story: _Story) -> tuple[float, UUID]:
        row = story.raw_item
        newness = 1 - (now - row.created_at) / window
        reports = _COVERAGE * (story.reports - 1)
        return reports + newness - _SAME_SOURCE * of_source[row.source_id], row.pk

    while left and len(taken) < series.items_most:
        best = max(left, key=worth)
        left.remove(best)
        taken.append(best.raw_item)
        of_source[best.raw_item.source_id] += 1
    return taken
