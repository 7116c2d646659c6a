"""Spending caps hold calls of a model back: the workspace's for a month, the operator's for a day; so does a switch.

Amounts are millionths of a US dollar; months and days are UTC.
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
"""Another run of the same raw item is asking for what this one needs."""
WAITING_CODES: Final = frozenset(
    {"model_cap_of_workspace", "model_cap_of_instance", kill_switch.MODEL_CALLS_STOPPED, BRIEF_AWAITED}
)
"""Nobody was asked, so nothing counts against the run."""
STOPPED_WAIT: Final = timedelta(minutes=5)
"""How often a run that the operator holds back, and a batch that is held back, looks again."""


def refuse_call(run: Asker) -> None:
    """Raises `TryLater` where a switch or a cap holds back what a run or a draft would ask."""
    now = utc_now()
    _refuse_where_stopped(run)
    _refuse_over_cap(run, now, is_own_key=uses_own_key(run))


def refuse_batch(batch: ModelBatch) -> None:
    """Raises `TryLater` where a switch or a cap holds back what a batch would send.

    It looks again soon: nothing wakes a batch when a cap is raised, and the runs in it can't wait for a month.
    """
    _refuse_where_stopped(batch)
    try:
        _refuse_over_cap(batch, utc_now(), is_own_key=batch.is_own_key, besides=batch)
    except TryLater as error:
        raise TryLater(error.message, code=error.code, after=STOPPED_WAIT) from error


def room_of(batch: ModelBatch) -> int | None:
    """Micro US dollars that the caps leave for calls in batches; None without a cap."""
    now = utc_now()
    rooms = []
    cap = batch.workspace.model_cap_micro_usd
    if cap is not None:
        rooms.append(cap - _spent(_month_start(now), workspace_id=batch.workspace_id))
    if settings.MODEL_DAILY_CAP_USD and not batch.is_own_key:
        rooms.append(settings.MODEL_DAILY_CAP_USD * MICRO - _spent(_day_start(now), is_own_key=False))
    return max(min(rooms), 0) if rooms else None


def _refuse_where_stopped(run: Asker | ModelBatch) -> None:
    switch = kill_switch.stopped("model_calls", workspace_id=run.workspace_id)
    if switch is not None:
        message = f"The operator has paused AI calls: {switch.reason}"
        raise TryLater(message, code=kill_switch.MODEL_CALLS_STOPPED, after=STOPPED_WAIT)


def _refuse_over_cap(
    run: Asker | ModelBatch, now: datetime, *, is_own_key: bool, besides: ModelBatch | None = None
) -> None:
    """`besides` is a batch that doesn't count as on its way: the one that asks."""
    cap = run.workspace.model_cap_micro_usd
    if cap is not None and _spent(_month_start(now), workspace_id=run.workspace_id, besides=besides) >= cap:
        following = start_of_next_month(month_of(now))
        message = (
            f"The workspace's cap for the model, {cap / MICRO:.2f} US dollars a month, is reached. "
            f"It goes on on {following.date().isoformat()}, or retry it when the cap is raised."
        )
        raise TryLater(message, code="model_cap_of_workspace", after=following - now)
    daily = settings.MODEL_DAILY_CAP_USD
    if daily and not is_own_key:
        today = _day_start(now)
        if _spent(today, is_own_key=False, besides=besides) >= daily * MICRO:
            tomorrow = today + timedelta(days=1)
            message = "This service's cap for the model is reached for today. It goes on tomorrow."
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
    """What is in the ledger since then, and what calls on their way in batches can cost at most.

    `workspace_id` and `is_own_key` say whose calls count; without them everybody's do.
    """
    given: dict[str, Any] = {"workspace_id": workspace_id, "is_own_key": is_own_key}
    which = {name: value for name, value in given.items() if value is not None}
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
