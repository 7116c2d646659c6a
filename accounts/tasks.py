"""Registers the accounts' jobs: notify users, erase deleted workspaces, remove sample data."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.conf import settings

from accounts import notices, samples, workspace_deletion
from accounts.models import Notice, NoticeMessage
from config.core.jobs import BatchJob, RowJob, register

_LEASE: Final = timedelta(seconds=settings.LEASE_SECONDS)


register(BatchJob(name="housekeeping.erase_workspaces", work=workspace_deletion.erase_some, every_seconds=60))
register(BatchJob(name="housekeeping.remove_samples", work=samples.remove_some, waits=samples.TO_REMOVE))
register(
    RowJob(
        name="mail.spread_notice",
        model=Notice,
        work=notices.write_messages,
        give_up=notices.give_up_notice,
        lease=_LEASE,
        per_workspace=1,
    )
)
register(
    RowJob(
        name="mail.send_notice",
        model=NoticeMessage,
        work=notices.deliver_message,
        give_up=notices.give_up,
        lease=_LEASE,
        per_workspace=2,
    )
)
