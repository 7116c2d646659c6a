"""An account that its platform no longer takes, and one that works again: written, and told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import F, Q
from django.utils.translation import gettext as _

from accounts import notices
from config.core import dispatch, states, work_queue
from config.core.datetimes import as_z
from config.core.ids import encode
from pipeline import events, payloads
from pipeline.models import MailQueue, Outlet, OutletStatus, Publication, PublicationStatus
from pipeline.outlets.outlet_client import platform_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from uuid import UUID


def lost(
    outlet_id: UUID,
    error: Mapping[str, Any],
    now: datetime,
    *,
    test: bool = False,
    request: str = "",
    **changes: Any,
) -> bool:
    """Nothing goes through it until a person acts: told once; False where it was so already. In a transaction."""
    # Locked, because several may learn of it at once; the weaker lock lets others refer to the outlet.
    outlet: Outlet = Outlet.everywhere.select_for_update(no_key=True).get(pk=outlet_id)
    if outlet.status != OutletStatus.OK or outlet.deleted_at is not None:
        return False
    states.move(
        outlet,
        "needs_reconnect",
        last_error={"code": error["code"], "message": error["message"], "at": as_z(now)},
        updated_at=now,
        **changes,
    )
    events.record(
        "outlet.needs_reconnect",
        workspace_id=outlet.workspace_id,
        test=test,
        data={"outlet": payloads.outlet(payloads.row_of(outlet), is_default=outlet.is_default)},
        request=request,
        now=now,
    )
    if not test:
        notices.record(
            "outlet_reconnect",
            workspace_id=outlet.workspace_id,
            key=f"{outlet.pk.hex}:{outlet.version}",
            title=_("%(outlet)s has to be reconnected") % {"outlet": outlet.name},
            text=_("%(platform)s says: %(error)s\nNothing is published there until then.")
            % {"platform": platform_of(outlet.platform).label, "error": error["message"]},
            path=f"outlets/{encode('out', outlet.pk)}",
            now=now,
        )
    return True


def works_again(outlet: Outlet, now: datetime) -> bool:
    """What its platform has just taken works; in a transaction."""
    if outlet.status != OutletStatus.NEEDS_RECONNECT:
        return False
    fresh: Outlet = Outlet.everywhere.select_for_update(no_key=True).get(pk=outlet.pk)
    if fresh.status != OutletStatus.NEEDS_RECONNECT:
        return False
    states.move(fresh, "ok", last_error=None, updated_at=now)
    return True


def wake_mails(outlet: Outlet, now: datetime, *, ends_rest: bool) -> None:
    """A line of mails that waits for this account goes on at once; with `ends_rest` a refused log-in is forgotten."""
    rest = {"rests_until": None} if ends_rest else {}
    waiting = MailQueue.everywhere.filter(outlet=outlet, wake_at__isnull=False)
    if waiting.update(**MailQueue.looked_at_again(now), **rest):
        dispatch.wake()


def wake_publications(outlet: Outlet, now: datetime) -> int:
    """What waits for another try because of the account is tried at once; returns how many that are."""
    woken = 0
    waiting = Publication.everywhere.scheduled().filter(outlet=outlet, error__class="account")
    for key in list(waiting.order_by("id").values_list("pk", flat=True)):
        with transaction.atomic():
            # Nothing of an item's status follows from it, so that the item isn't locked.
            woken += Publication.everywhere.filter(
                Q(due_at=None) | Q(due_at__lte=now), pk=key, status=PublicationStatus.SCHEDULED
            ).update(
                next_attempt_at=now,
                wake_at=now,
                updated_at=now,
                version=F("version") + 1,
                **work_queue.overtake(),
            )
    if woken:
        dispatch.wake()
    return woken
