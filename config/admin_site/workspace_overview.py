"""What every app knows of one workspace, for the operator's page; each part is read when the page shows it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Count, F, Min, Q, Sum, Window

from accounts.ledger import reports
from accounts.models import ApiToken, AuditEntry, Membership, WhitelistRequest, Workspace
from analytics.models import Outcome
from config.core.ids import decode, first_of
from config.operations import failures
from config.operations import queue_stats as rows
from pipeline.models import GeneratedItem, ModelCall, ModelCallOutcome, Outlet, Publication, RawItem, Source
from pipeline.switches import kill_switch
from webhooks.models import Delivery, Endpoint, EndpointStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime
    from uuid import UUID

    from pipeline.models import Switch

SHOWN: Final = 20
"""Rows of each table; the lists of the admin have the others."""
FAILURES_SHOWN: Final = 5
"""Of each kind."""
_BOTH: Final = (False, True)
"""`test__in`, because the indexes name `test` between the workspace and the id."""


def find_workspace(public_id: str) -> Workspace | None:
    pk = decode("ws", public_id)
    found = Workspace.everywhere.select_related("plan").filter(pk=pk) if pk else Workspace.everywhere.none()
    workspace: Workspace | None = found.first()
    return workspace


def token_of(workspace: Workspace, pk: UUID | None) -> ApiToken | None:
    return (
        ApiToken.objects.of(workspace).filter(pk__in=[pk] if pk else []).select_related("workspace").first()
    )


@dataclass(frozen=True)
class ModelSpending:
    """Calls of one model for one engine since the month began; `today` is part of `month`, in millionths of a dollar."""

    model: str
    engine: str
    is_own_key: bool
    calls: int
    today: int
    month: int


@dataclass(frozen=True)
class SpendingSummary:
    rows: Sequence[ModelSpending]
    calls: int
    today: int
    month: int
    cap: int | None

    @property
    def percent(self) -> int | None:
        """Of the cap; None where there is none. A cap of nothing is used up."""
        if self.cap is None:
            return None
        return 100 * self.month // self.cap if self.cap else 100


@dataclass(frozen=True)
class ValueCounts:
    """How many rows have each value."""

    figures: Sequence[tuple[str, int]]
    of_test: int
    """Rows that test tokens made, which are not in the figures."""


@dataclass(frozen=True)
class FailedRow:
    """A row that nothing takes up again by itself, or a call that failed."""

    kind: str
    id: str
    row: Any
    status: str
    why: str
    at: datetime | None


@dataclass(frozen=True)
class DeadKind:
    name: str
    count: int
    newest: Sequence[FailedRow]


@dataclass(frozen=True)
class EndpointLine:
    endpoint: Endpoint
    waiting: int
    held: int
    oldest: datetime | None


class WorkspaceOverview:
    """A constant number of queries, whatever the workspace holds."""

    def __init__(self, workspace: Workspace, now: datetime) -> None:
        self.workspace = workspace
        self.now = now
        self.today = now.replace(hour=0, minute=0, second=0, microsecond=0)
        self.month = self.today.replace(day=1)
        self._of_month = {"pk__gte": first_of(self.month), "test__in": _BOTH}

    @cached_property
    def usage(self) -> reports.UsageReport:
        return reports.usage(self.workspace, self.now)

    @cached_property
    def money(self) -> SpendingSummary:
        found = (
            ModelCall.objects.of(self.workspace)
            .filter(created_at__gte=self.month)
            .values("asked_model", "generation__engine", "is_own_key")
            .annotate(
                calls=Count("pk"),
                of_month=Sum("cost_micro_usd"),
                of_today=Sum("cost_micro_usd", filter=Q(created_at__gte=self.today), default=0),
            )
            .order_by("-of_month")
        )
        lines = [
            ModelSpending(
                model=one["asked_model"],
                engine=one["generation__engine"] or "",
                is_own_key=one["is_own_key"],
                calls=one["calls"],
                today=one["of_today"],
                month=one["of_month"],
            )
            for one in found
        ]
        return SpendingSummary(
            rows=lines,
            calls=sum(line.calls for line in lines),
            today=sum(line.today for line in lines),
            month=sum(line.month for line in lines),
            cap=self.workspace.model_cap_micro_usd,
        )

    @cached_property
    def raw_items(self) -> ValueCounts:
        found = RawItem.objects.of(self.workspace).filter(**self._of_month)
        return _table(found.values_list("test", "status").annotate(count=Count("pk")).order_by())

    @cached_property
    def items_by_status(self) -> ValueCounts:
        return self._items("status")

    @cached_property
    def items_by_bucket(self) -> ValueCounts:
        return self._items("bucket")

    def _items(self, column: str) -> ValueCounts:
        """By one thing at a time: each has an index that answers by itself, however many items there are."""
        found = GeneratedItem.objects.of(self.workspace).filter(**self._of_month)
        return _table(found.values_list("test", column).annotate(count=Count("pk")).order_by())

    @cached_property
    def publications(self) -> ValueCounts:
        """How those ended that ended this month, and those that still wait for something."""
        ended = (
            Outcome.objects.of(self.workspace)
            .filter(test__in=_BOTH, at__gte=self.month)
            .values_list("test", "is_published")
            .annotate(count=Count("pk"))
            .order_by()
        )
        # By the index of rows that wait.
        waiting = (
            Publication.objects.of(self.workspace)
            .filter(wake_at__isnull=False)
            .values_list("test", "status")
            .annotate(count=Count("pk"))
            .order_by()
        )
        return _table(
            [
                *((test, "published" if is_published else "failed", n) for test, is_published, n in ended),
                *((test, f"waiting: {status}", n) for test, status, n in waiting),
            ]
        )

    @cached_property
    def sources(self) -> list[Source]:
        """Those that fail first, then the newest."""
        found = Source.objects.of(self.workspace).filter(deleted_at=None).defer("config", "fetch_state")
        return list(found.order_by("-failures", "-pk")[:SHOWN])

    @cached_property
    def outlets(self) -> list[Outlet]:
        found = Outlet.objects.of(self.workspace).filter(deleted_at=None)
        # An outlet's credentials are nobody's to read here.
        return list(found.defer("credentials", "secret").order_by("-status", "-pk")[:SHOWN])

    @cached_property
    def endpoints(self) -> list[EndpointLine]:
        found = list(
            Endpoint.objects.of(self.workspace)
            .filter(deleted_at=None)
            .defer("secret", "previous_secret")
            .order_by("-failures", "-pk")[:SHOWN]
        )
        waiting = (
            Delivery.objects.of(self.workspace)
            .filter(endpoint__in=found, wake_at__isnull=False)
            .values_list("endpoint")
            .annotate(count=Count("pk"), oldest=Min("created_at"))
            .order_by()
        )
        # Only what is switched off or disabled holds; the others' long logs need not be counted.
        closed = [one for one in found if not one.is_on or one.status == EndpointStatus.DISABLED]
        held = (
            Delivery.objects.of(self.workspace)
            .held()
            .filter(endpoint__in=closed)
            .values_list("endpoint")
            .annotate(count=Count("pk"))
            .order_by()
        )
        backlog = {pk: (count, oldest) for pk, count, oldest in waiting}
        kept: dict[UUID, int] = dict(held)
        lines = []
        for one in found:
            count, oldest = backlog.get(one.pk, (0, None))
            lines.append(EndpointLine(one, count, kept.get(one.pk, 0), oldest))
        return lines

    @cached_property
    def tokens(self) -> list[ApiToken]:
        """Those that aren't revoked first."""
        found = ApiToken.objects.of(self.workspace).defer("digest")
        return list(found.order_by(F("revoked_at").desc(nulls_first=True), "-created_at")[:SHOWN])

    @cached_property
    def members(self) -> list[Membership]:
        found = Membership.objects.of(self.workspace).select_related("user")
        return list(found.order_by("role", "created_at")[:SHOWN])

    @cached_property
    def open_request(self) -> WhitelistRequest | None:
        """The wish to be let in that waits for an answer."""
        return (
            WhitelistRequest.objects.of(self.workspace).filter(status=WhitelistRequest.Status.PENDING).first()
        )

    @cached_property
    def switches(self) -> list[Switch]:
        """Those of the whole instance hold this workspace back too."""
        return [one for one in kill_switch.standing() if one.workspace_id in {None, self.workspace.pk}]

    @cached_property
    def audit(self) -> list[AuditEntry]:
        return list(AuditEntry.objects.of(self.workspace).order_by("-created_at")[:SHOWN])

    def reader_of(self, name: str) -> Callable[[], DeadKind]:
        return partial(self.read_dead, name)

    def read_dead(self, name: str) -> DeadKind:
        """Of one kind of `rows.DEAD`: how many, and the newest with what went wrong."""
        found = rows.DEAD[name].rows().filter(workspace=self.workspace)
        if name not in {"deliveries", "persona_drafts"}:
            found = found.filter(test__in=_BOTH)
        error, moment = _TOLD_BY[name]
        # Counted by the same look that finds the newest.
        newest = list(
            found.only("pk", "workspace_id", "status", error, moment)
            .annotate(count=Window(Count("pk")))
            .order_by("-pk")[:FAILURES_SHOWN]
        )
        return DeadKind(
            name,
            newest[0].count if newest else 0,
            [
                FailedRow(
                    kind=name,
                    id=failures.public_id(name, row),
                    row=row,
                    status=row.status,
                    why=why_of(name, row),
                    at=getattr(row, moment),
                )
                for row in newest
            ],
        )

    @cached_property
    def failed_calls(self) -> list[ModelCall]:
        """Calls to a model that brought no usable answer this month."""
        found = ModelCall.objects.of(self.workspace).filter(created_at__gte=self.month)
        return list(found.exclude(outcome=ModelCallOutcome.ANSWERED).order_by("-created_at")[:FAILURES_SHOWN])


_TOLD_BY: Final = {
    "sources": ("last_error", "updated_at"),
    "raw_items": ("reason", "updated_at"),
    "generated_items": ("error", "updated_at"),
    "persona_drafts": ("error", "created_at"),
    "publications": ("error", "updated_at"),
    "deliveries": ("last_error", "created_at"),
}
"""Where a kind keeps what went wrong, and when it did or was asked for."""


def why_of(name: str, row: Any) -> str:
    """The plain words of what went wrong with a row of this kind."""
    kept = getattr(row, _TOLD_BY[name][0])
    return str(kept.get("message", "")) if isinstance(kept, dict) else str(kept or "")


def _table(counted: Iterable[tuple[bool, str, int]]) -> ValueCounts:
    """Of whether a test token made them, what they are counted by, and how many there are."""
    rows_of = list(counted)
    figures = sorted((value, count) for test, value, count in rows_of if not test)
    return ValueCounts(figures, sum(count for test, _, count in rows_of if test))
