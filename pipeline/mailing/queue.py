"""An outlet's line of mails: put something in, and give the row back without missing what came meanwhile."""

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
    row: MailQueue | None = MailQueue.everywhere.filter(outlet=outlet).first()
    if row is None:
        # Two at once make one.
        MailQueue.everywhere.bulk_create(
            [MailQueue(workspace_id=outlet.workspace_id, outlet=outlet)], ignore_conflicts=True
        )
        row = MailQueue.everywhere.get(outlet=outlet)
    return row


def put_in_line(outlet: Outlet, now: datetime) -> None:
    """In the transaction that wrote what is to be mailed: a task looks at once, or the one at work looks again."""
    queue = mail_queue_of(outlet)
    MailQueue.everywhere.filter(pk=queue.pk).update(due_at=now, **MailQueue.wake_changes(now))
    dispatcher.wake()


def give_back(row: MailQueue, when: Callable[[], datetime | None], **changes: Any) -> None:
    """Sleep until then, unless something was put in line since it was looked: then look again."""
    while True:
        asks = MailQueue.everywhere.filter(pk=row.pk).values_list("asks", flat=True).get()
        values = {"wake_at": when(), "attempts": 0, "updated_at": utc_now(), **changes}
        if row.under_lease().filter(asks=asks).update(**values):
            return
        if not row.under_lease().exists():
            raise overtaken()


def overtaken() -> states.Overtaken:
    return states.Overtaken(Detail("status", "changed_meanwhile", "Another hand has it."))
