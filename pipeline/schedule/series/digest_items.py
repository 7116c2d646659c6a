"""Selects what a digest tells: raw items of its window, ranked, each story once, and none that an earlier one told."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING, Final

from django.db.models import Q

from config.core import ids
from pipeline import limits
from pipeline.ingest.raw_item_identity import plain_title
from pipeline.models import (
    GeneratedItem,
    GeneratedItemStatus,
    GenerationInput,
    RawItem,
    RawItemStatus,
    RawPrint,
    SeriesIssue,
)
from pipeline.text import similarity

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime
    from uuid import UUID

    from pipeline.models import Series

_USABLE: Final = Q(
    status__in=(RawItemStatus.QUEUED, RawItemStatus.PROCESSING, RawItemStatus.PROCESSED, RawItemStatus.FAILED)
) | Q(
    # Its source's own engines can make nothing of it; a digest may.
    status=RawItemStatus.SKIPPED,
    reason__code="nothing_to_make",
)
_COVERAGE: Final = 2.0
"""What another report of the same story is worth, against one for being the newest of the window."""
_SAME_SOURCE: Final = 0.6
"""What each story that is there already of the same source costs."""


@dataclass(frozen=True)
class SeriesSelection:
    """`raw_items` in the order in which they are told; `found` are all that could be."""

    raw_items: tuple[RawItem, ...]
    found: int


@dataclass(frozen=True)
class _Story:
    raw_item: RawItem
    bits: int | None
    reports: int
    title: str
    """Its words alone, to be compared; empty where it has none."""


def select_items(series: Series, *, now: datetime) -> SeriesSelection:
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
    fresh = [_story(row, bits[row.pk]) for row in newest if row.pk in bits]
    known = _Known()
    for one in told:
        known.add(one)
    stories = [one for one in _once(fresh) if known.find(one) is None]
    return SeriesSelection(tuple(_ranked(stories, series, now)), len(stories))


def _told(series: Series, now: datetime) -> list[_Story]:
    """What earlier digests of the series hold; one that failed holds nothing, even where its run ended well."""
    runs = SeriesIssue.everywhere.filter(series=series, created_at__gte=now - limits.SERIES_MEMORY)
    items = GeneratedItem.everywhere.filter(generation_id__in=runs.values("generation_id"))
    made = items.exclude(status=GeneratedItemStatus.FAILED).values("generation_id")
    keys = GenerationInput.everywhere.filter(generation_id__in=made).values("raw_item_id")
    rows = list(RawItem.everywhere.filter(pk__in=keys))
    bits = _bits(row.pk for row in rows)
    return [_story(row, bits.get(row.pk)) for row in rows]


def _story(row: RawItem, bits: int | None) -> _Story:
    return _Story(row, bits, 1, plain_title(row.title))


def _bits(keys: Iterable[UUID]) -> dict[UUID, int]:
    rows = RawPrint.everywhere.filter(pk__in=list(keys), bits__isnull=False)
    return dict(rows.values_list("pk", "bits"))


def _once(reports: Sequence[_Story]) -> list[_Story]:
    """Each story by its newest report, with how many there are."""
    found: list[_Story] = []
    known = _Known()
    for report in reports:
        place = known.find(report)
        if place is None:
            known.add(report)
            found.append(report)
        else:
            found[place] = replace(found[place], reports=found[place].reports + 1)
    return found


class _Known:
    """Stories by what tells them apart: the raw item, the headline, and nearly the same words."""

    def __init__(self) -> None:
        self._by_key: dict[UUID | str, int] = {}
        self._bits: list[tuple[int, int]] = []
        self._count = 0

    def add(self, story: _Story) -> None:
        place = self._count
        self._count += 1
        self._by_key.setdefault(story.raw_item.pk, place)
        if story.title:
            # What has no words, an emoji or nothing, is no headline that two could share.
            self._by_key.setdefault(story.title, place)
        if story.bits is not None:
            self._bits.append((place, story.bits))

    def find(self, story: _Story) -> int | None:
        """The place of the first that is the same story."""
        keys: tuple[UUID | str, ...] = (story.raw_item.pk, story.title)
        same = [self._by_key[key] for key in keys if key in self._by_key]
        if story.bits is not None:
            near = (place for place, bits in self._bits if similarity.is_near(story.bits, bits))
            same += islice(near, 1)
        return min(same, default=None)


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
