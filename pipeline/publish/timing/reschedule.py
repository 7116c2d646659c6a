"""What is scheduled gets another time; its words, its approval and what holds it back stay as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import F

from config.core import dispatch, work_queue
from config.core.middleware import request_id
from pipeline.models import Publication
from pipeline.publish.item_status import refresh_item
from pipeline.publish.timing.late_policy import NO_CLOCK, columns_of

if TYPE_CHECKING:
    from datetime import datetime

    from pipeline.models import PublishQueue
    from pipeline.text.wall_clock import WallClock


def retime(
    row: Publication,
    *,
    due_at: datetime,
    clock: WallClock | None,
    queue: PublishQueue | None,
    by: str,
    now: datetime,
) -> Publication:
    """Promise it for that moment; whoever holds its lease loses it. Its tries begin anew.

    The caller has locked the item, the outlet and the row, which is scheduled, in one transaction.
    """
    Publication.everywhere.scheduled().filter(pk=row.pk).update(
        due_at=due_at,
        wake_at=due_at,
        next_attempt_at=None,
        **(NO_CLOCK if clock is None else columns_of(clock)),
        queue=queue,
        waits_for=None,
        overdue_told_at=None,
        error=None,
        attempt_count=0,
        requested_by=by,
        request_id=request_id(),
        version=F("version") + 1,
        updated_at=now,
        **work_queue.overtake(),
    )
    refresh_item(row.item, now=now)
    dispatch.wake()
    moved: Publication = Publication.everywhere.select_related("item", "outlet").get(pk=row.pk)
    return moved
