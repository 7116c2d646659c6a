"""Renews a credential that expires.

Refresh tokens rotate, so only the process that holds the row's lease may renew.

That is a worker of the queue `publish` in its job `publish.check_outlet`, or whoever calls the platform while
the credential has little time left (`fresh_credentials`): a task of a publication, or one that measures it
(queue `analytics`).

A process that is killed between the platform's answer and the write has lost a rotated refresh token: nothing
stands between the two but the statement. The next renewal is refused then, and people are asked to connect
the outlet again.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from django.db.models import F, Q

from config.core import work_queue
from config.core.clock import utc_now
from config.core.crash_points import crash_point
from config.core.datetimes import format_utc
from pipeline.models import Outlet
from pipeline.outlets import health
from pipeline.outlets.check_account import BeingRenewed, release_database_for_call
from pipeline.outlets.outlet_client import connect, platform_of
from pipeline.platforms.base import Platform

if TYPE_CHECKING:
    from pipeline.platforms.base import Renewed

RENEWAL_LEASE: Final = timedelta(seconds=60)
"""How long a renewal may take: it is one call, or two."""
RETRY_WAIT: Final = timedelta(seconds=5)


def fresh_credentials(outlet: Outlet, *, now: datetime | None = None) -> Outlet:
    """Return the outlet with a credential that works for the next minutes, renewed first if necessary.

    Raises `BeingRenewed` if another process is renewing it, and what the platform's `renew` raises.
    """
    now = now or utc_now()
    if not _ends_soon(outlet, now):
        return outlet
    # Another process may have renewed it since the row was read.
    outlet = reload_outlet(outlet)
    if not _ends_soon(outlet, now):
        return outlet
    token = _claim(outlet)
    # Another renewal may have ended between that read and the claim, and many refresh tokens work only once.
    outlet = reload_outlet(outlet)
    outlet.lease_token = token
    try:
        if _ends_soon(outlet, now):
            renew(outlet, now)
    finally:
        # The claim ends either way; the time of the next check stays as it was.
        outlet.sleep_until(outlet.due_at, attempts=0)
    return reload_outlet(outlet)


def reload_outlet(outlet: Outlet) -> Outlet:
    """Return the row as it is now, with its workspace."""
    row: Outlet = Outlet.everywhere.select_related("workspace").get(pk=outlet.pk)
    return row


def renew(outlet: Outlet, now: datetime) -> Renewed | None:
    """Ask for new credentials and write them in one statement, under the row's lease; None if there are none.

    Raises what the platform raises, and `BeingRenewed` if the lease was lost.
    """
    crash_point("outlets.claimed")
    connection = connect(outlet)
    release_database_for_call()
    with connection.telling_no_secret():
        renewed = connection.platform.renew(connection.account, http=connection.http, now=now)
    if renewed is None:
        return None
    crash_point("outlets.renewed")
    renewed_at = utc_now()
    next_check_at = health.next_check(renewed_at, renewed.expires_at, renewed_at)
    values = {
        "credentials": dict(renewed.credentials),
        "expires_at": renewed.expires_at,
        "expiry_told_at": None,
        "profile": {**outlet.profile, "renewed_at": format_utc(renewed_at)},
        "due_at": next_check_at,
    }
    if not outlet.under_lease().update(**values, version=F("version") + 1):
        message = "The outlet was reconnected in the meantime."
        raise BeingRenewed(message, code="credential_renewing", after=RETRY_WAIT)
    for name, value in values.items():
        setattr(outlet, name, value)
    return renewed


def _ends_soon(outlet: Outlet, now: datetime) -> bool:
    """Return whether the credential expires soon and the platform can renew it."""
    if (
        outlet.expires_at is None
        or outlet.credentials is None
        or outlet.expires_at > now + health.RENEW_BEFORE_SENDING
    ):
        return False
    return type(platform_of(outlet.platform)).renew is not Platform.renew


def _claim(outlet: Outlet) -> int:
    """Claim the row as a task would, unless a task has it, as `attempts` and a future `wake_at` say.

    Returns the token of the lease.
    """
    now = work_queue.database_now()
    is_free = Q(attempts=0) | Q(wake_at=None) | Q(wake_at__lte=now)
    claimable = Outlet.everywhere.filter(is_free, pk=outlet.pk, lease_token=outlet.lease_token)
    if not claimable.update(
        lease_token=F("lease_token") + 1, attempts=F("attempts") + 1, wake_at=now + RENEWAL_LEASE
    ):
        message = "The outlet's log-in is being renewed right now."
        raise BeingRenewed(message, code="credential_renewing", after=RETRY_WAIT)
    return outlet.lease_token + 1
