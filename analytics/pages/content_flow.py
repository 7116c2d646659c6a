"""Counts the content in each stage of a workspace's pipeline, and finds what the oldest of each waits for.

Every count stops at `counts.MAX_COUNTED_ROWS`. The statuses of raw items aren't indexed, so they are counted over
the newest `MAX_ROWS_READ` of the span only, and `Flow.is_complete` says whether there were fewer. So a page costs
the same however much a workspace holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.utils.timesince import timesince
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from config.core.ids import encode
from pipeline.dashboard.counts import CappedCount, count_each, first_id_of
from pipeline.dashboard.overview import page_of
from pipeline.models import GeneratedItem, GeneratedItemStatus, Publication, RawItem
from pipeline.outlets.outlet_client import platform_if_known
from pipeline.pages.items import display
from pipeline.review.explanation import blockers_of, explain
from pipeline.states import ITEMS_IN_MAKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from django.db.models import QuerySet

    from accounts.models import Workspace
    from pipeline.publish.blockers import Blocker

MAX_ROWS_READ: Final = 5000
"""Raw items whose statuses are counted at most."""
_MINUTE: Final = timedelta(minutes=1)
_HARMLESS_CODES: Final = frozenset({"already_published", "not_requested", "not_due"})
"""Codes of blockers that only say that nothing is to be done now."""


@dataclass(frozen=True)
class OldestEntry:
    """The oldest row of a stage, or the one that is due first."""

    title: str
    link: str
    """The address of its page, relative to the workspace's."""
    at: datetime | None
    """When it came, failed, or is due."""
    age_text: str
    """Its age for people, such as `3 hours`, or empty for a time to come."""
    why: str
    """Why it is still in the stage, in a sentence, or empty if nothing is known."""
    outlet_or_output: str = ""
    """The outlet of a publication, the output of a generated item, or empty for a raw item."""


@dataclass(frozen=True)
class FlowStage:
    """A stage of the pipeline; `tone` is `bad` if somebody should look at it, else empty."""

    name: str
    label: str
    about: str
    """A few words about what is counted, or empty."""
    count: CappedCount
    oldest: OldestEntry | None
    tone: str = ""


@dataclass(frozen=True)
class Flow:
    """The stages of a workspace's pipeline, in the order of the page."""

    stages: tuple[FlowStage, ...]
    is_complete: bool
    """Whether the raw items' statuses were all counted, because there were fewer than `MAX_ROWS_READ`."""
    has_content: bool
    """Whether anything has ever been collected or generated."""

    @property
    def is_empty(self) -> bool:
        return not any(stage.count for stage in self.stages)


def count_flow(workspace: Workspace, *, span: timedelta, now: datetime) -> Flow:
    """Count what entered, failed and was published in the span before `now`, and what is due in the span after.

    Content that is generating, to review or late is counted whatever its age. The number of statements depends on
    which stages hold anything, not on how much.
    """
    queries = _StageQueries(workspace, now - span, now + span, now)
    counts = queries.count_stages()
    counts_by_status = queries.count_by_status()
    stages = (
        FlowStage(
            "entered",
            _("New"),
            _intake_summary(counts_by_status),
            counts["entered"],
            queries.oldest_waiting_for_credits(),
        ),
        FlowStage(
            "made",
            _("Generating"),
            _("queued or generating"),
            counts["made"],
            queries.oldest_in_making(),
        ),
        FlowStage("review", _("To review"), "", counts["review"], queries.oldest_unreviewed()),
        FlowStage("due", _("Due"), _("upcoming, same range"), counts["due"], queries.next_due()),
        FlowStage(
            "late",
            _("Late"),
            "",
            counts["late"],
            queries.most_overdue(),
            tone="bad" if counts["late"] else "",
        ),
        FlowStage(
            "failed",
            _("Failed"),
            _failure_summary(counts),
            CappedCount(counts["posts"].number + counts["items"].number),
            queries.oldest_failed(),
            tone="bad" if counts["posts"] or counts["items"] else "",
        ),
        FlowStage("published", _("Published"), "", counts["published"], None),
    )
    is_complete = sum(counts_by_status.values()) < MAX_ROWS_READ
    return Flow(
        stages, is_complete, has_content=any(stage.count for stage in stages) or queries.has_content()
    )


# --- Queries ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _StageQueries:
    """Counts each stage's live content, ended `since` or due `until` a time, and finds its oldest row."""

    workspace: Workspace
    since: datetime
    until: datetime
    now: datetime

    def count_stages(self) -> Mapping[str, CappedCount]:
        """Count each stage up to the cap, in one statement; some stages are counted in parts."""
        late, due = self._late(), self._due_in_span()
        queries = {
            "entered": self._entered(),
            "queued": self._in_making("queued"),
            "generating": self._in_making("generating"),
            "review": self._to_review(),
            "due": due,
            "late": late,
            "posts": self._failed_posts(),
            "unknown": self._unknown_posts(),
            "items": self._failed_items(),
            "published": self._posts().published().filter(published_at__gte=self.since),
        }
        counts_by_name = dict(zip(queries, count_each(*queries.values()), strict=True))
        return {
            **counts_by_name,
            "made": CappedCount(counts_by_name["queued"].number + counts_by_name["generating"].number),
        }

    def count_by_status(self) -> Mapping[str, int]:
        """Count the statuses of the newest `MAX_ROWS_READ` raw items of the span."""
        counts: dict[str, int] = {}
        for status in self._entered().order_by("-id").values_list("status", flat=True)[:MAX_ROWS_READ]:
            counts[status] = counts.get(status, 0) + 1
        return counts

    def has_content(self) -> bool:
        queries: tuple[QuerySet[Any], ...] = (
            RawItem.objects.of(self.workspace).filter(test=False),
            GeneratedItem.objects.of(self.workspace).filter(test=False),
        )
        return any(query.order_by("-id").values_list("pk").first() is not None for query in queries)

    # --- The oldest of each ------------------------------------------------------------------------------------------

    def oldest_waiting_for_credits(self) -> OldestEntry | None:
        """Return the raw item whose credits come first; `wake_at` is set only while an item waits for credits."""
        row = (
            RawItem.objects.of(self.workspace)
            .filter(test=False, deleted_at=None, wake_at__isnull=False)
            .order_by("wake_at")
            .values("id", "title", "url", "created_at", "reason")
            .first()
        )
        if row is None:
            return None
        return OldestEntry(
            row["title"] or row["url"],
            f"new/{encode('raw', row['id'])}",
            row["created_at"],
            self._age_text(row["created_at"]),
            (row["reason"] or {}).get("message") or _("Waiting for credits"),
        )

    def oldest_in_making(self) -> OldestEntry | None:
        """Return the item that has been queued or generating longest."""
        # One statement for each status, so that the index by status finds its first row.
        rows = [
            self._in_making(status).select_related("generation", "raw_item").order_by("id").first()
            for status in sorted(ITEMS_IN_MAKING)
        ]
        item = min((row for row in rows if row is not None), key=lambda row: row.pk, default=None)
        if item is None:
            return None
        title = item.title or (item.raw_item.title if item.raw_item else "")
        return self._entry_of_item(item, title, item.created_at, self._why_in_making(item))

    def oldest_unreviewed(self) -> OldestEntry | None:
        """Return the item that has waited longest for review, with its first blocker."""
        rows = self._to_review().select_related("workspace", "raw_item")
        item = rows.order_by("id").first()
        if item is None:
            return None
        blocker = _first_blocker(explain(item, now=self.now).blockers)
        why = blocker.message if blocker else _("Not reviewed yet")
        return self._entry_of_item(item, item.title or item.excerpt, item.ready_at, why)

    def next_due(self) -> OldestEntry | None:
        """Return the publication that is due next, with its first blocker."""
        earliest = self._earliest_with_blocker(self._due_in_span())
        if earliest is None:
            return None
        row, blocker = earliest
        why = blocker.message if blocker else _("Not blocked")
        return self._entry_of_post(row, row.due_at, why)

    def most_overdue(self) -> OldestEntry | None:
        """Return the publication that is most overdue, with its first blocker."""
        earliest = self._earliest_with_blocker(self._late())
        if earliest is None:
            return None
        row, blocker = earliest
        unexplained = _("Starting soon. If this persists, contact the people who run this service.")
        why = blocker.message if blocker else unexplained
        return self._entry_of_post(row, row.due_at, why)

    def oldest_failed(self) -> OldestEntry | None:
        """Return the publication or item whose failure is the oldest of the span."""
        post = (
            self._failed_posts()
            .select_related("item__raw_item", "outlet", "workspace", "queue")
            .order_by("updated_at")
            .first()
        )
        item = self._failed_items().select_related("raw_item").order_by("updated_at").first()
        if post is not None and (item is None or post.updated_at <= item.updated_at):
            blocker = _first_blocker(blockers_of(post, self.now))
            return self._entry_of_post(post, post.updated_at, blocker.message if blocker else "")
        if item is None:
            return None
        title = item.title or (item.raw_item.title if item.raw_item else "")
        why = (item.error or {}).get("message", _("Failed"))
        return self._entry_of_item(item, title, item.updated_at, why)

    # --- Rows of the stages ------------------------------------------------------------------------------------------

    def _entered(self) -> QuerySet[Any]:
        """Return the raw items of the span; as ids rise with time, the index of the list finds them."""
        rows: QuerySet[Any] = RawItem.objects.of(self.workspace).filter(
            test=False, id__gte=first_id_of(self.since)
        )
        return rows

    def _in_making(self, status: str) -> QuerySet[Any]:
        # A list of one value, because SQLite finds no index for the `NOT test` of a plain filter.
        rows: QuerySet[Any] = GeneratedItem.objects.of(self.workspace).filter(
            test__in=[False], status=status, deleted_at=None
        )
        return rows

    def _to_review(self) -> QuerySet[Any]:
        rows: QuerySet[Any] = GeneratedItem.objects.of(self.workspace).live().to_review()
        return rows

    def _posts(self) -> Any:
        return Publication.objects.of(self.workspace).live()

    def _due_in_span(self) -> QuerySet[Any]:
        rows: QuerySet[Any] = self._posts().coming(self.now).filter(due_at__lt=self.until)
        return rows

    def _late(self) -> QuerySet[Any]:
        rows: QuerySet[Any] = self._posts().late(self.now)
        return rows

    def _failed_posts(self) -> QuerySet[Any]:
        rows: QuerySet[Any] = self._posts().failed().filter(updated_at__gte=self.since)
        return rows

    def _unknown_posts(self) -> QuerySet[Any]:
        rows: QuerySet[Any] = self._posts().unknown().filter(updated_at__gte=self.since)
        return rows

    def _failed_items(self) -> QuerySet[Any]:
        items = GeneratedItem.objects.of(self.workspace).live()
        rows: QuerySet[Any] = items.failed().filter(updated_at__gte=self.since)
        return rows

    # --- Entries -----------------------------------------------------------------------------------------------------

    def _earliest_with_blocker(self, rows: QuerySet[Any]) -> tuple[Publication, Blocker | None] | None:
        """Return the publication that is due first with its first blocker, or `None` if there are no rows.

        The blocker is `None` if nothing blocks it, or its platform's plug-in is uninstalled.
        """
        row = (
            rows.select_related("item__raw_item", "outlet", "workspace", "queue")
            .order_by("due_at", "id")
            .first()
        )
        if row is None:
            return None
        if platform_if_known(row.platform) is None:
            return row, None
        return row, _first_blocker(blockers_of(row, self.now))

    def _entry_of_post(self, row: Publication, at: datetime | None, why: str) -> OldestEntry:
        item = row.item
        title = item.title or item.excerpt
        return OldestEntry(title, page_of(item.pk), at, self._age_text(at), why, row.outlet.name)

    def _entry_of_item(self, item: GeneratedItem, title: str, at: datetime | None, why: str) -> OldestEntry:
        return OldestEntry(title, page_of(item.pk), at, self._age_text(at), why, item.engine_output)

    def _why_in_making(self, item: GeneratedItem) -> str:
        run = item.generation
        is_queued = item.status == GeneratedItemStatus.QUEUED
        error_message = (run.error or {}).get("message", "")
        reasons = [error_message, _("Queued")] if is_queued else [display.progress_label(item)]
        if run.batch_until is not None and run.batch_until > self.now:
            reasons.append(_("May use a cheaper batch"))
        return " ".join(filter(None, reasons))

    def _age_text(self, at: datetime | None) -> str:
        """Return the age in its largest unit, or an empty text for an unknown or future time."""
        if at is None or at > self.now:
            return ""
        return timesince(at, self.now, depth=1) if self.now - at >= _MINUTE else _("under a minute")


def _first_blocker(blockers: Iterable[Blocker]) -> Blocker | None:
    """Return the first blocker that matters, or `None`; that a publication is due later doesn't matter."""
    return next((blocker for blocker in blockers if blocker.code not in _HARMLESS_CODES), None)


def _intake_summary(counts_by_status: Mapping[str, int]) -> str:
    """Say how many of the new raw items led to nothing, and why."""
    waiting, skipped, failed = (
        counts_by_status.get(name, 0) for name in ("waiting_quota", "skipped", "failed")
    )
    texts = (
        (waiting, ngettext("%d waiting for credits", "%d waiting for credits", waiting)),
        (skipped, ngettext("%d skipped", "%d skipped", skipped)),
        (failed, ngettext("%d without content", "%d without content", failed)),
    )
    return ", ".join(text % number for number, text in texts if number)


def _failure_summary(counts: Mapping[str, CappedCount]) -> str:
    """Say how many posts and items failed, and beside them how many posts have an unknown outcome."""
    texts = (
        (counts["posts"], _("%s not published")),
        (counts["items"], _("%s failed")),
        (counts["unknown"], _("%s more with an unknown outcome")),
    )
    return ", ".join(text % count.text for count, text in texts if count)
