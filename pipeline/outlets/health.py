"""An account that its platform no longer takes, and one that works again; and when it is looked at next."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.db.models import F, Q
from django.utils.translation import gettext as _

from accounts import notices
from config.core import dispatcher, states, work_queue
from config.core.datetimes import as_z
from config.core.ids import encode
from pipeline import events, payloads
from pipeline.models import MailQueue, Outlet, OutletStatus, Publication, PublicationStatus
from pipeline.outlets.outlet_client import platform_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

EVERY: Final = timedelta(hours=24)
JITTER: Final = timedelta(hours=1)
"""A check comes up to this much earlier, so that outlets that were connected together aren't asked together."""
TOLD_BEFORE: Final = timedelta(days=7)
"""How long before a credential that can't be renewed ends its people are told."""
SHORT: Final = timedelta(minutes=10)
"""The least time before its end at which a credential is renewed."""
LAST_MINUTES: Final = timedelta(minutes=2)
"""A credential that ends sooner is renewed before anything is sent with it."""
WAIT_LEAST: Final = timedelta(minutes=1)
WAIT_FIRST: Final = timedelta(minutes=15)
WAIT_MOST: Final = timedelta(hours=6)


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
            title=_("%(outlet)s needs reconnecting") % {"outlet": outlet.name},
            text=_("%(platform)s says: %(error)s\nNothing is published there until then.")
            % {"platform": platform_of(outlet.platform).label, "error": error["message"]},
            path=f"outlets/{encode('out', outlet.pk)}",
            now=now,
        )
    return True


def works_again(outlet: Outlet, now: datetime) -> bool:
    """What its platform has just taken works: True where that was in doubt. In a transaction."""
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
    if waiting.update(**MailQueue.wake_changes(now), **rest):
        dispatcher.wake()


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
        dispatcher.wake()
    return woken


def next_check(now: datetime, expires_at: datetime | None, renewed_at: datetime | None) -> datetime:
    """A day from now, or when the credential is to be renewed, or told of, where that comes first."""
    daily = now + EVERY - JITTER * random.random()  # noqa: S311  it spreads load and keeps no secret
    if expires_at is None:
        return daily
    moments = (renew_at(expires_at, renewed_at or now), expires_at - TOLD_BEFORE)
    return min([daily, *(moment for moment in moments if moment > now)])


def renew_at(expires_at: datetime, renewed_at: datetime) -> datetime:
    """When four fifths of its life are over, ten minutes before its end at the latest; halfway where it is shorter."""
    life = max(expires_at - renewed_at, timedelta(0))
    return expires_at - min(max(life / 5, SHORT), life / 2)


def renewed_at_of(outlet: Outlet) -> datetime | None:
    """When its credential's life began; when it was connected where nothing else is known."""
    kept = outlet.profile.get("renewed_at")
    return datetime.fromisoformat(kept) if isinstance(kept, str) else outlet.connected_at


def is_to_renew(outlet: Outlet, now: datetime) -> bool:
    """Whether it is time; never for a credential that doesn't end."""
    if outlet.expires_at is None:
        return False
    return now >= renew_at(outlet.expires_at, renewed_at_of(outlet) or now)


def wait_after(outlet: Outlet, asked: timedelta | None, now: datetime) -> timedelta:
    """As long again as it has failed for; sooner where the credential would end meanwhile; never sooner than asked.

    What is asked for counts up to a day.
    """
    failing_for = now - outlet.due_at if outlet.due_at else timedelta(0)
    wait = min(max(failing_for, WAIT_FIRST), WAIT_MOST)
    if outlet.expires_at is not None and outlet.expires_at > now:
        wait = min(wait, max((outlet.expires_at - now) / 4, WAIT_LEAST))
    return max(wait, min(asked, EVERY)) if asked else wait
