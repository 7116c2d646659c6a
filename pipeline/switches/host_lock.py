"""Allows one fetch at a time from each host, for all sources and processes."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import connection

from config.core.database.raw_sql import MAY_BE_LOST, adapt_datetime, adapt_id
from pipeline import limits
from pipeline.models import HostSlot

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID


def take_host(host: str, source_id: UUID, now: datetime) -> datetime | None:
    """Take the host for one lease; return `None` on success, or when to try again.

    It needs one statement. An empty `host`, of a source whose kind names none, is always free.
    """
    if not host:
        return None
    lease_end = now + timedelta(seconds=settings.LEASE_SECONDS)
    # The row's lock decides between two workers at the same moment.
    sql = f"""INSERT INTO host_slot (host, free_at, holder) VALUES (%s, %s, %s)
             ON CONFLICT (host) DO UPDATE SET free_at = excluded.free_at, holder = excluded.holder
             WHERE host_slot.free_at <= %s RETURNING host {MAY_BE_LOST}"""  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(sql, [host, adapt_datetime(lease_end), adapt_id(source_id), adapt_datetime(now)])
        if cursor.fetchone() is not None:
            return None
    # The present fetch usually ends long before its lease. The wait is random, so that the sources that wait
    # don't come back together.
    return now + limits.HOST_BUSY_WAIT * random.uniform(0.25, 1)  # noqa: S311


def release_host(host: str, source_id: UUID, now: datetime) -> None:
    """Let the next fetch begin after a short pause, unless another source has taken the host since."""
    if host:
        HostSlot.everywhere.filter(host=host, holder=source_id).update(
            free_at=now + limits.HOST_GAP, holder=None
        )


def forget(now: datetime) -> int:
    """Delete a batch of hosts that have been free for `limits.HOST_SLOTS_KEPT`, and return how many."""
    old = HostSlot.everywhere.filter(free_at__lt=now - limits.HOST_SLOTS_KEPT)
    hosts = list(old.values_list("pk", flat=True)[:500])
    if not hosts:
        return 0
    return old.filter(pk__in=hosts).delete()[0]
