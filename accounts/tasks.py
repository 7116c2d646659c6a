"""What the hands do for accounts: tell people what happened, erase deleted workspaces, remove sample data."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Final

from django.conf import settings

from accounts import erasure, notices, samples
from accounts.models import Notice, NoticeMessage
from config.ground.hands import Batch, Kind, register

_LEASE: Final = timedelta(seconds=settings.LEASE_SECONDS)
_EVERY_SECONDS: Final = 60.0
_idle_until: Final = {"erasure": 0.0}


def _erase_workspaces() -> int:
    # A tick comes every second; an idle one must not cost a query.
    if time.monotonic() < _idle_until["erasure"]:
        return 0
    erased = erasure.erase_some()
    if not erased:
        _idle_until["erasure"] = time.monotonic() + _EVERY_SECONDS
    return erased


register(Batch(name="accounts.erasure", work=_erase_workspaces))
register(Batch(name="accounts.samples", work=samples.remove_some))
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
