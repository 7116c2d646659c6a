"""Signs up, confirms, imports, removes and forgets the subscribers of newsletters."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import idna
from django.db import transaction

from accounts import audit
from config.core import ids, states
from config.core.errors import Invalid
from pipeline import limits
from pipeline.mailing.lifecycle import domain_of, new_delivery
from pipeline.mailing.queue import wake_queue
from pipeline.models import MailDelivery, Outlet, Subscriber, SubscriberStatus
from pipeline.platforms.email_newsletter import ADDRESS
from pipeline.states import WANTED_SUBSCRIBERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

KIND: Final = "email_newsletter"
MAX_QUOTED_LINES: Final = 5
"""The most unusable lines of an import that are quoted."""
IMPORT_BATCH: Final = 500
"""The most addresses that are stored in one transaction."""
MAX_DELETED_ROWS: Final = 500
"""The most rows that one call of a `forget_…` function deletes."""


@dataclass(frozen=True)
class ImportResult:
    """The numbers of addresses that an import added and that were on the list already."""

    added: int
    known: int
    refused: tuple[str, ...]
    """The text of lines without an address, at most 80 characters of each."""


def normalize_address(text: str) -> str | None:
    """Return the address in lower case with its domain in ASCII, or `None` if it isn't a valid address."""
    local, at, domain = text.strip().lower().rpartition("@")
    # 253 and 254 are the most characters of a domain and of an address in SMTP.
    if not at or len(domain) > 253:
        return None
    try:
        domain = domain if domain.isascii() else idna.encode(domain, uts46=True).decode("ascii")
    except idna.IDNAError:
        return None
    address = f"{local}@{domain}"
    return address if len(address) <= 254 and ADDRESS.fullmatch(address) else None


# --- By a secret address ---------------------------------------------------------------------------------------------


def find_newsletter(secret: str) -> Outlet | None:
    """Return the newsletter of a sign-up form, or `None` if there is none or its workspace isn't at work."""
    outlet: Outlet | None = (
        Outlet.everywhere.select_related("workspace")
        .filter(secret=secret, platform=KIND, deleted_at=None)
        .first()
    )
    return outlet if outlet is not None and outlet.workspace.is_at_work else None


def find_subscriber(token: str) -> Subscriber | None:
    """Return the subscriber with this token, or `None` if there is none or their newsletter was deleted."""
    subscriber: Subscriber | None = (
        Subscriber.everywhere.select_related("outlet")
        .filter(token=token, outlet__deleted_at=None, workspace__deleted_at=None)
        .first()
    )
    return subscriber


def sign_up(outlet: Outlet, email: str, *, origin: str = "form", now: datetime) -> None:
    """Mail a confirmation request, unless the address is subscribed, was asked recently or doesn't fit the list.

    Returns nothing, so that a visitor can't find out which addresses are subscribed.
    """
    with transaction.atomic():
        row = Subscriber(
            workspace_id=outlet.workspace_id,
            outlet=outlet,
            email=email,
            origin=origin,
            created_at=now,
            updated_at=now,
        )
        if _can_add(outlet, 1):
            Subscriber.everywhere.bulk_create([row], ignore_conflicts=True)
        subscriber: Subscriber | None = (
            Subscriber.everywhere.select_for_update(of=("self",)).filter(outlet=outlet, email=email).first()
        )
        if subscriber is None or subscriber.status == SubscriberStatus.ACTIVE:
            return
        if subscriber.asked_at is not None and subscriber.asked_at > now - limits.CONFIRMATION_EVERY:
            return
        if subscriber.status != SubscriberStatus.PENDING:
            states.move(subscriber, "pending", ended_at=None, reason="", updated_at=now)
        Subscriber.everywhere.filter(pk=subscriber.pk).update(asked_at=now, updated_at=now)
        confirmation = new_delivery(outlet, domain_of(outlet), subscriber_id=subscriber.pk, now=now)
        MailDelivery.everywhere.bulk_create([confirmation])
        wake_queue(outlet, now)


def _can_add(outlet: Outlet, count: int) -> bool:
    """Return whether the list stays within `limits.SUBSCRIBERS` with so many more addresses."""
    subscriber_count = Subscriber.everywhere.filter(outlet=outlet).count()
    return bool(subscriber_count + count <= limits.SUBSCRIBERS)


def confirm(subscriber: Subscriber, *, now: datetime) -> bool:
    """Subscribe a pending subscriber, and return whether they are subscribed now.

    A subscriber who has left must sign up again.
    """
    if subscriber.status == SubscriberStatus.PENDING:
        _change_status(subscriber, "active", now, confirmed_at=now, ended_at=None, reason="")
    return subscriber.status == SubscriberStatus.ACTIVE


def unsubscribe(subscriber: Subscriber, *, now: datetime) -> None:
    """Unsubscribe an active or pending subscriber; do nothing for other statuses."""
    if subscriber.status in WANTED_SUBSCRIBERS:
        _change_status(subscriber, "unsubscribed", now, ended_at=now)


def come_back(subscriber: Subscriber, *, now: datetime) -> bool:
    """Subscribe a subscriber again who had confirmed and unsubscribed; return whether they are subscribed now."""
    if subscriber.status == SubscriberStatus.UNSUBSCRIBED and subscriber.confirmed_at is not None:
        _change_status(subscriber, "active", now, confirmed_at=now, ended_at=None)
    return subscriber.status == SubscriberStatus.ACTIVE


def _change_status(subscriber: Subscriber, to: str, now: datetime, **changes: Any) -> None:
    """Change the status and further columns; read the status again if it changed meanwhile."""
    try:
        states.move(subscriber, to, updated_at=now, **changes)
    except states.Overtaken:
        # Of two clicks at the same moment, the first one counts.
        subscriber.refresh_from_db(fields=["status"])


# --- By the workspace ------------------------------------------------------------------------------------------------


def add(outlet: Outlet, text: str, *, by: str, now: datetime) -> Subscriber:
    """Add an address by hand, which is asked to confirm as if it had used the form.

    Raises `Invalid` if the text isn't an address, or if the list is full.
    """
    email = normalize_address(text)
    if email is None:
        raise Invalid.one("email", "invalid", "Enter a valid email address.")
    sign_up(outlet, email, origin="hand", now=now)
    row: Subscriber | None = Subscriber.everywhere.filter(outlet=outlet, email=email).first()
    if row is None:
        raise Invalid.one("email", "too_many", f"A list holds {limits.SUBSCRIBERS:,} addresses at most.")
    _audit("subscriber.added", outlet, by, {"subscriber": ids.encode("sub", row.pk)})
    return row


def import_file(outlet: Outlet, content: bytes, *, by: str, now: datetime) -> ImportResult:
    """Import addresses whose consent the workspace declares: they are active at once.

    Addresses that are on the list keep their status, also if they unsubscribed. Raises `Invalid` if the file
    isn't CSV, is empty or has too many addresses, or if the list would be too long.
    """
    addresses, refused = _parse_file(content)
    if not addresses and not refused:
        raise Invalid.one("file", "empty", "The file has no email addresses.")
    if not _can_add(outlet, len(addresses)):
        raise Invalid.one("file", "too_many", f"A list holds {limits.SUBSCRIBERS:,} addresses at most.")
    emails, added = list(addresses), 0
    for start in range(0, len(emails), IMPORT_BATCH):
        added += _import_batch(outlet, emails[start : start + IMPORT_BATCH], now)
    details = {"added": added, "known": len(emails) - added, "refused": len(refused)}
    _audit("subscribers.imported", outlet, by, details)
    return ImportResult(added, len(emails) - added, tuple(refused))


def _import_batch(outlet: Outlet, emails: list[str], now: datetime) -> int:
    """Store the addresses that aren't on the list, in one transaction, and return their number."""
    with transaction.atomic():
        known_emails = set(
            Subscriber.everywhere.filter(outlet=outlet, email__in=emails).values_list("email", flat=True)
        )
        rows = [
            Subscriber(
                workspace_id=outlet.workspace_id,
                outlet=outlet,
                email=email,
                origin="import",
                confirmed_at=now,
                created_at=now,
                updated_at=now,
            )
            for email in emails
            if email not in known_emails
        ]
        for row in rows:
            states.begin(row, "active")
        Subscriber.everywhere.bulk_create(rows, ignore_conflicts=True)
    return len(rows)


def _parse_file(content: bytes) -> tuple[dict[str, None], list[str]]:
    """Return the addresses in order, each once, and the lines without an address, except a heading.

    Of several addresses in a line the first is taken. Raises `Invalid` if the file isn't CSV or has too many.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    addresses: dict[str, None] = {}
    refused: list[str] = []
    for line_number, cells in enumerate(_csv_rows(text)):
        email = next((address for address in map(normalize_address, cells) if address), None)
        if email is not None:
            addresses[email] = None
        elif line_number > 0 and any(cell.strip() for cell in cells):
            refused.append(",".join(cells)[:80])
        if len(addresses) > limits.SUBSCRIBERS_IMPORTED:
            message = f"One file may hold {limits.SUBSCRIBERS_IMPORTED:,} addresses; split it."
            raise Invalid.one("file", "too_many", message)
    return addresses, refused


def _csv_rows(text: str) -> Iterator[list[str]]:
    """Yield the rows of CSV, separated as its first line is. Raises `Invalid` if it can't be read."""
    first_line = text.partition("\n")[0]
    delimiter = max(",;\t", key=first_line.count)
    try:
        yield from csv.reader(io.StringIO(text.replace("\0", "")), delimiter=delimiter)
    except csv.Error as error:
        raise Invalid.one("file", "invalid", "The file can't be read as CSV.") from error


def as_csv(rows: Iterable[Subscriber]) -> Iterator[str]:
    """Yield the subscribers as lines of CSV, after a heading."""
    yield "email,status,origin,subscribed_at,ended_at\r\n"
    for row in rows:
        # A spreadsheet would treat such a cell as a formula.
        email = f"'{row.email}" if row.email[0] in "=+-@" else row.email
        line = io.StringIO()
        timestamps = (moment.isoformat() if moment else "" for moment in (row.confirmed_at, row.ended_at))
        csv.writer(line).writerow([email, row.status, row.origin, *timestamps])
        yield line.getvalue()


def remove(subscriber: Subscriber, *, by: str) -> None:
    """Delete a subscriber; the counts of the mails that were sent to them stay."""
    outlet, public_id = subscriber.outlet, ids.encode("sub", subscriber.pk)
    with transaction.atomic():
        erase_replies([subscriber.pk])
        Subscriber.everywhere.filter(pk=subscriber.pk).delete()
        _audit("subscriber.removed", outlet, by, {"subscriber": public_id})


def _audit(action: str, outlet: Outlet, by: str, details: Mapping[str, Any]) -> None:
    subject = ids.encode("out", outlet.pk)
    audit.note(action, workspace=outlet.workspace, actor=by, subject=subject, details=details)


def forget_deliveries(now: datetime) -> int:
    """Delete some deliveries of mailings that ended long ago, or else old confirmations; return how many.

    The counts stay with the mailings.
    """
    kept_since = now - limits.MAIL_DELIVERIES_KEPT
    rows = MailDelivery.everywhere.filter(mailing__ended_at__lt=kept_since)
    delivery_ids = list(rows.values_list("pk", flat=True)[:MAX_DELETED_ROWS])
    if not delivery_ids:
        confirmations = MailDelivery.everywhere.filter(mailing=None, created_at__lt=kept_since, next_at=None)
        delivery_ids = list(confirmations.values_list("pk", flat=True)[:MAX_DELETED_ROWS])
    MailDelivery.everywhere.filter(pk__in=delivery_ids).delete()
    return len(delivery_ids)


def forget_unconfirmed(now: datetime) -> int:
    """Delete some subscribers who never confirmed, and return how many."""
    rows = Subscriber.everywhere.filter(
        status=SubscriberStatus.PENDING, asked_at__lt=now - limits.SUBSCRIBERS_UNCONFIRMED_KEPT
    )
    subscriber_ids = list(rows.values_list("pk", flat=True)[:MAX_DELETED_ROWS])
    if not subscriber_ids:
        return 0
    with transaction.atomic():
        erase_replies(subscriber_ids)
        Subscriber.everywhere.filter(pk__in=subscriber_ids).delete()
    return len(subscriber_ids)


def erase_replies(subscribers: Sequence[UUID]) -> None:
    """Erase mail servers' replies about subscribers, because most quote the address."""
    MailDelivery.everywhere.filter(subscriber_id__in=subscribers).exclude(reply="").update(reply="")
