"""Finds the stories of the review queue, newest first: a story has all items that were made of one raw item.

A story is sorted by its newest item that matches the filters. An item of no single raw item, such as a digest
or a brand lane's post, forms a story with its group of variants.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.db.models import BooleanField, ExpressionWrapper, Q

from config.core.ids import encode
from pipeline import labels
from pipeline.dashboard.counts import MAX_COUNTED_ROWS, CappedCount
from pipeline.models import GeneratedItem, GeneratedItemStatus
from pipeline.models.generated_item import TO_REVIEW, ChecksOutcome

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from uuid import UUID

    from django.db.models import QuerySet

    from accounts.pages.page_access import Place
    from pipeline.pages.review.forms import QueueFilter

ROWS: Final = 30
"""The number of stories on one page of the list."""
ITEMS_AT_ONCE: Final = 300
"""The number of items that are read first to find a page's stories, and doubled as long as that is too few."""
LARGE_STORY: Final = 10
"""A story with this many items among those read at once is large, and its further items aren't read."""
MAX_TABS: Final = 24
"""The most items of one story that are shown; each format has up to eight variants."""
_TAB_COLUMNS: Final = (
    "id",
    "version",
    "status",
    "held",
    "bucket",
    "engine_output",
    "variant_index",
    "variant_group",
    "raw_item_id",
    "title",
    "excerpt",
    "raw_item__title",
    "topic__title",
    "source__name",
    "source__is_push",
    "raw_item__external_id",
    "created_at",
    "revision",
    "checks_revision",
)


def select_tab_columns(rows: QuerySet[GeneratedItem]) -> QuerySet[GeneratedItem, dict[str, Any]]:
    """Return the query with the columns that `build_tab` reads."""
    selected: QuerySet[GeneratedItem, dict[str, Any]] = rows.values(
        *_TAB_COLUMNS,
        checks_came_to=ChecksOutcome("checks"),
        is_to_review=ExpressionWrapper(TO_REVIEW, BooleanField()),
    )
    return selected


@dataclass(frozen=True)
class StoryTab:
    """The tab of one item of a story; `variant` is the item's number in its group, from 1."""

    id: UUID
    version: int
    label: str
    variant: int
    icon: str
    tone: str
    state: str
    waits: bool
    """True if a decision is open: the item is to be reviewed, or on hold."""
    warns: bool
    """True if the item waits, and a check failed or warns or its newest text hasn't been checked."""
    group: UUID
    bucket: str

    @property
    def public_id(self) -> str:
        return encode("gen", self.id)

    @property
    def token(self) -> str:
        """The item's id and its version, as `gen_…:3`."""
        return f"{self.public_id}:{self.version}"


@dataclass(frozen=True)
class ReviewStory:
    """A story of the queue.

    `lead` is the id of its newest item that matches the filters, `key` what its items share (`story_key`). `items`
    are its newest items, at most `MAX_TABS` and the lead, by format and variant.
    """

    lead: UUID
    key: UUID
    title: str
    about: str
    items: tuple[StoryTab, ...]
    at: Any

    @property
    def public_id(self) -> str:
        return encode("gen", self.lead)

    @property
    def waiting(self) -> tuple[StoryTab, ...]:
        """The items on which a decision is open."""
        return tuple(item for item in self.items if item.waits)

    @property
    def warns(self) -> bool:
        """True if a check of a waiting item failed or warns, or its checks are out of date."""
        return any(item.warns for item in self.items)

    @property
    def first_variants(self) -> tuple[StoryTab, ...]:
        """The first waiting variant of each group; a decision on the whole story is a decision on these."""
        first_by_group: dict[UUID, StoryTab] = {}
        for item in self.waiting:
            first_by_group.setdefault(item.group, item)
        return tuple(first_by_group.values())

    def other_variants(self, chosen: StoryTab) -> tuple[StoryTab, ...]:
        """Return the other variants of the chosen item's group that wait."""
        return tuple(item for item in self.waiting if item.group == chosen.group and item.id != chosen.id)

    @property
    def token(self) -> str:
        """The tokens of the whole story: of `first_variants` and, after a bar, of the other waiting variants."""
        return join_tokens(self.first_variants, self.waiting)

    @property
    def icons(self) -> list[tuple[str, str]]:
        """The icon and the name of each format, each once."""
        return list(dict.fromkeys((labels.BUCKET_ICONS[item.bucket], item.label) for item in self.items))


def join_tokens(chosen: Sequence[StoryTab], tabs: Sequence[StoryTab]) -> str:
    """Join the tokens of the chosen items and, after a bar, of the other ones of `tabs`."""
    others = [item for item in tabs if item not in chosen]
    items = ",".join(item.token for item in chosen)
    return "|".join([items, ",".join(item.token for item in others)]) if others else items


def reviewable_items(place: Place) -> QuerySet[GeneratedItem]:
    """Return the workspace's items, without deleted ones and test items."""
    rows: QuerySet[GeneratedItem] = GeneratedItem.objects.of(place.workspace).filter(
        deleted_at=None, test=False
    )
    return rows


def find_stories(
    place: Place, filter_form: QueueFilter, *, before: UUID | None = None, first: UUID | None = None
) -> tuple[list[ReviewStory], bool]:
    """Return up to `ROWS` stories, and whether there are more.

    `before` is the lead after which the list continues, `first` the lead with which it begins. A story whose lead is
    deleted meanwhile is left out.
    """
    lead_ids = _find_leads(filter_form.narrow(reviewable_items(place)), before, first)
    shown_ids = lead_ids[:ROWS]
    leads_by_id = {
        row["id"]: row for row in select_tab_columns(reviewable_items(place).filter(pk__in=shown_ids))
    }
    leads = [leads_by_id[key] for key in shown_ids if key in leads_by_id]
    rows_by_story = _rows_of_stories(place, leads)
    return [_story_with_lead(lead, rows_by_story) for lead in leads], len(lead_ids) > ROWS


def _find_leads(matching: QuerySet[GeneratedItem], before: UUID | None, first: UUID | None) -> list[UUID]:
    """Return the leads of up to one story more than a page shows, newest first.

    It reads the newest items in portions, and leaves out the further items of large stories that it has met. So a
    story of thousands of items costs no more than a walk along an index.
    """
    rows = matching
    if before is not None:
        rows = rows.filter(pk__lt=before)
    if first is not None:
        rows = rows.filter(pk__lte=first)
    leads: list[UUID] = []
    met_keys: set[UUID] = set()
    large_keys: dict[str, set[UUID]] = {"raw_item_id": set(), "variant_group": set()}
    size = ITEMS_AT_ONCE
    while len(leads) <= ROWS:
        # Only large stories are excluded, because small ones have few further items.
        unmet = rows.exclude(raw_item_id__in=large_keys["raw_item_id"])
        unmet = unmet.exclude(raw_item_id=None, variant_group__in=large_keys["variant_group"])
        newest = list(unmet.order_by("-id").values("id", "raw_item_id", "variant_group")[:size])
        if not newest:
            break
        rows_by_story: dict[UUID, list[Mapping[str, Any]]] = {}
        for row in newest:
            rows_by_story.setdefault(story_key(row), []).append(row)
        new_leads = [story_rows[0] for key, story_rows in rows_by_story.items() if key not in met_keys]
        # The leads of stories with a newer item are on a page before.
        earlier_keys = _stories_with_newer(matching, new_leads, before, first) if new_leads else set()
        leads += [row["id"] for row in new_leads if story_key(row) not in earlier_keys]
        met_keys.update(rows_by_story)
        for key, story_rows in rows_by_story.items():
            if len(story_rows) >= LARGE_STORY:
                large_keys["raw_item_id" if story_rows[0]["raw_item_id"] else "variant_group"].add(key)
        if len(newest) < size:
            break
        rows, size = rows.filter(pk__lt=newest[-1]["id"]), 2 * size
    return leads[: ROWS + 1]


def _stories_with_newer(
    matching: QuerySet[GeneratedItem],
    rows: Collection[Mapping[str, Any]],
    before: UUID | None,
    first: UUID | None,
) -> set[UUID]:
    """Return the keys of the stories that have a matching item that is newer than the page's beginning."""
    if before is not None:
        newer = matching.filter(pk__gte=before)
    elif first is not None:
        newer = matching.filter(pk__gt=first)
    else:
        return set()
    keys = newer.filter(_is_of_stories(rows)).order_by().values("raw_item_id", "variant_group").distinct()
    return {story_key(row) for row in keys}


def _is_of_stories(rows: Collection[Mapping[str, Any]]) -> Q:
    """Return the condition for all items of the stories of these rows; without rows it would match every item."""
    raw_item_ids = [row["raw_item_id"] for row in rows if row["raw_item_id"]]
    group_ids = [row["variant_group"] for row in rows if not row["raw_item_id"]]
    condition = Q(raw_item_id__in=raw_item_ids) if raw_item_ids else Q()
    return condition | Q(variant_group__in=group_ids) if group_ids else condition


def read_story(place: Place, row: GeneratedItem) -> ReviewStory:
    """Return the story of an item with that item as its lead, with one SQL query, or two for an old item."""
    story_filter = (
        {"raw_item_id": row.raw_item_id} if row.raw_item_id else {"variant_group": row.variant_group}
    )
    rows = (
        GeneratedItem.objects.of(place.workspace)
        .filter(deleted_at=None, test=False, **story_filter)
        .order_by("-id")
    )
    story_rows = list(select_tab_columns(rows)[:MAX_TABS])
    lead = next((story_row for story_row in story_rows if story_row["id"] == row.pk), None)
    if lead is None:
        # The item isn't among the newest items of its story, which are all that was read.
        lead = select_tab_columns(reviewable_items(place)).get(pk=row.pk)
        story_rows.append(lead)
    return _build_story(lead, story_rows)


def count_matching(place: Place, filter_form: QueueFilter) -> CappedCount:
    """Count the items that match the filters, up to `MAX_COUNTED_ROWS`."""
    return CappedCount(
        filter_form.narrow(reviewable_items(place)).order_by().values("pk")[: MAX_COUNTED_ROWS + 1].count()
    )


def count_newer(place: Place, filter_form: QueueFilter, than: UUID) -> CappedCount:
    """Count the items that match the filters and are newer than this one, up to `MAX_COUNTED_ROWS`."""
    rows = filter_form.narrow(reviewable_items(place)).filter(pk__gt=than)
    return CappedCount(rows.order_by().values("pk")[: MAX_COUNTED_ROWS + 1].count())


def _rows_of_stories(place: Place, leads: Sequence[dict[str, Any]]) -> dict[Any, list[dict[str, Any]]]:
    """Return the newest items of these stories, `ROWS * MAX_TABS` at most, by the key of their story."""
    rows_by_story: defaultdict[Any, list[dict[str, Any]]] = defaultdict(list)
    if not leads:
        return rows_by_story
    rows = reviewable_items(place).filter(_is_of_stories(leads))
    for row in select_tab_columns(rows.order_by("-id"))[: ROWS * MAX_TABS]:
        rows_by_story[story_key(row)].append(row)
    return rows_by_story


def story_key(row: Mapping[str, Any]) -> UUID:
    """Return what the items of one story share: their raw item's id or, without one, that of their variant group."""
    key: UUID = row["raw_item_id"] or row["variant_group"]
    return key


def _story_with_lead(lead: dict[str, Any], rows_by_story: dict[Any, list[dict[str, Any]]]) -> ReviewStory:
    rows = rows_by_story[story_key(lead)][:MAX_TABS]
    if all(row["id"] != lead["id"] for row in rows):
        rows.append(lead)
    return _build_story(lead, rows)


def _build_story(lead: dict[str, Any], rows: Sequence[dict[str, Any]]) -> ReviewStory:
    ordered_rows = sorted(rows, key=lambda row: (row["engine_output"], row["variant_index"], row["id"]))
    return ReviewStory(
        lead=lead["id"],
        key=story_key(lead),
        title=lead["raw_item__title"] or lead["title"] or lead["excerpt"] or lead["topic__title"] or "",
        about=lead["topic__title"] or labels.origin_of_row(lead),
        items=tuple(build_tab(row) for row in ordered_rows),
        at=lead["created_at"],
    )


def build_tab(row: dict[str, Any]) -> StoryTab:
    """Return the tab of a row that `select_tab_columns` selected."""
    is_to_review, is_held = row["is_to_review"], bool(row["held"])
    tone, icon, state = labels.of_status(row["status"], is_approved=not is_to_review, is_held=is_held)
    waits = row["status"] == GeneratedItemStatus.READY and (is_to_review or is_held)
    return StoryTab(
        id=row["id"],
        version=row["version"],
        label=row["engine_output"],
        variant=row["variant_index"] + 1,
        icon=icon,
        tone=tone,
        state=str(state),
        waits=waits,
        warns=waits and (bool(row["checks_came_to"]) or row["checks_revision"] != row["revision"]),
        group=row["variant_group"],
        bucket=row["bucket"],
    )
