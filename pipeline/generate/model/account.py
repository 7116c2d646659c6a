"""Whose key a run asks the model with, what that may cost, the books of every call, and the report of a month."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from django.conf import settings
from django.db.models import Count, OuterRef, Subquery, Sum

from accounts.models import LedgerEntry
from config.core import work_queue
from config.core.clock import utc_now
from config.core.errors import Conflict
from config.core.ids import first_of
from pipeline import plugins
from pipeline.engines.base import Engine
from pipeline.generate.model.client import TIMEOUT_SECONDS, AccountClient, connect
from pipeline.models import (
    BatchedCall,
    Generation,
    GenerationQueue,
    ModelBatch,
    ModelBatchStatus,
    ModelCall,
    SharedBrief,
)
from pipeline.plugins import TryLater
from pipeline.switches import kill_switch
from pipeline.writers.model_calls import ModelChoice

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from contextlib import AbstractContextManager
    from datetime import datetime
    from uuid import UUID

    from accounts.models import Workspace
    from pipeline.models import PersonaDraft, Source
    from pipeline.writers.base import CallRecord

Asker: TypeAlias = "Generation | PersonaDraft"
"""The claimed row that a model is asked for."""

MICRO: Final = 1_000_000
BRIEF_AWAITED: Final = "brief_awaited"
"""Another run of the same raw item is asking for what this one needs."""
WAITING_CODES: Final = frozenset(
    {"model_cap_of_workspace", "model_cap_of_instance", kill_switch.MODEL_CALLS_STOPPED, BRIEF_AWAITED}
)
"""Nobody was asked, so nothing counts against the run."""
CALL_LEASE: Final = timedelta(seconds=TIMEOUT_SECONDS + settings.LEASE_SECONDS)
"""A call may take longer than the lease that a row was claimed with."""
STOPPED_WAIT: Final = timedelta(minutes=5)
"""How often a run that the operator holds back, and a batch that is held back, looks again."""


class LostLease(Conflict):
    """Another task, or a person, has taken the row over; what this task found out is thrown away."""


def has_key(row: Asker | Source) -> bool:
    """Whether a model writes for this row's workspace: it has a key of its own, or the operator has one for all."""
    return has_key_of(row.workspace)


def has_key_of(workspace: Workspace) -> bool:
    """The same of a workspace."""
    return bool(settings.ANTHROPIC_API_KEY.strip() or _opened(workspace))


def queue_of(workspace: Workspace) -> GenerationQueue:
    """Where its words are written: a model is waited for; without one they are taken from the source, which computes."""
    return GenerationQueue.GENERATE if has_key_of(workspace) else GenerationQueue.COMPUTE


def open_client(run: Asker) -> AbstractContextManager[AccountClient | None]:
    """A client for this run or draft; None where there is no key."""
    key = _key(run)
    if not key:
        return nullcontext()
    return connect(
        api_key=key,
        base_url=settings.ANTHROPIC_BASE_URL,
        owner="workspace" if is_own_key(run) else "operator",
        choice=ModelChoice(
            brief=settings.MODEL_BRIEF, draft=settings.MODEL_DRAFT, other=settings.MODEL_OTHER
        ),
        before_call=partial(_before_call, run),
        after_call=partial(_after_call, run),
    )


def open_batches(batch: ModelBatch) -> AbstractContextManager[AccountClient | None]:
    """A client for a batch, by the key that its calls were gathered for; None where that key is gone."""
    key = _own_key(batch) if batch.is_own_key else settings.ANTHROPIC_API_KEY.strip()
    if not key:
        return nullcontext()
    return connect(
        api_key=key,
        base_url=settings.ANTHROPIC_BASE_URL,
        owner="workspace" if batch.is_own_key else "operator",
        before_call=partial(_before_batch_call, batch),
    )


def refuse_batch(batch: ModelBatch) -> None:
    """Raises `TryLater` where a switch or a cap holds back what a batch would send.

    It looks again soon: nothing wakes a batch when a cap is raised, and the runs in it can't wait for a month.
    """
    _refuse_where_stopped(batch)
    try:
        _refuse_over_cap(batch, utc_now(), is_own=batch.is_own_key, besides=batch)
    except TryLater as error:
        raise TryLater(error.message, code=error.code, after=STOPPED_WAIT) from error


def room_of(batch: ModelBatch) -> int | None:
    """Micro US dollars that the caps leave for calls in batches; None without a cap."""
    now = utc_now()
    rooms = []
    cap = batch.workspace.model_cap_micro_usd
    if cap is not None:
        rooms.append(cap - _spent(_month(now), workspace_id=batch.workspace_id))
    if settings.MODEL_DAILY_CAP_USD and not batch.is_own_key:
        rooms.append(settings.MODEL_DAILY_CAP_USD * MICRO - _spent(_day(now), is_own_key=False))
    return max(min(rooms), 0) if rooms else None


def _key(run: Asker | Source) -> str:
    """The workspace's own before the operator's."""
    return _own_key(run) or settings.ANTHROPIC_API_KEY.strip()


def _own_key(run: Asker | ModelBatch | Source) -> str:
    return _opened(run.workspace)


def _opened(workspace: Workspace) -> str:
    """The only place where it is opened."""
    sealed = workspace.model_key
    return sealed.open().strip() if sealed is not None else ""


def is_own_key(run: Asker) -> bool:
    return bool(_own_key(run))


def _before_call(run: Asker) -> None:
    """Raises `TryLater` where the money is spent, `LostLease` where another task has the row."""
    now = utc_now()
    _refuse_where_stopped(run)
    _refuse_over_cap(run, now, is_own=is_own_key(run))
    held_until = work_queue.database_now() + CALL_LEASE
    if not run.under_lease().update(wake_at=held_until):
        raise LostLease
    # The other runs that wait for the same brief wait as long.
    if isinstance(run, Generation):
        SharedBrief.everywhere.filter(asked_by=run, content__isnull=True).update(asked_until=held_until)
    work_queue.release_connections()


def _before_batch_call(batch: ModelBatch) -> None:
    """Raises `LostLease` where another task has the batch, so that no two of them send it."""
    if not batch.renew_lease(CALL_LEASE):
        raise LostLease
    work_queue.release_connections()


def _refuse_where_stopped(run: Asker | ModelBatch) -> None:
    switch = kill_switch.stopped("model_calls", workspace_id=run.workspace_id)
    if switch is not None:
        message = f"The operator has paused AI calls: {switch.reason}"
        raise TryLater(message, code=kill_switch.MODEL_CALLS_STOPPED, after=STOPPED_WAIT)


def _refuse_over_cap(
    run: Asker | ModelBatch, now: datetime, *, is_own: bool, besides: ModelBatch | None = None
) -> None:
    """`besides` is a batch that doesn't count as on its way: the one that asks."""
    cap = run.workspace.model_cap_micro_usd
    if cap is not None:
        month = _month(now)
        if _spent(month, besides, workspace_id=run.workspace_id) >= cap:
            following = (month + timedelta(days=32)).replace(day=1)
            message = (
                f"The workspace's cap for the model, {cap / MICRO:.2f} US dollars a month, is reached. "
                f"It goes on on {following.date().isoformat()}, or retry it when the cap is raised."
            )
            raise TryLater(message, code="model_cap_of_workspace", after=following - now)
    daily = settings.MODEL_DAILY_CAP_USD
    if daily and not is_own:
        today = _day(now)
        if _spent(today, besides, is_own_key=False) >= daily * MICRO:
            tomorrow = today + timedelta(days=1)
            message = "This service's cap for the model is reached for today. It goes on tomorrow."
            raise TryLater(message, code="model_cap_of_instance", after=tomorrow - now)


def _month(now: datetime) -> datetime:
    return now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def _day(now: datetime) -> datetime:
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


def _spent(since: datetime, besides: ModelBatch | None = None, /, **which: Any) -> int:
    """What is in the books since then, and what calls on their way in batches can cost at most."""
    calls = ModelCall.everywhere.filter(created_at__gte=since, **which)
    booked = calls.aggregate(spent=Sum("cost_micro_usd"))["spent"] or 0
    # A batch is the workspace's, and asked with one key.
    of_batch = {f"batch__{name}": value for name, value in which.items()}
    sent = BatchedCall.everywhere.filter(
        outcome="", batch__status__in=[ModelBatchStatus.SENDING, ModelBatchStatus.SENT], **of_batch
    )
    if besides is not None:
        sent = sent.exclude(batch=besides)
    return booked + (sent.aggregate(most=Sum("most_micro_usd"))["most"] or 0)


def _cut(name: str, value: Any) -> Any:
    """A gateway's long name must not keep a call out of the books."""
    most = getattr(ModelCall._meta.get_field(name), "max_length", None)
    return value[:most] if most and isinstance(value, str) else value


def _after_call(run: Asker, record: CallRecord) -> None:
    """At once and in a transaction of its own: whatever becomes of the answer, it is paid for."""
    book(
        record,
        workspace_id=run.workspace_id,
        generation_id=run.pk if isinstance(run, Generation) else None,
        is_own_key=is_own_key(run),
    )


def book(record: CallRecord, *, workspace_id: UUID, generation_id: UUID | None, is_own_key: bool) -> None:
    """A line of the cost ledger."""
    kept: Mapping[str, Any] = {
        name: _cut(name, value) for name, value in asdict(record).items() if name not in {"step", "provider"}
    }
    ModelCall.everywhere.create(
        workspace_id=workspace_id,
        generation_id=generation_id,
        stage=record.step,
        is_own_key=is_own_key,
        created_at=utc_now(),
        **kept,
    )


@dataclass(frozen=True)
class EngineUse:
    """One engine's settled runs; `name` is empty for runs that are gone, and for an engine that was taken out."""

    name: str
    bucket: str
    runs: int
    credits: int


@dataclass(frozen=True)
class ModelCost:
    """Micro US dollars of the month: with the workspace's own key, and in all, which is what its cap counts."""

    own: int
    total: int
    calls: int


def by_engine(workspace: Workspace, since: datetime) -> list[EngineUse]:
    """The dearest first."""
    known = {engine.kind: engine for engine in plugins.every("engines", Engine)}
    kind = Generation.everywhere.filter(pk=OuterRef("subject")).values("engine")[:1]
    rows = (
        # By id, which rises with time: the list's index finds the month's entries without reading those before.
        LedgerEntry.objects.of(workspace)
        .filter(kind=LedgerEntry.Kind.SETTLE, pk__gte=first_of(since))
        .annotate(engine=Subquery(kind))
        .values("engine")
        .annotate(runs=Count("pk"), credits=Sum("used_change"))
        .order_by("-credits", "engine")
    )
    return [
        EngineUse(
            name=known[row["engine"]].name if row["engine"] in known else "",
            bucket=known[row["engine"]].bucket if row["engine"] in known else "",
            runs=row["runs"],
            credits=row["credits"],
        )
        for row in rows
    ]


def engines_of(workspace: Workspace, runs: Iterable[UUID]) -> dict[UUID, str]:
    """The engine's name of each of these runs; those that are gone are left out."""
    known = {engine.kind: engine.name for engine in plugins.every("engines", Engine)}
    rows = Generation.objects.of(workspace).filter(pk__in=list(runs)).values_list("pk", "engine")
    return {run: known[kind] for run, kind in rows if kind in known}


def model_cost(workspace: Workspace, since: datetime) -> ModelCost:
    rows = ModelCall.objects.of(workspace).filter(created_at__gte=since)
    by_key = {
        row["is_own_key"]: row
        for row in rows.values("is_own_key").annotate(cost=Sum("cost_micro_usd"), calls=Count("pk"))
    }
    own = by_key[True]["cost"] if True in by_key else 0
    total = sum(row["cost"] for row in by_key.values())
    return ModelCost(own=own, total=total, calls=sum(row["calls"] for row in by_key.values()))
