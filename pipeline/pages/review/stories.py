"""The queue as a list of stories, the newest first: what was made of one raw item is one story.

A story stands where its newest item stands that is looked for. What was made of no single raw item, such as a digest or
a brand lane's, is a story by its group of variants.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.db.models import BooleanField, Exists, ExpressionWrapper, OuterRef, Q

from config.core.ids import encode
from pipeline import labels
from pipeline.dashboard.counts import COUNTED_MOST, CappedCount
from pipeline.models import GeneratedItem, GeneratedItemStatus
from pipeline.models.generated_item import TO_REVIEW, ChecksOutcome

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from django.db.models import QuerySet

    from accounts.pages.page_access import Place
    from pipeline.pages.review.forms import QueueFilter

ROWS: Final = 30
STACKED_MOST: Final = 24
"""Items of one story that are shown; each format has up to eight variants."""
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
    """What `stacked` reads of each."""
    found: QuerySet[GeneratedItem, dict[str, Any]] = rows.values(
        *FIELDS,
        checks_came_to=ChecksOutcome("checks"),
        is_to_review=ExpressionWrapper(TO_REVIEW, BooleanField()),
    )
    return found


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
    """To review, or approved and held back: a decision is open."""
    warns: bool
    """It waits, and its checks warn, or nothing has checked its words."""
    group: UUID
    bucket: str

    @property
    def public_id(self) -> str:
        return encode("gen", self.id)

    @property
    def token(self) -> str:
        """Which item, and in which version it was looked at."""
        return f"{self.public_id}:{self.version}"


@dataclass(frozen=True)
class ReviewStory:
    """`lead` is its newest item that is looked for; `items` all of it, in the order of formats and variants."""

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
        return tuple(one for one in self.items if one.waits)

    @property
    def warns(self) -> bool:
        return any(one.warns for one in self.items)

    @property
    def firsts(self) -> tuple[Stacked, ...]:
        """One variant of each format that waits: what deciding on the whole story means."""
        found: dict[UUID, Stacked] = {}
        for one in self.waiting:
            found.setdefault(one.group, one)
        return tuple(found.values())

    def among(self, chosen: Stacked) -> tuple[Stacked, ...]:
        """The other variants of its group that wait."""
        return tuple(one for one in self.waiting if one.group == chosen.group and one.id != chosen.id)

    @property
    def token(self) -> str:
        """The whole story: one of each format, and after a bar what they are chosen among."""
        return token_of(self.firsts, self.waiting)

    @property
    def icons(self) -> list[tuple[str, str]]:
        """Icon and name of each format, once."""
        return list(dict.fromkeys((labels.BUCKET_ICONS[one.bucket], one.label) for one in self.items))


def token_of(chosen: Sequence[Stacked], beside: Sequence[Stacked]) -> str:
    others = [one for one in beside if one not in chosen]
    items = ",".join(one.token for one in chosen)
    return "|".join([items, ",".join(one.token for one in others)]) if others else items


def all_of(place: Place) -> QuerySet[GeneratedItem]:
    found: QuerySet[GeneratedItem] = GeneratedItem.objects.of(place.workspace).filter(
        deleted_at=None, test=False
    )
    return found


def stories(
    place: Place, narrowed: QueueFilter, *, before: UUID | None = None, first: UUID | None = None
) -> tuple[list[ReviewStory], bool]:
    """Up to `ROWS` of them, and whether there are more; `before` and `first` are leads. Two statements."""
    rows = narrowed.narrow(all_of(place))
    if before is not None:
        rows = rows.filter(pk__lt=before)
    if first is not None:
        rows = rows.filter(pk__lte=first)
    newer = narrowed.narrow(all_of(place)).filter(pk__gt=OuterRef("pk"))
    # Two questions in place of one with OR, so that each is answered by an index of its own.
    rows = rows.exclude(Exists(newer.filter(raw_item_id=OuterRef("raw_item_id"))))
    rows = rows.exclude(Exists(newer.filter(variant_group=OuterRef("variant_group"))))
    leads = list(fields_of(rows.order_by("-id"))[: ROWS + 1])
    shown = leads[:ROWS]
    beside = _beside(place, shown)
    return [_story(lead, beside) for lead in shown], len(leads) > ROWS


def story_of(place: Place, row: GeneratedItem) -> ReviewStory:
    """That of one item, which leads it here. One statement."""
    key = {"raw_item_id": row.raw_item_id} if row.raw_item_id else {"variant_group": row.variant_group}
    rows = (
        GeneratedItem.objects.of(place.workspace).filter(deleted_at=None, test=False, **key).order_by("-id")
    )
    found = list(fields_of(rows)[:STACKED_MOST])
    lead = next((one for one in found if one["id"] == row.pk), None)
    if lead is None:
        # It stands beyond the newest that are shown.
        lead = fields_of(all_of(place)).get(pk=row.pk)
        found.append(lead)
    return _build_story(lead, found)


def waiting_count(place: Place, narrowed: QueueFilter) -> CappedCount:
    """Items, counted up to a thousand."""
    return CappedCount(narrowed.narrow(all_of(place)).order_by().values("pk")[: COUNTED_MOST + 1].count())


def newer_count(place: Place, narrowed: QueueFilter, than: UUID) -> CappedCount:
    rows = narrowed.narrow(all_of(place)).filter(pk__gt=than)
    return CappedCount(rows.order_by().values("pk")[: COUNTED_MOST + 1].count())


def _beside(place: Place, leads: Sequence[dict[str, Any]]) -> dict[Any, list[dict[str, Any]]]:
    """What else there is of these stories, by raw item, or group."""
    raws = [one["raw_item_id"] for one in leads if one["raw_item_id"]]
    groups = [one["variant_group"] for one in leads if not one["raw_item_id"]]
    found: defaultdict[Any, list[dict[str, Any]]] = defaultdict(list)
    if not leads:
        return found
    wanted = Q(raw_item_id__in=raws) if raws else Q()
    if groups:
        wanted |= Q(variant_group__in=groups)
    for one in fields_of(all_of(place).filter(wanted).order_by("-id"))[: ROWS * STACKED_MOST]:
        found[_key(one)].append(one)
    return found


def _key(row: dict[str, Any]) -> Any:
    return row["raw_item_id"] or row["variant_group"]


def _story(lead: dict[str, Any], beside: dict[Any, list[dict[str, Any]]]) -> ReviewStory:
    there = beside[_key(lead)][:STACKED_MOST]
    if all(one["id"] != lead["id"] for one in there):
        there.append(lead)
    return _build_story(lead, there)


def _build_story(lead: dict[str, Any], there: Sequence[dict[str, Any]]) -> ReviewStory:
    ordered = sorted(there, key=lambda one: (one["engine_output"], one["variant_index"], one["id"]))
    return ReviewStory(
        lead=lead["id"],
        key=_key(lead),
        title=lead["raw_item__title"] or lead["title"] or lead["excerpt"] or lead["topic__title"] or "",
        about=lead["topic__title"] or labels.origin_of_row(lead),
        items=tuple(stacked(one) for one in ordered),
        at=lead["created_at"],
    )


def stacked(row: dict[str, Any]) -> Stacked:
    """Of a row as `fields_of` gives it."""
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
