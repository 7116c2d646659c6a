"""Exports the webhooks' part of a workspace, and erases it with the workspace or its samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from accounts import notices
from accounts.export import iterate_rows
from config.core.clock import utc_now
from config.core.datetimes import format_utc
from config.core.ids import encode
from webhooks.models import Delivery, Endpoint

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from django.db.models import QuerySet

    from accounts.export import Part
    from accounts.models import Workspace


def collect_parts(workspace: Workspace) -> Iterator[Part]:
    """Yield the webhooks' part of an export: the endpoints, without their secrets."""
    endpoints = Endpoint.objects.of(workspace).filter(deleted_at=None).defer("secret", "previous_secret")
    yield "endpoints.jsonl", (_endpoint_json(row) for row in iterate_rows(endpoints))


def _endpoint_json(row: Endpoint) -> dict[str, Any]:
    return {
        "id": encode("whe", row.pk),
        "url": row.url,
        "description": row.description,
        "events": row.events,
        "rate": row.rate,
        "status": row.status,
        "test": row.test,
        "created_at": format_utc(row.created_at),
    }


def erase(workspace_id: UUID, max_rows: int) -> int:
    """Delete some of a workspace's endpoints and deliveries; return how many rows, or 0 if none are left."""
    return _erase_from_first(Endpoint.everywhere.filter(workspace_id=workspace_id), max_rows)


def remove_samples(workspace_id: UUID, max_rows: int) -> int:
    """Delete some sample endpoints and deliveries, and notices; return how many rows, or 0 if none are left."""
    endpoints = Endpoint.everywhere.filter(workspace_id=workspace_id, is_sample=True)
    # First the endpoints are marked as deleted, so that they get no further deliveries.
    endpoints.filter(deleted_at=None).update(deleted_at=utc_now())
    notices.delete_about(workspace_id, endpoints.values_list("pk", flat=True))
    return _erase_from_first(endpoints, max_rows)


def _erase_from_first(endpoints: QuerySet[Endpoint], max_rows: int) -> int:
    """Delete up to `max_rows` deliveries of the first endpoint, or the endpoint itself if it has none.

    Returns how many rows, or 0 without an endpoint. Attempts are deleted with their deliveries. One endpoint at
    a time, because the index of an endpoint's log finds its deliveries.
    """
    endpoint_id = endpoints.values_list("pk", flat=True).first()
    if endpoint_id is None:
        return 0
    ids = list(Delivery.everywhere.filter(endpoint_id=endpoint_id).values_list("pk", flat=True)[:max_rows])
    if ids:
        Delivery.everywhere.filter(pk__in=ids).delete()
        return len(ids)
    Endpoint.everywhere.filter(pk=endpoint_id).delete()
    return 1
