"""Finds the stories of the queue, newest first: all items that were made of one raw item are one story.

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
"""Stories on one page of the list."""
ITEMS_AT_ONCE: Final = 300
"""Items that are read at first to find the stories of a page; twice as many each time that they don't suffice."""
LARGE_STORY: Final = 10
"""Items of one story among those read at once from which on its further items are left out."""
STACKED_MOST: Final = 24
"""Most items of one story that are shown; each format has up to eight variants."""
FIELDS: Final = (
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


def fields_of(rows: QuerySet[GeneratedItem]) -> QuerySet[GeneratedItem, dict[str, Any]]:
    """Select the columns that `stacked` reads."""
    selected: QuerySet[GeneratedItem, dict[str, Any]] = rows.values(
        *FIELDS,
        checks_came_to=ChecksOutcome("checks"),
        is_to_review=ExpressionWrapper(TO_REVIEW, BooleanField()),
    )
    return selected


@dataclass(frozen=True)
class Stacked:
    """One item of a story, as its tab shows it."""

    id: UUID
    version: int
    label: str
    variant: int
    icon: str
    tone: str
    state: str
    waits: bool
    """A decision is open: it is to be reviewed, or approved and held back."""
    warns: bool
    """It waits, and its checks warn or its newest words haven't been checked."""
    group: UUID
    bucket: str

    @property
    def public_id(self) -> str:
        return encode("gen", self.id)

    @property
    def token(self) -> str:
        """The item's id with the version that was seen, as `gen_…:3`."""
        return f"{self.public_id}:{self.version}"


@dataclass(frozen=True)
class ReviewStory:
    """`lead` is the newest item that matches the filters; `items` are all, by format and variant."""

    lead: UUID
    key: UUID
    title: str
    about: str
    items: tuple[Stacked, ...]
    at: Any

    @property
    def public_id(self) -> str:
        return encode("gen", self.lead)

    @property
    def waiting(self) -> tuple[Stacked, ...]:
        """The items on which a decision is open."""
        return tuple(item for item in self.items if item.waits)

    @property
    def warns(self) -> bool:
        """Whether the checks of a waiting item warn, or are out of date."""
        return any(item.warns for item in self.items)

    @property
    def firsts(self) -> tuple[Stacked, ...]:
        """One variant of each format that waits; a decision on the whole story is a decision on these."""
        first_by_group: dict[UUID, Stacked] = {}
        for item in self.waiting:
            first_by_group.setdefault(item.group, item)
        return tuple(first_by_group.values())

    def among(self, chosen: Stacked) -> tuple[Stacked, ...]:
        """Return the other variants of the chosen item's group that wait."""
        return tuple(item for item in self.waiting if item.group == chosen.group and item.id != chosen.id)

    @property
    def token(self) -> str:
        """The tokens of the whole story: `firsts`, and after a bar the variants beside them."""
        return token_of(self.firsts, self.waiting)

    @property
    def icons(self) -> list[tuple[str, str]]:
        """The icon and name of each format, once each."""
        return list(dict.fromkeys((labels.BUCKET_ICONS[item.bucket], item.label) for item in self.items))


def token_of(chosen: Sequence[Stacked], beside: Sequence[Stacked]) -> str:
    """Join the tokens of the chosen items and, after a bar, of those that were shown beside them."""
    others = [item for item in beside if item not in chosen]
    items = ",".join(item.token for item in chosen)
    return "|".join([items, ",".join(item.token for item in others)]) if others else items


def all_of(place: Place) -> QuerySet[GeneratedItem]:
    """Return the workspace's items, without deleted ones and tests."""
    rows: QuerySet[GeneratedItem] = GeneratedItem.objects.of(place.workspace).filter(
        deleted_at=None, test=False
    )
    return rows


def stories(
    place: Place, narrowed: QueueFilter, *, before: UUID | None = None, first: UUID | None = None
) -> tuple[list[ReviewStory], bool]:
    """Return up to `ROWS` stories, and whether there are more.

    `before` is the lead after which the list continues, `first` the lead with which it begins.
    """
    lead_ids = _find_leads(narrowed.narrow(all_of(place)), before, first)
    shown_ids = lead_ids[:ROWS]
    leads_by_id = {row["id"]: row for row in fields_of(all_of(place).filter(pk__in=shown_ids))}
    # One that was deleted since is left out.
    leads = [leads_by_id[key] for key in shown_ids if key in leads_by_id]
    rows_by_story = _rows_of_stories(place, leads)
    return [_story_with_lead(lead, rows_by_story) for lead in leads], len(lead_ids) > ROWS


def _find_leads(matching: QuerySet[GeneratedItem], before: UUID | None, first: UUID | None) -> list[UUID]:
    """Return the leads of up to one story more than a page shows, newest first.

    Reads the newest items, leaving out large stories that it has met, so a story of thousands of items costs
    no more than a walk along an index.
    """
    rows = matching
    if before is not None:
        rows = rows.filter(pk__lt=before)
    if first is not None:
        rows = rows.filter(pk__lte=first)
    leads: list[UUID] = []
    met: set[UUID] = set()
    large: dict[str, set[UUID]] = {"raw_item_id": set(), "variant_group": set()}
    size = ITEMS_AT_ONCE
    while len(leads) <= ROWS:
        # The database walks past the further items of large stories; of small ones they are few.
        unmet = rows.exclude(raw_item_id__in=large["raw_item_id"])
        unmet = unmet.exclude(raw_item_id=None, variant_group__in=large["variant_group"])
        newest = list(unmet.order_by("-id").values("id", "raw_item_id", "variant_group")[:size])
        if not newest:
            break
        rows_by_story: dict[UUID, list[Mapping[str, Any]]] = {}
        for row in newest:
            rows_by_story.setdefault(story_key(row), []).append(row)
        new = [story_rows[0] for key, story_rows in rows_by_story.items() if key not in met]
        # Their leads are on a page before.
        passed = _stories_with_newer(matching, new, before, first) if new else set()
        leads += [row["id"] for row in new if story_key(row) not in passed]
        met.update(rows_by_story)
        for key, story_rows in rows_by_story.items():
            if len(story_rows) >= LARGE_STORY:
                large["raw_item_id" if story_rows[0]["raw_item_id"] else "variant_group"].add(key)
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
    """Return the keys of those stories that have a matching item before the page's beginning."""
    if before is not None:
        newer = matching.filter(pk__gte=before)
    elif first is not None:
        newer = matching.filter(pk__gt=first)
    else:
        return set()
    keys = newer.filter(_is_of_stories(rows)).order_by().values("raw_item_id", "variant_group").distinct()
    return {story_key(row) for row in keys}


def _is_of_stories(rows: Collection[Mapping[str, Any]]) -> Q:
    """Return the condition for all items of the stories of these rows, of which there is one at least."""
    raw_item_ids = [row["raw_item_id"] for row in rows if row["raw_item_id"]]
    group_ids = [row["variant_group"] for row in rows if not row["raw_item_id"]]
    condition = Q(raw_item_id__in=raw_item_ids) if raw_item_ids else Q()
    return condition | Q(variant_group__in=group_ids) if group_ids else condition


def story_of(place: Place, row: GeneratedItem) -> ReviewStory:
    """Return the story of an item, with that item as its lead, in one statement; a second for an old item."""
    story_filter = (
        {"raw_item_id": row.raw_item_id} if row.raw_item_id else {"variant_group": row.variant_group}
    )
    rows = (
        GeneratedItem.objects.of(place.workspace)
        .filter(deleted_at=None, test=False, **story_filter)
        .order_by("-id")
    )
    story_rows = list(fields_of(rows)[:STACKED_MOST])
    lead = next((story_row for story_row in story_rows if story_row["id"] == row.pk), None)
    if lead is None:
        # The item isn't among the newest ones, which alone are shown.
        lead = fields_of(all_of(place)).get(pk=row.pk)
        story_rows.append(lead)
    return _build_story(lead, story_rows)


def waiting_count(place: Place, narrowed: QueueFilter) -> CappedCount:
    """Count the items that match the filters, up to `MAX_COUNTED_ROWS`."""
    return CappedCount(narrowed.narrow(all_of(place)).order_by().values("pk")[: MAX_COUNTED_ROWS + 1].count())


def newer_count(place: Place, narrowed: QueueFilter, than: UUID) -> CappedCount:
    """Count the items that match the filters and came in after this one, up to `MAX_COUNTED_ROWS`."""
    rows = narrowed.narrow(all_of(place)).filter(pk__gt=than)
    return CappedCount(rows.order_by().values("pk")[: MAX_COUNTED_ROWS + 1].count())


def _rows_of_stories(place: Place, leads: Sequence[dict[str, Any]]) -> dict[Any, list[dict[str, Any]]]:
    """Return all items of these stories, by raw item or else by group of variants."""
    rows_by_story: defaultdict[Any, list[dict[str, Any]]] = defaultdict(list)
    if not leads:
        return rows_by_story
    rows = all_of(place).filter(_is_of_stories(leads))
    for row in fields_of(rows.order_by("-id"))[: ROWS * STACKED_MOST]:
        rows_by_story[story_key(row)].append(row)
    return rows_by_story


def story_key(row: Mapping[str, Any]) -> UUID:
    """Return what the items of one story share: their raw item, or without one their group of variants."""
    key: UUID = row["raw_item_id"] or row["variant_group"]
    return key


def _story_with_lead(lead: dict[str, Any], rows_by_story: dict[Any, list[dict[str, Any]]]) -> ReviewStory:
    rows = rows_by_story[story_key(lead)][:STACKED_MOST]
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
        items=tuple(stacked(row) for row in ordered_rows),
        at=lead["created_at"],
    )


def stacked(row: dict[str, Any]) -> Stacked:
    """Return the tab of a row that `fields_of` selected."""
    is_to_review, is_held = row["is_to_review"], bool(row["held"])
    tone, icon, state = labels.of_status(row["status"], is_approved=not is_to_review, is_held=is_held)
    waits = row["status"] == GeneratedItemStatus.READY and (is_to_review or is_held)
    return Stacked(
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
