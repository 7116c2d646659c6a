"""What is no longer kept: old payloads of events, old deliveries and their attempts.

The timed job that calls these is `config/operations/retention.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from config.core.ids import lowest_id_at
from pipeline.models import Event
from webhooks import limits
from webhooks.models import Delivery, DeliveryAttempt, DeliveryStatus

if TYPE_CHECKING:
    from datetime import datetime

RETENTION_ROWS: Final = 500
"""Rows emptied or deleted in one statement: a short lock, however much is too old."""


def empty_events(now: datetime) -> int:
    """Empty the content of some events that are too old; how many. One look at an index when nothing is old."""
    too_old = Event.everywhere.filter(body__isnull=False, created_at__lt=now - limits.EVENT_PAYLOADS_KEPT)
    some = list(too_old.order_by("created_at").values_list("pk", flat=True)[:RETENTION_ROWS])
    return Event.everywhere.filter(pk__in=some).update(body=None) if some else 0


def forget_attempts(now: datetime) -> int:
    """Delete some attempts that are too old; how many."""
    too_old = DeliveryAttempt.everywhere.filter(started_at__lt=now - limits.DELIVERY_ATTEMPTS_KEPT)
    some = list(too_old.order_by("started_at").values_list("pk", flat=True)[:RETENTION_ROWS])
    return int(DeliveryAttempt.everywhere.filter(pk__in=some).delete()[0]) if some else 0


def forget_deliveries(now: datetime) -> int:
    """Delete some deliveries that are too old; how many. What is still tried is kept.

    By their ids, which carry the moment: no index of its own is needed.
    """
    too_old = Delivery.everywhere.filter(
        pk__lt=lowest_id_at(now - limits.DELIVERY_ATTEMPTS_KEPT),
        status__in=[DeliveryStatus.DELIVERED, DeliveryStatus.FAILED],
    )
    # One that was sent again by hand lately has younger attempts.
    without = too_old.exclude(attempts_made__isnull=False)
    some = list(without.order_by("pk").values_list("pk", flat=True)[:RETENTION_ROWS])
    return int(Delivery.everywhere.filter(pk__in=some).delete()[0]) if some else 0
