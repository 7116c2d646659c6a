"""Promises as they stood before a person's act, to the letter: what an undo writes back."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.db.models import F

from config.core import dispatcher, states, work_queue
from config.core.errors import Conflict
from config.core.ids import decode, encode
from config.core.middleware import request_id
from pipeline.models import GeneratedItem, Publication, PublicationStatus, PublishQueue
from pipeline.publish.item_status import lock_item, refresh_item
from pipeline.publish.results import next_wake_at

if TYPE_CHECKING:
    from collections.abc import Mapping

_COLUMNS: Final = (
    "local_time",
    "zone",
    "on_gap",
    "on_overlap",
    "late_policy",
    "max_lateness_minutes",
    "overrides",
    "waits_for",
    "attempt_count",
    "error",
    "requested_by",
)
_MOMENTS: Final = ("due_at", "next_attempt_at", "overdue_told_at")

Stood = dict[str, Any]
"""One promise, as JSON: its status, moments as ISO 8601, the queue by its id, and the other columns as they are."""


def take_snapshot(item: GeneratedItem) -> dict[str, Stood]:
    """What of the item could be promised anew, scheduled or failed, by the public ids of the publications."""
    rows = Publication.everywhere.filter(
        item=item, status__in=(PublicationStatus.SCHEDULED, PublicationStatus.FAILED)
    ).order_by("id")
    return {encode("pub", row.pk): _stood(row) for row in rows}


def _stood(row: Publication) -> Stood:
    moments = {name: getattr(row, name) for name in _MOMENTS}
    return {
        "status": row.status,
        "revision": row.revision,
        "queue": encode("que", row.queue_id) if row.queue_id else None,
        **{name: moment and moment.isoformat() for name, moment in moments.items()},
        **{name: getattr(row, name) for name in _COLUMNS},
    }


def restore_snapshot(
    item: GeneratedItem, promises: Mapping[str, Stood], *, now: datetime, expected_version: int | None = None
) -> GeneratedItem:
    """Of what was promised anew, give each publication the promise that `take_snapshot` told; what had failed has
    failed again, and is told to nobody twice.

    Raises `Conflict` where one of them isn't scheduled any more, `states.Overtaken` where the item isn't the version
    that was expected.
    """
    with transaction.atomic():
        row = lock_item(item)
        states.refuse_other_version(row.version, expected_version)
        wanted = {key: stood for name, stood in promises.items() if (key := decode("pub", name)) is not None}
        there = list(
            Publication.everywhere.select_for_update(of=("self",))
            .filter(item=row, pk__in=wanted)
            .order_by("id")
        )
        if len(there) != len(wanted) or any(one.status != PublicationStatus.SCHEDULED for one in there):
            message = (
                "Something of it is on its way already, or was cancelled; its former time can't come back."
            )
            raise Conflict.because(code="in_flight", message=message)
        for one in there:
            _write(one, wanted[one.pk], now)
        refresh_item(row, now=now)
        dispatcher.wake()
    return row


def reschedule_from_snapshot(
    item: GeneratedItem, promises: Mapping[str, Stood], *, now: datetime, expected_version: int | None = None
) -> GeneratedItem:
    """Of what was cancelled, make each promise that `take_snapshot` told anew, in a publication of its own; what had
    failed has failed again.

    Raises `Conflict` where its outlet is gone or was promised the item meanwhile, `states.Overtaken` where the item
    isn't the version that was expected.
    """
    with transaction.atomic():
        row = lock_item(item)
        states.refuse_other_version(row.version, expected_version)
        wanted = {key: stood for name, stood in promises.items() if (key := decode("pub", name)) is not None}
        rows = Publication.everywhere.filter(item=row).select_related("outlet").order_by("id")
        there = [one for one in rows if one.pk in wanted and one.status == PublicationStatus.CANCELLED]
        taken = {
            one.outlet_id
            for one in rows
            if one.status not in {PublicationStatus.CANCELLED, PublicationStatus.REMOVED}
        }
        if len(there) != len(wanted) or any(
            one.outlet.deleted_at is not None or one.outlet_id in taken for one in there
        ):
            message = (
                "Its outlet was disconnected or was promised it anew meanwhile; publish it again instead."
            )
            raise Conflict.because(code="promised_meanwhile", message=message)
        for one in there:
            _promise(one, wanted[one.pk], row, now)
        refresh_item(row, now=now)
        dispatcher.wake()
    return row


def _promise(cancelled: Publication, stood: Stood, item: GeneratedItem, now: datetime) -> None:
    has_failed = stood["status"] == PublicationStatus.FAILED
    row = Publication(
        workspace_id=cancelled.workspace_id,
        test=cancelled.test,
        item=item,
        outlet=cancelled.outlet,
        platform=cancelled.platform,
        revision=stood["revision"] if has_failed else item.revision,
        created_at=now,
        **_values(cancelled, stood, now),
    )
    if has_failed:
        states.begin(row, "failed")
    else:
        row.wake_at = next_wake_at(row)
    row.save(force_insert=True)


def _values(row: Publication, stood: Stood, now: datetime) -> dict[str, Any]:
    return {
        **{name: stood[name] for name in _COLUMNS},
        **{name: stood[name] and datetime.fromisoformat(stood[name]) for name in _MOMENTS},
        "queue_id": _queue_that_is_there(row, stood["queue"]),
        "step": "prepare",
        "step_state": {},
        "request_id": request_id(),
        "updated_at": now,
    }


def _write(row: Publication, stood: Stood, now: datetime) -> None:
    values = _values(row, stood, now)
    if stood["status"] == PublicationStatus.FAILED:
        values |= {"revision": stood["revision"], "wake_at": None}
        states.move(row, "failed", **values, attempts=0, lease_token=row.lease_token + 1)
        return
    for name, value in values.items():
        setattr(row, name, value)
    values |= {"wake_at": next_wake_at(row), "version": F("version") + 1, **work_queue.overtake()}
    Publication.everywhere.filter(pk=row.pk).update(**values)


def _queue_that_is_there(row: Publication, queue: str | None) -> object:
    """None where it was deleted meanwhile, as for everything else that was promised by it."""
    key = decode("que", queue) if queue else None
    return (
        key and PublishQueue.objects.of(row.workspace_id).filter(pk=key).values_list("pk", flat=True).first()
    )
