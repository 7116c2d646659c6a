"""Creates, wakes and releases the row that stands for an outlet's mail queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from config.core import dispatcher, states
from config.core.clock import utc_now
from config.core.errors import Detail
from pipeline.models import MailQueue

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from pipeline.models import Outlet


def get_or_create_queue(outlet: Outlet) -> MailQueue:
    """Return the row of the outlet's mail queue; create it if there is none."""
    row: MailQueue | None = MailQueue.everywhere.filter(outlet=outlet).first()
    if row is None:
        # If another worker creates it at the same moment, its row is the one that is read below.
        MailQueue.everywhere.bulk_create(
            [MailQueue(workspace_id=outlet.workspace_id, outlet=outlet)], ignore_conflicts=True
        )
        row = MailQueue.everywhere.get(outlet=outlet)
    return row


def wake_queue(outlet: Outlet, now: datetime) -> None:
    """Wake the row of the outlet's mail queue, in the transaction that wrote what is to be mailed.

    A worker claims the row at once, or the worker that holds its lease reads the queue again before it
    releases the row.
    """
    queue = get_or_create_queue(outlet)
    MailQueue.everywhere.filter(pk=queue.pk).update(due_at=now, **MailQueue.wake_changes(now))
    dispatcher.wake()


def release_queue(row: MailQueue, next_wake_at: Callable[[], datetime | None], **changes: Any) -> None:
    """Release the queue's row until `next_wake_at()`, or until something wakes it if that is `None`.

    `next_wake_at` is called again if the queue was woken meanwhile, so that nothing that was added is missed.
    `changes` are further column values. Raises `Overtaken` if the lease was lost.
    """
    while True:
        asks = MailQueue.everywhere.filter(pk=row.pk).values_list("asks", flat=True).get()
        values = {"wake_at": next_wake_at(), "attempts": 0, "updated_at": utc_now(), **changes}
        # `asks` rises with each wake: if it is the same, nothing was added after `next_wake_at` looked.
        if row.under_lease().filter(asks=asks).update(**values):
            return
        if not row.under_lease().exists():
            raise lost_lease_error()


def lost_lease_error() -> states.Overtaken:
    """Return the error to raise if another worker has the lease."""
    return states.Overtaken(Detail("status", "changed_meanwhile", "Another worker has it."))
