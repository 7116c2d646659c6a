"""Creates a publication's mailing and its deliveries, and stops, resumes and ends mailings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.db.models import Count

from accounts import audit
from config.core import ids, states
from config.core.crash_points import crash_point
from config.core.datetimes import format_utc
from pipeline import limits
from pipeline.mailing.queue import wake_queue
from pipeline.models import (
    GeneratedItem,
    MailDelivery,
    Mailing,
    MailingStatus,
    Subscriber,
    SubscriberStatus,
)
from pipeline.outlets import short_links
from pipeline.outlets.outlet_client import account_of
from pipeline.platforms.base import Sent
from pipeline.platforms.email_newsletter.message import issue_of

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from pipeline.models import Outlet, Publication
    from pipeline.platforms.payload_types import Adapted

OPEN_STATUSES: Final = ("spreading", "sending")
"""Statuses of a mailing of which mails are still sent."""
UNSENT_STATUSES: Final = ("pending", "sending")
"""Statuses of a delivery that hasn't ended."""
RESTORED: Final = {
    "code": "restored",
    "message": "The service was restored from a backup, so it is unknown who got this mail since. "
    "Resuming mails everyone who isn't in the ledger, perhaps a second time.",
}


def issue(publication: Publication, post: Adapted, *, now: datetime) -> Sent:
    """Create the publication's mailing unless it exists, in the transaction that marks it published.

    Returns what the publication stores: the mailing's id.
    """
    content = issue_of(post.payload, account_of(publication.outlet).config)
    html, text = short_links.in_mail(publication, content.html, content.text)
    mailing = Mailing(
        workspace_id=publication.workspace_id,
        outlet_id=publication.outlet_id,
        publication=publication,
        subject=content.subject,
        html=html,
        text=text,
        language=content.language,
        created_at=now,
        updated_at=now,
    )
    Mailing.everywhere.bulk_create([mailing], ignore_conflicts=True)
    stored: Mailing = Mailing.everywhere.get(publication=publication)
    wake_queue(publication.outlet, now)
    return Sent(external_id=ids.encode("mlg", stored.pk))


def spread_some(mailing: Mailing, *, now: datetime) -> bool:
    """Create the next deliveries in one transaction, and return whether more may follow.

    Returns `False` too if the mailing isn't `spreading`. If the worker is killed, the next one continues from
    the last subscriber.
    """
    with transaction.atomic():
        row: Mailing = Mailing.everywhere.select_for_update().get(pk=mailing.pk)
        if row.status != MailingStatus.SPREADING:
            return False
        # Subscribers who confirm later get the next mailing.
        subscribers = Subscriber.everywhere.filter(
            outlet_id=row.outlet_id, status=SubscriberStatus.ACTIVE, confirmed_at__lte=row.created_at
        )
        if row.spread_to is not None:
            subscribers = subscribers.filter(pk__gt=row.spread_to)
        subscriber_ids = list(
            subscribers.order_by("pk").values_list("pk", flat=True)[: limits.MAIL_SPREAD_AT_ONCE]
        )
        domain = domain_of(row.outlet)
        deliveries = [
            new_delivery(row.outlet, domain, mailing=row, subscriber_id=subscriber_id, now=now)
            for subscriber_id in subscriber_ids
        ]
        MailDelivery.everywhere.bulk_create(deliveries)
        changes: dict[str, Any] = {"recipients": row.recipients + len(subscriber_ids), "updated_at": now}
        if subscriber_ids:
            changes["spread_to"] = subscriber_ids[-1]
        is_complete = len(subscriber_ids) < limits.MAIL_SPREAD_AT_ONCE
        if is_complete:
            states.move(row, "sending", **changes)
        else:
            Mailing.everywhere.filter(pk=row.pk).update(**changes)
    crash_point("mailing.spread")
    return not is_complete


def domain_of(outlet: Outlet) -> str:
    """Return the domain of the outlet's sender address."""
    return str(account_of(outlet).config["from_address"]).rpartition("@")[2]


def new_delivery(
    outlet: Outlet, domain: str, *, subscriber_id: UUID, mailing: Mailing | None = None, now: datetime
) -> MailDelivery:
    """Return an unsaved delivery. Its Message-ID is made from its id, so that it is the same for every try."""
    row = MailDelivery(
        workspace_id=outlet.workspace_id,
        outlet=outlet,
        mailing=mailing,
        subscriber_id=subscriber_id,
        next_at=now,
        created_at=now,
        updated_at=now,
    )
    row.message_id = f"<{row.pk.hex}@{domain}>"
    return row


def end_finished_mailings(outlet_id: UUID, *, now: datetime) -> None:
    """End the outlet's mailings in `sending` that have no unsent deliveries."""
    for row in Mailing.everywhere.filter(outlet_id=outlet_id, status=MailingStatus.SENDING):
        if MailDelivery.everywhere.filter(mailing=row, status__in=UNSENT_STATUSES).exists():
            continue
        _end_mailing(row, now)


def erase_words(item: GeneratedItem, *, now: datetime) -> None:
    """Erase the content of an item's mailings, in the transaction that erases the item.

    A stopped mailing ends, so that it can't be resumed. A mailing that is being sent keeps its content until
    it ends.
    """
    mailings = Mailing.everywhere.filter(publication__item=item)
    for row in mailings.filter(status=MailingStatus.STOPPED):
        _end_mailing(row, now)
    mailings.filter(status=MailingStatus.DONE).update(subject="")


def _end_mailing(row: Mailing, now: datetime) -> None:
    """End a mailing and erase its text; its counts stay, and its subject unless the item was erased."""
    states.move(row, "done", counts=count_deliveries(row), ended_at=now, html="", text="", updated_at=now)
    Mailing.everywhere.filter(pk=row.pk, publication__item__deleted_at__isnull=False).update(subject="")


def count_deliveries(mailing: Mailing) -> dict[str, int]:
    """Return the number of deliveries by status, as stored once the mailing is done.

    A delivery that bounced later counts under the status that it had.
    """
    if mailing.counts is not None:
        return dict(mailing.counts)
    rows = MailDelivery.everywhere.filter(mailing=mailing)
    return {row["status"]: row["n"] for row in rows.values("status").annotate(n=Count("pk"))}


def halt(mailing: Mailing, code: str, message: str, *, now: datetime) -> None:
    """Stop a mailing with a reason, and end it if its item was erased meanwhile.

    Raises `MoveRefused` if it is stopped or done, and `Overtaken` if it changed since it was read.
    """
    error = {"code": code, "message": message, "at": format_utc(now)}
    states.move(mailing, "stopped", error=error, updated_at=now)
    erased = GeneratedItem.everywhere.filter(deleted_at__isnull=False)
    if erased.filter(publications=mailing.publication_id).exists():
        _end_mailing(mailing, now)


def stop(mailing: Mailing, *, by: str, now: datetime) -> None:
    """Stop a mailing for a person; a mail that is being sent is still finished.

    Raises `MoveRefused` if the mailing is stopped or done, and `Overtaken` if it changed since it was read.
    """
    with transaction.atomic():
        halt(mailing, "stopped", f"Stopped by {by}.", now=now)
        _audit("mailing.stopped", mailing, by)


def resume(mailing: Mailing, *, by: str, now: datetime) -> None:
    """Continue with the remaining deliveries.

    Raises `MoveRefused` unless the mailing is stopped, and `Overtaken` if it changed since it was read.
    """
    with transaction.atomic():
        states.move(mailing, "spreading", error=None, updated_at=now)
        wake_queue(mailing.outlet, now)
        _audit("mailing.resumed", mailing, by)


def _audit(action: str, mailing: Mailing, by: str) -> None:
    subject = ids.encode("mlg", mailing.pk)
    audit.note(action, workspace=mailing.workspace, actor=by, subject=subject, details={})


def doubt_restored(*, now: datetime) -> int:
    """Stop all open mailings after a restore, until a person resumes them, and return their number.

    The restored deliveries may lack mails that were sent after the backup.
    """
    stopped = 0
    for row in Mailing.everywhere.filter(status__in=OPEN_STATUSES):
        halt(row, RESTORED["code"], RESTORED["message"], now=now)
        stopped += 1
    return stopped
