"""What comes back: reports of undelivered mail (RFC 3464), complaints (RFC 5965) and mails that unsubscribe.

Read 2026-11-20. Which mail a report is of is told by its own return address, else by the Message-ID that it quotes;
by the recipient alone only while a mail to them is fresh, because anybody can write to a return mailbox.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from email import message_from_bytes
from email.message import Message
from email.utils import getaddresses
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.db import transaction

from pipeline.mailing.send import bounce
from pipeline.mailing.subscribers import find_subscriber, normalised, unsubscribe
from pipeline.models import MailDelivery, MailDeliveryStatus, MailQueue, Subscriber
from pipeline.platforms.email_newsletter.session import classify_reply

if TYPE_CHECKING:
    from collections.abc import Iterator

FRESH: Final = timedelta(days=7)
_OWN_RETURN: Final = re.compile(r"\bb-([0-9a-f]{32})@", re.IGNORECASE)
_MESSAGE_ID: Final = re.compile(r"<[^<>\s]{1,250}>")
_CODE: Final = re.compile(r"\b([45]\d\d)(?:[ -]+([45]\.\d{1,3}\.\d{1,3}))?")
_STATUS: Final = re.compile(r"[245]\.\d{1,3}\.\d{1,3}")
_UNSUBSCRIBE: Final = re.compile(r"\s*unsubscribe\s+([A-Za-z0-9_-]{32})\s*", re.IGNORECASE)
_GONE: Final = frozenset({"5.2.1", "5.4.4"})
"""The mailbox is closed; its domain leads nowhere."""
_ENVELOPE: Final = ("To", "Delivered-To", "X-Original-To", "Envelope-To", "X-Envelope-To")


def receive(secret: str, raw: bytes, *, now: datetime) -> str | None:
    """`bounced`, `complained`, `unsubscribed`, `noted` (undelivered, but not for good) or `ignored`; None where no
    newsletter has this address.
    """
    queue: MailQueue | None = MailQueue.everywhere.filter(
        bounce_secret=secret, outlet__deleted_at=None, workspace__deleted_at=None
    ).first()
    if queue is None:
        return None
    message = message_from_bytes(raw)
    kind = str(message.get_param("report-type") or "").lower()
    if kind == "feedback-report":
        return _complained(queue, message, now)
    if kind == "delivery-status":
        return _undelivered(queue, message, now)
    return _left(queue, message, now)


def _left(queue: MailQueue, message: Message, now: datetime) -> str:
    asked = _UNSUBSCRIBE.fullmatch(str(message.get("Subject", "")))
    subscriber = find_subscriber(asked[1]) if asked else None
    if subscriber is None or subscriber.outlet_id != queue.outlet_id:
        return "ignored"
    unsubscribe(subscriber, now=now)
    return "unsubscribed"


def _complained(queue: MailQueue, message: Message, now: datetime) -> str:
    (report, *_) = [*_parts(message, "message/feedback-report"), None]
    fields = _fields(report)
    if fields.get("feedback-type", "").strip().lower() != "abuse":
        return "ignored"
    delivery = _delivery(queue, message)
    subscriber = delivery.subscriber if delivery else _fresh(queue, fields.get("original-rcpt-to", ""), now)
    if subscriber is None:
        return "ignored"
    bounce(subscriber, "Reported as spam.", now=now, to="complained")
    return "complained"


def _undelivered(queue: MailQueue, message: Message, now: datetime) -> str:
    blocks = [block for part in _parts(message, "message/delivery-status") for block in _blocks(part)]
    failed = [one for one in blocks if str(one.get("Action", "")).strip().lower() == "failed"]
    delivery = _delivery(queue, message)
    for block in failed:
        recipient = str(block.get("Final-Recipient", "")).rpartition(";")[2]
        subscriber = delivery.subscriber if delivery else _fresh(queue, recipient, now)
        if subscriber is None:
            continue
        said = " ".join(str(block.get("Diagnostic-Code", "") or block.get("Status", "")).split())[:300]
        with transaction.atomic():
            if delivery is not None:
                MailDelivery.everywhere.filter(pk=delivery.pk).update(
                    bounced_at=now, reply=said, updated_at=now
                )
            if not _is_for_good(block):
                return "noted"
            bounce(subscriber, said, now=now)
        return "bounced"
    return "ignored"


def _is_for_good(block: Message) -> bool:
    """The address itself is at fault, and not its mailbox's state, the words or the sender."""
    found = _STATUS.search(str(block.get("Status", "")))
    status = found[0] if found else ""
    said = _CODE.search(str(block.get("Diagnostic-Code", "")))
    if not status or status.endswith(".0.0"):
        # The reporter doesn't know; what the other server said does.
        if said is None:
            return False
        return classify_reply("rcpt", int(said[1]), said[2] or "") == "bounced" or said[2] in _GONE
    return status in _GONE or classify_reply("rcpt", 550, status) == "bounced"


# --- Whose it is -----------------------------------------------------------------------------------------------------


def _delivery(queue: MailQueue, message: Message) -> MailDelivery | None:
    there = MailDelivery.everywhere.select_related("subscriber__outlet").filter(outlet_id=queue.outlet_id)
    for name in _ENVELOPE:
        for value in message.get_all(name, []):
            found = _OWN_RETURN.search(str(value))
            row: MailDelivery | None = there.filter(pk=UUID(found[1])).first() if found else None
            if row is not None:
                return row
    quoted: MailDelivery | None = there.filter(message_id__in=list(_quoted(message))[:20]).first()
    return quoted


def _quoted(message: Message) -> Iterator[str]:
    for part in message.walk():
        if part is message:
            continue
        for name in ("Message-ID", "X-Message-ID"):
            yield from _MESSAGE_ID.findall(str(part.get(name, "")))
        if part.get_content_type() == "text/rfc822-headers":
            yield from _MESSAGE_ID.findall(str(message_from_bytes(_bytes(part)).get("Message-ID", "")))
    for name in ("References", "In-Reply-To"):
        yield from _MESSAGE_ID.findall(str(message.get(name, "")))


def _bytes(part: Message) -> bytes:
    given = part.get_payload(decode=True)
    return given if isinstance(given, bytes) else b""


def _fresh(queue: MailQueue, text: str, now: datetime) -> Subscriber | None:
    """Whom a mail was sent within the last days; no report comes later."""
    found = getaddresses([text])
    email = normalised(found[0][1]) if found else None
    if email is None:
        return None
    row: Subscriber | None = (
        Subscriber.everywhere.select_related("outlet").filter(outlet_id=queue.outlet_id, email=email).first()
    )
    if row is None:
        return None
    lately = MailDelivery.everywhere.filter(
        subscriber=row, status=MailDeliveryStatus.SENT, sent_at__gte=now - FRESH
    )
    return row if lately.exists() else None


# --- Parts of a report -----------------------------------------------------------------------------------------------


def _parts(message: Message, content_type: str) -> Iterator[Message]:
    return (part for part in message.walk() if part.get_content_type() == content_type)


def _blocks(part: Message) -> list[Message]:
    payload = part.get_payload()
    return [one for one in payload if isinstance(one, Message)] if isinstance(payload, list) else []


def _fields(part: Message | None) -> dict[str, str]:
    if part is None:
        return {}
    blocks = _blocks(part)
    block = blocks[0] if blocks else message_from_bytes(_bytes(part))
    return {name.lower(): str(value) for name, value in block.items()}
