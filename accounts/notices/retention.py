"""Notices that are old enough to be forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from accounts.models import Notice
from config.ground import limits

if TYPE_CHECKING:
    from datetime import datetime

ROWS: Final = 500
"""Of one statement: a short lock, however much is too old."""


def forget(now: datetime) -> int:
    """Delete old ones with their messages, some at a time; one look at an index when nothing is old."""
    too_old = Notice.everywhere.filter(created_at__lt=now - limits.NOTICES_KEPT, wake_at=None)
    ids = list(too_old.order_by("created_at").values_list("pk", flat=True)[:ROWS])
    if ids:
        Notice.everywhere.filter(pk__in=ids).delete()
    return len(ids)
