"""Look at an outlet's account: does its credential still work, is it to be renewed, does it end."""

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
    MESSAGE_CHARACTERS,
    BeingRenewed,
    is_same,
    profile_of,
    release_for_the_call,
)
from pipeline.outlets.outlet_client import connect, credentials_of, platform_of
from pipeline.outlets.renewal import renew
from pipeline.plugins import NeedsReconnect, PluginError, Refused, TryLater

if TYPE_CHECKING:
    from pipeline.platforms.base import AccountInfo

log = structlog.get_logger(__name__)


def maintain_outlet(claimed: Outlet) -> None:
    """Work one claimed outlet: renew where it is time, ask the platform, write what it says."""
    outlet: Outlet = Outlet.everywhere.select_related("workspace").get(pk=claimed.pk)
    # Later writes must name the token that this task claimed with, not one that overtook it.
    outlet.lease_token = claimed.lease_token
    now = utc_now()
    if outlet.deleted_at is not None or outlet.credentials is None:
        outlet.sleep_until(None, attempts=0, due_at=None)
        return
    try:
        can_renew = _renewed_if_due(outlet, now)
        if outlet.status == OutletStatus.DISABLED:
            # Nobody uses it; that its credential doesn't end meanwhile is all that it needs.
            _sleep(outlet, now)
            return
        connection = connect(outlet)
        release_for_the_call()
        with connection.telling_no_secret():
            info = connection.platform.check_account(connection.account, http=connection.http, now=now)
    except BeingRenewed:
        log.info("overtaken", outlet=encode("out", outlet.pk))
    except TryLater as error:
        wait = health.wait_after(outlet, error.after, now)
        log.info("check_put_off", outlet=encode("out", outlet.pk), code=error.code)
        outlet.sleep_until(now + wait, attempts=0)
    except (NeedsReconnect, Refused) as error:
        _note_lost(outlet, error, utc_now())
    else:
        _note_works(outlet, info, utc_now(), can_renew=can_renew)


def give_up(claimed: Outlet) -> None:
    """Our own fault, which the log tells: what is published there isn't held up by it, and it is looked at tomorrow."""
    at = health.next_check(utc_now(), None, None)
    claimed.sleep_until(at, attempts=0, due_at=at)


def _renewed_if_due(outlet: Outlet, now: datetime) -> bool:
    """Whether the credential can be renewed, as far as that was tried: True where it isn't time yet."""
    return not health.is_to_renew(outlet, now) or renew(outlet, now) is not None


def _sleep(outlet: Outlet, now: datetime) -> None:
    """Until the next check of its account."""
    at = health.next_check(now, outlet.expires_at, health.renewed_at_of(outlet))
    outlet.sleep_until(at, attempts=0, due_at=at)


def _note_lost(outlet: Outlet, error: PluginError, now: datetime) -> None:
    """Its platform takes the credentials no longer; nothing is written where this task has lost its lease."""
    reason = {"code": error.code, "message": error.message[:MESSAGE_CHARACTERS]}
    at = health.next_check(now, None, None)
    with transaction.atomic():
        # Somebody who connected it again meanwhile has other credentials than those that were refused.
        if not outlet.sleep_until(at, attempts=0, due_at=at):
            return
        health.lost(outlet.pk, reason, now, test=outlet.is_simulated)


def _note_works(outlet: Outlet, info: AccountInfo, now: datetime, *, can_renew: bool) -> None:
    """Keep what its platform said, and let what waited for the account go on; one of another account is lost."""
    if not is_same(outlet, info):
        message = "The platform says that these credentials belong to another account now."
        _note_lost(outlet, NeedsReconnect(message, code="another_account"), now)
        return
    # A credential that was renewed by us says itself when it ends; else the platform's word is the newer one.
    ends = info.expires_at or outlet.expires_at
    renewed_at = now if info.credentials else health.renewed_at_of(outlet) or now
    at = health.next_check(now, ends, renewed_at)
    values: dict[str, Any] = {
        "profile": profile_of(info, renewed_at=renewed_at),
        "checked_at": now,
        "expires_at": ends,
        "due_at": at,
        "version": F("version") + 1,
    }
    if info.credentials:
        # Under the lease with which they were read: whoever gave others meanwhile has overtaken this task.
        values["credentials"] = {**credentials_of(outlet), **info.credentials}
    with transaction.atomic():
        # As it is now: a person may have changed the settings since this task read them.
        row: Outlet = Outlet.everywhere.select_for_update(no_key=True).get(pk=outlet.pk)
        values["config"] = {**row.config, **info.config}
        is_told = not can_renew and ends is not None and _tell_of_the_end(outlet, ends, now)
        if is_told:
            values["expiry_told_at"] = now
        if not outlet.sleep_until(at, attempts=0, **values):
            return
        woken = health.works_again(outlet, now)
    if woken:
        health.wake_publications(outlet, now)
        health.wake_mails(outlet, now, ends_rest=True)


def _tell_of_the_end(outlet: Outlet, ends: datetime, now: datetime) -> bool:
    """Tell people in the last days before the credential ends; False where it is too early, or was told before."""
    if outlet.expiry_told_at is not None or now < ends - health.TOLD_BEFORE or outlet.is_simulated:
        return False
    days = max(1, (ends - now) // timedelta(days=1))
    title = ngettext(
        "Reconnect %(outlet)s within a day", "Reconnect %(outlet)s within %(days)d days", days
    ) % {"outlet": outlet.name, "days": days}
    label = platform_of(outlet.platform).label
    return notices.record(
        "outlet_reconnect",
        workspace_id=outlet.workspace_id,
        key=f"{outlet.pk.hex}:ends:{int(ends.timestamp())}",
        title=title,
        text=_("The log-in at %(platform)s expires then. Publishing to it stops.") % {"platform": label},
        path=f"outlets/{encode('out', outlet.pk)}",
        now=now,
    )
