"""Reads a workspace's first page: the tasks of its members, with counts and the first rows of each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Exists, F, OuterRef, Subquery

from accounts.models import WhitelistRequest, Workspace
from config.core.ids import encode
from pipeline import labels
from pipeline.dashboard.counts import ROWS, CappedCount, count_each, first_id_of
from pipeline.models import (
    GeneratedItem,
    Outlet,
    Publication,
    PublicationStatus,
    RawItem,
    Source,
)
from pipeline.outlets.outlet_client import platform_if_known

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from django.db.models import QuerySet

LOOK_AHEAD: Final = timedelta(days=1)
"""How far ahead scheduled publications are counted."""
NEWEST_ITEMS: Final = 50
"""The newest items of which one must be approved or rejected for the step of a review to be done."""


@dataclass(frozen=True)
class DashboardRow:
    """A row of a list on the first page."""

    title: str
    at: datetime | None
    about: str = ""
    """The name of the row's source, engine output, outlet or platform."""
    reason: str = ""
    """A message about what is wrong, or about what is to be done."""
    status: str = ""
    link: str = ""
    """The page to act on the row, below the workspace's address, or the URL of a published post."""
    is_sample: bool = False

    @property
    def badge(self) -> str:
        return str(labels.DASHBOARD.get(self.status, labels.NO_BADGE).label)

    @property
    def tone(self) -> str:
        return labels.DASHBOARD.get(self.status, labels.NO_BADGE).tone


@dataclass(frozen=True)
class Steps:
    """The steps of setting up a new workspace, and what is known about each."""

    has_content: bool
    """True if a source was added, or a raw item came in."""
    has_review: bool
    """True if somebody has approved, rejected or published an item."""
    has_publication: bool
    has_access: bool
    requested_at: datetime | None
    """When access was requested; `None` if it wasn't, or if an operator has decided."""
    has_outlet: bool
    """True if an account is connected: the feed and the simulated outlet, which each workspace has, don't count."""
    to_publish: UUID | None
    """The newest ready item, or `None` if there is none."""

    @property
    def is_access_requested(self) -> bool:
        return self.requested_at is not None

    @property
    def are_done(self) -> bool:
        """True if all steps are done; an outlet isn't needed, because there is the feed."""
        return self.has_content and self.has_review and self.has_publication and self.has_access


@dataclass(frozen=True)
class DashboardOverview:
    """The counts of the first page, and at most `ROWS` rows of each list."""

    entered: CappedCount
    waiting: CappedCount
    promised: CappedCount
    late: CappedCount
    failed: CappedCount
    published: CappedCount
    newest: Sequence[DashboardRow]
    for_review: Sequence[DashboardRow]
    next_ones: Sequence[DashboardRow]
    late_ones: Sequence[DashboardRow]
    by_hand: Sequence[DashboardRow]
    """The publications that a person must post; their links lead to what is to be posted."""
    published_ones: Sequence[DashboardRow]
    unresolved_posts: Sequence[DashboardRow]
    """The posts that failed, and those whose outcome is unknown, which `failed` doesn't count."""
    failed_items: Sequence[DashboardRow]
    flagged: Sequence[DashboardRow]
    sources: Sequence[DashboardRow]
    outlets: Sequence[DashboardRow]
    steps: Steps


def read_overview(workspace: Workspace, *, since: datetime, now: datetime) -> DashboardOverview:
    """Return the first page's data, always in the same number of statements.

    What entered, failed or was published is counted from `since` on.
    """
    posts, items = Publication.objects.of(workspace).live(), GeneratedItem.objects.of(workspace).live()
    late, upcoming = posts.late(now), posts.coming(now)
    failed_posts = posts.failed().filter(updated_at__gte=since)
    unresolved_posts = posts.unresolved().filter(updated_at__gte=since)
    failed_items = items.failed().filter(updated_at__gte=since)
    published = posts.published().filter(published_at__gte=since)
    # Ids rise with time, so the list's own index counts what is new.
    entered = RawItem.objects.of(workspace).live().filter(id__gte=first_id_of(since))
    to_review = items.to_review()
    due_soon = upcoming.filter(due_at__lt=now + LOOK_AHEAD)
    counts = count_each(entered, to_review, due_soon, late, failed_posts, failed_items, published)
    return DashboardOverview(
        entered=counts[0],
        waiting=counts[1],
        promised=counts[2],
        late=counts[3],
        failed=CappedCount(counts[4].number + counts[5].number),
        published=counts[6],
        newest=_read_newest_raw_items(workspace.pk),
        for_review=_read_items_to_review(to_review),
        next_ones=[_publication_row(row) for row in _publication_values(upcoming.order_by("due_at"))],
        late_ones=[_publication_row(row) for row in _publication_values(late.order_by("due_at"))],
        by_hand=_read_posts_by_hand(workspace.pk),
        published_ones=[
            _publication_row(row) for row in _publication_values(published.order_by("-published_at"))
        ],
        unresolved_posts=[
            _publication_row(row) for row in _publication_values(unresolved_posts.order_by("-updated_at"))
        ],
        failed_items=_read_failed_items(failed_items),
        flagged=_read_flagged_items(workspace.pk),
        sources=_read_failing_sources(workspace.pk),
        outlets=_read_outlets_to_reconnect(workspace.pk),
        steps=_read_steps(workspace),
    )


def _read_posts_by_hand(workspace_id: UUID) -> list[DashboardRow]:
    rows = _publication_values(
        Publication.objects.of(workspace_id).live().unsent().by_hand().order_by("due_at")
    )
    return [
        replace(_publication_row(row), status="", link=f"publications/{encode('pub', row['id'])}/package")
        for row in rows
    ]


def _read_newest_raw_items(workspace_id: UUID) -> list[DashboardRow]:
    """Return the newest raw items, also deleted ones, which have no link."""
    rows = (
        RawItem.objects.of(workspace_id)
        .filter(test=False)
        .order_by("-id")
        .values(
            "id",
            "title",
            "url",
            "status",
            "reason",
            "created_at",
            "deleted_at",
            "external_id",
            "source__name",
            "source__is_push",
            "source__is_sample",
        )[:ROWS]
    )
    return [
        DashboardRow(
            title=row["title"] or row["url"],
            at=row["created_at"],
            about=labels.origin_of(row["source__name"], row["external_id"], is_push=row["source__is_push"]),
            reason=(row["reason"] or {}).get("message", ""),
            status="deleted" if row["deleted_at"] else row["status"],
            link="" if row["deleted_at"] else f"new/{encode('raw', row['id'])}",
            is_sample=row["source__is_sample"],
        )
        for row in rows
    ]


def _read_items_to_review(items: QuerySet[Any]) -> list[DashboardRow]:
    """Return the newest items to review, with the reasons for which they are on hold."""
    rows = items.order_by("-id").values(
        "id", "title", "excerpt", "engine_output", "ready_at", "held", "is_sample"
    )[:ROWS]
    return [
        DashboardRow(
            title=row["title"] or row["excerpt"],
            at=row["ready_at"],
            about=row["engine_output"],
            reason=str(labels.HOLDS.get(row["held"], row["held"])),
            link=page_of(row["id"]),
            is_sample=row["is_sample"],
        )
        for row in rows
    ]


def _publication_values(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Return the first rows as dicts, with the titles of their items and the names of their outlets."""
    values: QuerySet[Any] = rows.annotate(
        item_title=F("item__title"), item_excerpt=F("item__excerpt"), outlet_name=F("outlet__name")
    ).values(
        "id",
        "item_id",
        "status",
        "due_at",
        "updated_at",
        "published_at",
        "url",
        "error",
        "item_title",
        "item_excerpt",
        "outlet_name",
        "item__is_sample",
    )[:ROWS]
    return values


def page_of(item_id: UUID) -> str:
    """Return the path of the item's page, below the workspace's address."""
    return f"items/{encode('gen', item_id)}"


def _publication_row(row: Any) -> DashboardRow:
    """Return the row of a publication: with its error, or with a link to the post once it is published."""
    is_published = row["status"] == PublicationStatus.PUBLISHED
    # The platform chose the URL, so it becomes a link only if browsers open it safely.
    has_safe_url = is_published and row["url"].startswith(("https://", "http://"))
    moments = {"failed": row["updated_at"], "unknown": row["updated_at"], "published": row["published_at"]}
    return DashboardRow(
        title=row["item_title"] or row["item_excerpt"],
        at=moments.get(row["status"], row["due_at"]),
        about=row["outlet_name"],
        reason="" if is_published else (row["error"] or {}).get("message", ""),
        status=row["status"],
        link=row["url"] if has_safe_url else page_of(row["item_id"]),
        is_sample=row["item__is_sample"],
    )


def _read_failed_items(rows: QuerySet[Any]) -> list[DashboardRow]:
    """Return the items that failed last, with their errors."""
    values = rows.order_by("-updated_at").values(
        "id", "title", "raw_item__title", "engine_output", "error", "updated_at", "is_sample"
    )[:ROWS]
    return [
        DashboardRow(
            title=row["title"] or row["raw_item__title"] or "",
            at=row["updated_at"],
            about=row["engine_output"],
            reason=(row["error"] or {}).get("message", ""),
            status="failed",
            link=page_of(row["id"]),
            is_sample=row["is_sample"],
        )
        for row in values
    ]


def _read_flagged_items(workspace_id: UUID) -> list[DashboardRow]:
    """Return the newest published items whose source has changed, with what to do."""
    rows = (
        GeneratedItem.objects.of(workspace_id)
        .live()
        .flagged()
        .filter(deleted_at=None)
        .order_by("-id")
        .values("id", "title", "excerpt", "engine_output", "flagged", "published_at", "is_sample")[:ROWS]
    )
    return [
        DashboardRow(
            title=row["title"] or row["excerpt"],
            at=row["published_at"],
            about=row["engine_output"],
            reason=str(labels.FLAGS[row["flagged"]]),
            link=page_of(row["id"]),
            is_sample=row["is_sample"],
        )
        for row in rows
    ]


def _read_failing_sources(workspace_id: UUID) -> list[DashboardRow]:
    """Return the newest sources that fail or are gone, with their errors."""
    rows = (
        Source.objects.of(workspace_id)
        .live()
        .failing()
        .order_by("-id")
        .values("id", "name", "status", "last_error", "failing_since", "is_sample")[:ROWS]
    )
    return [
        DashboardRow(
            title=row["name"],
            at=row["failing_since"],
            reason=(row["last_error"] or {}).get("message", ""),
            status=row["status"],
            link=f"sources/{encode('src', row['id'])}",
            is_sample=row["is_sample"],
        )
        for row in rows
    ]


def _read_outlets_to_reconnect(workspace_id: UUID) -> list[DashboardRow]:
    """Return the newest outlets that must be connected again, with their errors."""
    rows = (
        Outlet.objects.of(workspace_id)
        .to_reconnect()
        .order_by("-id")
        .values("id", "name", "platform", "last_error", "updated_at", "is_sample")[:ROWS]
    )
    return [
        DashboardRow(
            title=row["name"],
            at=row["updated_at"],
            about=_platform_label(row["platform"]),
            reason=(row["last_error"] or {}).get("message", ""),
            status="needs_reconnect",
            link=f"outlets/{encode('out', row['id'])}",
            is_sample=row["is_sample"],
        )
        for row in rows
    ]


def _platform_label(kind: str) -> str:
    """Return the platform's label, or its kind if its plug-in isn't installed any more."""
    platform = platform_if_known(kind)
    return str(platform.label) if platform else kind


def _read_steps(workspace: Workspace) -> Steps:
    """Read the steps in one statement; each part reads one row of an index, or `NEWEST_ITEMS` rows."""
    filters = {"workspace_id": OuterRef("pk"), "test": False}
    # These items are a subquery of a subquery, so that the reference to the workspace is a double one.
    items = GeneratedItem.everywhere.filter(workspace_id=OuterRef(OuterRef("pk")), test=False)
    newest = items.order_by("-id").values("id")[:NEWEST_ITEMS]
    outlets = Outlet.everywhere.filter(
        workspace_id=OuterRef("pk"), deleted_at=None, is_simulated=False
    ).exclude(platform="feed")
    row = Workspace.everywhere.filter(pk=workspace.pk).values_list(
        Exists(Source.everywhere.filter(**filters, is_push=False, deleted_at=None)),
        _newest_id(RawItem.everywhere.filter(**filters)),
        Exists(GeneratedItem.everywhere.decided().filter(pk__in=newest)),
        _newest_id(Publication.everywhere.filter(**filters)),
        _newest_id(GeneratedItem.everywhere.ready().filter(**filters)),
        Exists(outlets),
        Subquery(
            WhitelistRequest.everywhere.filter(
                workspace_id=OuterRef("pk"), status=WhitelistRequest.Status.PENDING
            ).values("created_at")[:1]
        ),
    )
    has_source, raw, has_review, publication, to_publish, has_outlet, requested_at = row.get()
    return Steps(
        has_content=has_source or raw is not None,
        has_review=has_review or publication is not None,
        has_publication=publication is not None,
        has_access=workspace.is_whitelisted,
        requested_at=requested_at,
        has_outlet=has_outlet,
        to_publish=to_publish,
    )


def _newest_id(rows: QuerySet[Any]) -> Subquery:
    """Return the newest id as a subquery.

    Without the order a planner may scan the table, past all other workspaces' rows.
    """
    return Subquery(rows.order_by("-id").values("id")[:1])
