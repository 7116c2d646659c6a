"""Disconnects an outlet for good: erases its credentials and cancels what is scheduled there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction
from django.utils.translation import gettext as _

from config.core import states, work_queue
from config.core.errors import Conflict
from config.core.ids import encode
from pipeline.models import GeneratedItem, Outlet, Publication, PublicationStatus, WorkspaceDefaults
from pipeline.outlets.connection import audit_outlet, refuse_deleted
from pipeline.outlets.outlet_client import platform_of
from pipeline.publish.item_status_and_events import lock_item, refresh_item

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID


def count_affected(outlet: Outlet) -> dict[str, int]:
    """Return how many publications a disconnection would cancel, and how many it would leave unresolved.

    The keys are `scheduled` and `unknown`: a disconnected outlet can't be asked about unknown outcomes.
    """
    rows = Publication.objects.of(outlet.workspace_id).filter(outlet=outlet)
    return {
        "scheduled": rows.filter(status=PublicationStatus.SCHEDULED).count(),
        "unknown": rows.filter(status=PublicationStatus.UNKNOWN).count(),
    }


def disconnect_outlet(outlet: Outlet, *, by: str, now: datetime) -> int:
    """Disconnect the outlet and return how many scheduled publications were cancelled.

    The outlet is marked deleted first, so that nothing more can be scheduled there; if the process is killed
    before everything is cancelled, the remaining publications fail when they are due, and say why.

    Raises `Conflict` if the outlet can't be disconnected, was disconnected already, or is being sent to.
    """
    if not platform_of(outlet.platform).is_connectable:
        message = _("A workspace keeps this outlet; switch it off instead.")
        raise Conflict.because(code="not_connectable", message=message)
    with transaction.atomic():
        defaults: WorkspaceDefaults = (
            WorkspaceDefaults.objects.of(outlet.workspace_id).select_for_update(no_key=True).get()
        )
        row: Outlet = (
            Outlet.everywhere.select_for_update(of=("self",)).select_related("workspace").get(pk=outlet.pk)
        )
        refuse_deleted(row)
        rows = Publication.objects.of(outlet.workspace_id).filter(outlet=row)
        if rows.filter(status=PublicationStatus.PUBLISHING).exists():
            message = _("Something is being published there at this moment; try again in a minute.")
            raise Conflict.because(code="in_flight", message=message)
        public_id = encode("out", row.pk)
        if public_id in defaults.outlets:
            defaults.outlets = [outlet_id for outlet_id in defaults.outlets if outlet_id != public_id]
            defaults.save(update_fields=["outlets"])
        states.write_as(
            row,
            row.status,
            credentials=None,
            is_default=False,
            deleted_at=now,
            due_at=None,
            wake_at=None,
            expires_at=None,
            updated_at=now,
            **work_queue.overtake(),
        )
        audit_outlet("outlet.disconnected", row, by, {"platform": row.platform})
        scheduled = rows.filter(status=PublicationStatus.SCHEDULED).order_by("item_id")
        items = list(scheduled.values_list("item_id", flat=True).distinct())
    return sum(_cancel_publications_of(item_id, row, now) for item_id in items)


def _cancel_publications_of(item_id: UUID, outlet: Outlet, now: datetime) -> int:
    """Cancel one item's scheduled publications to the outlet and return how many there were."""
    with transaction.atomic():
        # The item is locked before its publications, as everywhere.
        item = lock_item(GeneratedItem(pk=item_id))
        cancelled = 0
        scheduled = Publication.everywhere.scheduled().select_for_update().filter(item=item, outlet=outlet)
        for publication in scheduled.order_by("id"):
            states.move(
                publication,
                "cancelled",
                wake_at=None,
                next_attempt_at=None,
                attempts=0,
                lease_token=publication.lease_token + 1,
                updated_at=now,
            )
            cancelled += 1
        if cancelled:
            refresh_item(item, now=now)
    return cancelled
