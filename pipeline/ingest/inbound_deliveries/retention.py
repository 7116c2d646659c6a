"""What of deliveries is no longer kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db.models import Q

from config.core import limits
from config.core.ids import first_of
from pipeline.models import InboundDelivery, InboundSecret

if TYPE_CHECKING:
    from datetime import datetime

ROWS: Final = 500
"""Deleted in one statement: a short lock, however much is too old."""


def forget_deliveries(now: datetime) -> int:
    """Old ones without a body, by their ids, which carry the moment; those of a deleted source with theirs."""
    old = InboundDelivery.everywhere.filter(pk__lt=first_of(now - limits.INBOUND_DELIVERIES_KEPT))
    gone = old.filter(Q(body__isnull=True) | Q(source__deleted_at__isnull=False))
    some = list(gone.order_by("pk").values_list("pk", flat=True)[:ROWS])
    return int(InboundDelivery.everywhere.filter(pk__in=some).delete()[0]) if some else 0


def forget_secrets(now: datetime) -> int:
    """Those of deleted sources, and those whose time beside a newer one is over."""
    some = list(
        InboundSecret.everywhere.filter(source__deleted_at__isnull=False).values_list("pk", flat=True)[:ROWS]
    )
    done = int(InboundSecret.everywhere.filter(pk__in=some).delete()[0]) if some else 0
    over = InboundSecret.everywhere.filter(previous_until__lt=now)
    return done + over.update(previous=None, previous_until=None)
