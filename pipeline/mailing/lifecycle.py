"""Make a publication's mailing, write a line of the ledger for each recipient, stop it, let it go on, end it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.db.models import Count

from accounts import audit
from config.core import ids, states
from config.core.crash_points import crash_point
from config.core.datetimes import as_z
from pipeline import limits
from pipeline.mailing.queue import put_in_line
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

OPEN: Final = ("spreading", "sending")
WAITING: Final = ("pending", "sending")
RESTORED: Final = {
    "code": "restored",
    "message": "The service was restored from a backup, and nobody knows who got this mail since. "
    "Going on mails everybody whom the ledger doesn't name, perhaps a second time.",
}


def issue(publication: Publication, post: Adapted, *, now: datetime) -> Sent:
    """The publication's mailing, once, in the transaction that marks it published; what the publication keeps of it."""
    made = issue_of(post.payload, account_of(publication.outlet).config)
    html, text = short_links.in_mail(publication, made.html, made.text)
    mailing = Mailing(
        workspace_id=publication.workspace_id,
        outlet_id=publication.outlet_id,
        publication=publication,
        subject=made.subject,
        html=html,
        text=text,
        language=made.language,
        created_at=now,
        updated_at=now,
    )
    Mailing.everywhere.bulk_create([mailing], ignore_conflicts=True)
    kept: Mailing = Mailing.everywhere.get(publication=publication)
    put_in_line(publication.outlet, now)
    return Sent(external_id=ids.encode("mlg", kept.pk))


def spread_some(mailing: Mailing, *, now: datetime) -> bool:
    """Some recipients more, in one transaction; True where there may be others. Killed, it goes on where it was."""
    with transaction.atomic():
        row: Mailing = Mailing.everywhere.select_for_update().get(pk=mailing.pk)
        if row.status != MailingStatus.SPREADING:
            return False
        # Who confirmed later gets the next one.
        there = Subscriber.everywhere.filter(
            outlet_id=row.outlet_id, status=SubscriberStatus.ACTIVE, confirmed_at__lte=row.created_at
        )
        if row.spread_to is not None:
            there = there.filter(pk__gt=row.spread_to)
        keys = list(there.order_by("pk").values_list("pk", flat=True)[: limits.MAIL_SPREAD_AT_ONCE])
        domain = domain_of(row.outlet)
        lines = [new_delivery(row.outlet, domain, mailing=row, subscriber_id=key, now=now) for key in keys]
        MailDelivery.everywhere.bulk_create(lines)
        changes: dict[str, Any] = {"recipients": row.recipients + len(keys), "updated_at": now}
        if keys:
            changes["spread_to"] = keys[-1]
        is_over = len(keys) < limits.MAIL_SPREAD_AT_ONCE
        if is_over:
            states.move(row, "sending", **changes)
        else:
            Mailing.everywhere.filter(pk=row.pk).update(**changes)
    crash_point("mailing.spread")
    return not is_over


def domain_of(outlet: Outlet) -> str:
    return str(account_of(outlet).config["from_address"]).rpartition("@")[2]


def new_delivery(
    outlet: Outlet, domain: str, *, subscriber_id: UUID, mailing: Mailing | None = None, now: datetime
) -> MailDelivery:
    """A line of the ledger, whose message id follows from its own: the same for every try."""
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


def end_what_is_done(outlet_id: UUID, *, now: datetime) -> None:
    for row in Mailing.everywhere.filter(outlet_id=outlet_id, status=MailingStatus.SENDING):
        if MailDelivery.everywhere.filter(mailing=row, status__in=WAITING).exists():
            continue
        _end(row, now)


def erase_words(item: GeneratedItem, *, now: datetime) -> None:
    """Erase the words of an item's mailings, in the transaction that erases the item.

    A mailing that is stopped ends, and can't go on any more. One that is under way keeps its words until it ends.
    """
    mailings = Mailing.everywhere.filter(publication__item=item)
    for row in mailings.filter(status=MailingStatus.STOPPED):
        _end(row, now)
    mailings.filter(status=MailingStatus.DONE).update(subject="")


def _end(row: Mailing, now: datetime) -> None:
    """What stays is the counts, and the subject where the item wasn't erased."""
    states.move(row, "done", counts=counts_of(row), ended_at=now, html="", text="", updated_at=now)
    Mailing.everywhere.filter(pk=row.pk, publication__item__deleted_at__isnull=False).update(subject="")


def counts_of(mailing: Mailing) -> dict[str, int]:
    """Deliveries by status; those of which a report came back count as `bounced` beside their status."""
    if mailing.counts is not None:
        return dict(mailing.counts)
    rows = MailDelivery.everywhere.filter(mailing=mailing)
    return dict(Counter({one["status"]: one["n"] for one in rows.values("status").annotate(n=Count("pk"))}))


def halt(mailing: Mailing, code: str, message: str, *, now: datetime) -> None:
    """Stop it, for the reason; one whose item was erased meanwhile ends."""
    error = {"code": code, "message": message, "at": as_z(now)}
    states.move(mailing, "stopped", error=error, updated_at=now)
    erased = GeneratedItem.everywhere.filter(deleted_at__isnull=False)
    if erased.filter(publications=mailing.publication_id).exists():
        _end(mailing, now)


def stop(mailing: Mailing, *, by: str, now: datetime) -> None:
    """A person's word; what is on its way comes to its end. Raises `MoveRefused` where it has ended."""
    with transaction.atomic():
        halt(mailing, "stopped", f"Stopped by {by}.", now=now)
        _note("mailing.stopped", mailing, by)


def resume(mailing: Mailing, *, by: str, now: datetime) -> None:
    """Go on with whoever is left; raises `MoveRefused` unless it is stopped."""
    with transaction.atomic():
        states.move(mailing, "spreading", error=None, updated_at=now)
        put_in_line(mailing.outlet, now)
        _note("mailing.resumed", mailing, by)


def _note(action: str, mailing: Mailing, by: str) -> None:
    subject = ids.encode("mlg", mailing.pk)
    audit.note(action, workspace=mailing.workspace, actor=by, subject=subject, details={})


def doubt_restored(*, now: datetime) -> int:
    """A restored ledger may lack mails that went out since its backup: nothing more is sent until a person says so."""
    doubted = 0
    for row in Mailing.everywhere.filter(status__in=OPEN):
        halt(row, RESTORED["code"], RESTORED["message"], now=now)
        doubted += 1
    return doubted
