"""Counts what waits, is late or held, and must be reconnected in a workspace.

Every capped count stops at `MAX_COUNTED_ROWS`, so that a page costs the same however much a workspace holds.
Test items aren't counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.db import connection
from django.db.models import Count as DatabaseCount
from django.db.models import Min, OuterRef, Subquery

from accounts.models import Workspace
from pipeline.models import GeneratedItem, Outlet, Publication, PublishHold

if TYPE_CHECKING:
    from datetime import datetime

    from django.db.models import QuerySet

ROWS: Final = 5
"""The most rows of each list on the first page."""
MAX_COUNTED_ROWS: Final = 1000


@dataclass(frozen=True)
class Overdue:
    """The number of overdue publications."""

    count: int
    minutes: int
    """The delay of the earliest one, in minutes."""


def publishing_blockers(workspace_id: UUID, *, now: datetime) -> tuple[str | None, Overdue | None]:
    """Return the reason for which members hold all publishing, and the overdue publications, in one statement.

    Either is `None` if there is none.
    """
    late = (
        Publication.everywhere.overdue(now)
        .live()
        .filter(workspace_id=OuterRef("pk"))
        .order_by()
        .values("workspace_id")
    )
    hold = PublishHold.everywhere.filter(workspace_id=OuterRef("pk"))
    reason, count, earliest = (
        Workspace.everywhere.filter(pk=workspace_id)
        .values_list(
            Subquery(hold.values("reason")),
            Subquery(late.annotate(found=DatabaseCount("pk")).values("found")),
            Subquery(late.annotate(found=Min("due_at")).values("found")),
        )
        .get()
    )
    minutes = int((now - earliest).total_seconds() // 60) if earliest else 0
    return reason, Overdue(count, minutes) if count else None


@dataclass(frozen=True)
class CappedCount:
    """A count that stops at one more than `MAX_COUNTED_ROWS`; `text` is for display."""

    number: int

    @property
    def text(self) -> str:
        return f"{MAX_COUNTED_ROWS:,}+" if self.number > MAX_COUNTED_ROWS else f"{self.number:,}"

    def __bool__(self) -> bool:
        return bool(self.number)


@dataclass(frozen=True)
class WaitingForReview:
    """The number of items to review, and when the oldest of them became ready."""

    count: int
    text: str
    oldest_at: datetime | None


def waiting_for_review(workspace_id: UUID) -> WaitingForReview:
    """Count the items to review, and find the oldest."""
    count = count_to_review(workspace_id)
    rows = GeneratedItem.objects.of(workspace_id).live().to_review()
    oldest = rows.order_by("id").values_list("ready_at", flat=True).first()
    return WaitingForReview(count.number, count.text, oldest)


def count_to_review(workspace_id: UUID) -> CappedCount:
    """Count the items to review."""
    (count,) = count_each(GeneratedItem.objects.of(workspace_id).live().to_review())
    return count


def count_to_post_by_hand(workspace_id: UUID) -> CappedCount:
    """Count the publications that a person must post by hand."""
    (count,) = count_each(Publication.objects.of(workspace_id).live().unsent().by_hand())
    return count


def outlets_to_reconnect(workspace_id: UUID) -> list[str]:
    """Return the names of the newest outlets that need reconnecting."""
    rows = Outlet.objects.of(workspace_id).to_reconnect()
    return list(rows.order_by("-id").values_list("name", flat=True)[:ROWS])


def first_id_of(moment: datetime) -> UUID:
    """Return a lower bound of the UUIDv7s that are made at the moment or later."""
    return UUID(int=int(moment.timestamp() * 1000) << 80)


def count_each(*query_sets: QuerySet[Any]) -> list[CappedCount]:
    """Count each query set, capped, in one statement, because round trips cost more than counting."""
    parts: list[str] = []
    parameters: list[Any] = []
    for rows in query_sets:
        sql, sql_parameters = rows.order_by().values("pk")[: MAX_COUNTED_ROWS + 1].query.sql_with_params()
        parts.append(f"(SELECT COUNT(*) FROM ({sql}) AS counted)")  # noqa: S608  Django's own statement
        parameters += sql_parameters
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(parts)}", parameters)
        return [CappedCount(number) for number in cursor.fetchone()]
