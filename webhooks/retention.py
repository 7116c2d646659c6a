"""Deletes old events' payloads, deliveries and attempts, for the job in `config/operations/retention.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from config.core.ids import lowest_id_at
from pipeline.models import Event
from webhooks import limits
from webhooks.models import Delivery, DeliveryAttempt, DeliveryStatus

if TYPE_CHECKING:
    from datetime import datetime

RETENTION_ROWS: Final = 500
"""Rows emptied or deleted in one statement: few, so that locks are short."""


def empty_events(now: datetime) -> int:
    """Empty up to `RETENTION_ROWS` events that are too old, and return how many."""
    too_old = Event.everywhere.filter(body__isnull=False, created_at__lt=now - limits.EVENT_PAYLOADS_KEPT)
    ids = list(too_old.order_by("created_at").values_list("pk", flat=True)[:RETENTION_ROWS])
    return Event.everywhere.filter(pk__in=ids).update(body=None) if ids else 0


def forget_attempts(now: datetime) -> int:
    """Delete up to `RETENTION_ROWS` attempts that are too old, and return how many."""
    too_old = DeliveryAttempt.everywhere.filter(started_at__lt=now - limits.DELIVERY_ATTEMPTS_KEPT)
    ids = list(too_old.order_by("started_at").values_list("pk", flat=True)[:RETENTION_ROWS])
    return int(DeliveryAttempt.everywhere.filter(pk__in=ids).delete()[0]) if ids else 0


def forget_deliveries(now: datetime) -> int:
    """Delete up to `RETENTION_ROWS` ended deliveries that are too old and have no attempts; return how many.

    They are found by their ids, which rise with time, so no further index is needed.
    """
    too_old = Delivery.everywhere.filter(
        pk__lt=lowest_id_at(now - limits.DELIVERY_ATTEMPTS_KEPT),
        status__in=[DeliveryStatus.DELIVERED, DeliveryStatus.FAILED],
    )
    # One that was recently sent again by hand has younger attempts.
    without_attempts = too_old.exclude(attempts_made__isnull=False)
    ids = list(without_attempts.order_by("pk").values_list("pk", flat=True)[:RETENTION_ROWS])
    return int(Delivery.everywhere.filter(pk__in=ids).delete()[0]) if ids else 0
