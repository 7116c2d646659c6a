"""How content goes through a workspace, stage by stage: how many there are, and what the oldest of each waits for.

Every count stops at `counts.COUNTED_MOST`; what no index tells apart, how raw items ended, is read from the newest
`READ_MOST` of the span, and `Flow.is_whole` says whether those were all. So a page costs the same however much a
workspace holds.
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

READ_MOST: Final = 5000
_MINUTE: Final = timedelta(minutes=1)
_NO_OBSTACLE: Final = frozenset({"already_published", "not_requested", "not_due"})


@dataclass(frozen=True)
class Oldest:
    """One thing of a stage, since when it is there or for when it is promised, and what it waits for, in words."""

    title: str
    link: str
    """Below the workspace's own address."""
    at: datetime | None
    span: str
    why: str
    about: str = ""


@dataclass(frozen=True)
class FlowStage:
    """`label` says what is counted; `tone` is `bad` where somebody should look."""

    name: str
    label: str
    about: str
    count: CappedCount
    oldest: Oldest | None
    tone: str = ""


@dataclass(frozen=True)
class Flow:
    stages: tuple[FlowStage, ...]
    is_whole: bool
    has_content: bool
    """Anything has ever entered or been made."""

    @property
    def is_still(self) -> bool:
        return not any(stage.count for stage in self.stages)


def flow(workspace: Workspace, *, span: timedelta, now: datetime) -> Flow:
    """What entered, failed and was published within the span before `now`, what is due within the one after it.

    What is being made, waits or is late is all there is. The number of statements depends on which stages hold
    anything, not on how much.
    """
    read = _StageQueries(workspace, now - span, now + span, now)
    counts = read.counts()
    entered = read.how_entries_ended()
    stages = (
        FlowStage("entered", _("New"), _ended(entered), counts["entered"], read.waits_for_credits()),
        FlowStage(
            "made",
            _("Generating"),
            _("queued or generating"),
            counts["made"],
            read.longest_in_making(),
        ),
        FlowStage("review", _("To review"), "", counts["review"], read.longest_unreviewed()),
        FlowStage("due", _("Due"), _("upcoming, same range"), counts["due"], read.next_due()),
        FlowStage("late", _("Late"), "", counts["late"], read.latest(), tone="bad" if counts["late"] else ""),
        FlowStage(
            "failed",
            _("Failed"),
            _failures(counts),
            CappedCount(counts["posts"].number + counts["items"].number),
            read.first_failed(),
            tone="bad" if counts["posts"] or counts["items"] else "",
        ),
        FlowStage("published", _("Published"), "", counts["published"], None),
    )
    is_whole = sum(entered.values()) < READ_MOST
    return Flow(stages, is_whole, has_content=any(stage.count for stage in stages) or read.has_content())


# --- Inside ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _StageQueries:
    workspace: Workspace
    since: datetime
    until: datetime
    now: datetime

    def counts(self) -> Mapping[str, CappedCount]:
        """In one statement."""
        late, coming = self._late(), self._coming()
        several = {
            "entered": self._entered(),
            "queued": self._in_making("queued"),
            "generating": self._in_making("generating"),
            "review": self._to_review(),
            "due": coming,
            "late": late,
            "posts": self._failed_posts(),
            "items": self._failed_items(),
            "published": self._posts().published().filter(published_at__gte=self.since),
        }
        found = dict(zip(several, count_each(*several.values()), strict=True))
        return {**found, "made": CappedCount(found["queued"].number + found["generating"].number)}

    def how_entries_ended(self) -> Mapping[str, int]:
        """How many have each status, of the newest `READ_MOST` that entered."""
        found: dict[str, int] = {}
        for status in self._entered().order_by("-id").values_list("status", flat=True)[:READ_MOST]:
            found[status] = found.get(status, 0) + 1
        return found

    def has_content(self) -> bool:
        rows: tuple[QuerySet[Any], ...] = (
            RawItem.objects.of(self.workspace).filter(test=False),
            GeneratedItem.objects.of(self.workspace).filter(test=False),
        )
        return any(one.order_by("-id").values_list("pk").first() is not None for one in rows)

    # --- The oldest of each --------------------------------------------------------------------------------------

    def waits_for_credits(self) -> Oldest | None:
        """The raw item whose credits come first; `wake_at` is set while one waits for them, and only then."""
        row = (
            RawItem.objects.of(self.workspace)
            .filter(test=False, deleted_at=None, wake_at__isnull=False)
            .order_by("wake_at")
            .values("id", "title", "url", "created_at", "reason")
            .first()
        )
        if row is None:
            return None
        return Oldest(
            row["title"] or row["url"],
            f"new/{encode('raw', row['id'])}",
            row["created_at"],
            self._ago(row["created_at"]),
            (row["reason"] or {}).get("message") or _("Waiting for credits"),
        )

    def longest_in_making(self) -> Oldest | None:
        # One statement for each status, so that the index by status gives its first row.
        rows = [
            self._in_making(status).select_related("generation", "raw_item").order_by("id").first()
            for status in sorted(ITEMS_IN_MAKING)
        ]
        item = min((row for row in rows if row is not None), key=lambda row: row.pk, default=None)
        if item is None:
            return None
        title = item.title or (item.raw_item.title if item.raw_item else "")
        return self._of_item(item, title, item.created_at, self._why_in_making(item))

    def longest_unreviewed(self) -> Oldest | None:
        rows = self._to_review().select_related("workspace", "raw_item")
        item = rows.order_by("id").first()
        if item is None:
            return None
        first = _first_obstacle(explain(item, now=self.now).blockers)
        why = first.message if first else _("Not reviewed yet")
        return self._of_item(item, item.title or item.excerpt, item.ready_at, why)

    def next_due(self) -> Oldest | None:
        found = self._earliest_with_blocker(self._coming())
        if found is None:
            return None
        row, first = found
        why = first.message if first else _("Not blocked")
        return self._of_post(row, row.due_at, why)

    def latest(self) -> Oldest | None:
        found = self._earliest_with_blocker(self._late())
        if found is None:
            return None
        row, first = found
        untold = _("Starting soon. If this persists, contact the people who run this service.")
        why = first.message if first else untold
        return self._of_post(row, row.due_at, why)

    def first_failed(self) -> Oldest | None:
        """Of what failed within the span, posts and items, what has lain longest."""
        post = (
            self._failed_posts()
            .select_related("item__raw_item", "outlet", "workspace", "queue")
            .order_by("updated_at")
            .first()
        )
        item = self._failed_items().select_related("raw_item").order_by("updated_at").first()
        if post is not None and (item is None or post.updated_at <= item.updated_at):
            first = _first_obstacle(blockers_of(post, self.now))
            return self._of_post(post, post.updated_at, first.message if first else "")
        if item is None:
            return None
        title = item.title or (item.raw_item.title if item.raw_item else "")
        return self._of_item(item, title, item.updated_at, (item.error or {}).get("message", _("Failed")))

    # --- Rows ----------------------------------------------------------------------------------------------------

    def _entered(self) -> QuerySet[Any]:
        """By id, which rises with time, so that the list's own index tells what is new."""
        rows: QuerySet[Any] = RawItem.objects.of(self.workspace).filter(
            test=False, id__gte=first_id_of(self.since)
        )
        return rows

    def _in_making(self, status: str) -> QuerySet[Any]:
        # By a list of one value: SQLite finds no index for the `NOT test` of a plain filter.
        rows: QuerySet[Any] = GeneratedItem.objects.of(self.workspace).filter(
            test__in=[False], status=status, deleted_at=None
        )
        return rows

    def _to_review(self) -> QuerySet[Any]:
        rows: QuerySet[Any] = GeneratedItem.objects.of(self.workspace).live().to_review()
        return rows

    def _posts(self) -> Any:
        return Publication.objects.of(self.workspace).live()

    def _coming(self) -> QuerySet[Any]:
        rows: QuerySet[Any] = self._posts().coming(self.now).filter(due_at__lt=self.until)
        return rows

    def _late(self) -> QuerySet[Any]:
        rows: QuerySet[Any] = self._posts().late(self.now)
        return rows

    def _failed_posts(self) -> QuerySet[Any]:
        rows: QuerySet[Any] = self._posts().unresolved().filter(updated_at__gte=self.since)
        return rows

    def _failed_items(self) -> QuerySet[Any]:
        items = GeneratedItem.objects.of(self.workspace).live()
        rows: QuerySet[Any] = items.failed().filter(updated_at__gte=self.since)
        return rows

    # --- In words ------------------------------------------------------------------------------------------------

    def _earliest_with_blocker(self, rows: QuerySet[Any]) -> tuple[Publication, Blocker | None] | None:
        """The first of them by its promise, and the first of what stands in its way."""
        row = (
            rows.select_related("item__raw_item", "outlet", "workspace", "queue")
            .order_by("due_at", "id")
            .first()
        )
        if row is None:
            return None
        # Of a platform whose plug-in is gone nobody can say more.
        is_known = platform_if_known(row.platform) is not None
        return row, _first_obstacle(blockers_of(row, self.now)) if is_known else None

    def _of_post(self, row: Publication, at: datetime | None, why: str) -> Oldest:
        item = row.item
        title = item.title or item.excerpt
        return Oldest(title, page_of(item.pk), at, self._ago(at), why, row.outlet.name)

    def _of_item(self, item: GeneratedItem, title: str, at: datetime | None, why: str) -> Oldest:
        return Oldest(title, page_of(item.pk), at, self._ago(at), why, item.engine_output)

    def _why_in_making(self, item: GeneratedItem) -> str:
        run = item.generation
        is_queued = item.status == GeneratedItemStatus.QUEUED
        waits_for = (run.error or {}).get("message", "")
        said = [waits_for, _("Queued")] if is_queued else [display.progress_label(item)]
        if run.batch_until is not None and run.batch_until > self.now:
            said.append(_("May use a cheaper batch"))
        return " ".join(filter(None, said))

    def _ago(self, at: datetime | None) -> str:
        """In whole words, the largest unit alone; empty for what is still to come."""
        if at is None or at > self.now:
            return ""
        return timesince(at, self.now, depth=1) if self.now - at >= _MINUTE else _("under a minute")


def _first_obstacle(blockers: Iterable[Blocker]) -> Blocker | None:
    """What a person has to know of first; that it is promised for later is no obstacle."""
    return next((one for one in blockers if one.code not in _NO_OBSTACLE), None)


def _ended(entered: Mapping[str, int]) -> str:
    """What became of those that entered, where it isn't what was hoped for."""
    waiting, skipped, failed = (entered.get(name, 0) for name in ("waiting_quota", "skipped", "failed"))
    told = (
        (waiting, ngettext("%d waiting for credits", "%d waiting for credits", waiting)),
        (skipped, ngettext("%d skipped", "%d skipped", skipped)),
        (failed, ngettext("%d without content", "%d without content", failed)),
    )
    return ", ".join(text % number for number, text in told if number)


def _failures(counts: Mapping[str, CappedCount]) -> str:
    told = ((counts["posts"], _("%s not published")), (counts["items"], _("%s failed")))
    return ", ".join(text % count.said for count, text in told if count)
