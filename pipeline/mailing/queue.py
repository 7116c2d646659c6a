"""Queues an outlet's mails, and releases the queue's row without missing what was added meanwhile."""

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


def mail_queue_of(outlet: Outlet) -> MailQueue:
    """Return the outlet's queue, which is created if there is none."""
    row: MailQueue | None = MailQueue.everywhere.filter(outlet=outlet).first()
    if row is None:
        # Two workers at once create one.
        MailQueue.everywhere.bulk_create(
            [MailQueue(workspace_id=outlet.workspace_id, outlet=outlet)], ignore_conflicts=True
        )
        row = MailQueue.everywhere.get(outlet=outlet)
    return row


def wake_queue(outlet: Outlet, now: datetime) -> None:
    """Wake the outlet's queue, in the transaction that wrote what is to be mailed.

    A worker takes it at once, or the one that has it looks again.
    """
    queue = mail_queue_of(outlet)
    MailQueue.everywhere.filter(pk=queue.pk).update(due_at=now, **MailQueue.wake_changes(now))
    dispatcher.wake()


def release_queue(row: MailQueue, when: Callable[[], datetime | None], **changes: Any) -> None:
    """Let the queue's row sleep until `when()`, or retry if something was added since it was read.

    Raises `Overtaken` if the lease was lost.
    """
    while True:
        asks = MailQueue.everywhere.filter(pk=row.pk).values_list("asks", flat=True).get()
        values = {"wake_at": when(), "attempts": 0, "updated_at": utc_now(), **changes}
        if row.under_lease().filter(asks=asks).update(**values):
            return
        if not row.under_lease().exists():
            raise overtaken()


def overtaken() -> states.Overtaken:
    """Return the error for a lost lease."""
    return states.Overtaken(Detail("status", "changed_meanwhile", "Another worker has it."))
