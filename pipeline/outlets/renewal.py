"""Renew a credential that ends. Refresh tokens rotate, so one process alone may: whoever holds the row's lease.

That is any worker of the queue `publish`: in its job `publish.check_outlet`, or in a task that calls the platform for a
publication while the credential has little time left (`fresh_credentials`).

A process that is killed between the platform's answer and the write has lost a rotated refresh token: nothing stands
between the two but the statement. The next renewal is refused then, and people are asked to connect the outlet again.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from django.db.models import F, Q

from config.core import work_queue
from config.core.clock import utc_now
from config.core.crash_points import crash_point
from config.core.datetimes import as_z
from pipeline.models import Outlet
from pipeline.outlets import health
from pipeline.outlets.check_account import BeingRenewed, release_for_the_call
from pipeline.outlets.outlet_client import connect, platform_of
from pipeline.platforms.base import Platform

if TYPE_CHECKING:
    from pipeline.platforms.base import Renewed

TURN: Final = timedelta(seconds=60)
"""How long a turn may take: a renewal is one call, or two."""
WAIT: Final = timedelta(seconds=5)


def fresh_credentials(outlet: Outlet, *, now: datetime | None = None) -> Outlet:
    """The outlet with a credential that holds for the next minutes; renewed first where it ends sooner.

    Raises `BeingRenewed` where another process is at it, and what the platform's `renew` raises.
    """
    now = now or utc_now()
    if not _ends_soon(outlet, now):
        return outlet
    # Somebody may have renewed it since the row was read.
    outlet = _read(outlet)
    if not _ends_soon(outlet, now):
        return outlet
    token = _take_turn(outlet)
    # Between that look and the turn another one may have come to its end: many refresh tokens are good for once.
    outlet = _read(outlet)
    outlet.lease_token = token
    try:
        if _ends_soon(outlet, now):
            renew(outlet, now)
    finally:
        # However it ended, the turn is over; what a check does on its own time stays as it was.
        outlet.sleep_until(outlet.due_at, attempts=0)
    return _read(outlet)


def _read(outlet: Outlet) -> Outlet:
    row: Outlet = Outlet.everywhere.select_related("workspace").get(pk=outlet.pk)
    return row


def renew(outlet: Outlet, now: datetime) -> Renewed | None:
    """Under the row's lease: ask for new credentials and write them in one statement; None where there is nothing to
    renew. Raises what the platform raises, and `BeingRenewed` where the lease was lost.
    """
    crash_point("outlets.claimed")
    connection = connect(outlet)
    release_for_the_call()
    with connection.telling_no_secret():
        renewed = connection.platform.renew(connection.account, http=connection.http, now=now)
    if renewed is None:
        return None
    crash_point("outlets.renewed")
    began = utc_now()
    at = health.next_check(began, renewed.expires_at, began)
    values = {
        "credentials": dict(renewed.credentials),
        "expires_at": renewed.expires_at,
        "expiry_told_at": None,
        "profile": {**outlet.profile, "renewed_at": as_z(began)},
        "due_at": at,
    }
    if not outlet.under_lease().update(**values, version=F("version") + 1):
        message = "Somebody connected the outlet again meanwhile."
        raise BeingRenewed(message, code="credential_renewing", after=WAIT)
    for name, value in values.items():
        setattr(outlet, name, value)
    return renewed


def _ends_soon(outlet: Outlet, now: datetime) -> bool:
    if (
        outlet.expires_at is None
        or outlet.credentials is None
        or outlet.expires_at > now + health.LAST_MINUTES
    ):
        return False
    return type(platform_of(outlet.platform)).renew is not Platform.renew


def _take_turn(outlet: Outlet) -> int:
    """As a claim does it, for one row: unless a task has it, which is what `attempts` and a coming `wake_at` say.
    Returns the token of the lease.
    """
    until = work_queue.database_now()
    free = Q(attempts=0) | Q(wake_at=None) | Q(wake_at__lte=until)
    mine = Outlet.everywhere.filter(free, pk=outlet.pk, lease_token=outlet.lease_token)
    if not mine.update(lease_token=F("lease_token") + 1, attempts=F("attempts") + 1, wake_at=until + TURN):
        message = "The outlet's log-in is being renewed at this moment."
        raise BeingRenewed(message, code="credential_renewing", after=WAIT)
    return outlet.lease_token + 1
