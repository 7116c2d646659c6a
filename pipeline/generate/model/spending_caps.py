"""Holds back calls of a model if a cap is reached or a switch is off.

A workspace has a cap per month, the operator one per day. Amounts are millionths of a US dollar; months and days
are UTC.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.db.models import Sum

from accounts.ledger.months import month_of, start_of_next_month
from config.core.clock import utc_now
from pipeline.generate.model.keys import uses_own_key
from pipeline.models import BatchedCall, ModelBatchStatus, ModelCall
from pipeline.plugins import TryLater
from pipeline.switches import kill_switch

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from pipeline.generate.model.keys import Asker
    from pipeline.models import ModelBatch

MICRO: Final = 1_000_000
"""Millionths in a US dollar."""
BRIEF_AWAITED: Final = "brief_awaited"
"""Code of a run that waits because another run of the same raw item is asking for its brief."""
WAITING_CODES: Final = frozenset(
    {"model_cap_of_workspace", "model_cap_of_instance", kill_switch.MODEL_CALLS_STOPPED, BRIEF_AWAITED}
)
"""Codes of waits in which no model was asked, so that they don't count as an outage."""
STOPPED_WAIT: Final = timedelta(minutes=5)
"""How long a run or batch that was held back sleeps before it tries again."""


def refuse_call(run: Asker) -> None:
    """Raise `TryLater` if a switch or a cap holds back the next call of a run or a draft."""
    now = utc_now()
    _refuse_if_stopped(run)
    _refuse_if_over_cap(run, now, is_own_key=uses_own_key(run))


def refuse_batch(batch: ModelBatch) -> None:
    """Raise `TryLater` if a switch or a cap holds back a batch.

    The batch tries again after `STOPPED_WAIT`, because nothing wakes it when a cap is raised, and its runs can't
    wait for a month.
    """
    _refuse_if_stopped(batch)
    try:
        _refuse_if_over_cap(batch, utc_now(), is_own_key=batch.is_own_key, besides=batch)
    except TryLater as error:
        raise TryLater(error.message, code=error.code, after=STOPPED_WAIT) from error


def remaining_micro_usd(batch: ModelBatch) -> int | None:
    """Return how much the caps leave for calls in batches, at least 0, or `None` without a cap."""
    now = utc_now()
    amounts = []
    cap = batch.workspace.model_cap_micro_usd
    if cap is not None:
        amounts.append(cap - _spent(_month_start(now), workspace_id=batch.workspace_id))
    if settings.MODEL_DAILY_CAP_USD and not batch.is_own_key:
        amounts.append(settings.MODEL_DAILY_CAP_USD * MICRO - _spent(_day_start(now), is_own_key=False))
    return max(min(amounts), 0) if amounts else None


def _refuse_if_stopped(run: Asker | ModelBatch) -> None:
    switch = kill_switch.stopped("model_calls", workspace_id=run.workspace_id)
    if switch is not None:
        message = f"The operator has paused AI calls: {switch.reason}"
        raise TryLater(message, code=kill_switch.MODEL_CALLS_STOPPED, after=STOPPED_WAIT)


def _refuse_if_over_cap(
    run: Asker | ModelBatch, now: datetime, *, is_own_key: bool, besides: ModelBatch | None = None
) -> None:
    """Raise `TryLater` if a cap is reached.

    The calls of the batch `besides`, which is the one that asks, don't count.
    """
    cap = run.workspace.model_cap_micro_usd
    if cap is not None and _spent(_month_start(now), workspace_id=run.workspace_id, besides=besides) >= cap:
        next_month = start_of_next_month(month_of(now))
        message = (
            f"The workspace's cap for the model, {cap / MICRO:.2f} US dollars a month, is reached. Work "
            f"resumes on {next_month.date().isoformat()}, or retry it when the cap is raised."
        )
        raise TryLater(message, code="model_cap_of_workspace", after=next_month - now)
    daily = settings.MODEL_DAILY_CAP_USD
    if daily and not is_own_key:
        today = _day_start(now)
        if _spent(today, is_own_key=False, besides=besides) >= daily * MICRO:
            tomorrow = today + timedelta(days=1)
            message = "This service's cap for the model is reached for today. Work resumes tomorrow."
            raise TryLater(message, code="model_cap_of_instance", after=tomorrow - now)


def _day_start(now: datetime) -> datetime:
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


def _month_start(now: datetime) -> datetime:
    return _day_start(now).replace(day=1)


def _spent(
    since: datetime,
    *,
    workspace_id: UUID | None = None,
    is_own_key: bool | None = None,
    besides: ModelBatch | None = None,
) -> int:
    """Return the cost of the calls since that moment, plus the most that open calls in sent batches can cost.

    `workspace_id` and `is_own_key` restrict the calls that count; without them all do.
    """
    optional_filters: dict[str, Any] = {"workspace_id": workspace_id, "is_own_key": is_own_key}
    filters = {name: value for name, value in optional_filters.items() if value is not None}
    calls = ModelCall.everywhere.filter(created_at__gte=since, **filters)
    booked = calls.aggregate(spent=Sum("cost_micro_usd"))["spent"] or 0
    # A batch belongs to one workspace and uses one key, so the same filters hold for it.
    batch_filters = {f"batch__{name}": value for name, value in filters.items()}
    sent = BatchedCall.everywhere.filter(
        outcome="", batch__status__in=[ModelBatchStatus.SENDING, ModelBatchStatus.SENT], **batch_filters
    )
    if besides is not None:
        sent = sent.exclude(batch=besides)
    return booked + (sent.aggregate(most=Sum("most_micro_usd"))["most"] or 0)
