"""What a run without a source document was given to speak of, and what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline.models import BrandPick, Topic

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from pipeline.models import GeneratedItem, Generation


def pick_of(generation: Generation) -> BrandPick | None:
    """The one that the run works on; None for a run of a raw item, or one that is over."""
    found: BrandPick | None = (
        BrandPick.everywhere.filter(generation=generation, decision="taken")
        .select_related("topic", "slot")
        .order_by("-id")
        .first()
    )
    return found


def conclude(
    generation: Generation,
    made: Sequence[GeneratedItem],
    now: datetime,
    *,
    reason: Mapping[str, Any] | None = None,
) -> None:
    """The run is over, in the caller's transaction: its topic was used, or nothing came of it for that reason."""
    pick = pick_of(generation)
    if pick is None:
        return
    open_pick = BrandPick.everywhere.filter(pk=pick.pk, decision="taken")
    if made:
        open_pick.update(decision="used", item=made[0], decided_at=now)
        Topic.everywhere.filter(pk=pick.topic_id).update(last_used_at=now)
        return
    told = reason or {"code": "checks_failed", "message": "No draft kept to the rules; its items say which."}
    open_pick.update(
        decision="failed", reason={name: told[name] for name in ("code", "message")}, decided_at=now
    )


def hand_on(old: Generation, new: Generation, now: datetime) -> bool:
    """A further run of the same item speaks of the same topic from the same angle; False where that isn't kept."""
    last = BrandPick.everywhere.filter(generation=old).select_related("topic").order_by("-id").first()
    if last is None or last.topic is None:
        return False
    BrandPick.everywhere.create(
        workspace_id=last.workspace_id,
        slot_id=last.slot_id,
        generation=new,
        topic=last.topic,
        title=last.topic.title,
        angle=last.angle,
        used_on=last.used_on,
        created_at=now,
    )
    return True
