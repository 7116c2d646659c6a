"""Notices that are forgotten: those that are old enough, and those about what is removed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from accounts.models import Notice
from config.core import limits

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime
    from uuid import UUID

ROWS: Final = 500
"""Of one statement: a short lock, however much is too old."""


def forget(now: datetime) -> int:
    """Delete old ones with their messages, some at a time; one look at an index when nothing is old."""
    too_old = Notice.everywhere.filter(created_at__lt=now - limits.NOTICES_KEPT, wake_at=None)
    ids = list(too_old.order_by("created_at").values_list("pk", flat=True)[:ROWS])
    if ids:
        Notice.everywhere.filter(pk__in=ids).delete()
    return len(ids)


def forget_about(workspace_id: UUID, things: Collection[UUID]) -> None:
    """Delete the notices about these rows: a key begins with the id of what the notice is about."""
    wanted = {key.hex for key in things}
    rows = Notice.objects.of(workspace_id).values_list("pk", "key")
    Notice.everywhere.filter(pk__in=[pk for pk, key in rows if key.partition(":")[0] in wanted]).delete()
