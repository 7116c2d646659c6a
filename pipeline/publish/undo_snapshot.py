"""Takes snapshots of an item's publications before a person's act, and writes them back unchanged on undo."""

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
from pipeline.publish.item_status_and_events import lock_item, refresh_item
from pipeline.publish.timing.postpone import next_wake_at

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
_TIME_COLUMNS: Final = ("due_at", "next_attempt_at", "overdue_told_at")

PublicationSnapshot = dict[str, Any]
"""One publication as JSON: its status, times in ISO 8601, the queue's public id, and the other columns."""


def take_snapshot(item: GeneratedItem) -> dict[str, PublicationSnapshot]:
    """Return the item's scheduled and failed publications, which an act may reschedule, by public id."""
    rows = Publication.everywhere.filter(
        item=item, status__in=(PublicationStatus.SCHEDULED, PublicationStatus.FAILED)
    ).order_by("id")
    return {encode("pub", row.pk): _snapshot_of(row) for row in rows}


def _snapshot_of(row: Publication) -> PublicationSnapshot:
    times = {name: getattr(row, name) for name in _TIME_COLUMNS}
    return {
        "status": row.status,
        "revision": row.revision,
        "queue": encode("que", row.queue_id) if row.queue_id else None,
        **{name: time and time.isoformat() for name, time in times.items()},
        **{name: getattr(row, name) for name in _COLUMNS},
    }


def restore_snapshot(
    item: GeneratedItem,
    snapshots: Mapping[str, PublicationSnapshot],
    *,
    now: datetime,
    expected_version: int | None = None,
) -> GeneratedItem:
    """Write each publication's snapshot back; one that had failed is failed again, without another notice.

    Raises `Conflict` if one of them no longer exists or isn't scheduled any more, and `states.Overtaken` if
    the item isn't the expected version.
    """
    with transaction.atomic():
        row = lock_item(item)
        states.refuse_other_version(row.version, expected_version)
        snapshots_by_id = {
            key: snapshot for name, snapshot in snapshots.items() if (key := decode("pub", name)) is not None
        }
        publications = list(
            Publication.everywhere.select_for_update(of=("self",))
            .filter(item=row, pk__in=snapshots_by_id)
            .order_by("id")
        )
        if len(publications) != len(snapshots_by_id) or any(
            publication.status != PublicationStatus.SCHEDULED for publication in publications
        ):
            message = (
                "One of its posts is already being sent or was cancelled, so its former time can't be "
                "restored."
            )
            raise Conflict.because(code="in_flight", message=message)
        for publication in publications:
            _restore_publication(publication, snapshots_by_id[publication.pk], now)
        refresh_item(row, now=now)
        dispatcher.wake()
    return row


def reschedule_from_snapshot(
    item: GeneratedItem,
    snapshots: Mapping[str, PublicationSnapshot],
    *,
    now: datetime,
    expected_version: int | None = None,
) -> GeneratedItem:
    """Make a new publication for each cancelled one in the snapshots; one that had failed is failed again.

    Raises `Conflict` if one of them isn't cancelled, an outlet was disconnected, or an outlet has another
    publication of the item by now, and `states.Overtaken` if the item isn't the expected version.
    """
    with transaction.atomic():
        row = lock_item(item)
        states.refuse_other_version(row.version, expected_version)
        snapshots_by_id = {
            key: snapshot for name, snapshot in snapshots.items() if (key := decode("pub", name)) is not None
        }
        rows = Publication.everywhere.filter(item=row).select_related("outlet").order_by("id")
        publications = [
            publication
            for publication in rows
            if publication.pk in snapshots_by_id and publication.status == PublicationStatus.CANCELLED
        ]
        occupied_outlets = {
            publication.outlet_id
            for publication in rows
            if publication.status not in {PublicationStatus.CANCELLED, PublicationStatus.REMOVED}
        }
        if len(publications) != len(snapshots_by_id) or any(
            publication.outlet.deleted_at is not None or publication.outlet_id in occupied_outlets
            for publication in publications
        ):
            message = (
                "Its outlet was disconnected, or it was scheduled there again. Publish it again instead."
            )
            raise Conflict.because(code="promised_meanwhile", message=message)
        for publication in publications:
            _schedule_again(publication, snapshots_by_id[publication.pk], row, now)
        refresh_item(row, now=now)
        dispatcher.wake()
    return row


def _schedule_again(
    cancelled: Publication, snapshot: PublicationSnapshot, item: GeneratedItem, now: datetime
) -> None:
    """Save a new publication with the snapshot of the cancelled one."""
    has_failed = snapshot["status"] == PublicationStatus.FAILED
    row = Publication(
        workspace_id=cancelled.workspace_id,
        test=cancelled.test,
        item=item,
        outlet=cancelled.outlet,
        platform=cancelled.platform,
        revision=snapshot["revision"] if has_failed else item.revision,
        created_at=now,
        **_restored_values(cancelled, snapshot, now),
    )
    if has_failed:
        states.begin(row, "failed")
    else:
        row.wake_at = next_wake_at(row)
    row.save(force_insert=True)


def _restored_values(row: Publication, snapshot: PublicationSnapshot, now: datetime) -> dict[str, Any]:
    """Return the column values that both ways of restoring write."""
    return {
        **{name: snapshot[name] for name in _COLUMNS},
        **{name: snapshot[name] and datetime.fromisoformat(snapshot[name]) for name in _TIME_COLUMNS},
        "queue_id": _existing_queue(row, snapshot["queue"]),
        "step": "prepare",
        "step_state": {},
        "request_id": request_id(),
        "updated_at": now,
    }


def _restore_publication(row: Publication, snapshot: PublicationSnapshot, now: datetime) -> None:
    """Write the snapshot back to the publication it was taken of."""
    values = _restored_values(row, snapshot, now)
    if snapshot["status"] == PublicationStatus.FAILED:
        values |= {"revision": snapshot["revision"], "wake_at": None}
        states.move(row, "failed", **values, attempts=0, lease_token=row.lease_token + 1)
        return
    for name, value in values.items():
        setattr(row, name, value)
    values |= {"wake_at": next_wake_at(row), "version": F("version") + 1, **work_queue.overtake()}
    Publication.everywhere.filter(pk=row.pk).update(**values)


def _existing_queue(row: Publication, public_id: str | None) -> object:
    """Return the queue's id, or `None` if there is none or it was deleted, as its deletion unsets it everywhere."""
    key = decode("que", public_id) if public_id else None
    return (
        key and PublishQueue.objects.of(row.workspace_id).filter(pk=key).values_list("pk", flat=True).first()
    )
