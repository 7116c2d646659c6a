"""The task of an outlet's line of mails: spread what was issued, then send one mail after the other.

Whoever holds the lease of the line is alone. A mail's line is committed as `sending` before its words leave, so one that
is found so belongs to a killed worker: nobody knows whether it arrived, and it is never sent again.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import structlog
from django.db import transaction
from django.utils.translation import gettext as _

from accounts import notices
from config.core import ids, states, work_queue
from config.core.clock import utc_now
from config.core.datetimes import as_z
from pipeline import limits
from pipeline.mailing.lifecycle import OPEN, end_what_is_done, halt, spread_some
from pipeline.mailing.queue import give_back, overtaken
from pipeline.mailing.send import Halted, Postman
from pipeline.models import MailDelivery, MailDeliveryStatus, Mailing, MailingStatus, MailQueue, OutletStatus
from pipeline.outlets import health
from pipeline.outlets.outlet_client import connect
from pipeline.platforms import email_newsletter
from pipeline.platforms.email_newsletter.session import open_session
from pipeline.plugins import NeedsReconnect, PluginError, Refused, TryLater
from pipeline.switches import kill_switch

if TYPE_CHECKING:
    from pipeline.outlets.outlet_client import OutletConnection

log = structlog.get_logger(__name__)

LEASE: Final = timedelta(minutes=4)
"""Longer than one session's slowest mail; renewed before each."""
RUN_SECONDS: Final = 20.0
"""Then others get their turn."""
HELD_WAIT: Final = timedelta(seconds=30)
CLOSED_WAIT: Final = timedelta(minutes=5)
AT_ONCE: Final = 20
PAUSE_MOST: Final = 5.0
"""A longer pause between two mails isn't sat out with the connection open."""


def send_mails(queue: MailQueue) -> None:
    row = _read(queue)
    try:
        _work(row)
    except states.Overtaken:
        log.info("overtaken", outlet=ids.encode("out", row.outlet_id))


def _read(queue: MailQueue) -> MailQueue:
    """As it is now, under the lease that this task claimed."""
    row: MailQueue = MailQueue.everywhere.select_related("outlet", "workspace").get(pk=queue.pk)
    row.lease_token = queue.lease_token
    return row


def give_up(queue: MailQueue) -> None:
    """Broke again and again: what is on its way is unknown, the rest is stopped until a person looks."""
    row = _read(queue)
    now = utc_now()
    _doubt_interrupted(row, now)
    message = "Sending broke several times; the operator's log has the reason."
    _stop_all(row, "gave_up", message, now)
    give_back(row, lambda: now + limits.MAIL_SESSION_WAITS[-1])


def _work(row: MailQueue) -> None:
    now = utc_now()
    _doubt_interrupted(row, now)
    if row.outlet.deleted_at is not None:
        _stop_all(row, "outlet_deleted", "The outlet was removed.", now)
        give_back(row, lambda: None)
        return
    if _held_until(row, now) is not None:
        # Read anew: what it waits for may have ended since.
        give_back(row, lambda: _held_until(_read(row), now) or now)
        return
    for mailing in Mailing.everywhere.filter(
        outlet_id=row.outlet_id, status=MailingStatus.SPREADING
    ).order_by("pk"):
        while spread_some(mailing, now=utc_now()):
            renew(row)
    rests_until = _send(row) if _waiting(row, utc_now(), 1) else None
    end_what_is_done(row.outlet_id, now=utc_now())
    give_back(row, lambda: _next_look(row, rests_until), rests_until=rests_until)


def renew(row: MailQueue) -> None:
    if not row.under_lease().update(wake_at=work_queue.database_now() + LEASE):
        raise overtaken()


def _held_until(row: MailQueue, now: datetime) -> datetime | None:
    wait = _held_for(row)
    if wait is not None:
        return now + wait
    return row.rests_until if row.rests_until is not None and row.rests_until > now else None


def _held_for(row: MailQueue) -> timedelta | None:
    if row.outlet.status != OutletStatus.OK:
        return CLOSED_WAIT
    is_stopped = kill_switch.stopped(
        "publishing", platform=row.outlet.platform, workspace_id=row.workspace_id
    )
    return HELD_WAIT if is_stopped is not None or not row.workspace.is_at_work else None


def _doubt_interrupted(row: MailQueue, now: datetime) -> None:
    for delivery in MailDelivery.everywhere.filter(
        outlet_id=row.outlet_id, status=MailDeliveryStatus.SENDING
    ):
        states.move(
            delivery,
            "unknown",
            next_at=None,
            reply="The service stopped while the mail was on its way.",
            updated_at=now,
        )


def _waiting(row: MailQueue, now: datetime, most: int) -> list[MailDelivery]:
    """What may go now: who waits for a confirmation first, then mailing by mailing."""
    there = MailDelivery.everywhere.filter(
        outlet_id=row.outlet_id, status=MailDeliveryStatus.PENDING, next_at__lte=now
    )
    found = list(there.filter(mailing=None).select_related("subscriber").order_by("next_at")[:most])
    for key in _sending(row):
        if found:
            break
        found = list(
            there.filter(mailing_id=key).select_related("subscriber").order_by("next_at", "pk")[:most]
        )
    return found


def _sending(row: MailQueue) -> list[Any]:
    rows = Mailing.everywhere.filter(outlet_id=row.outlet_id, status=MailingStatus.SENDING).order_by("pk")
    return list(rows.values_list("pk", flat=True))


def _next_look(row: MailQueue, rests_until: datetime | None) -> datetime | None:
    there = MailDelivery.everywhere.filter(outlet_id=row.outlet_id, status=MailDeliveryStatus.PENDING)
    moments = [there.filter(mailing=None).order_by("next_at").values_list("next_at", flat=True).first()]
    moments += [
        there.filter(mailing_id=key).order_by("next_at").values_list("next_at", flat=True).first()
        for key in _sending(row)
    ]
    if Mailing.everywhere.filter(outlet_id=row.outlet_id, status=MailingStatus.SPREADING).exists():
        moments.append(utc_now())
    known: list[datetime] = [moment for moment in moments if moment is not None]
    if not known:
        return None
    return max(min(known), rests_until) if rests_until is not None else min(known)


# --- A session -------------------------------------------------------------------------------------------------------


def _send(row: MailQueue) -> datetime | None:
    """One session, until nothing is left or its time is up; until when the outlet rests then."""
    connection = connect(row.outlet)
    pause = 60.0 / int(connection.account.config.get("mails_per_minute") or 60)
    try:
        # Settings that can't be right are told before a mail goes out unsigned.
        email_newsletter.dkim_notes(connection.account)
        session = open_session(connection.account, connection.http.policy)
    except (TryLater, Refused, NeedsReconnect) as error:
        return _failed(row, error, connection)
    postman = Postman(row.outlet, connection, session)
    until = time.monotonic() + RUN_SECONDS
    try:
        while batch := _waiting(row, utc_now(), AT_ONCE):
            for delivery in batch:
                renew(row)
                if not postman.deliver(delivery):
                    continue
                if postman.sent == 1 and (row.failures or row.error):
                    row.under_lease().update(failures=0, error=None)
                if pause > PAUSE_MOST or time.monotonic() + pause > until:
                    return utc_now() + timedelta(seconds=pause)
                time.sleep(pause)
            if _held_for(row) is not None:
                break
    except Halted as halted:
        return _failed(row, halted.problem, connection, mailing=halted.mailing)
    finally:
        session.close()
    return None


def _failed(
    row: MailQueue, error: PluginError, connection: OutletConnection, *, mailing: Mailing | None = None
) -> datetime:
    """Waits longer from session to session; what only a person can put right stops what is open, or the outlet."""
    now = utc_now()
    words = f"{error.message} {error.platform_message}".strip()
    shown = {"code": error.code, "message": connection.redact(words)[:1000], "at": as_z(now)}
    failures = row.failures + 1
    wait = limits.MAIL_SESSION_WAITS[min(failures, len(limits.MAIL_SESSION_WAITS)) - 1]
    with transaction.atomic():
        if not row.under_lease().update(failures=failures, error=shown, updated_at=now):
            raise overtaken()
        row.failures = failures
        if isinstance(error, NeedsReconnect):
            health.lost(row.outlet_id, shown, now)
        elif isinstance(error, Refused) and mailing is not None:
            halt(mailing, error.code, shown["message"], now=now)
            _tell(row, shown, now)
            wait = timedelta(0)
        elif isinstance(error, Refused):
            _stop_all(row, error.code, shown["message"], now)
            _tell(row, shown, now)
            wait = limits.MAIL_SESSION_WAITS[-1]
        elif failures == limits.MAIL_FAILURES_TOLD:
            _tell(row, shown, now)
    log.info("mail_session_failed", outlet=ids.encode("out", row.outlet_id), code=error.code)
    return now + wait


def _stop_all(row: MailQueue, code: str, message: str, now: datetime) -> None:
    for mailing in Mailing.everywhere.filter(outlet_id=row.outlet_id, status__in=OPEN):
        halt(mailing, code, message, now=now)


def _tell(row: MailQueue, shown: dict[str, Any], now: datetime) -> None:
    notices.record(
        "post_failed",
        workspace_id=row.workspace_id,
        key=f"{row.pk.hex}:{shown['at']}",
        title=_("The mail server of %(outlet)s rejects mail") % {"outlet": row.outlet.name},
        text=str(shown["message"]),
        path=f"outlets/{ids.encode('out', row.outlet_id)}/subscribers",
        now=now,
    )
