"""What a lane did at each of its slots: what it took, what it discarded, and why nothing came of it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.models import BrandPick, BrandSlot

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from pipeline.models import Source

SLOTS_SHOWN: Final = 50


@dataclass(frozen=True)
class Logged:
    """One slot with its picks in the order in which they were taken; each names its decision and the reason for it."""

    slot: BrandSlot
    picks: Sequence[BrandPick]


def log_of(source: Source, *, before: UUID | None = None, most: int = SLOTS_SHOWN) -> list[Logged]:
    """The newest slots of a lane first, the open one among them; two statements however many there are."""
    rows = BrandSlot.objects.of(source.workspace_id).filter(source=source)
    if before is not None:
        rows = rows.filter(id__lt=before)
    return with_picks(source.workspace_id, list(rows.order_by("-id")[:most]))


def with_picks(workspace_id: UUID, slots: Sequence[BrandSlot]) -> list[Logged]:
    """These slots, in their order, each with what it took."""
    picks: defaultdict[object, list[BrandPick]] = defaultdict(list)
    for pick in (
        BrandPick.objects.of(workspace_id)
        .filter(slot__in=[slot.pk for slot in slots])
        .select_related("topic", "item")
        .order_by("id")
    ):
        picks[pick.slot_id].append(pick)
    return [Logged(slot, picks[slot.pk]) for slot in slots]
