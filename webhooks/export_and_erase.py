"""What the webhooks give to a workspace's export, and what they erase at its end, or with its samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from accounts import notices
from accounts.export import iterate_rows
from config.core.clock import utc_now
from config.core.datetimes import as_z
from config.core.ids import encode
from webhooks.models import Delivery, Endpoint

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from django.db.models import QuerySet

    from accounts.export import Part
    from accounts.models import Workspace


def collect_parts(workspace: Workspace) -> Iterator[Part]:
    """The webhooks' part of an export: the endpoints, without their secrets."""
    endpoints = Endpoint.objects.of(workspace).filter(deleted_at=None).defer("secret", "previous_secret")
    yield "endpoints.jsonl", (_endpoint(row) for row in iterate_rows(endpoints))


def _endpoint(row: Endpoint) -> dict[str, Any]:
    return {
        "id": encode("whe", row.pk),
        "url": row.url,
        "description": row.description,
        "events": row.events,
        "rate": row.rate,
        "status": row.status,
        "test": row.test,
        "created_at": as_z(row.created_at),
    }


def erase(workspace_id: UUID, rows: int) -> int:
    """The webhooks' part of a workspace's end; how many rows it deleted, 0 when none are left."""
    return _erase(Endpoint.everywhere.filter(workspace_id=workspace_id), rows)


def remove_samples(workspace_id: UUID, rows: int) -> int:
    """Sample endpoints with their log; how many rows it deleted, 0 when none are left."""
    endpoints = Endpoint.everywhere.filter(workspace_id=workspace_id, is_sample=True)
    # First nothing is added to what is being removed.
    endpoints.filter(deleted_at=None).update(deleted_at=utc_now())
    notices.delete_about(workspace_id, endpoints.values_list("pk", flat=True))
    return _erase(endpoints, rows)


def _erase(endpoints: QuerySet[Endpoint], rows: int) -> int:
    """Deliveries before their endpoint, found by its log's index; their attempts go with them."""
    for endpoint in endpoints.values_list("pk", flat=True):
        some = list(Delivery.everywhere.filter(endpoint_id=endpoint).values_list("pk", flat=True)[:rows])
        if some:
            Delivery.everywhere.filter(pk__in=some).delete()
            return len(some)
        Endpoint.everywhere.filter(pk=endpoint).delete()
        return 1
    return 0
