"""Stop publishing or model calls, for everybody, a platform or a workspace; resume what was stopped."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, Literal

from django.db import connection, transaction
from django.db.models import Q

from accounts import audit
from config.core import dispatcher, work_queue
from config.core.clock import utc_now
from config.core.errors import Invalid
from pipeline.models import Generation, Publication, PublicationStatus, Switch
from pipeline.states import OPEN_RUNS

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from accounts.models import Workspace

What = Literal["publishing", "model_calls"]
CACHED_SECONDS: Final = 1.0
WOKEN_AT_ONCE: Final = 500
MODEL_CALLS_STOPPED: Final = "model_calls_stopped"
"""The code in `error` of a generation that waits for this; `resume` wakes those that carry it."""

_read: Final[dict[str, tuple[float, list[Switch]]]] = {}


def stop(
    what: What, *, platform: str = "", workspace: Workspace | None = None, reason: str, actor: str
) -> Switch:
    """Hold back from now on; what is in hand already comes to its end. Stopping again renews the reason."""
    reason = reason.strip()
    refuse_unless_sound(what, platform, reason)
    with transaction.atomic():
        switch, is_new = Switch.everywhere.update_or_create(
            what=what, platform=platform, workspace=workspace, defaults={"reason": reason, "set_by": actor}
        )
        _note("stopped" if is_new else "stopped_again", switch, actor)
        transaction.on_commit(_read.clear)
    stopped_now: Switch = switch
    return stopped_now


def refuse_unless_sound(what: str, platform: str, reason: str) -> None:
    if not reason.strip():
        raise Invalid.one(field="reason", code="required", message="Say why; people are shown it.")
    if what == "model_calls" and platform:
        message = "Model calls go to no platform; leave it out."
        raise Invalid.one(field="platform", code="not_here", message=message)


def resume(switch: Switch, *, actor: str, now: datetime | None = None) -> bool:
    """Let go of what it held back, at once; False where somebody had done so already."""
    now = now or utc_now()
    with transaction.atomic():
        deleted, _ = Switch.everywhere.filter(pk=switch.pk).delete()
        if not deleted:
            return False
        _note("resumed", switch, actor)
        transaction.on_commit(_read.clear)
    _wake(switch, now)
    return True


def stopped(what: What, *, platform: str = "", workspace_id: UUID | None = None) -> Switch | None:
    """The switch that stops this, the widest first; None where nothing does."""
    for switch in standing():
        is_here = (not switch.platform or switch.platform == platform) and (
            switch.workspace_id is None or switch.workspace_id == workspace_id
        )
        if switch.what == what and is_here:
            return switch
    return None


def stopped_anywhere(what: What, *, workspace_id: UUID) -> Switch | None:
    """The widest switch that touches the workspace, be it for one platform alone."""
    here = {None, workspace_id}
    return next((row for row in standing() if row.what == what and row.workspace_id in here), None)


def standing() -> list[Switch]:
    """Everything that is stopped; as of the last second at the latest."""
    if connection.in_atomic_block:
        # What this transaction has written itself counts, and nobody else may see it.
        return _all()
    kept = _read.get("switches")
    if kept is None or not 0 <= time.monotonic() - kept[0] < CACHED_SECONDS:
        kept = _read["switches"] = (time.monotonic(), _all())
    return kept[1]


def _all() -> list[Switch]:
    found = Switch.everywhere.select_related("workspace").order_by("created_at")
    return sorted(found, key=lambda switch: (switch.workspace_id is not None, bool(switch.platform)))


def _wake(switch: Switch, now: datetime) -> None:
    """A second stop that still holds them sends them back to wait; a row missed here is looked at within its wait."""
    model: Any
    if switch.what == "publishing":
        model = Publication
        # Those whose promise is for later, or that wait for a retry of their own, were not held by this.
        waits = Q(status=PublicationStatus.SCHEDULED, due_at__lte=now) & (
            Q(next_attempt_at=None) | Q(next_attempt_at__lte=now)
        )
        if switch.platform:
            waits &= Q(platform=switch.platform)
    else:
        model = Generation
        waits = Q(status__in=sorted(OPEN_RUNS), error__code=MODEL_CALLS_STOPPED)
    if switch.workspace_id is not None:
        waits &= Q(workspace_id=switch.workspace_id)
    with transaction.atomic():
        # What sleeps has no attempts; what has is at work, and taking it away would pay for a call twice.
        # Skipped where locked: the holder is changing that row, and waiting for many rows in turn could deadlock.
        rows = model.everywhere.select_for_update(skip_locked=True).filter(waits, wake_at__gt=now, attempts=0)
        ids = list(rows.order_by("pk").values_list("pk", flat=True))
        for start in range(0, len(ids), WOKEN_AT_ONCE):
            some = ids[start : start + WOKEN_AT_ONCE]
            model.everywhere.filter(pk__in=some).update(wake_at=now, **work_queue.overtake())
        dispatcher.wake()


def _note(action: str, switch: Switch, actor: str) -> None:
    audit.note(
        f"{switch.what}.{action}",
        workspace=switch.workspace,
        actor=actor,
        subject=switch.platform or ("" if switch.workspace_id else "instance"),
        details={"reason": switch.reason},
    )
