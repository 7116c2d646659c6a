"""Reads the log of a brand lane, what it did at each of its slots, for its page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from config.core.ids import decode, encode
from pipeline import labels
from pipeline.personas.lane_slots import recent_slots

if TYPE_CHECKING:
    from pipeline.models import BrandPick, Source
    from pipeline.personas.lane_slots import LoggedSlot

SLOTS: Final = 30
"""Slots on one page of the log."""


def read(source: Source, before: str) -> dict[str, Any]:
    """Return a page of the log, newest first; `older` is where the next page begins, empty on the last."""
    logged_slots = recent_slots(source, before=decode("slt", before), most=SLOTS + 1)
    return {
        "slots": [_slot_row(logged) for logged in logged_slots[:SLOTS]],
        "older": encode("slt", logged_slots[SLOTS - 1].slot.pk) if len(logged_slots) > SLOTS else "",
    }


def _slot_row(logged: LoggedSlot) -> dict[str, Any]:
    return {
        "slot": logged.slot,
        "status": labels.BRAND_SLOTS[logged.slot.status],
        "message": str((logged.slot.note or {}).get("message", "")),
        "picks": [_pick_row(pick) for pick in logged.picks],
    }


def _pick_row(pick: BrandPick) -> dict[str, Any]:
    item = pick.item if pick.item is not None and pick.item.deleted_at is None else None
    return {
        "pick": pick,
        "decision": labels.BRAND_PICKS[pick.decision],
        "reason": str((pick.reason or {}).get("message", "")),
        "item": item,
    }
