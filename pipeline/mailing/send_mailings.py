"""Runs an outlet's mail queue: creates the deliveries of new mailings, then sends one mail after another.

Only the holder of the queue's lease runs it. A delivery is committed as `sending` before its content is sent.
If a task finds one in that status, the worker that sent it was killed: nobody knows whether the mail arrived,
and it is never sent again.
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
from config.core.datetimes import format_utc
from pipeline import limits
from pipeline.mailing.lifecycle import OPEN_STATUSES, end_finished_mailings, halt, spread_some
from pipeline.mailing.queue import lost_lease_error, release_queue
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
"""The queue's lease, which is renewed before each mail: longer than the slowest mail takes."""
RUN_SECONDS: Final = 20.0
"""The duration after which a task ends, so that other queues get their turn."""
HELD_WAIT: Final = timedelta(seconds=30)
"""The time between two checks whether publishing is still stopped."""
OUTLET_CLOSED_WAIT: Final = timedelta(minutes=5)
"""The time between two checks whether the outlet is connected again."""
DELIVERIES_PER_READ: Final = 20
MAX_OPEN_PAUSE_SECONDS: Final = 5.0
"""The longest pause between two mails for which the connection stays open."""


def send_mails(queue: MailQueue) -> None:
    """Run one claimed mail queue; if the lease is lost, only log it."""
    row = _reload(queue)
    try:
        _run_queue(row)
    except states.Overtaken:
        log.info("overtaken", outlet=ids.encode("out", row.outlet_id))


def _reload(queue: MailQueue) -> MailQueue:
    """Return the queue's current row, under the lease that this task claimed."""
    row: MailQueue = MailQueue.everywhere.select_related("outlet", "workspace").get(pk=queue.pk)
    row.lease_token = queue.lease_token
    return row


def give_up(queue: MailQueue) -> None:
    """Stop the open mailings after workers failed several times; mails in flight are of unknown outcome.

    Raises `Overtaken` if the lease was lost.
    """
    row = _reload(queue)
    now = utc_now()
    _mark_interrupted(row, now)
    message = "Sending failed several times; the operator's log has the reason."
    _stop_all(row, "gave_up", message, now)
    release_queue(row, lambda: now + limits.MAIL_SESSION_WAITS[-1])


def _run_queue(row: MailQueue) -> None:
    """Create deliveries, send what is due, end finished mailings, and release the queue.

    If the outlet was removed, its mailings are stopped; if publishing is stopped or the outlet rests, nothing
    is sent.
    """
    now = utc_now()
    _mark_interrupted(row, now)
    if row.outlet.deleted_at is not None:
        _stop_all(row, "outlet_deleted", "The outlet was removed.", now)
        release_queue(row, lambda: None)
        return
    if _paused_until(row, now) is not None:
        # The row is read again, because the reason for the pause may have ended since.
        release_queue(row, lambda: _paused_until(_reload(row), now) or now)
        return
    for mailing in Mailing.everywhere.filter(
        outlet_id=row.outlet_id, status=MailingStatus.SPREADING
    ).order_by("pk"):
        while spread_some(mailing, now=utc_now()):
            renew(row)
    rests_until = _send_session(row) if _due_deliveries(row, utc_now(), 1) else None
    end_finished_mailings(row.outlet_id, now=utc_now())
    release_queue(row, lambda: _next_wake(row, rests_until), rests_until=rests_until)


def renew(row: MailQueue) -> None:
    """Renew the queue's lease. Raises `Overtaken` if it was lost."""
    if not row.under_lease().update(wake_at=work_queue.database_now() + LEASE):
        raise lost_lease_error()


def _paused_until(row: MailQueue, now: datetime) -> datetime | None:
    """Return until when nothing may be sent, or `None` if mails may be sent now."""
    wait = _pause_wait(row)
    if wait is not None:
        return now + wait
    return row.rests_until if row.rests_until is not None and row.rests_until > now else None


def _pause_wait(row: MailQueue) -> timedelta | None:
    """Return how long to wait because of the outlet's status, a stop or the workspace, or `None`."""
    if row.outlet.status != OutletStatus.OK:
        return OUTLET_CLOSED_WAIT
    is_stopped = kill_switch.stopped(
        "publishing", platform=row.outlet.platform, workspace_id=row.workspace_id
    )
    return HELD_WAIT if is_stopped is not None or not row.workspace.is_at_work else None


def _mark_interrupted(row: MailQueue, now: datetime) -> None:
    """Mark the mails that a killed worker was sending as of unknown outcome."""
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


def _due_deliveries(row: MailQueue, now: datetime, limit: int) -> list[MailDelivery]:
    """Return at most `limit` deliveries that may be sent now: confirmations, or those of the first mailing."""
    pending = MailDelivery.everywhere.filter(
        outlet_id=row.outlet_id, status=MailDeliveryStatus.PENDING, next_at__lte=now
    )
    due = list(pending.filter(mailing=None).select_related("subscriber").order_by("next_at")[:limit])
    for mailing_id in _sending_mailings(row):
        if due:
            break
        due = list(
            pending.filter(mailing_id=mailing_id)
            .select_related("subscriber")
            .order_by("next_at", "pk")[:limit]
        )
    return due


def _sending_mailings(row: MailQueue) -> list[Any]:
    rows = Mailing.everywhere.filter(outlet_id=row.outlet_id, status=MailingStatus.SENDING).order_by("pk")
    return list(rows.values_list("pk", flat=True))


def _next_wake(row: MailQueue, rests_until: datetime | None) -> datetime | None:
    """Return when the queue is run next, never before `rests_until`, or `None` if nothing waits."""
    pending = MailDelivery.everywhere.filter(outlet_id=row.outlet_id, status=MailDeliveryStatus.PENDING)
    next_times = [pending.filter(mailing=None).order_by("next_at").values_list("next_at", flat=True).first()]
    next_times += [
        pending.filter(mailing_id=mailing_id).order_by("next_at").values_list("next_at", flat=True).first()
        for mailing_id in _sending_mailings(row)
    ]
    if Mailing.everywhere.filter(outlet_id=row.outlet_id, status=MailingStatus.SPREADING).exists():
        next_times.append(utc_now())
    known_times: list[datetime] = [moment for moment in next_times if moment is not None]
    if not known_times:
        return None
    return max(min(known_times), rests_until) if rests_until is not None else min(known_times)


# --- A session -------------------------------------------------------------------------------------------------------


def _send_session(row: MailQueue) -> datetime | None:
    """Send over one session until nothing is left or `RUN_SECONDS` are over.

    Returns until when the outlet rests because of its pace or of a failure, or `None`. Raises `Overtaken` if
    the lease was lost.
    """
    connection = connect(row.outlet)
    pause = 60.0 / int(connection.account.config.get("mails_per_minute") or 60)
    try:
        # Wrong settings are reported before a mail is sent unsigned.
        email_newsletter.dkim_notes(connection.account)
        session = open_session(connection.account, connection.http.policy)
    except (TryLater, Refused, NeedsReconnect) as error:
        return _record_failure(row, error, connection)
    postman = Postman(row.outlet, connection, session)
    deadline = time.monotonic() + RUN_SECONDS
    try:
        while batch := _due_deliveries(row, utc_now(), DELIVERIES_PER_READ):
            for delivery in batch:
                renew(row)
                if not postman.deliver(delivery):
                    continue
                if postman.sent_count == 1 and (row.failures or row.error):
                    row.under_lease().update(failures=0, error=None)
                if pause > MAX_OPEN_PAUSE_SECONDS or time.monotonic() + pause > deadline:
                    return utc_now() + timedelta(seconds=pause)
                time.sleep(pause)
            if _pause_wait(row) is not None:
                break
    except Halted as halted:
        return _record_failure(row, halted.problem, connection, mailing=halted.mailing)
    finally:
        session.close()
    return None


def _record_failure(
    row: MailQueue, error: PluginError, connection: OutletConnection, *, mailing: Mailing | None = None
) -> datetime:
    """Record a failed session, and return until when to wait.

    The wait grows from session to session. A lost login stops the outlet; a refusal stops `mailing`, after
    which there is no wait, or all open mailings if none is given. Raises `Overtaken` if the lease was lost.
    """
    now = utc_now()
    message = f"{error.message} {error.platform_message}".strip()
    stored_error = {"code": error.code, "message": connection.redact(message)[:1000], "at": format_utc(now)}
    failures = row.failures + 1
    wait = limits.MAIL_SESSION_WAITS[min(failures, len(limits.MAIL_SESSION_WAITS)) - 1]
    with transaction.atomic():
        if not row.under_lease().update(failures=failures, error=stored_error, updated_at=now):
            raise lost_lease_error()
        row.failures = failures
        if isinstance(error, NeedsReconnect):
            health.mark_lost(row.outlet_id, stored_error, now)
        elif isinstance(error, Refused) and mailing is not None:
            halt(mailing, error.code, stored_error["message"], now=now)
            _notify(row, stored_error, now)
            wait = timedelta(0)
        elif isinstance(error, Refused):
            _stop_all(row, error.code, stored_error["message"], now)
            _notify(row, stored_error, now)
            wait = limits.MAIL_SESSION_WAITS[-1]
        elif failures == limits.MAIL_FAILURES_TOLD:
            _notify(row, stored_error, now)
    log.info("mail_session_failed", outlet=ids.encode("out", row.outlet_id), code=error.code)
    return now + wait


def _stop_all(row: MailQueue, code: str, message: str, now: datetime) -> None:
    for mailing in Mailing.everywhere.filter(outlet_id=row.outlet_id, status__in=OPEN_STATUSES):
        halt(mailing, code, message, now=now)


def _notify(row: MailQueue, stored_error: dict[str, Any], now: datetime) -> None:
    notices.record(
        "post_failed",
        workspace_id=row.workspace_id,
        key=f"{row.pk.hex}:{stored_error['at']}",
        title=_("The mail server of %(outlet)s rejects mail") % {"outlet": row.outlet.name},
        text=str(stored_error["message"]),
        path=f"outlets/{ids.encode('out', row.outlet_id)}/subscribers",
        now=now,
    )
