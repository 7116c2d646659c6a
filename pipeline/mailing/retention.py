"""What of a newsletter isn't kept for good: each recipient's line, and who never confirmed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db import transaction

from config.core import limits
from pipeline.models import MailDelivery, Subscriber, SubscriberStatus

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

AT_ONCE: Final = 500


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
