"""What several rules need."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db.models.expressions import RawSQL

from pipeline.events import TYPES
from tests.simulation.world import CALM

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from pipeline.models import Event
    from tests.simulation.world import World
    from webhooks.models import Endpoint

SKEW: Final = timedelta(seconds=11)
"""Two processes' clocks differ by ten seconds at most."""
ON_TIME: Final = timedelta(seconds=3)


def is_calm(world: World) -> bool:
    """No process died, no message was lost, no clock was wrong: what a receiver or a platform answers is no fault of ours."""
    return not world.seed % CALM


def in_order(rows: QuerySet[Any]) -> list[Any]:
    """As they were written: ids are made by clocks that differ."""
    return list(rows.order_by(RawSQL("rowid", ())))


def wants(endpoint: Endpoint, event: Event) -> bool:
    if endpoint.events:
        return endpoint.events == ["*"] or event.type in endpoint.events
    return TYPES[event.type]
