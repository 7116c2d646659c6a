"""Stops publishing or model calls everywhere, on a platform or in a workspace, and resumes them."""

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
WAKE_BATCH_SIZE: Final = 500
"""The number of rows that one statement wakes."""
MODEL_CALLS_STOPPED: Final = "model_calls_stopped"
"""The code in `error` of a generation that waits for a switch; `resume` wakes those that have it."""

_cache: Final[dict[str, tuple[float, list[Switch]]]] = {}


def stop(
    what: What, *, platform: str = "", workspace: Workspace | None = None, reason: str, actor: str
) -> Switch:
    """Stop publishing or model calls from now on; calls in progress still end. A repeat replaces the reason.

    Raises `Invalid` as `refuse_unless_sound` does.
    """
    reason = reason.strip()
    refuse_unless_sound(what, platform, reason)
    with transaction.atomic():
        switch, is_new = Switch.everywhere.update_or_create(
            what=what, platform=platform, workspace=workspace, defaults={"reason": reason, "set_by": actor}
        )
        _audit("stopped" if is_new else "stopped_again", switch, actor)
        transaction.on_commit(_cache.clear)
    created: Switch = switch
    return created


def refuse_unless_sound(what: str, platform: str, reason: str) -> None:
    """Raise `Invalid` if there is no reason, or if model calls are to be stopped for a platform."""
    if not reason.strip():
        raise Invalid.one(field="reason", code="required", message="Say why; people are shown it.")
    if what == "model_calls" and platform:
        message = "Model calls go to no platform; leave it out."
        raise Invalid.one(field="platform", code="not_here", message=message)


def resume(switch: Switch, *, actor: str, now: datetime | None = None) -> bool:
    """Remove the switch and wake the rows that it held back; return `False` if it was removed already."""
    now = now or utc_now()
    with transaction.atomic():
        deleted, _ = Switch.everywhere.filter(pk=switch.pk).delete()
        if not deleted:
            return False
        _audit("resumed", switch, actor)
        transaction.on_commit(_cache.clear)
    _wake(switch, now)
    return True


def stopped(what: What, *, platform: str = "", workspace_id: UUID | None = None) -> Switch | None:
    """Return the widest switch that stops this, or `None`."""
    for switch in read_switches():
        applies = (not switch.platform or switch.platform == platform) and (
            switch.workspace_id is None or switch.workspace_id == workspace_id
        )
        if switch.what == what and applies:
            return switch
    return None


def stopped_anywhere(what: What, *, workspace_id: UUID) -> Switch | None:
    """Return the widest switch that affects the workspace, even if only for one platform, or `None`."""
    scopes = {None, workspace_id}
    return next((row for row in read_switches() if row.what == what and row.workspace_id in scopes), None)


def read_switches() -> list[Switch]:
    """Return all switches, the widest first, as they were at most `CACHED_SECONDS` ago."""
    if connection.in_atomic_block:
        # The transaction must see its own writes, which other processes may not see.
        return _load_switches()
    cached = _cache.get("switches")
    if cached is None or not 0 <= time.monotonic() - cached[0] < CACHED_SECONDS:
        cached = _cache["switches"] = (time.monotonic(), _load_switches())
    return cached[1]


def _load_switches() -> list[Switch]:
    """Read all switches, the widest first."""
    switches = Switch.everywhere.select_related("workspace").order_by("created_at")
    return sorted(switches, key=lambda switch: (switch.workspace_id is not None, bool(switch.platform)))


def _wake(switch: Switch, now: datetime) -> None:
    """Wake the rows that the switch held back.

    A row that another switch still stops goes back to wait; a row that is missed here is taken after its wait.
    """
    model: Any
    if switch.what == "publishing":
        model = Publication
        # Publications that are due later, or that wait for a retry, weren't held by this switch.
        held = Q(status=PublicationStatus.SCHEDULED, due_at__lte=now) & (
            Q(next_attempt_at=None) | Q(next_attempt_at__lte=now)
        )
        if switch.platform:
            held &= Q(platform=switch.platform)
    else:
        model = Generation
        held = Q(status__in=sorted(OPEN_RUNS), error__code=MODEL_CALLS_STOPPED)
    if switch.workspace_id is not None:
        held &= Q(workspace_id=switch.workspace_id)
    with transaction.atomic():
        # Sleeping rows have no attempts; rows with attempts are being run, and taking one away would pay for a
        # call twice. Locked rows are skipped: their holder is changing them, and waiting for many rows in turn
        # could deadlock.
        rows = model.everywhere.select_for_update(skip_locked=True).filter(held, wake_at__gt=now, attempts=0)
        ids = list(rows.order_by("pk").values_list("pk", flat=True))
        for start in range(0, len(ids), WAKE_BATCH_SIZE):
            batch = ids[start : start + WAKE_BATCH_SIZE]
            model.everywhere.filter(pk__in=batch).update(wake_at=now, **work_queue.overtake())
        dispatcher.wake()


def _audit(action: str, switch: Switch, actor: str) -> None:
    audit.note(
        f"{switch.what}.{action}",
        workspace=switch.workspace,
        actor=actor,
        subject=switch.platform or ("" if switch.workspace_id else "instance"),
        details={"reason": switch.reason},
    )
