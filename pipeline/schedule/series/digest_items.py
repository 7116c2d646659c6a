"""Selects the raw items of a digest: ranked, each story once, and none that an earlier digest contained."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING, Final

from django.db.models import Q

from config.core import ids
from pipeline import limits
from pipeline.ingest.raw_content import plain_title
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
    # The source's own engines can make nothing from it; a digest may.
    status=RawItemStatus.SKIPPED,
    reason__code="nothing_to_make",
)
_FURTHER_REPORT_WORTH: Final = 2.0
"""The worth of each further report of a story; being the newest of the window is worth 1."""
_SAME_SOURCE_COST: Final = 0.6
"""The cost of each story already chosen from the same source."""


@dataclass(frozen=True)
class SeriesSelection:
    """The chosen `raw_items` in the order of the digest; `found` counts all that could be chosen."""

    raw_items: tuple[RawItem, ...]
    found: int


@dataclass(frozen=True)
class _Story:
    """A story by one of its reports."""

    raw_item: RawItem
    bits: int | None
    """The SimHash bits of the text, or `None` if it is too short to have any."""
    reports: int
    """The number of reports of the story."""
    title: str
    """The title's words in comparable form, or an empty string if it has none."""


def select_items(series: Series, *, now: datetime) -> SeriesSelection:
    """Return the best stories of the window: most reported and newest first, not too many of one source.

    Stories of earlier digests are left out. Only the newest `limits.SERIES_LOOKED_AT` raw items are read.
    """
    since = now - timedelta(days=series.window_days)
    rows = (
        RawItem.objects.of(series.workspace_id)
        .filter(_USABLE, test=series.test, created_at__gte=since, deleted_at=None, withdrawn_at=None)
        # Ids rise with time, and the list's index contains them.
        .filter(id__gte=ids.lowest_id_at(since))
        .order_by("-id")
    )
    if series.sources:
        rows = rows.filter(source_id__in=[ids.decode("src", public_id) for public_id in series.sources])
    newest = list(rows[: limits.SERIES_LOOKED_AT])
    earlier = _read_earlier_stories(series, now)
    # A raw item without a fingerprint has too few words for a digest.
    bits = _read_fingerprints(row.pk for row in newest)
    fresh = [_build_story(row, bits[row.pk]) for row in newest if row.pk in bits]
    known = _StoryIndex()
    for story in earlier:
        known.add(story)
    stories = [story for story in _merge_reports(fresh) if known.find(story) is None]
    return SeriesSelection(tuple(_rank_stories(stories, series, now)), len(stories))


def _read_earlier_stories(series: Series, now: datetime) -> list[_Story]:
    """Return what earlier digests contain, except failed ones, even if their run ended well."""
    runs = SeriesIssue.everywhere.filter(series=series, created_at__gte=now - limits.SERIES_MEMORY)
    items = GeneratedItem.everywhere.filter(generation_id__in=runs.values("generation_id"))
    finished_runs = items.exclude(status=GeneratedItemStatus.FAILED).values("generation_id")
    keys = GenerationInput.everywhere.filter(generation_id__in=finished_runs).values("raw_item_id")
    rows = list(RawItem.everywhere.filter(pk__in=keys))
    bits = _read_fingerprints(row.pk for row in rows)
    return [_build_story(row, bits.get(row.pk)) for row in rows]


def _build_story(row: RawItem, bits: int | None) -> _Story:
    return _Story(row, bits, 1, plain_title(row.title))


def _read_fingerprints(keys: Iterable[UUID]) -> dict[UUID, int]:
    """Return the SimHash bits of these raw items by id; a text that is too short has none."""
    rows = RawPrint.everywhere.filter(pk__in=list(keys), bits__isnull=False)
    return dict(rows.values_list("pk", "bits"))


def _merge_reports(reports: Sequence[_Story]) -> list[_Story]:
    """Return each story by its newest report, with the number of reports; `reports` are newest first."""
    stories: list[_Story] = []
    known = _StoryIndex()
    for report in reports:
        index = known.find(report)
        if index is None:
            known.add(report)
            stories.append(report)
        else:
            stories[index] = replace(stories[index], reports=stories[index].reports + 1)
    return stories


class _StoryIndex:
    """Finds equal stories: those with the same raw item, the same headline, or nearly the same text."""

    def __init__(self) -> None:
        self._by_key: dict[UUID | str, int] = {}
        self._fingerprints: list[tuple[int, int]] = []
        self._count = 0

    def add(self, story: _Story) -> None:
        """Add a story; its index is the number of stories before it."""
        index = self._count
        self._count += 1
        self._by_key.setdefault(story.raw_item.pk, index)
        if story.title:
            # A title without words, such as an emoji, isn't a headline that two stories could share.
            self._by_key.setdefault(story.title, index)
        if story.bits is not None:
            self._fingerprints.append((index, story.bits))

    def find(self, story: _Story) -> int | None:
        """Return the index of the first story that is the same, or `None`."""
        keys: tuple[UUID | str, ...] = (story.raw_item.pk, story.title)
        indexes = [self._by_key[key] for key in keys if key in self._by_key]
        if story.bits is not None:
            similar = (index for index, bits in self._fingerprints if similarity.is_near(story.bits, bits))
            indexes += islice(similar, 1)
        return min(indexes, default=None)


def _rank_stories(stories: Sequence[_Story], series: Series, now: datetime) -> list[RawItem]:
    """Return the best stories' raw items, chosen one by one: each choice lowers the worth of its source."""
    window = timedelta(days=series.window_days)
    remaining = list(stories)
    chosen: list[RawItem] = []
    chosen_of_source: Counter[UUID] = Counter()

    def worth(story: _Story) -> tuple[float, UUID]:
        row = story.raw_item
        newness = 1 - (now - row.created_at) / window
        reports = _FURTHER_REPORT_WORTH * (story.reports - 1)
        return reports + newness - _SAME_SOURCE_COST * chosen_of_source[row.source_id], row.pk

    while remaining and len(chosen) < series.items_most:
        best = max(remaining, key=worth)
        remaining.remove(best)
        chosen.append(best.raw_item)
        chosen_of_source[best.raw_item.source_id] += 1
    return chosen
