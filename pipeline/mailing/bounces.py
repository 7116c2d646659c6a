"""Handles mails to a return address: bounces (RFC 3464), complaints (RFC 5965) and requests to unsubscribe.

The RFCs were read on 2026-11-20. A report is matched to its mail by the mail's own return address, or else by
the Message-ID that it quotes. It is matched by the recipient only while a mail to them is recent, because
anybody can write to a return mailbox.
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

from pipeline.mailing.send import MAX_REPLY_CHARACTERS, end_subscription
from pipeline.mailing.subscribers import find_subscriber, normalize_address, unsubscribe
from pipeline.models import MailDelivery, MailDeliveryStatus, MailQueue, Subscriber
from pipeline.platforms.email_newsletter.session import classify_reply

if TYPE_CHECKING:
    from collections.abc import Iterator

REPORT_WINDOW: Final = timedelta(days=7)
"""The age of a mail up to which its recipient alone matches a report."""
# Examples: "b-<32 hex digits>@", "<id@domain>", "550 5.1.1", "5.1.1" and "unsubscribe <token>".
_RETURN_ADDRESS: Final = re.compile(r"\bb-([0-9a-f]{32})@", re.IGNORECASE)
_MESSAGE_ID: Final = re.compile(r"<[^<>\s]{1,250}>")
_CODE: Final = re.compile(r"\b([45]\d\d)(?:[ -]+([45]\.\d{1,3}\.\d{1,3}))?")
_STATUS: Final = re.compile(r"[245]\.\d{1,3}\.\d{1,3}")
_UNSUBSCRIBE: Final = re.compile(r"\s*unsubscribe\s+([A-Za-z0-9_-]{32})\s*", re.IGNORECASE)
_DEAD_STATUSES: Final = frozenset({"5.2.1", "5.4.4"})
"""The status codes of a closed mailbox, and of a domain that leads nowhere."""
_ENVELOPE_HEADERS: Final = ("To", "Delivered-To", "X-Original-To", "Envelope-To", "X-Envelope-To")


def receive(secret: str, raw: bytes, *, now: datetime) -> str | None:
    """Handle a mail to a return address, and return what it was, or `None` if no newsletter has this address.

    The result is `bounced`, `complained`, `unsubscribed`, `noted` (undelivered, but not finally) or `ignored`.
    """
    queue: MailQueue | None = MailQueue.everywhere.filter(
        bounce_secret=secret, outlet__deleted_at=None, workspace__deleted_at=None
    ).first()
    if queue is None:
        return None
    message = message_from_bytes(raw)
    kind = str(message.get_param("report-type") or "").lower()
    if kind == "feedback-report":
        return _handle_complaint(queue, message, now)
    if kind == "delivery-status":
        return _handle_undelivered(queue, message, now)
    return _unsubscribe_by_mail(queue, message, now)


def _unsubscribe_by_mail(queue: MailQueue, message: Message, now: datetime) -> str:
    match = _UNSUBSCRIBE.fullmatch(str(message.get("Subject", "")))
    subscriber = find_subscriber(match[1]) if match else None
    if subscriber is None or subscriber.outlet_id != queue.outlet_id:
        return "ignored"
    unsubscribe(subscriber, now=now)
    return "unsubscribed"


def _handle_complaint(queue: MailQueue, message: Message, now: datetime) -> str:
    """Stop mailing a subscriber who reported a mail as spam, and return `complained`, or else `ignored`."""
    report = next(_find_parts(message, "message/feedback-report"), None)
    fields = _read_fields(report)
    if fields.get("feedback-type", "").strip().lower() != "abuse":
        return "ignored"
    delivery = _find_delivery(queue, message)
    subscriber = (
        delivery.subscriber
        if delivery
        else _find_recent_recipient(queue, fields.get("original-rcpt-to", ""), now)
    )
    if subscriber is None:
        return "ignored"
    end_subscription(subscriber, "Reported as spam.", now=now, to="complained")
    return "complained"


def _handle_undelivered(queue: MailQueue, message: Message, now: datetime) -> str:
    """Record an undelivered mail, and stop mailing the address if it failed permanently.

    Only the first failed recipient who is a subscriber counts; each mail has one recipient.
    """
    blocks = [
        block for part in _find_parts(message, "message/delivery-status") for block in _read_blocks(part)
    ]
    failed = [block for block in blocks if str(block.get("Action", "")).strip().lower() == "failed"]
    delivery = _find_delivery(queue, message)
    for block in failed:
        recipient = str(block.get("Final-Recipient", "")).rpartition(";")[2]
        subscriber = delivery.subscriber if delivery else _find_recent_recipient(queue, recipient, now)
        if subscriber is None:
            continue
        diagnosis = str(block.get("Diagnostic-Code", "") or block.get("Status", ""))
        server_reply = " ".join(diagnosis.split())[:MAX_REPLY_CHARACTERS]
        with transaction.atomic():
            if delivery is not None:
                MailDelivery.everywhere.filter(pk=delivery.pk).update(
                    bounced_at=now, reply=server_reply, updated_at=now
                )
            if not _is_permanent(block):
                return "noted"
            end_subscription(subscriber, server_reply, now=now)
        return "bounced"
    return "ignored"


def _is_permanent(block: Message) -> bool:
    """Return whether the address itself is at fault, not its mailbox's state, the content or the sender."""
    status_match = _STATUS.search(str(block.get("Status", "")))
    status = status_match[0] if status_match else ""
    code_match = _CODE.search(str(block.get("Diagnostic-Code", "")))
    if not status or status.endswith(".0.0"):
        # The reporter doesn't know the reason; the other server's reply says it.
        if code_match is None:
            return False
        return (
            classify_reply("rcpt", int(code_match[1]), code_match[2] or "") == "bounced"
            or code_match[2] in _DEAD_STATUSES
        )
    # 550 stands for any permanent refusal; the enhanced status decides.
    return status in _DEAD_STATUSES or classify_reply("rcpt", 550, status) == "bounced"


# --- Matching --------------------------------------------------------------------------------------------------------


def _find_delivery(queue: MailQueue, message: Message) -> MailDelivery | None:
    """Return the delivery whose return address or quoted Message-ID the report has, or `None`."""
    deliveries = MailDelivery.everywhere.select_related("subscriber__outlet").filter(
        outlet_id=queue.outlet_id
    )
    for name in _ENVELOPE_HEADERS:
        for value in message.get_all(name, []):
            match = _RETURN_ADDRESS.search(str(value))
            row: MailDelivery | None = deliveries.filter(pk=UUID(match[1])).first() if match else None
            if row is not None:
                return row
    quoted: MailDelivery | None = deliveries.filter(
        message_id__in=list(_quoted_message_ids(message))[:20]
    ).first()
    return quoted


def _quoted_message_ids(message: Message) -> Iterator[str]:
    """Yield the Message-IDs that the report quotes or refers to, without the report's."""
    for part in message.walk():
        if part is message:
            continue
        for name in ("Message-ID", "X-Message-ID"):
            yield from _MESSAGE_ID.findall(str(part.get(name, "")))
        if part.get_content_type() == "text/rfc822-headers":
            yield from _MESSAGE_ID.findall(
                str(message_from_bytes(_payload_bytes(part)).get("Message-ID", ""))
            )
    for name in ("References", "In-Reply-To"):
        yield from _MESSAGE_ID.findall(str(message.get(name, "")))


def _payload_bytes(part: Message) -> bytes:
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def _find_recent_recipient(queue: MailQueue, text: str, now: datetime) -> Subscriber | None:
    """Return the subscriber with this address, or `None` if none was sent a mail within `REPORT_WINDOW`."""
    addresses = getaddresses([text])
    email = normalize_address(addresses[0][1]) if addresses else None
    if email is None:
        return None
    row: Subscriber | None = (
        Subscriber.everywhere.select_related("outlet").filter(outlet_id=queue.outlet_id, email=email).first()
    )
    if row is None:
        return None
    recent = MailDelivery.everywhere.filter(
        subscriber=row, status=MailDeliveryStatus.SENT, sent_at__gte=now - REPORT_WINDOW
    )
    return row if recent.exists() else None


# --- Parts of a report -----------------------------------------------------------------------------------------------


def _find_parts(message: Message, content_type: str) -> Iterator[Message]:
    return (part for part in message.walk() if part.get_content_type() == content_type)


def _read_blocks(part: Message) -> list[Message]:
    """Return the blocks of fields of a delivery status: one about the report, then one for each recipient."""
    payload = part.get_payload()
    return [block for block in payload if isinstance(block, Message)] if isinstance(payload, list) else []


def _read_fields(part: Message | None) -> dict[str, str]:
    """Return the fields of a report by lower-case name; empty if there is no report."""
    if part is None:
        return {}
    blocks = _read_blocks(part)
    block = blocks[0] if blocks else message_from_bytes(_payload_bytes(part))
    return {name.lower(): str(value) for name, value in block.items()}
