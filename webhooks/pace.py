"""The rate of an endpoint: how many attempts may begin within any one second, in all processes together."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from config.core import work_queue
from webhooks.models import Endpoint, EndpointPace

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from uuid import UUID

    from django.db.models import QuerySet

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_SECOND: Final = 1000
"""Milliseconds."""


class EndpointRate:
    """A window that slides: no second, wherever it begins, has more attempts than the endpoint's rate.

    It is asked under the endpoint's lock, and by the database's clock, so that several processes count as one. An
    attempt begins at most `lasts` seconds after it was counted.
    """

    def __init__(self, *, lasts: float = 0.0) -> None:
        self._window = _SECOND + round(lasts * 1000)

    def left(self, groups: Collection[UUID]) -> dict[UUID, int]:
        if not groups:
            return {}
        since = _now() - self._window
        return {
            row["pk"]: max(
                0, row["rate"] - sum(count for at, count in row["pace__recent"] or () if at >= since)
            )
            for row in _paces(groups)
        }

    def used(self, taken: Mapping[UUID, int]) -> None:
        now = _now()
        rows = [
            EndpointPace(
                endpoint_id=row["pk"],
                workspace_id=row["workspace_id"],
                recent=[
                    *(pair for pair in row["pace__recent"] or () if pair[0] >= now - self._window),
                    [now, taken[row["pk"]]],
                ],
            )
            for row in _paces(taken)
        ]
        EndpointPace.everywhere.bulk_create(
            rows, update_conflicts=True, unique_fields=["endpoint"], update_fields=["recent"]
        )


def _paces(endpoint_ids: Collection[UUID]) -> QuerySet[Any, dict[str, Any]]:
    rows = Endpoint.everywhere.filter(pk__in=endpoint_ids)
    return rows.values("pk", "workspace_id", "rate", "pace__recent")


def _now() -> int:
    return (work_queue.database_now() - _EPOCH) // _MILLISECOND
