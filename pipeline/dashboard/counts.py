"""Counts of a workspace: what waits, what is late or held, what has to be connected again.

Every count stops at `COUNTED_MOST`, so that a page costs the same however much a workspace holds. Test items are
nobody's business here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.db import connection
from django.db.models import Count as DatabaseCount
from django.db.models import Min, OuterRef, Subquery

from accounts.models import Workspace
from pipeline.models import (
    GeneratedItem,
    Outlet,
    Publication,
    PublishHold,
)

if TYPE_CHECKING:
    from datetime import datetime

    from django.db.models import QuerySet

ROWS: Final = 5
COUNTED_MOST: Final = 1000


@dataclass(frozen=True)
class Overdue:
    count: int
    minutes: int
    """By how much the earliest of them is late."""


def publishing_obstacles(workspace_id: UUID, *, now: datetime) -> tuple[str | None, Overdue | None]:
    """Why people hold all publishing, and what is late by the clock alone; None where nothing is. One statement."""
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
    number: int

    @property
    def said(self) -> str:
        return f"{COUNTED_MOST:,}+" if self.number > COUNTED_MOST else f"{self.number:,}"

    def __bool__(self) -> bool:
        return bool(self.number)


@dataclass(frozen=True)
class WaitingForReview:
    count: int
    said: str
    oldest_at: datetime | None


def waiting_for_review(workspace_id: UUID) -> WaitingForReview:
    count = to_review(workspace_id)
    waiting = GeneratedItem.objects.of(workspace_id).live().to_review()
    oldest = waiting.order_by("id").values_list("ready_at", flat=True).first()
    return WaitingForReview(count.number, count.said, oldest)


def to_review(workspace_id: UUID) -> CappedCount:
    (found,) = count_each(GeneratedItem.objects.of(workspace_id).live().to_review())
    return found


def to_post_by_hand(workspace_id: UUID) -> CappedCount:
    """Posts that are due at places where a person posts them."""
    (found,) = count_each(Publication.objects.of(workspace_id).live().unsent().by_hand())
    return found


def outlets_to_reconnect(workspace_id: UUID) -> list[str]:
    """Their names."""
    rows = Outlet.objects.of(workspace_id).to_reconnect()
    return list(rows.order_by("-id").values_list("name", flat=True)[:ROWS])


def first_id_of(moment: datetime) -> UUID:
    """No UUIDv7 that was made at that moment or after it is below this."""
    return UUID(int=int(moment.timestamp() * 1000) << 80)


def count_each(*several: QuerySet[Any]) -> list[CappedCount]:
    """All of them in one statement: on a busy machine each way to the database and back costs more than the counting."""
    parts: list[str] = []
    parameters: list[Any] = []
    for rows in several:
        sql, given = rows.order_by().values("pk")[: COUNTED_MOST + 1].query.sql_with_params()
        parts.append(f"(SELECT COUNT(*) FROM ({sql}) AS counted)")  # noqa: S608  Django's own statement
        parameters += given
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(parts)}", parameters)
        return [CappedCount(number) for number in cursor.fetchone()]
