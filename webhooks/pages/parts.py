"""What the webhooks' pages share: rows of the workspace, a fresh log-in, and what is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from allauth.account.decorators import reauthentication_required
from django.contrib import messages
from django.db.models import Min
from django.http import Http404

from config.core.clock import utc_now
from webhooks.endpoints import answered_410
from webhooks.models import Delivery, Endpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from datetime import datetime
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse

    from accounts.models import User
    from accounts.pages.workspace_view import Place
    from config.core.errors import AppError

    View = Callable[..., HttpResponse]


def find_endpoint(place: Place, whe: UUID) -> Endpoint:
    """One of this workspace's, without its secrets; 404 for everything else."""
    there = Endpoint.objects.of(place.workspace).defer("secret", "previous_secret")
    endpoint: Endpoint | None = there.filter(pk=whe, deleted_at=None).first()
    if endpoint is None:
        raise Http404
    return endpoint


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


def fresh_log_in_required(view: View) -> View:
    """Whoever logged in a while ago proves again who they are; what they had sent goes on by itself afterwards."""
    checked: View = reauthentication_required(view)
    return checked


def tell(request: HttpRequest, error: AppError) -> None:
    """A change that the state didn't allow: what is so, and what to do."""
    messages.error(request, str(error))


def email_of(place: Place) -> str:
    user: User = place.user
    return user.email
