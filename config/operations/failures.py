"""What failed or is late over a stretch of time, of all workspaces or one; and dead rows taken up again."""

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

SHOWN_MOST: Final = 100
"""Causes, and workspaces, with the most first; each kind is grouped into no more."""
LATE: Final = "late"
WHEN: Final[Mapping[str, str]] = {
    "sources": "failing_since",
    "raw_items": "updated_at",
    "generated_items": "updated_at",
    "persona_drafts": "created_at",
    "publications": "updated_at",
    "deliveries": "created_at",
}
"""The moment of a dead row of each kind, of those of `queue_stats.DEAD`."""
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
    """From `starts_at` to before `ends_at`; `platform` empty for every one."""

    starts_at: datetime
    ends_at: datetime
    platform: str = ""

    def narrow(self, name: str, found: QuerySet[Any]) -> QuerySet[Any]:
        """Dead rows of that kind; with a platform, only publications have any."""
        if self.platform and name != "publications":
            return found.none()
        when = WHEN[name]
        found = found.filter(**{f"{when}__gte": self.starts_at, f"{when}__lt": self.ends_at})
        return found.filter(platform=self.platform) if self.platform else found

    def late(self, now: datetime) -> QuerySet[Any]:
        """Publications that were promised for then and are still not out; what a person has to post isn't ours."""
        rows = Publication.everywhere.late(now).live()
        found: QuerySet[Any] = rows.filter(due_at__gte=self.starts_at, due_at__lt=self.ends_at)
        return found.filter(platform=self.platform) if self.platform else found


@dataclass(frozen=True)
class FailureCause:
    platform: str
    status: str
    code: str
    count: int
    workspaces: int
    oldest: datetime


@dataclass
class AffectedWorkspace:
    """`counts` by kind, `late` among them; `oldest` is the earliest moment of all."""

    workspace: Workspace
    counts: dict[str, int] = field(default_factory=dict)
    oldest: datetime | None = None

    @property
    def total(self) -> int:
        return sum(self.counts.values())


def failure_causes(stretch: FailurePeriod, now: datetime) -> list[FailureCause]:
    """Of publications, by platform, status and the code of the error; three of the same are one line."""
    code = KeyTextTransform("code", "error")
    failed = stretch.narrow("publications", queue_stats.DEAD["publications"].rows().filter(test=False))
    found = [
        *_grouped(failed.annotate(code=code), "updated_at", "platform", "status", "code"),
        *_grouped(stretch.late(now).annotate(code=code), "due_at", "platform", "code"),
    ]
    told = [
        FailureCause(
            one["platform"],
            one.get("status", LATE),
            one["code"] or "",
            one["count"],
            one["workspaces"],
            one["oldest"],
        )
        for one in found
    ]
    return sorted(told, key=lambda one: -one.count)[:SHOWN_MOST]


def affected_workspaces(
    stretch: FailurePeriod, kinds: Collection[str], now: datetime
) -> list[AffectedWorkspace]:
    """The workspaces, those with the most first; `kinds` are of `queue_stats.DEAD`, those of publications with what is late."""
    counts: defaultdict[UUID, dict[str, int]] = defaultdict(dict)
    oldest: defaultdict[UUID, list[datetime]] = defaultdict(list)
    asked = {
        name: stretch.narrow(name, queue_stats.DEAD[name].rows().filter(**_no_tests(name))) for name in kinds
    }
    if "publications" in asked:
        asked[LATE] = stretch.late(now)
    for name, found in asked.items():
        for one in _grouped(found, "due_at" if name == LATE else WHEN[name], "workspace_id"):
            counts[one["workspace_id"]][name] = one["count"]
            oldest[one["workspace_id"]].append(one["oldest"])
    most = sorted(counts, key=lambda key: -sum(counts[key].values()))[:SHOWN_MOST]
    there = Workspace.everywhere.in_bulk(most)
    return [AffectedWorkspace(there[key], counts[key], min(oldest[key])) for key in most if key in there]


def last_days(days: int, now: datetime) -> tuple[datetime, datetime]:
    """So many days of UTC up to and with today."""
    tomorrow = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    return tomorrow - timedelta(days=days), tomorrow


def _no_tests(name: str) -> dict[str, bool]:
    return (
        {"test": False}
        if any(one.name == "test" for one in queue_stats.DEAD[name].model._meta.fields)
        else {}
    )


def _grouped(found: QuerySet[Any], when: str, *columns: str) -> list[dict[str, Any]]:
    groups = found.order_by().values(*columns)
    counted = groups.annotate(
        count=Count("pk"), workspaces=Count("workspace_id", distinct=True), oldest=Min(when)
    )
    return list(counted.order_by("-count", *columns)[:SHOWN_MOST])


def requeue(name: str, public_id: str, *, actor: str) -> None:
    """Raises what the stage raises where the row can't be taken up, and `NotFound` where it isn't dead any more."""
    pk = decode(PREFIXES[name], public_id)
    found = (
        queue_stats.DEAD[name].rows().select_related("workspace__plan").filter(pk=pk).first() if pk else None
    )
    if found is None:
        raise NotFound
    with transaction.atomic():
        _ACTS[name](found, actor, utc_now())
        audit.note(
            "row.requeued", workspace=found.workspace, actor=actor, subject=public_id, details={"kind": name}
        )


def public_id(name: str, row: Any) -> str:
    return encode(PREFIXES[name], row.pk)


def _publication(row: Any, actor: str, now: datetime) -> None:
    if row.status == PublicationStatus.UNKNOWN:
        # The platform may have it: it is asked, and nothing is sent.
        publish.reconcile_now(row, now=now)
    else:
        publish.retry(row, by=actor, now=now)


_ACTS: Final[Mapping[str, Callable[[Any, str, datetime], object]]] = {
    "sources": lambda row, _, now: collect.change(
        row, {"status": "active"}, workspace=row.workspace, now=now
    ),
    "raw_items": lambda row, _, now: replan.retry(row, workspace=row.workspace, now=now),
    "generated_items": lambda row, _, now: regenerate.retry(row, workspace=row.workspace, now=now),
    "persona_drafts": lambda row, _, now: drafts.retry(row, now=now),
    "publications": _publication,
    "deliveries": lambda row, actor, now: endpoints.resend(row, actor=actor, now=now),
}
