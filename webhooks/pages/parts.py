"""What the webhooks' pages share: an endpoint of the workspace, and when it is called next."""

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
    """One of this workspace's, without its secrets; 404 for everything else."""
    rows = Endpoint.objects.of(place.workspace).defer("secret", "previous_secret")
    return get_object_or_404(rows, pk=whe, deleted_at=None)


@dataclass(frozen=True)
class NextTry:
    """When an endpoint is called next; `is_due` where only the turn of what waits is awaited."""

    at: datetime

    @property
    def is_due(self) -> bool:
        return self.at <= utc_now()


def next_tries(place: Place, endpoint_ids: Collection[UUID]) -> dict[UUID, NextTry]:
    """The next call of each endpoint that something waits for."""
    pending = Delivery.objects.of(place.workspace).pending()
    waiting = pending.filter(endpoint__in=endpoint_ids, wake_at__isnull=False)
    moments = waiting.values_list("endpoint").annotate(Min("wake_at"))
    return {endpoint: NextTry(moment) for endpoint, moment in moments}


def gave_410(place: Place, endpoint: Endpoint) -> bool:
    """Whether it is disabled because it said that it is gone."""
    held: bool = answered_410(endpoint).filter(workspace=place.workspace).exists()
    return held
