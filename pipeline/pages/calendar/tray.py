"""The tray beside the calendar: items that are ready and not scheduled, the newest first."""

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

SHOWN: Final = 12
READ_MOST: Final = 1000
"""Items that are looked at for those of one outlet."""
_FIELDS: Final = (
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
    """An item as the tray and a free slot's list show it."""

    item: GeneratedItem
    title: str
    badge: labels.Badge
    channels: str
    """Names of the outlets where it goes by default; empty where none of them takes it."""
    age: str
    has_to_be_approved: bool
    """It can't be scheduled before."""

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
        """Its number among the variants of its group; 0 for the first."""
        return self.item.variant_index + 1 if self.item.variant_index else 0


@dataclass(frozen=True)
class Tray:
    """A page of unscheduled items; `older` is where the next page begins, empty on the last."""

    rows: tuple[UnscheduledItem, ...]
    older: str
    is_first: bool

    @property
    def said(self) -> str:
        """How many there are, as far as the page tells."""
        return f"{len(self.rows)}+" if self.older or not self.is_first else str(len(self.rows))

    @property
    def has_unapproved(self) -> bool:
        """Whether scheduling one of them approves it."""
        return any(not one.is_approved and not one.has_to_be_approved for one in self.rows)


def unscheduled(place: Place) -> OwnGeneratedItems:
    """The newest first."""
    # As `test = false`; Django's `NOT test` keeps SQLite from seeking in the index of the statuses.
    rows = GeneratedItem.objects.of(place.workspace).filter(test=Value(False)).unscheduled()  # noqa: FBT003
    found: OwnGeneratedItems = rows.order_by("-id")
    return found


def read_tray(
    place: Place, outlets: Sequence[Outlet], *, only: UUID | None, before: UUID | None, now: datetime
) -> Tray:
    """A few statements, however many items there are; `only` is the outlet that the calendar is narrowed to."""
    rows = unscheduled(place)
    if before is not None:
        rows = rows.filter(pk__lt=before)
    last: UUID | None = None
    if only is not None:
        looked_at = list(rows.only("bucket", "outlets")[:READ_MOST])
        keys = [one.pk for one in looked_at if _goes_to(one, outlets, only)][: SHOWN + 1]
        last = looked_at[-1].pk if len(looked_at) == READ_MOST and len(keys) <= SHOWN else None
        rows = rows.filter(pk__in=keys) if keys else rows.none()
    found = list(rows.select_related("raw_item").only(*_FIELDS)[: SHOWN + 1])
    if len(found) > SHOWN:
        last = found[SHOWN - 1].pk
    shown = tuple(as_shown(place, one, outlets, now=now) for one in found[:SHOWN])
    return Tray(shown, encode("gen", last) if last else "", is_first=before is None)


def as_shown(
    place: Place, item: GeneratedItem, outlets: Sequence[Outlet], *, now: datetime
) -> UnscheduledItem:
    """No statement; the item comes with its raw item."""
    return UnscheduledItem(
        item=item,
        title=display.title_of(item),
        badge=labels.of_promise(item),
        channels=", ".join(outlet.name for outlet in channels_of(item, outlets)),
        age=_age(item.ready_at or item.created_at, now),
        has_to_be_approved=place.workspace.requires_approval and not item.is_approved_as_it_is,
    )


def channels_of(item: GeneratedItem, outlets: Sequence[Outlet]) -> list[Outlet]:
    """The outlets where it goes by default and that take it, in its order."""
    taking = {encode("out", one.pk): one for one in outlets if item.bucket in buckets_of(one.platform)}
    return [taking[name] for name in item.outlets if name in taking]


def _goes_to(item: GeneratedItem, outlets: Sequence[Outlet], only: UUID) -> bool:
    """One without an outlet of its own may go wherever it is taken."""
    own = channels_of(item, outlets)
    wanted = own or [one for one in outlets if item.bucket in buckets_of(one.platform)]
    return any(one.pk == only for one in wanted)


def _age(since: datetime, now: datetime) -> str:
    minutes = int((now - since).total_seconds() // 60)
    if minutes < 1:
        return _("Just now")
    return _("%(time)s ago") % {"time": timesince(since, now, depth=1).replace("\xa0", " ")}
