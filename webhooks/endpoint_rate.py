"""The rate of an endpoint: how many attempts may begin within any one second, in all processes together."""

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
_SECOND: Final = 1000
"""Milliseconds."""
_ENDPOINT: Final = """SELECT endpoint.*, endpoint_pace.recent FROM endpoint
    LEFT JOIN endpoint_pace ON endpoint_pace.endpoint_id = endpoint.id WHERE endpoint.id = %s"""


Recent: TypeAlias = "Sequence[Sequence[int]]"
"""As `EndpointPace.recent`."""


class Window(NamedTuple):
    """Of an endpoint what counts still, and how many attempts more may begin."""

    endpoint: Endpoint
    recent: Recent
    left: int


class EndpointRate:
    """A window that slides: no second, wherever it begins, has more attempts than the endpoint's rate.

    It is asked under the endpoint's lock, and by the database's clock, so that several processes count as one. An
    attempt begins at most `lasts` seconds after it was counted.
    """

    def __init__(self, *, lasts: float = 0.0) -> None:
        self._window = _SECOND + round(lasts * 1000)

    def left(self, groups: Collection[UUID]) -> dict[UUID, int]:
        """How many attempts of each of these endpoints may begin now; without those that aren't there."""
        if not groups:
            return {}
        rows = Endpoint.everywhere.filter(pk__in=groups).values_list("pk", "rate", "pace__recent")
        now = _now()
        return {pk: self._left(rate, self._counted(recent or [], now)) for pk, rate, recent in rows}

    def read(self, endpoint_id: UUID) -> Window | None:
        """The endpoint with what counts at this moment; None where there is no such endpoint."""
        key = EndpointPace._meta.get_field("endpoint").get_db_prep_value(endpoint_id, connection)
        for endpoint in Endpoint.everywhere.raw(_ENDPOINT, [key]):
            recent = self._counted(json.loads(endpoint.recent or "[]"), _now())
            return Window(endpoint, recent, self._left(endpoint.rate, recent))
        return None

    def count(self, window: Window, taken: int) -> None:
        """So many attempts begin now."""
        now, endpoint = _now(), window.endpoint
        recent = [*self._counted(window.recent, now), [now, taken]]
        # Under the endpoint's lock nobody else writes the row meanwhile.
        if not update_each(EndpointPace, [({"endpoint_id": endpoint.pk}, {"recent": recent})]):
            EndpointPace.everywhere.create(
                endpoint=endpoint, workspace_id=endpoint.workspace_id, recent=recent
            )

    def _counted(self, recent: Recent, now: int) -> Recent:
        return [pair for pair in recent if pair[0] >= now - self._window]

    def _left(self, rate: int, recent: Recent) -> int:
        return max(0, rate - sum(count for _, count in recent))


def _now() -> int:
    """In milliseconds since 1970, by the database's clock."""
    return (work_queue.database_now() - _EPOCH) // _MILLISECOND
