"""What a lane did at each of its slots, in the words of its page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from config.core.ids import decode, encode
from pipeline import labels
from pipeline.personas.lane_slots import recent_slots

if TYPE_CHECKING:
    from pipeline.models import BrandPick, Source
    from pipeline.personas.lane_slots import LoggedSlot

SLOTS: Final = 30


def read(source: Source, before: str) -> dict[str, Any]:
    """A page of the log, newest first; `older` is the id before which the next one begins, empty on the last."""
    found = recent_slots(source, before=decode("slt", before), most=SLOTS + 1)
    return {
        "slots": [_slot(one) for one in found[:SLOTS]],
        "older": encode("slt", found[SLOTS - 1].slot.pk) if len(found) > SLOTS else "",
    }


def _slot(one: LoggedSlot) -> dict[str, Any]:
    return {
        "slot": one.slot,
        "status": labels.BRAND_SLOTS[one.slot.status],
        "message": str((one.slot.note or {}).get("message", "")),
        "picks": [_pick(pick) for pick in one.picks],
    }


def _pick(pick: BrandPick) -> dict[str, Any]:
    item = pick.item if pick.item is not None and pick.item.deleted_at is None else None
    return {
        "pick": pick,
        "decision": labels.BRAND_PICKS[pick.decision],
        "reason": str((pick.reason or {}).get("message", "")),
        "item": item,
    }
