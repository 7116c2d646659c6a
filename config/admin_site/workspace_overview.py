"""Reads what every app knows of one workspace, for the operators' page; each part when the page shows it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Count, F, Min, Q, Sum, Window

from accounts.ledger import reports
from accounts.models import ApiToken, AuditEntry, Membership, WhitelistRequest, Workspace
from analytics.models import Outcome
from config.core.ids import decode, lowest_id_at
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

MAX_ROWS_SHOWN: Final = 20
"""The most rows of each table; the admin's lists have the others."""
MAX_FAILURES_SHOWN: Final = 5
"""The most failures shown of each kind."""
_LIVE_AND_TEST: Final = (False, True)
"""Both values of `test`, for filters, because the indexes have `test` between the workspace and the id."""


def find_workspace(public_id: str) -> Workspace | None:
    """Return the workspace with this public id, or `None` if there is none."""
    pk = decode("ws", public_id)
    if pk is None:
        return None
    workspace: Workspace | None = Workspace.everywhere.select_related("plan").filter(pk=pk).first()
    return workspace


def token_of(workspace: Workspace, pk: UUID | None) -> ApiToken | None:
    """Return the workspace's token with this id, or `None` if it has none."""
    return (
        ApiToken.objects.of(workspace).filter(pk__in=[pk] if pk else []).select_related("workspace").first()
    )


@dataclass(frozen=True)
class ModelSpending:
    """A model's calls for one engine this month; `today` and `month`, which includes it, are micro-dollars."""

    model: str
    engine: str
    is_own_key: bool
    calls: int
    today: int
    month: int


@dataclass(frozen=True)
class SpendingSummary:
    """The costs of model calls this month; `today`, `month` and `cap` are in micro-dollars."""

    rows: Sequence[ModelSpending]
    calls: int
    today: int
    month: int
    cap: int | None

    @property
    def percent(self) -> int | None:
        """The used percentage of the cap, or `None` without a cap; a cap of 0 is used up."""
        if self.cap is None:
            return None
        return 100 * self.month // self.cap if self.cap else 100


@dataclass(frozen=True)
class ValueCounts:
    """The number of rows with each value."""

    figures: Sequence[tuple[str, int]]
    """Pairs of value and count."""
    of_test: int
    """The number of rows made by test tokens, which the figures leave out."""


@dataclass(frozen=True)
class FailedRow:
    """A dead row; `at` is when it failed or was requested."""

    kind: str
    id: str
    row: Any
    status: str
    why: str
    at: datetime | None


@dataclass(frozen=True)
class DeadKind:
    """The dead rows of one kind: their number, and the newest."""

    name: str
    count: int
    newest: Sequence[FailedRow]


@dataclass(frozen=True)
class EndpointLine:
    """A webhook endpoint with the numbers of its waiting and held deliveries, and the oldest waiting one's time."""

    endpoint: Endpoint
    waiting: int
    held: int
    oldest: datetime | None


class WorkspaceOverview:
    """Reads each part with a fixed number of queries, however much the workspace holds."""

    def __init__(self, workspace: Workspace, now: datetime) -> None:
        self.workspace = workspace
        self.now = now
        self.today = now.replace(hour=0, minute=0, second=0, microsecond=0)
        self.month = self.today.replace(day=1)
        self._of_month = {"pk__gte": lowest_id_at(self.month), "test__in": _LIVE_AND_TEST}

    @cached_property
    def usage(self) -> reports.UsageReport:
        return reports.usage(self.workspace, self.now)

    @cached_property
    def money(self) -> SpendingSummary:
        """The costs of model calls this month."""
        groups = (
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
                model=group["asked_model"],
                engine=group["generation__engine"] or "",
                is_own_key=group["is_own_key"],
                calls=group["calls"],
                today=group["of_today"],
                month=group["of_month"],
            )
            for group in groups
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
        rows_of_month = RawItem.objects.of(self.workspace).filter(**self._of_month)
        return _count_values(
            rows_of_month.values_list("test", "status").annotate(count=Count("pk")).order_by()
        )

    @cached_property
    def items_by_status(self) -> ValueCounts:
        return self._items("status")

    @cached_property
    def items_by_bucket(self) -> ValueCounts:
        return self._items("bucket")

    def _items(self, column: str) -> ValueCounts:
        """Count this month's items by one column, for which one index suffices, however many items there are."""
        rows_of_month = GeneratedItem.objects.of(self.workspace).filter(**self._of_month)
        return _count_values(rows_of_month.values_list("test", column).annotate(count=Count("pk")).order_by())

    @cached_property
    def publications(self) -> ValueCounts:
        """The numbers of publications that ended this month, and of those that wait, by status."""
        ended = (
            Outcome.objects.of(self.workspace)
            .filter(test__in=_LIVE_AND_TEST, at__gte=self.month)
            .values_list("test", "is_published")
            .annotate(count=Count("pk"))
            .order_by()
        )
        # The index of waiting rows serves this query.
        waiting = (
            Publication.objects.of(self.workspace)
            .filter(wake_at__isnull=False)
            .values_list("test", "status")
            .annotate(count=Count("pk"))
            .order_by()
        )
        return _count_values(
            [
                *((test, "published" if is_published else "failed", n) for test, is_published, n in ended),
                *((test, f"waiting: {status}", n) for test, status, n in waiting),
            ]
        )

    @cached_property
    def sources(self) -> list[Source]:
        """The sources that fail most often, then the newest."""
        own_rows = Source.objects.of(self.workspace).filter(deleted_at=None).defer("config", "fetch_state")
        return list(own_rows.order_by("-failures", "-pk")[:MAX_ROWS_SHOWN])

    @cached_property
    def outlets(self) -> list[Outlet]:
        own_rows = Outlet.objects.of(self.workspace).filter(deleted_at=None)
        # An outlet's secrets must not be read here.
        return list(own_rows.defer("credentials", "secret").order_by("-status", "-pk")[:MAX_ROWS_SHOWN])

    @cached_property
    def endpoints(self) -> list[EndpointLine]:
        """The endpoints that fail most often, then the newest, each with its backlog."""
        listed = list(
            Endpoint.objects.of(self.workspace)
            .filter(deleted_at=None)
            .defer("secret", "previous_secret")
            .order_by("-failures", "-pk")[:MAX_ROWS_SHOWN]
        )
        waiting = (
            Delivery.objects.of(self.workspace)
            .filter(endpoint__in=listed, wake_at__isnull=False)
            .values_list("endpoint")
            .annotate(count=Count("pk"), oldest=Min("created_at"))
            .order_by()
        )
        # Only endpoints that are off or disabled hold deliveries; the others' long logs needn't be counted.
        closed = [row for row in listed if not row.is_on or row.status == EndpointStatus.DISABLED]
        held = (
            Delivery.objects.of(self.workspace)
            .held()
            .filter(endpoint__in=closed)
            .values_list("endpoint")
            .annotate(count=Count("pk"))
            .order_by()
        )
        backlog = {pk: (count, oldest) for pk, count, oldest in waiting}
        held_by_endpoint: dict[UUID, int] = dict(held)
        lines = []
        for endpoint in listed:
            count, oldest = backlog.get(endpoint.pk, (0, None))
            lines.append(EndpointLine(endpoint, count, held_by_endpoint.get(endpoint.pk, 0), oldest))
        return lines

    @cached_property
    def tokens(self) -> list[ApiToken]:
        """The tokens, revoked ones last."""
        own_rows = ApiToken.objects.of(self.workspace).defer("digest")
        return list(own_rows.order_by(F("revoked_at").desc(nulls_first=True), "-created_at")[:MAX_ROWS_SHOWN])

    @cached_property
    def members(self) -> list[Membership]:
        own_rows = Membership.objects.of(self.workspace).select_related("user")
        return list(own_rows.order_by("role", "created_at")[:MAX_ROWS_SHOWN])

    @cached_property
    def open_request(self) -> WhitelistRequest | None:
        """The access request that waits for an answer, or `None`."""
        return (
            WhitelistRequest.objects.of(self.workspace).filter(status=WhitelistRequest.Status.PENDING).first()
        )

    @cached_property
    def switches(self) -> list[Switch]:
        """The switches that stop this workspace, those of the whole instance included."""
        return [
            switch for switch in kill_switch.standing() if switch.workspace_id in {None, self.workspace.pk}
        ]

    @cached_property
    def audit(self) -> list[AuditEntry]:
        return list(AuditEntry.objects.of(self.workspace).order_by("-created_at")[:MAX_ROWS_SHOWN])

    def reader_of(self, name: str) -> Callable[[], DeadKind]:
        """Return a callable that reads this kind of dead rows."""
        return partial(self.read_dead, name)

    def read_dead(self, name: str) -> DeadKind:
        """Return the number of dead rows of one kind (from `rows.DEAD`), and the newest with their errors."""
        dead_rows = rows.DEAD[name].rows().filter(workspace=self.workspace)
        if name not in {"deliveries", "persona_drafts"}:
            dead_rows = dead_rows.filter(test__in=_LIVE_AND_TEST)
        error, failed_at = _ERROR_FIELDS[name]
        # The window function counts in the same query that finds the newest.
        newest = list(
            dead_rows.only("pk", "workspace_id", "status", error, failed_at)
            .annotate(count=Window(Count("pk")))
            .order_by("-pk")[:MAX_FAILURES_SHOWN]
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
                    at=getattr(row, failed_at),
                )
                for row in newest
            ],
        )

    @cached_property
    def failed_calls(self) -> list[ModelCall]:
        """The newest calls to a model of this month that brought no usable answer."""
        calls = ModelCall.objects.of(self.workspace).filter(created_at__gte=self.month)
        return list(
            calls.exclude(outcome=ModelCallOutcome.ANSWERED).order_by("-created_at")[:MAX_FAILURES_SHOWN]
        )


_ERROR_FIELDS: Final = {
    "sources": ("last_error", "updated_at"),
    "raw_items": ("reason", "updated_at"),
    "generated_items": ("error", "updated_at"),
    "persona_drafts": ("error", "created_at"),
    "publications": ("error", "updated_at"),
    "deliveries": ("last_error", "created_at"),
}
"""For each kind, the field with the error, and the field with the time of the failure or the request."""


def why_of(name: str, row: Any) -> str:
    """Return the error message of a row of this kind, or an empty text if it has none."""
    error = getattr(row, _ERROR_FIELDS[name][0])
    return str(error.get("message", "")) if isinstance(error, dict) else str(error or "")


def _count_values(groups: Iterable[tuple[bool, str, int]]) -> ValueCounts:
    """Return the counts by value; a group is whether a test token made the rows, their value and their count."""
    group_list = list(groups)
    figures = sorted((value, count) for test, value, count in group_list if not test)
    return ValueCounts(figures, sum(count for test, _, count in group_list if test))
