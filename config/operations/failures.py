"""Finds rows that failed or are late in a period, by cause and by workspace, and requeues dead rows."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.db.models import Count, Min
from django.db.models.fields.json import KeyTextTransform

from accounts import audit
from accounts.models import Workspace
from config.core.clock import utc_now
from config.core.errors import NotFound
from config.core.ids import decode, encode
from config.operations import queue_stats
from pipeline import publish
from pipeline.ingest import collect, replan
from pipeline.models import Publication, PublicationStatus
from pipeline.personas import drafts
from pipeline.review import regenerate
from webhooks import endpoints

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from uuid import UUID

    from django.db.models import QuerySet

MAX_ROWS: Final = 100
"""The most causes or workspaces in a list, and the most groups of each kind, those with the most failures first."""
LATE: Final = "late"
"""The status of a cause, and the kind in an `AffectedWorkspace`'s counts, for publications that are late."""
FAILED_AT_FIELDS: Final[Mapping[str, str]] = {
    "sources": "failing_since",
    "raw_items": "updated_at",
    "generated_items": "updated_at",
    "persona_drafts": "created_at",
    "publications": "updated_at",
    "deliveries": "created_at",
}
"""The field with the time of failure, for each kind in `queue_stats.DEAD`."""
PREFIXES: Final[Mapping[str, str]] = {
    "sources": "src",
    "raw_items": "raw",
    "generated_items": "gen",
    "persona_drafts": "pdr",
    "publications": "pub",
    "deliveries": "dlv",
}


@dataclass(frozen=True)
class FailurePeriod:
    """A period from `starts_at` to before `ends_at`; an empty `platform` means every platform."""

    starts_at: datetime
    ends_at: datetime
    platform: str = ""

    def narrow(self, name: str, dead_rows: QuerySet[Any]) -> QuerySet[Any]:
        """Return the dead rows of this kind that failed in the period; with a platform, only publications."""
        if self.platform and name != "publications":
            return dead_rows.none()
        failed_at = FAILED_AT_FIELDS[name]
        dead_rows = dead_rows.filter(
            **{f"{failed_at}__gte": self.starts_at, f"{failed_at}__lt": self.ends_at}
        )
        return dead_rows.filter(platform=self.platform) if self.platform else dead_rows

    def late(self, now: datetime) -> QuerySet[Any]:
        """Return the late publications that were scheduled in the period; those handed over don't count."""
        rows = Publication.everywhere.late(now).live()
        late_rows: QuerySet[Any] = rows.filter(due_at__gte=self.starts_at, due_at__lt=self.ends_at)
        return late_rows.filter(platform=self.platform) if self.platform else late_rows


@dataclass(frozen=True)
class FailureCause:
    """The numbers of publications that failed or are late for the same reason, and of their workspaces."""

    platform: str
    status: str
    code: str
    count: int
    workspaces: int
    oldest: datetime


@dataclass
class AffectedWorkspace:
    """A workspace with its failures: `counts` by kind and `LATE`, and the earliest time of all as `oldest`."""

    workspace: Workspace
    counts: dict[str, int] = field(default_factory=dict)
    oldest: datetime | None = None

    @property
    def total(self) -> int:
        return sum(self.counts.values())


def failure_causes(period: FailurePeriod, now: datetime) -> list[FailureCause]:
    """Return the causes of failed and late publications (platform, status, code), most frequent first."""
    code = KeyTextTransform("code", "error")
    failed = period.narrow("publications", queue_stats.DEAD["publications"].rows().filter(test=False))
    groups = [
        *_group_failures(failed.annotate(code=code), "updated_at", "platform", "status", "code"),
        *_group_failures(period.late(now).annotate(code=code), "due_at", "platform", "code"),
    ]
    causes = [
        FailureCause(
            group["platform"],
            group.get("status", LATE),
            group["code"] or "",
            group["count"],
            group["workspaces"],
            group["oldest"],
        )
        for group in groups
    ]
    return sorted(causes, key=lambda group: -group.count)[:MAX_ROWS]


def affected_workspaces(
    period: FailurePeriod, kinds: Collection[str], now: datetime
) -> list[AffectedWorkspace]:
    """Return the affected workspaces, those with the most failures first, at most `MAX_ROWS`.

    `kinds` are from `queue_stats.DEAD`; with publications the late ones are counted, too.
    """
    counts: defaultdict[UUID, dict[str, int]] = defaultdict(dict)
    oldest: defaultdict[UUID, list[datetime]] = defaultdict(list)
    rows_by_kind = {
        name: period.narrow(name, queue_stats.DEAD[name].rows().filter(**_without_tests(name)))
        for name in kinds
    }
    if "publications" in rows_by_kind:
        rows_by_kind[LATE] = period.late(now)
    for name, rows in rows_by_kind.items():
        for group in _group_failures(
            rows, "due_at" if name == LATE else FAILED_AT_FIELDS[name], "workspace_id"
        ):
            counts[group["workspace_id"]][name] = group["count"]
            oldest[group["workspace_id"]].append(group["oldest"])
    top_ids = sorted(counts, key=lambda key: -sum(counts[key].values()))[:MAX_ROWS]
    workspaces = Workspace.everywhere.in_bulk(top_ids)
    return [
        AffectedWorkspace(workspaces[key], counts[key], min(oldest[key]))
        for key in top_ids
        if key in workspaces
    ]


def last_days(days: int, now: datetime) -> tuple[datetime, datetime]:
    """Return the start and end of the last `days` days of UTC, today included."""
    tomorrow = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    return tomorrow - timedelta(days=days), tomorrow


def _without_tests(name: str) -> dict[str, bool]:
    """Return the filter that leaves out rows of test tokens, for kinds that have them."""
    has_tests = any(model_field.name == "test" for model_field in queue_stats.DEAD[name].model._meta.fields)
    return {"test": False} if has_tests else {}


def _group_failures(rows: QuerySet[Any], failed_at: str, *columns: str) -> list[dict[str, Any]]:
    """Return the groups of rows with the same values in `columns`, largest first, at most `MAX_ROWS`."""
    groups = rows.order_by().values(*columns)
    counts = groups.annotate(
        count=Count("pk"), workspaces=Count("workspace_id", distinct=True), oldest=Min(failed_at)
    )
    return list(counts.order_by("-count", *columns)[:MAX_ROWS])


def requeue(name: str, public_id: str, *, actor: str) -> None:
    """Retry a dead row, and note it in the audit log.

    Raises `NotFound` if the row isn't dead any more, and an `AppError` if its kind's retry refuses it.
    """
    pk = decode(PREFIXES[name], public_id)
    row = (
        queue_stats.DEAD[name].rows().select_related("workspace__plan").filter(pk=pk).first() if pk else None
    )
    if row is None:
        raise NotFound
    with transaction.atomic():
        _RETRIES[name](row, actor, utc_now())
        audit.note(
            "row.requeued", workspace=row.workspace, actor=actor, subject=public_id, details={"kind": name}
        )


def public_id(name: str, row: Any) -> str:
    """Return the public id of a dead row."""
    return encode(PREFIXES[name], row.pk)


def _retry_publication(row: Any, actor: str, now: datetime) -> None:
    """Retry a failed publication; one of unknown outcome is only looked up."""
    if row.status == PublicationStatus.UNKNOWN:
        # The platform may have the post, so it is looked up and nothing is sent.
        publish.reconcile_now(row, now=now)
    else:
        publish.retry(row, by=actor, now=now)


_RETRIES: Final[Mapping[str, Callable[[Any, str, datetime], object]]] = {
    "sources": lambda row, _, now: collect.change(
        row, {"status": "active"}, workspace=row.workspace, now=now
    ),
    "raw_items": lambda row, _, now: replan.retry(row, workspace=row.workspace, now=now),
    "generated_items": lambda row, _, now: regenerate.retry(row, workspace=row.workspace, now=now),
    "persona_drafts": lambda row, _, now: drafts.retry(row, now=now),
    "publications": _retry_publication,
    "deliveries": lambda row, actor, now: endpoints.resend(row, actor=actor, now=now),
}
