"""Records accounts that fail or work again, wakes what waited for them, and schedules their next check."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.db.models import F, Q
from django.utils.translation import gettext as _

from accounts import notices
from config.core import dispatcher, states, work_queue
from config.core.datetimes import format_utc
from config.core.ids import encode
from pipeline import events, payloads
from pipeline.models import MailQueue, Outlet, OutletStatus, Publication, PublicationStatus, PublicationStep
from pipeline.outlets.outlet_client import platform_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

CHECK_INTERVAL: Final = timedelta(hours=24)
JITTER: Final = timedelta(hours=1)
"""A check comes up to this much earlier, so that outlets connected together aren't checked together."""
NOTIFY_BEFORE: Final = timedelta(days=7)
"""How long before a credential that can't be renewed expires its members are notified."""
MIN_RENEWAL_LEAD: Final = timedelta(minutes=10)
"""The shortest time before its expiry at which a credential is renewed."""
RENEW_BEFORE_SENDING: Final = timedelta(minutes=2)
"""A credential that expires sooner is renewed before anything is sent with it."""
MIN_RETRY_WAIT: Final = timedelta(minutes=1)
FIRST_RETRY_WAIT: Final = timedelta(minutes=15)
MAX_RETRY_WAIT: Final = timedelta(hours=6)


def mark_lost(
    outlet_id: UUID,
    error: Mapping[str, Any],
    now: datetime,
    *,
    test: bool = False,
    request: str = "",
    **changes: Any,
) -> bool:
    """Stop using the outlet until a person reconnects it, and notify members; False if it was so.

    Call it in a transaction.
    """
    # Locked, because several workers may learn of it at once; the weaker lock lets other rows refer to the
    # outlet.
    outlet: Outlet = Outlet.everywhere.select_for_update(no_key=True).get(pk=outlet_id)
    if outlet.status != OutletStatus.OK or outlet.deleted_at is not None:
        return False
    states.move(
        outlet,
        "needs_reconnect",
        last_error={"code": error["code"], "message": error["message"], "at": format_utc(now)},
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


def mark_working(outlet: Outlet, now: datetime) -> bool:
    """Record that the platform accepted the account again; True if it was lost. Call it in a transaction."""
    if outlet.status != OutletStatus.NEEDS_RECONNECT:
        return False
    fresh: Outlet = Outlet.everywhere.select_for_update(no_key=True).get(pk=outlet.pk)
    if fresh.status != OutletStatus.NEEDS_RECONNECT:
        return False
    states.move(fresh, "ok", last_error=None, updated_at=now)
    return True


def wake_mails(outlet: Outlet, now: datetime, *, ends_rest: bool) -> None:
    """Let mails that wait for this account go on at once; with `ends_rest` also after a refused log-in."""
    resting_values = {"rests_until": None} if ends_rest else {}
    waiting = MailQueue.everywhere.filter(outlet=outlet, wake_at__isnull=False)
    if waiting.update(**MailQueue.wake_changes(now), **resting_values):
        dispatcher.wake()


def wake_publications(outlet: Outlet, now: datetime) -> int:
    """Try publications that wait because of the account at once; return how many."""
    woken = 0
    waiting = Publication.everywhere.scheduled().filter(outlet=outlet, error__class="account")
    for publication_id in list(waiting.order_by("id").values_list("pk", flat=True)):
        with transaction.atomic():
            # The item's status doesn't depend on this, so the item isn't locked.
            woken += Publication.everywhere.filter(
                Q(due_at=None) | Q(due_at__lte=now), pk=publication_id, status=PublicationStatus.SCHEDULED
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


def wake_waiting_publications(outlet: Outlet, now: datetime) -> None:
    """Ask again what due publications wait for: the outlet's pace has changed, and with it their turns."""
    waiting = Publication.everywhere.scheduled().filter(
        Q(next_attempt_at=None) | Q(next_attempt_at__lte=now),
        outlet=outlet,
        due_at__lte=now,
        wake_at__gt=now,
        waits_for__isnull=False,
        # No task has it.
        attempts=0,
    )
    # Those that wait for their platform keep what they waited for before.
    waiting = waiting.exclude(step=PublicationStep.POLL)
    if waiting.update(wake_at=now, **work_queue.overtake()):
        dispatcher.wake()


def next_check(now: datetime, expires_at: datetime | None, renewed_at: datetime | None) -> datetime:
    """Return the next check: in a day, or when the credential must be renewed or is near its expiry."""
    daily = now + CHECK_INTERVAL - JITTER * random.random()  # noqa: S311  it spreads load and keeps no secret
    if expires_at is None:
        return daily
    moments = (renew_at(expires_at, renewed_at or now), expires_at - NOTIFY_BEFORE)
    return min([daily, *(moment for moment in moments if moment > now)])


def renew_at(expires_at: datetime, renewed_at: datetime) -> datetime:
    """Return when to renew: after four fifths of its life, ten minutes before its end at the latest.

    A credential with a shorter life is renewed halfway.
    """
    life = max(expires_at - renewed_at, timedelta(0))
    return expires_at - min(max(life / 5, MIN_RENEWAL_LEAD), life / 2)


def renewed_at_of(outlet: Outlet) -> datetime | None:
    """Return when the credential's life began, or when the outlet was connected if that isn't known."""
    stored = outlet.profile.get("renewed_at")
    return datetime.fromisoformat(stored) if isinstance(stored, str) else outlet.connected_at


def is_to_renew(outlet: Outlet, now: datetime) -> bool:
    """Return whether it is time to renew the credential; never for one that doesn't expire."""
    if outlet.expires_at is None:
        return False
    return now >= renew_at(outlet.expires_at, renewed_at_of(outlet) or now)


def wait_after(outlet: Outlet, asked: timedelta | None, now: datetime) -> timedelta:
    """Return the wait after a failed check: as long as it has failed for, and at least `asked`.

    Shorter if the credential would expire meanwhile; what is asked for counts up to a day.
    """
    failing_for = now - outlet.due_at if outlet.due_at else timedelta(0)
    wait = min(max(failing_for, FIRST_RETRY_WAIT), MAX_RETRY_WAIT)
    if outlet.expires_at is not None and outlet.expires_at > now:
        wait = min(wait, max((outlet.expires_at - now) / 4, MIN_RETRY_WAIT))
    return max(wait, min(asked, CHECK_INTERVAL)) if asked else wait
