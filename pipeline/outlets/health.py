"""Records accounts that fail or work again, wakes what waited for them, and computes their next check."""

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
from pipeline import events, resources
from pipeline.models import MailQueue, Outlet, OutletStatus, Publication, PublicationStatus, PublicationStep
from pipeline.outlets.outlet_client import platform_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

CHECK_INTERVAL: Final = timedelta(hours=24)
JITTER: Final = timedelta(hours=1)
"""The most by which a check comes earlier, so that outlets connected together aren't checked together."""
NOTIFY_BEFORE: Final = timedelta(days=7)
"""The time before the expiry of a credential that can't be renewed at which members are notified."""
MIN_RENEWAL_LEAD: Final = timedelta(minutes=10)
"""The shortest time before its expiry at which a credential is renewed."""
RENEW_BEFORE_SENDING: Final = timedelta(minutes=2)
"""The remaining life below which a credential is renewed before anything is sent with it."""
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
    """Mark the outlet as one that a person has to reconnect, record the event, and notify members if not `test`.

    Returns `False` if the outlet wasn't usable anyway. Call it in a transaction.
    """
    # The row is locked, because several workers may learn of it at once; the weaker lock lets other rows refer
    # to the outlet.
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
        data={"outlet": resources.Outlet.serialize(outlet, is_default=outlet.is_default)},
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
    """Record that the platform accepts the account again; return whether it was lost. Call it in a transaction."""
    if outlet.status != OutletStatus.NEEDS_RECONNECT:
        return False
    fresh: Outlet = Outlet.everywhere.select_for_update(no_key=True).get(pk=outlet.pk)
    if fresh.status != OutletStatus.NEEDS_RECONNECT:
        return False
    states.move(fresh, "ok", last_error=None, updated_at=now)
    return True


def wake_mails(outlet: Outlet, now: datetime, *, ends_rest: bool) -> None:
    """Wake the mails that wait for this account; `ends_rest` also ends its pause."""
    resting_values = {"rests_until": None} if ends_rest else {}
    waiting = MailQueue.everywhere.filter(outlet=outlet, wake_at__isnull=False)
    if waiting.update(**MailQueue.wake_changes(now), **resting_values):
        dispatcher.wake()


def wake_publications(outlet: Outlet, now: datetime) -> int:
    """Wake the due publications that failed because of the account; return how many."""
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
    """Wake the due publications that wait for their turn, because the outlet's pace has changed."""
    waiting = Publication.everywhere.scheduled().filter(
        Q(next_attempt_at=None) | Q(next_attempt_at__lte=now),
        outlet=outlet,
        due_at__lte=now,
        wake_at__gt=now,
        waits_for__isnull=False,
        # No task has claimed it.
        attempts=0,
    )
    # Publications that wait for their platform still have the reason that they waited for before.
    waiting = waiting.exclude(step=PublicationStep.POLL)
    if waiting.update(wake_at=now, **work_queue.overtake()):
        dispatcher.wake()


def next_check(now: datetime, expires_at: datetime | None, renewed_at: datetime | None) -> datetime:
    """Return the next check: in about a day, or earlier when the credential must be renewed or is near its expiry."""
    daily = now + CHECK_INTERVAL - JITTER * random.random()  # noqa: S311  it spreads load and keeps no secret
    if expires_at is None:
        return daily
    moments = (renew_at(expires_at, renewed_at or now), expires_at - NOTIFY_BEFORE)
    return min([daily, *(moment for moment in moments if moment > now)])


def renew_at(expires_at: datetime, renewed_at: datetime) -> datetime:
    """Return when to renew a credential: after four fifths of its life, at least `MIN_RENEWAL_LEAD` before its end.

    A credential with a life shorter than twice that lead is renewed halfway.
    """
    life = max(expires_at - renewed_at, timedelta(0))
    return expires_at - min(max(life / 5, MIN_RENEWAL_LEAD), life / 2)


def renewed_at_of(outlet: Outlet) -> datetime | None:
    """Return when the credential was issued, or when the outlet was connected if that isn't known."""
    stored = outlet.profile.get("renewed_at")
    return datetime.fromisoformat(stored) if isinstance(stored, str) else outlet.connected_at


def is_to_renew(outlet: Outlet, now: datetime) -> bool:
    """Return whether it is time to renew the credential, which is never for one that doesn't expire."""
    if outlet.expires_at is None:
        return False
    return now >= renew_at(outlet.expires_at, renewed_at_of(outlet) or now)


def wait_after(outlet: Outlet, requested_wait: timedelta | None, now: datetime) -> timedelta:
    """Return the wait after a failed check: as long as the checks have failed, within limits.

    It is from `FIRST_RETRY_WAIT` to `MAX_RETRY_WAIT`, but shorter if the credential would expire meanwhile, and
    at least `requested_wait`, which counts up to a day.
    """
    failing_for = now - outlet.due_at if outlet.due_at else timedelta(0)
    wait = min(max(failing_for, FIRST_RETRY_WAIT), MAX_RETRY_WAIT)
    if outlet.expires_at is not None and outlet.expires_at > now:
        wait = min(wait, max((outlet.expires_at - now) / 4, MIN_RETRY_WAIT))
    return max(wait, min(requested_wait, CHECK_INTERVAL)) if requested_wait else wait
