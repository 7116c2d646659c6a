"""Provides queries that several of the webhooks' pages share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import Min
from django.shortcuts import get_object_or_404

from config.core.clock import utc_now
from webhooks.endpoints import answered_410
from webhooks.models import Delivery, Endpoint

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime
    from uuid import UUID

    from accounts.pages.page_access import Place


def find_endpoint(place: Place, whe: UUID) -> Endpoint:
    """Return the workspace's endpoint without its secrets. Raises `Http404` if there is none or it was removed."""
    rows = Endpoint.objects.of(place.workspace).defer("secret", "previous_secret")
    return get_object_or_404(rows, pk=whe, deleted_at=None)


@dataclass(frozen=True)
class NextTry:
    """When an endpoint is called next."""

    at: datetime

    @property
    def is_due(self) -> bool:
        """Whether that time is over, so that a worker will take the delivery."""
        return self.at <= utc_now()


def read_next_tries(place: Place, endpoint_ids: Collection[UUID]) -> dict[UUID, NextTry]:
    """Return the next call of each of the endpoints with scheduled deliveries, by the endpoint's id."""
    pending = Delivery.objects.of(place.workspace).pending()
    scheduled = pending.filter(endpoint__in=endpoint_ids, wake_at__isnull=False)
    first_times = scheduled.values_list("endpoint").annotate(Min("wake_at"))
    return {endpoint_id: NextTry(moment) for endpoint_id, moment in first_times}


def has_answered_gone(place: Place, endpoint: Endpoint) -> bool:
    """Return whether a delivery is held because the endpoint answered 410 (gone)."""
    has_answered: bool = answered_410(endpoint).filter(workspace=place.workspace).exists()
    return has_answered
