"""One fetch at a time from each host, whoever's sources they are for and whichever process fetches."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import connection

from config.core.database.relaxed_durability import MAY_BE_LOST
from pipeline import limits
from pipeline.models import HostSlot

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID


def take_turn(host: str, source_id: UUID, now: datetime) -> datetime | None:
    """Take the host for one lease; None where it is ours, else when to look again.

    One statement where the host is free. A source whose kind names no host needs no turn.
    """
    if not host:
        return None
    until = now + timedelta(seconds=settings.LEASE_SECONDS)
    # The row's lock decides between two that ask at the same moment.
    sql = f"""INSERT INTO host_slot (host, free_at, holder) VALUES (%s, %s, %s)
             ON CONFLICT (host) DO UPDATE SET free_at = excluded.free_at, holder = excluded.holder
             WHERE host_slot.free_at <= %s RETURNING host {MAY_BE_LOST}"""  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(sql, [host, _moment(until), _uuid(source_id), _moment(now)])
        if cursor.fetchone() is not None:
            return None
    # Whoever fetches now is done long before its lease ends, as a rule. By chance, or all would come back together.
    return now + limits.HOST_BUSY_WAIT * random.uniform(0.25, 1)  # noqa: S311


def give_back(host: str, source_id: UUID, now: datetime) -> None:
    """The next fetch may begin after a short rest. Where another one has taken the host since, nothing changes."""
    if host:
        HostSlot.everywhere.filter(host=host, holder=source_id).update(
            free_at=now + limits.HOST_GAP, holder=None
        )


def forget(now: datetime) -> int:
    """Hosts that nobody has fetched from for a day, some at a time."""
    old = HostSlot.everywhere.filter(free_at__lt=now - limits.HOST_SLOTS_KEPT)
    some = list(old.values_list("pk", flat=True)[:500])
    if not some:
        return 0
    return old.filter(pk__in=some).delete()[0]


def _moment(moment: datetime) -> Any:
    return connection.ops.adapt_datetimefield_value(moment)


def _uuid(value: UUID) -> Any:
    return value if connection.features.has_native_uuid_field else value.hex
