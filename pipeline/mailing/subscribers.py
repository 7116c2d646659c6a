"""Who is on a newsletter's list, by whose wish, and when they are forgotten."""

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
from pipeline.mailing.queue import put_in_line
from pipeline.models import MailDelivery, Outlet, Subscriber, SubscriberStatus
from pipeline.platforms.email_newsletter import ADDRESS
from pipeline.states import WANTED_SUBSCRIBERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

KIND: Final = "email_newsletter"
TOLD: Final = 5
"""Lines of an import that can't be used and are quoted."""
CHUNK: Final = 500
AT_ONCE: Final = 500


@dataclass(frozen=True)
class Imported:
    added: int
    known: int
    refused: tuple[str, ...]
    """What stands in the lines that hold no address."""


def normalised(text: str) -> str | None:
    """In lower case with its domain in ASCII; None for what is no address that mail goes to."""
    local, at, domain = text.strip().lower().rpartition("@")
    if not at or len(domain) > 253:
        return None
    try:
        domain = domain if domain.isascii() else idna.encode(domain, uts46=True).decode("ascii")
    except idna.IDNAError:
        return None
    address = f"{local}@{domain}"
    return address if len(address) <= 254 and ADDRESS.fullmatch(address) else None


# --- By an address that nobody guesses -------------------------------------------------------------------------------


def list_of(secret: str) -> Outlet | None:
    """The newsletter behind a sign-up form, while it can send."""
    found: Outlet | None = (
        Outlet.everywhere.select_related("workspace")
        .filter(secret=secret, platform=KIND, deleted_at=None)
        .first()
    )
    return found if found is not None and found.workspace.is_at_work else None


def find_subscriber(token: str) -> Subscriber | None:
    found: Subscriber | None = (
        Subscriber.everywhere.select_related("outlet")
        .filter(token=token, outlet__deleted_at=None, workspace__deleted_at=None)
        .first()
    )
    return found


def sign_up(outlet: Outlet, email: str, *, origin: str = "form", now: datetime) -> None:
    """Mail the address a question, unless it is on the list or was asked lately; whoever signs up can't tell which."""
    with transaction.atomic():
        row = Subscriber(
            workspace_id=outlet.workspace_id,
            outlet=outlet,
            email=email,
            origin=origin,
            created_at=now,
            updated_at=now,
        )
        if _has_room(outlet, 1):
            Subscriber.everywhere.bulk_create([row], ignore_conflicts=True)
        there: Subscriber | None = (
            Subscriber.everywhere.select_for_update(of=("self",)).filter(outlet=outlet, email=email).first()
        )
        if there is None or there.status == SubscriberStatus.ACTIVE:
            return
        if there.asked_at is not None and there.asked_at > now - limits.CONFIRMATION_EVERY:
            return
        if there.status != SubscriberStatus.PENDING:
            states.move(there, "pending", ended_at=None, reason="", updated_at=now)
        Subscriber.everywhere.filter(pk=there.pk).update(asked_at=now, updated_at=now)
        question = new_delivery(outlet, domain_of(outlet), subscriber_id=there.pk, now=now)
        MailDelivery.everywhere.bulk_create([question])
        put_in_line(outlet, now)


def _has_room(outlet: Outlet, count: int) -> bool:
    there = Subscriber.everywhere.filter(outlet=outlet).count()
    return bool(there + count <= limits.SUBSCRIBERS)


def confirm(subscriber: Subscriber, *, now: datetime) -> bool:
    """Whether they are on the list now. Who has left since has to subscribe anew."""
    if subscriber.status == SubscriberStatus.PENDING:
        _move(subscriber, "active", now, confirmed_at=now, ended_at=None, reason="")
    return subscriber.status == SubscriberStatus.ACTIVE


def unsubscribe(subscriber: Subscriber, *, now: datetime) -> None:
    """At once and however often; what isn't on the list stays as it is."""
    if subscriber.status in WANTED_SUBSCRIBERS:
        _move(subscriber, "unsubscribed", now, ended_at=now)


def come_back(subscriber: Subscriber, *, now: datetime) -> bool:
    """Takes an unsubscribing back."""
    if subscriber.status == SubscriberStatus.UNSUBSCRIBED and subscriber.confirmed_at is not None:
        _move(subscriber, "active", now, confirmed_at=now, ended_at=None)
    return subscriber.status == SubscriberStatus.ACTIVE


def _move(subscriber: Subscriber, to: str, now: datetime, **changes: Any) -> None:
    try:
        states.move(subscriber, to, updated_at=now, **changes)
    except states.Overtaken:
        # Two presses at once: the other one's word holds.
        subscriber.refresh_from_db(fields=["status"])


# --- By the workspace ------------------------------------------------------------------------------------------------


def add(outlet: Outlet, text: str, *, by: str, now: datetime) -> Subscriber:
    """By hand: asked for confirmation as by the form. Raises `Invalid`."""
    email = normalised(text)
    if email is None:
        raise Invalid.one("email", "invalid", "Enter a valid email address.")
    sign_up(outlet, email, origin="hand", now=now)
    row: Subscriber | None = Subscriber.everywhere.filter(outlet=outlet, email=email).first()
    if row is None:
        raise Invalid.one("email", "too_many", f"A list holds {limits.SUBSCRIBERS:,} addresses at most.")
    _note("subscriber.added", outlet, by, {"subscriber": ids.encode("sub", row.pk)})
    return row


def import_file(outlet: Outlet, content: bytes, *, by: str, now: datetime) -> Imported:
    """Addresses whose consent the workspace declares: active at once. Whoever is known, unsubscribed or not, stays as
    they are. Raises `Invalid`.
    """
    found, refused = _read(content)
    if not found and not refused:
        raise Invalid.one("file", "empty", "The file has no email addresses.")
    if not _has_room(outlet, len(found)):
        raise Invalid.one("file", "too_many", f"A list holds {limits.SUBSCRIBERS:,} addresses at most.")
    emails, added = list(found), 0
    for start in range(0, len(emails), CHUNK):
        added += _import_some(outlet, emails[start : start + CHUNK], now)
    details = {"added": added, "known": len(emails) - added, "refused": len(refused)}
    _note("subscribers.imported", outlet, by, details)
    return Imported(added, len(emails) - added, tuple(refused))


def _import_some(outlet: Outlet, emails: list[str], now: datetime) -> int:
    with transaction.atomic():
        known = set(
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
            if email not in known
        ]
        for row in rows:
            states.begin(row, "active")
        Subscriber.everywhere.bulk_create(rows, ignore_conflicts=True)
    return len(rows)


def _read(content: bytes) -> tuple[dict[str, None], list[str]]:
    """The addresses in their order, each once, and the lines without one. A heading is no address."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    found: dict[str, None] = {}
    refused: list[str] = []
    for number, cells in enumerate(_rows(text)):
        email = next((one for one in map(normalised, cells) if one), None)
        if email is not None:
            found[email] = None
        elif number > 0 and any(cell.strip() for cell in cells):
            refused.append(",".join(cells)[:80])
        if len(found) > limits.SUBSCRIBERS_IMPORTED:
            message = f"One file may hold {limits.SUBSCRIBERS_IMPORTED:,} addresses; split it."
            raise Invalid.one("file", "too_many", message)
    return found, refused


def _rows(text: str) -> Iterator[list[str]]:
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    try:
        yield from csv.reader(io.StringIO(text.replace("\0", "")), delimiter=delimiter)
    except csv.Error as error:
        raise Invalid.one("file", "invalid", "The file can't be read as CSV.") from error


def as_csv(rows: Iterable[Subscriber]) -> Iterator[str]:
    yield "email,status,origin,subscribed_at,ended_at\r\n"
    for row in rows:
        # A sheet would take what begins so for a formula.
        email = f"'{row.email}" if row.email[0] in "=+-@" else row.email
        line = io.StringIO()
        moments = (one.isoformat() if one else "" for one in (row.confirmed_at, row.ended_at))
        csv.writer(line).writerow([email, row.status, row.origin, *moments])
        yield line.getvalue()


def remove(subscriber: Subscriber, *, by: str) -> None:
    """For good; the counts of what was sent stay."""
    outlet, name = subscriber.outlet, ids.encode("sub", subscriber.pk)
    with transaction.atomic():
        silence([subscriber.pk])
        Subscriber.everywhere.filter(pk=subscriber.pk).delete()
        _note("subscriber.removed", outlet, by, {"subscriber": name})


def _note(action: str, outlet: Outlet, by: str, details: Mapping[str, Any]) -> None:
    subject = ids.encode("out", outlet.pk)
    audit.note(action, workspace=outlet.workspace, actor=by, subject=subject, details=details)


def forget_deliveries(now: datetime) -> int:
    """Of mailings that are done: their counts stay with them. Confirmations go as old as those."""
    before = now - limits.MAIL_DELIVERIES_KEPT
    rows = MailDelivery.everywhere.filter(mailing__ended_at__lt=before)
    keys = list(rows.values_list("pk", flat=True)[:AT_ONCE])
    if not keys:
        lone = MailDelivery.everywhere.filter(mailing=None, created_at__lt=before, next_at=None)
        keys = list(lone.values_list("pk", flat=True)[:AT_ONCE])
    MailDelivery.everywhere.filter(pk__in=keys).delete()
    return len(keys)


def forget_unconfirmed(now: datetime) -> int:
    rows = Subscriber.everywhere.filter(
        status=SubscriberStatus.PENDING, asked_at__lt=now - limits.SUBSCRIBERS_UNCONFIRMED_KEPT
    )
    keys = list(rows.values_list("pk", flat=True)[:AT_ONCE])
    if not keys:
        return 0
    with transaction.atomic():
        silence(keys)
        Subscriber.everywhere.filter(pk__in=keys).delete()
    return len(keys)


def silence(subscribers: Sequence[UUID]) -> None:
    """Take what mail servers said of them out of the ledger: most quote the address."""
    MailDelivery.everywhere.filter(subscriber_id__in=subscribers).exclude(reply="").update(reply="")
