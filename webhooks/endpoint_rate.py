"""Limits how many attempts may begin at an endpoint within any one second, in all processes together."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from django.db import connection

from config.core import work_queue
from config.core.database.bulk_update import update_each
from webhooks.models import Endpoint, EndpointPace

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from uuid import UUID

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_SECOND_MILLISECONDS: Final = 1000
_ENDPOINT_SQL: Final = """SELECT endpoint.*, endpoint_pace.recent FROM endpoint
    LEFT JOIN endpoint_pace ON endpoint_pace.endpoint_id = endpoint.id WHERE endpoint.id = %s"""


Recent: TypeAlias = "Sequence[Sequence[int]]"
"""Pairs like those of `EndpointPace.recent`."""


class Window(NamedTuple):
    """An endpoint with its recent attempts, and how many more may begin now."""

    endpoint: Endpoint
    recent: Recent
    """Only the attempts that still count."""
    left: int


class EndpointRate:
    """Counts attempts in a sliding window, so that no second has more than the endpoint's rate.

    Call it under the endpoint's lock. It uses the database's clock, so that all processes count alike. An attempt
    may begin up to `lasts` seconds after it was counted.
    """

    def __init__(self, *, lasts: float = 0.0) -> None:
        self._window_milliseconds = _SECOND_MILLISECONDS + round(lasts * 1000)

    def count_remaining(self, groups: Collection[UUID]) -> dict[UUID, int]:
        """Return how many attempts of each endpoint may begin now, without endpoints that don't exist."""
        if not groups:
            return {}
        rows = Endpoint.everywhere.filter(pk__in=groups).values_list("pk", "rate", "pace__recent")
        now = _now_milliseconds()
        return {
            pk: self._remaining(rate, self._within_window(recent or [], now)) for pk, rate, recent in rows
        }

    def read(self, endpoint_id: UUID) -> Window | None:
        """Return the endpoint with its recent attempts, or `None` if it doesn't exist."""
        endpoint_key = EndpointPace._meta.get_field("endpoint").get_db_prep_value(endpoint_id, connection)
        # A raw query has no `first()`; it finds one row at most.
        for endpoint in Endpoint.everywhere.raw(_ENDPOINT_SQL, [endpoint_key]):
            recent = self._within_window(json.loads(endpoint.recent or "[]"), _now_milliseconds())
            return Window(endpoint, recent, self._remaining(endpoint.rate, recent))
        return None

    def count(self, window: Window, taken: int) -> None:
        """Store that `taken` attempts begin now."""
        now, endpoint = _now_milliseconds(), window.endpoint
        recent = [*self._within_window(window.recent, now), [now, taken]]
        # The endpoint's lock keeps others from writing the row meanwhile.
        if not update_each(EndpointPace, [({"endpoint_id": endpoint.pk}, {"recent": recent})]):
            EndpointPace.everywhere.create(
                endpoint=endpoint, workspace_id=endpoint.workspace_id, recent=recent
            )

    def _within_window(self, recent: Recent, now: int) -> Recent:
        return [pair for pair in recent if pair[0] >= now - self._window_milliseconds]

    def _remaining(self, rate: int, recent: Recent) -> int:
        return max(0, rate - sum(count for _, count in recent))


def _now_milliseconds() -> int:
    """Return the database's time in milliseconds since 1970."""
    return (work_queue.database_now() - _EPOCH) // _MILLISECOND
