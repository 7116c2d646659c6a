"""Promises of a time on a clock follow the rules of its time zone, which governments change at short notice."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

import structlog
from django.db import transaction
from django.db.models import F

from config.core import dispatch, work_queue
from config.core.clock import utc_now
from pipeline.models import Publication
from pipeline.publish.item_status import locked, refresh_item
from pipeline.publish.payload import key_of
from pipeline.publish.results import next_look
from pipeline.text.wall_clock import UnknownZone, WallClock, moment_of

if TYPE_CHECKING:
    from collections.abc import Iterator

log = structlog.get_logger(__name__)

ZONES_EVERY_SECONDS: Final = 600.0
AT_ONCE: Final = 500


def follow_zones() -> int:
    """The hands' own job: every few minutes, all of it in one go; 0, for nothing is left then."""
    set_clocks(now=utc_now())
    return 0


def set_clocks(*, now: datetime) -> int:
    """Promise anew what its clock now shows at another moment; returns how many publications that were."""
    # What this process has read of a zone may be older than the file.
    ZoneInfo.clear_cache()
    return sum(_set(row, now) for row in _clocked(now))


def _clocked(now: datetime) -> Iterator[Publication]:
    rows = Publication.everywhere.scheduled().filter(due_at__gt=now).exclude(local_time="")
    last = None
    while True:
        some = list((rows.filter(id__gt=last) if last else rows).order_by("id")[:AT_ONCE])
        if not some:
            return
        yield from some
        last = some[-1].pk


def _set(row: Publication, now: datetime) -> bool:
    clock = WallClock(datetime.fromisoformat(row.local_time), row.zone, row.on_gap, row.on_overlap)
    try:
        moment = moment_of(clock)
    except UnknownZone:
        # A zone that was taken out of the tables: the moment that was promised stands.
        log.warning("zone_is_gone", publication=key_of(row), zone=row.zone)
        return False
    if moment == row.due_at:
        return False
    with transaction.atomic():
        item = locked(row.item)
        former, row.due_at = row.due_at, moment
        changed = (
            Publication.everywhere.scheduled()
            .filter(pk=row.pk, due_at=former)
            .update(
                due_at=moment,
                wake_at=next_look(row),
                overdue_told_at=None,
                waits_for=None,
                version=F("version") + 1,
                updated_at=now,
                **work_queue.overtake(),
            )
        )
        if changed:
            refresh_item(item, now=now)
            log.info("clock_set", publication=key_of(row), was=str(former), moment=str(moment))
            dispatch.wake()
    return bool(changed)
