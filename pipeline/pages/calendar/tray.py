"""Reads the tray next to the calendar: items that are ready and not scheduled, the newest first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.db.models import Value
from django.utils.timesince import timesince
from django.utils.translation import gettext as _

from config.core.ids import encode
from pipeline import labels
from pipeline.models import GeneratedItem
from pipeline.outlets.outlet_client import buckets_of
from pipeline.pages.items import display

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from accounts.pages.page_access import Place
    from pipeline.models import Outlet
    from pipeline.models.generated_item import OwnGeneratedItems

ROWS: Final = 12
"""Items per page."""
MAX_ITEMS_SEARCHED: Final = 1000
"""The most items that one page searches for those of one outlet."""
_COLUMNS: Final = (
    "title",
    "excerpt",
    "bucket",
    "engine_output",
    "status",
    "held",
    "version",
    "revision",
    "approved_at",
    "approved_revision",
    "variant_index",
    "outlets",
    "is_sample",
    "ready_at",
    "created_at",
    "workspace_id",
    "raw_item__title",
    "raw_item__url",
)


@dataclass(frozen=True)
class UnscheduledItem:
    """An item as the tray and the list of a free slot show it."""

    item: GeneratedItem
    title: str
    badge: labels.Badge
    outlet_names: str
    """The names of its default outlets that take it, separated by commas; empty if there is none."""
    age: str
    """How long ago the item became ready, as `3 hours ago`."""
    has_to_be_approved: bool
    """True if the item can't be scheduled until it is approved."""

    @property
    def is_approved(self) -> bool:
        return self.item.is_approved_as_it_is

    @property
    def public_id(self) -> str:
        return encode("gen", self.item.pk)

    @property
    def icon(self) -> str:
        return labels.BUCKET_ICONS[self.item.bucket]

    @property
    def variant(self) -> int:
        """The item's number among the variants of its group, from 2; 0 for the first one."""
        return self.item.variant_index + 1 if self.item.variant_index else 0


@dataclass(frozen=True)
class Tray:
    """A page of unscheduled items; `older` is the id after which the next page begins, or empty on the last."""

    rows: tuple[UnscheduledItem, ...]
    older: str
    is_first: bool

    @property
    def count_text(self) -> str:
        """The number of items on this page, with a plus sign if another page has more."""
        return f"{len(self.rows)}+" if self.older or not self.is_first else str(len(self.rows))

    @property
    def has_unapproved(self) -> bool:
        """True if scheduling one of the items would also approve it."""
        return any(not row.is_approved and not row.has_to_be_approved for row in self.rows)


def unscheduled(place: Place) -> OwnGeneratedItems:
    """Return the workspace's unscheduled items, the newest first."""
    # Compiles to `test = false`; Django's `NOT test` keeps SQLite from seeking in the index of the statuses.
    rows = GeneratedItem.objects.of(place.workspace).filter(test=Value(False)).unscheduled()  # noqa: FBT003
    ordered: OwnGeneratedItems = rows.order_by("-id")
    return ordered


def read_tray(
    place: Place, outlets: Sequence[Outlet], *, only: UUID | None, before: UUID | None, now: datetime
) -> Tray:
    """Read a page of the tray with a few SQL queries, however many items there are.

    `only` is the outlet that the calendar is narrowed to, `before` the last item of the page before; each may be
    `None`. With `only`, a page searches `MAX_ITEMS_SEARCHED` items, so it may be short although more follow.
    """
    rows = unscheduled(place)
    if before is not None:
        rows = rows.filter(pk__lt=before)
    last_key: UUID | None = None
    if only is not None:
        searched = list(rows.only("bucket", "outlets")[:MAX_ITEMS_SEARCHED])
        keys = [item.pk for item in searched if _may_go_to(item, outlets, only)][: ROWS + 1]
        has_unsearched = len(searched) == MAX_ITEMS_SEARCHED
        last_key = searched[-1].pk if has_unsearched and len(keys) <= ROWS else None
        rows = rows.filter(pk__in=keys) if keys else rows.none()
    page_items = list(rows.select_related("raw_item").only(*_COLUMNS)[: ROWS + 1])
    if len(page_items) > ROWS:
        last_key = page_items[ROWS - 1].pk
    tray_items = tuple(build_tray_item(place, item, outlets, now=now) for item in page_items[:ROWS])
    return Tray(tray_items, encode("gen", last_key) if last_key else "", is_first=before is None)


def build_tray_item(
    place: Place, item: GeneratedItem, outlets: Sequence[Outlet], *, now: datetime
) -> UnscheduledItem:
    """Return the item as the tray shows it, without a query: its raw item must be loaded."""
    return UnscheduledItem(
        item=item,
        title=display.title_of(item),
        badge=labels.of_promise(item),
        outlet_names=", ".join(outlet.name for outlet in default_outlets_of(item, outlets)),
        age=_format_age(item.ready_at or item.created_at, now),
        has_to_be_approved=item.lacks_approval(place.workspace),
    )


def default_outlets_of(item: GeneratedItem, outlets: Sequence[Outlet]) -> list[Outlet]:
    """Return those of `outlets` that are the item's default outlets and take it, in the item's order."""
    outlets_by_id = {
        encode("out", outlet.pk): outlet for outlet in outlets if item.bucket in buckets_of(outlet.platform)
    }
    return [outlets_by_id[public_id] for public_id in item.outlets if public_id in outlets_by_id]


def _may_go_to(item: GeneratedItem, outlets: Sequence[Outlet], outlet_key: UUID) -> bool:
    """Return whether the item may go to an outlet.

    An item whose default outlets don't take it may go to every outlet that does.
    """
    default_outlets = default_outlets_of(item, outlets)
    candidates = default_outlets or [
        outlet for outlet in outlets if item.bucket in buckets_of(outlet.platform)
    ]
    return any(outlet.pk == outlet_key for outlet in candidates)


def _format_age(since: datetime, now: datetime) -> str:
    """Return the time that has passed since a moment, such as `3 hours ago`."""
    minutes = int((now - since).total_seconds() // 60)
    if minutes < 1:
        return _("Just now")
    return _("%(time)s ago") % {"time": timesince(since, now, depth=1).replace("\xa0", " ")}
