"""Rows that the webhook tests stand on."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from accounts.models import Plan, Workspace
from config.core import work_queue
from config.core.ids import uuid7
from pipeline.events import envelope
from pipeline.models import Event
from webhooks import signing
from webhooks.deliver import LEASE
from webhooks.models import Delivery, Endpoint
from webhooks.results import AttemptResult

if TYPE_CHECKING:
    from uuid import UUID

NOON = datetime(2027, 3, 1, 12, 0, 0, 250_000, tzinfo=UTC)
_numbers = itertools.count(1)


def make_workspace(**changes: Any) -> Workspace:
    number = next(_numbers)
    plan = Plan.objects.create(name=f"Plan {number}")
    given = {"name": f"Workspace {number}", "plan": plan, "whitelisted_at": NOON, **changes}
    return Workspace.everywhere.create(**given)


def make_endpoint(workspace: Workspace | None = None, **changes: Any) -> Endpoint:
    given = {"url": "http://127.0.0.1:9/hook", "secret": signing.make_secret(), **changes}
    return Endpoint.everywhere.create(workspace=workspace or make_workspace(), **given)


def make_event(workspace: Workspace | UUID, event_type: str = "raw.ingested", **changes: Any) -> Event:
    workspace_id = getattr(workspace, "pk", workspace)
    event_id = uuid7()
    body = envelope(event_id, event_type, workspace_id, {"raw_item": {"title": "Grüße ✓"}}, NOON)
    given = {"id": event_id, "type": event_type, "body": body, "request_id": "req_of_test", **changes}
    return Event.everywhere.create(workspace_id=workspace_id, **given)


def make_delivery(endpoint: Endpoint, event: Event | None = None, **changes: Any) -> Delivery:
    """Due since a second ago, by the database's clock."""
    now = work_queue.database_now() - timedelta(seconds=1)
    given = {"due_at": now, "wake_at": now, "request_id": "req_of_test", **changes}
    event = event or make_event(endpoint.workspace_id, test=endpoint.test)
    return Delivery.everywhere.create(
        workspace_id=endpoint.workspace_id, endpoint=endpoint, event=event, **given
    )


def claimed(delivery: Delivery) -> Delivery:
    """The same row, read anew and under a fresh lease."""
    row = Delivery.everywhere.get(pk=delivery.pk)
    row.lease_token += 1
    row.attempts += 1
    row.wake_at = work_queue.database_now() + LEASE
    Delivery.everywhere.filter(pk=row.pk).update(
        lease_token=row.lease_token, attempts=row.attempts, wake_at=row.wake_at
    )
    return row


def make_sent(status_code: int | None = 500, **changes: Any) -> AttemptResult:
    given: dict[str, Any] = {
        "started_at": NOON,
        "seconds": 0.75,
        "request_headers": {"webhook-id": "evt_x"},
        "status_code": status_code,
        "error": "" if status_code and 200 <= status_code < 300 else f"It answered {status_code}.",
    }
    return AttemptResult(**{**given, **changes})
