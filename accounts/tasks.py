"""What the hands do for accounts: tell people what happened, erase deleted workspaces, remove sample data."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.conf import settings

from accounts import erasure, notices, samples
from accounts.models import Notice, NoticeMessage
from config.ground.hands import Batch, Kind, register

_LEASE: Final = timedelta(seconds=settings.LEASE_SECONDS)


register(Batch("accounts.erasure", work=erasure.erase_some, every_seconds=60))
register(Batch("accounts.samples", work=samples.remove_some, waits=samples.TO_REMOVE))
register(
    Kind(
        "accounts.notices",
        model=Notice,
        work=notices.spread,
        give_up=notices.give_up_spreading,
        lease=_LEASE,
        side_by_side=1,
        per_workspace=5,
        batch=5,
    )
)
# A mail relay or a chat service that hangs must not hold up the other kinds.
register(
    Kind(
        "accounts.tell",
        model=NoticeMessage,
        work=notices.tell,
        give_up=notices.give_up,
        lease=_LEASE,
        side_by_side=2,
        per_workspace=2,
        own_threads=True,
    )
)
