"""From events to deliveries: one row for each endpoint that asked for the type."""

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
    """Queue these events for the endpoints of their workspaces, in the transaction that marks them as dispatched."""
    owners = {event.workspace_id for event in events}
    endpoints: defaultdict[UUID, list[Endpoint]] = defaultdict(list)
    for endpoint in Endpoint.everywhere.filter(workspace_id__in=owners, deleted_at__isnull=True):
        endpoints[endpoint.workspace_id].append(endpoint)
    # The database's clock, by which the rows will be claimed.
    now = work_queue.database_now()
    deliveries = [
        _delivery(endpoint, event, now=now)
        for event in events
        for endpoint in endpoints[event.workspace_id]
        if wants(endpoint, event)
    ]
    if not deliveries:
        return
    # Conflicts are ignored because an event that is dispatched again must not become a second delivery.
    Delivery.everywhere.bulk_create(deliveries, ignore_conflicts=True)
    dispatcher.wake()


def wants(endpoint: Endpoint, event: Event) -> bool:
    """Whether the endpoint asked for this type, by name or as one of the default types, and is of the event's mode."""
    if endpoint.test != event.test:
        return False
    if endpoint.events:
        return event.type in endpoint.events or EVERY_EVENT in endpoint.events
    return TYPES.get(event.type, False)


def _delivery(endpoint: Endpoint, event: Event, *, now: datetime) -> Delivery:
    """Not stored; held where the endpoint is off."""
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
