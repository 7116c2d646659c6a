"""Turns events into deliveries, one for each endpoint that subscribed to the type."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from config.core import dispatcher, states, work_queue
from pipeline.events import TYPES
from webhooks.models import EVERY_EVENT, Delivery, Endpoint, EndpointStatus

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from pipeline.models import Event


def write_deliveries(events: Sequence[Event]) -> None:
    """Queue the events for the endpoints that want them; call it in the transaction that marks them dispatched.

    An event that was queued for an endpoint before isn't queued again.
    """
    workspace_ids = {event.workspace_id for event in events}
    endpoints: defaultdict[UUID, list[Endpoint]] = defaultdict(list)
    for endpoint in Endpoint.everywhere.filter(workspace_id__in=workspace_ids, deleted_at__isnull=True):
        endpoints[endpoint.workspace_id].append(endpoint)
    # By the database's clock, because the rows are claimed by it.
    now = work_queue.database_now()
    deliveries = [
        _build_delivery(endpoint, event, now=now)
        for event in events
        for endpoint in endpoints[event.workspace_id]
        if wants(endpoint, event)
    ]
    if not deliveries:
        return
    # Ignore conflicts, because an event that is dispatched again must not become a second delivery.
    Delivery.everywhere.bulk_create(deliveries, ignore_conflicts=True)
    dispatcher.wake()


def wants(endpoint: Endpoint, event: Event) -> bool:
    """Return whether the endpoint subscribed to the type, and is of the event's mode (live or test)."""
    if endpoint.test != event.test:
        return False
    if endpoint.events:
        return event.type in endpoint.events or EVERY_EVENT in endpoint.events
    return TYPES.get(event.type, False)


def _build_delivery(endpoint: Endpoint, event: Event, *, now: datetime) -> Delivery:
    """Return the unsaved delivery; it is held if the endpoint is off."""
    is_open = endpoint.is_on and endpoint.status != EndpointStatus.DISABLED
    delivery = Delivery(
        workspace_id=endpoint.workspace_id,
        endpoint=endpoint,
        event=event,
        due_at=now,
        wake_at=now if is_open else None,
        request_id=event.request_id,
        created_at=now,
    )
    if not is_open:
        states.begin(delivery, "held")
    return delivery
