"""Runs the task that checks an outlet's account, renews its credential, and notifies before it expires."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import structlog
from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts import notices
from config.core.clock import utc_now
from config.core.ids import encode
from pipeline.models import Outlet, OutletStatus
from pipeline.outlets import health
from pipeline.outlets.check_account import (
    MAX_MESSAGE_CHARACTERS,
    BeingRenewed,
    is_same_account,
    profile_of,
    release_database_for_call,
)
from pipeline.outlets.outlet_client import connect, credentials_of, platform_of
from pipeline.outlets.renewal import renew
from pipeline.plugins import NeedsReconnect, PluginError, Refused, TryLater

if TYPE_CHECKING:
    from pipeline.platforms.base import AccountInfo

log = structlog.get_logger(__name__)


def maintain_outlet(claimed: Outlet) -> None:
    """Renew the credential of a claimed outlet if due, check its account, and record the result.

    A disabled outlet is only renewed, and a disconnected one isn't checked again.
    """
    outlet: Outlet = Outlet.everywhere.select_related("workspace").get(pk=claimed.pk)
    # Later writes must name the token that this task claimed with, not one that overtook it.
    outlet.lease_token = claimed.lease_token
    now = utc_now()
    if outlet.deleted_at is not None or outlet.credentials is None:
        outlet.sleep_until(None, attempts=0, due_at=None)
        return
    try:
        can_renew = _renew_if_due(outlet, now)
        if outlet.status == OutletStatus.DISABLED:
            # It isn't used; it only needs a credential that doesn't expire in the meantime.
            _sleep_until_next_check(outlet, now)
            return
        connection = connect(outlet)
        release_database_for_call()
        with connection.redacting_errors():
            info = connection.platform.check_account(connection.account, http=connection.http, now=now)
    except BeingRenewed:
        log.info("overtaken", outlet=encode("out", outlet.pk))
    except TryLater as error:
        wait = health.wait_after(outlet, error.after, now)
        log.info("check_put_off", outlet=encode("out", outlet.pk), code=error.code)
        outlet.sleep_until(now + wait, attempts=0)
    except (NeedsReconnect, Refused) as error:
        _record_lost(outlet, error, utc_now())
    else:
        _record_working(outlet, info, utc_now(), can_renew=can_renew)


def give_up(claimed: Outlet) -> None:
    """Put the next check off to tomorrow after the task kept crashing; publishing goes on."""
    at = health.next_check(utc_now(), None, None)
    claimed.sleep_until(at, attempts=0, due_at=at)


def _renew_if_due(outlet: Outlet, now: datetime) -> bool:
    """Renew the credential if it is time; return `False` only if it was time and it can't be renewed."""
    return not health.is_to_renew(outlet, now) or renew(outlet, now) is not None


def _sleep_until_next_check(outlet: Outlet, now: datetime) -> None:
    """Schedule the outlet's next check."""
    at = health.next_check(now, outlet.expires_at, health.renewed_at_of(outlet))
    outlet.sleep_until(at, attempts=0, due_at=at)


def _record_lost(outlet: Outlet, error: PluginError, now: datetime) -> None:
    """Record that the platform no longer accepts the credentials, unless this task has lost its lease."""
    reason = {"code": error.code, "message": error.message[:MAX_MESSAGE_CHARACTERS]}
    at = health.next_check(now, None, None)
    with transaction.atomic():
        # If a person has reconnected it in the meantime, its credentials aren't the ones that were refused.
        if not outlet.sleep_until(at, attempts=0, due_at=at):
            return
        health.mark_lost(outlet.pk, reason, now, test=outlet.is_simulated)


def _record_working(outlet: Outlet, info: AccountInfo, now: datetime, *, can_renew: bool) -> None:
    """Record the platform's answer, and wake what waited for the account; another account counts as lost.

    Nothing is recorded if this task has lost its lease.
    """
    if not is_same_account(outlet, info):
        message = "The platform says that these credentials now belong to another account."
        _record_lost(outlet, NeedsReconnect(message, code="another_account"), now)
        return
    # The platform's answer is newer than the stored expiry.
    expires_at = info.expires_at or outlet.expires_at
    renewed_at = now if info.credentials else health.renewed_at_of(outlet) or now
    at = health.next_check(now, expires_at, renewed_at)
    values: dict[str, Any] = {
        "profile": profile_of(info, renewed_at=renewed_at),
        "checked_at": now,
        "expires_at": expires_at,
        "due_at": at,
        "version": F("version") + 1,
    }
    if info.credentials:
        # They are written under the lease with which the old ones were read: a reconnection has taken the lease.
        values["credentials"] = {**credentials_of(outlet), **info.credentials}
    with transaction.atomic():
        # The row is read again, because a person may have changed the settings since this task read them.
        row: Outlet = Outlet.everywhere.select_for_update(no_key=True).get(pk=outlet.pk)
        values["config"] = {**row.config, **info.config}
        is_notified = (
            not can_renew and expires_at is not None and _notify_before_expiry(outlet, expires_at, now)
        )
        if is_notified:
            values["expiry_told_at"] = now
        if not outlet.sleep_until(at, attempts=0, **values):
            return
        woken = health.mark_working(outlet, now)
    if woken:
        health.wake_publications(outlet, now)
        health.wake_mails(outlet, now, ends_rest=True)


def _notify_before_expiry(outlet: Outlet, expires_at: datetime, now: datetime) -> bool:
    """Notify members in the last `health.NOTIFY_BEFORE` before the credential expires.

    Returns `False` if it is too early, was done before, or the outlet is simulated.
    """
    if outlet.expiry_told_at is not None or now < expires_at - health.NOTIFY_BEFORE or outlet.is_simulated:
        return False
    days = max(1, (expires_at - now) // timedelta(days=1))
    title = ngettext(
        "Reconnect %(outlet)s within a day", "Reconnect %(outlet)s within %(days)d days", days
    ) % {"outlet": outlet.name, "days": days}
    label = platform_of(outlet.platform).label
    return notices.record(
        "outlet_reconnect",
        workspace_id=outlet.workspace_id,
        key=f"{outlet.pk.hex}:ends:{int(expires_at.timestamp())}",
        title=title,
        text=_("The log-in at %(platform)s expires then. Publishing to it stops.") % {"platform": label},
        path=f"outlets/{encode('out', outlet.pk)}",
        now=now,
    )
