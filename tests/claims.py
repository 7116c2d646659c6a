"""Rows as a task has them: claimed and begun, without a message between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from config.core import work_queue

if TYPE_CHECKING:
    from datetime import datetime, timedelta


def begun(model: Any, *, lease: timedelta, now: datetime | None = None, **how_many: Any) -> list[Any]:
    """At most `limit` due rows, `per_workspace` of each, ours for one lease; the earliest promise first."""
    claimed = work_queue.claim(model, lease=lease, now=now, **how_many)
    rows = [work_queue.begin(model, one.pk, one.token, lease=lease, now=now) for one in claimed]
    return sorted(rows, key=lambda row: (row.due_at or row.wake_at, row.pk))
