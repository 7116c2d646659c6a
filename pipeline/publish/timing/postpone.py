"""Gives scheduled publications back unsent, and reports the ones that are overdue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import F

from config.core import states
from config.core.errors import Detail
from pipeline import limits
from pipeline.publish.item_status_and_events import lock_item, record_publication_event

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from pipeline.models import Publication


def postpone(
    row: Publication, until: datetime, now: datetime, *, waits_for: Mapping[str, Any] | None = None
) -> None:
    """Give a scheduled publication back unsent; if it is overdue by now, record that event in the transaction.

    `waits_for` is the reason that is shown; without it, the stored reason stays. Raises `Overtaken` if an
    overdue publication's lease isn't ours any more.
    """
    values: dict[str, Any] = {"attempts": 0}
    if waits_for is not None and waits_for != row.waits_for:
        values |= {"waits_for": dict(waits_for), "version": row.version + 1, "updated_at": now}
    if not is_overdue(row, now):
        row.sleep_until(no_later_than_overdue(row, until), **values)
        return
    with transaction.atomic():
        item = lock_item(row.item)
        # The version stays, because nothing that is shown changes.
        values["overdue_told_at"] = now
        if not row.sleep_until(until, **values):
            raise overtaken_error()
        for name, value in values.items():
            setattr(row, name, value)
        record_publication_event(row, item, "published.overdue", now)


def is_overdue(row: Publication, now: datetime) -> bool:
    """Return whether it is time to report that the publication is late, and that wasn't done yet."""
    notice_at = _overdue_notice_at(row)
    return notice_at is not None and now >= notice_at


def next_wake_at(row: Publication) -> datetime | None:
    """Return when a task takes a scheduled publication next: its next try, or its overdue notice before that.

    `None` if it has no due time.
    """
    planned_at = row.next_attempt_at or row.due_at
    return planned_at and no_later_than_overdue(row, planned_at)


def no_later_than_overdue(row: Publication, until: datetime) -> datetime:
    """Return `until`, or the time of the overdue notice if that is earlier."""
    notice_at = _overdue_notice_at(row)
    return until if notice_at is None else min(until, notice_at)


def _overdue_notice_at(row: Publication) -> datetime | None:
    """Return when to report that the publication is late; `None` if that was done, or it has no due time."""
    if row.overdue_told_at is not None or row.due_at is None:
        return None
    return row.due_at + limits.OVERDUE_TOLD_AFTER


def write_scheduled(row: Publication, values: Mapping[str, Any]) -> None:
    """Write columns of a publication whose status stays as it is.

    Raises `Overtaken` if the lease isn't ours any more.
    """
    if not row.under_lease().update(**values, version=F("version") + 1):
        raise overtaken_error()
    for name, value in values.items():
        setattr(row, name, value)
    row.version += 1


def overtaken_error() -> states.Overtaken:
    """Return the error for a publication that was changed in the meantime."""
    return states.Overtaken(
        Detail("status", "changed_meanwhile", "It was changed in the meantime. Reload it and try again.")
    )
