"""Whose key a run asks the model with, what that may cost, and the books of every call."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from django.conf import settings
from django.db.models import Sum
from django.utils import timezone

from config.ground import due, hands
from config.ground.errors import Conflict
from pipeline.model_client import TIMEOUT_SECONDS, Client, connect
from pipeline.models import Generation, ModelCall, SharedBrief
from pipeline.plugins import TryLater
from pipeline.stages import stopping
from pipeline.writers.asking import ModelChoice

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager
    from datetime import datetime

    from pipeline.models import PersonaDraft
    from pipeline.writers.base import CallRecord

Asker: TypeAlias = "Generation | PersonaDraft"
"""The claimed row that a model is asked for."""

MICRO: Final = 1_000_000
BRIEF_AWAITED: Final = "brief_awaited"
"""Another run of the same raw item is asking for what this one needs."""
WAITING_CODES: Final = frozenset(
    {"model_cap_of_workspace", "model_cap_of_instance", stopping.MODEL_CALLS_STOPPED, BRIEF_AWAITED}
)
"""Nobody was asked, so nothing counts against the run."""
STOPPED_WAIT: Final = timedelta(minutes=5)
"""How often a run that the operator holds back looks again; resuming wakes it at once."""


class LostLease(Conflict):
    """Another hand, or a person, has taken the row over; what this hand found out is thrown away."""


def has_key(run: Asker) -> bool:
    return bool(_key(run))


def open_client(run: Asker) -> AbstractContextManager[Client | None]:
    """A client for this run or draft; None where there is no key."""
    key = _key(run)
    if not key:
        return nullcontext()
    return connect(
        api_key=key,
        base_url=settings.ANTHROPIC_BASE_URL,
        owner="workspace" if _is_own_key(run) else "operator",
        choice=ModelChoice(
            brief=settings.MODEL_BRIEF, draft=settings.MODEL_DRAFT, other=settings.MODEL_OTHER
        ),
        before_call=partial(_before_call, run),
        after_call=partial(_after_call, run),
    )


def _key(run: Asker) -> str:
    """The workspace's own before the operator's."""
    return _own_key(run) or settings.ANTHROPIC_API_KEY.strip()


def _own_key(run: Asker) -> str:
    """The only place where it is opened."""
    sealed = run.workspace.model_key
    return sealed.open().strip() if sealed is not None else ""


def _is_own_key(run: Asker) -> bool:
    return bool(_own_key(run))


def _before_call(run: Asker) -> None:
    """Raises `TryLater` where the money is spent, `LostLease` where another hand has the row."""
    now = timezone.now()
    _refuse_where_stopped(run)
    _refuse_over_cap(run, now)
    # A call may take longer than the lease that the row was claimed with.
    held_until = due.database_now() + timedelta(seconds=TIMEOUT_SECONDS + settings.LEASE_SECONDS)
    if not run.under_lease().update(wake_at=held_until):
        raise LostLease
    # The other runs that wait for the same brief wait as long.
    if isinstance(run, Generation):
        SharedBrief.everywhere.filter(asked_by=run, content__isnull=True).update(asked_until=held_until)
    hands.release_connections()


def _refuse_where_stopped(run: Asker) -> None:
    switch = stopping.stopped("model_calls", workspace_id=run.workspace_id)
    if switch is not None:
        message = f"The operator has stopped model calls: {switch.reason}"
        raise TryLater(message, code=stopping.MODEL_CALLS_STOPPED, after=STOPPED_WAIT)


def _refuse_over_cap(run: Asker, now: datetime) -> None:
    cap = run.workspace.model_cap_micro_usd
    if cap is not None:
        month = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        if _spent(month, workspace_id=run.workspace_id) >= cap:
            following = (month + timedelta(days=32)).replace(day=1)
            message = (
                f"The workspace's cap for the model, {cap / MICRO:.2f} US dollars a month, is reached. "
                f"It goes on on {following.date().isoformat()}, or retry it when the cap is raised."
            )
            raise TryLater(message, code="model_cap_of_workspace", after=following - now)
    daily = settings.MODEL_DAILY_CAP_USD
    if daily and not _is_own_key(run):
        today = now.replace(hour=0, minute=0, second=0, microsecond=0)
        if _spent(today, is_own_key=False) >= daily * MICRO:
            tomorrow = today + timedelta(days=1)
            message = "This service's cap for the model is reached for today. It goes on tomorrow."
            raise TryLater(message, code="model_cap_of_instance", after=tomorrow - now)


def _spent(since: datetime, **which: Any) -> int:
    calls = ModelCall.everywhere.filter(created_at__gte=since, **which)
    return calls.aggregate(spent=Sum("cost_micro_usd"))["spent"] or 0


def _cut(name: str, value: Any) -> Any:
    """A gateway's long name must not keep a call out of the books."""
    most = getattr(ModelCall._meta.get_field(name), "max_length", None)
    return value[:most] if most and isinstance(value, str) else value


def _after_call(run: Asker, record: CallRecord) -> None:
    """At once and in a transaction of its own: whatever becomes of the answer, it is paid for."""
    kept: Mapping[str, Any] = {
        name: _cut(name, value) for name, value in asdict(record).items() if name not in {"step", "provider"}
    }
    ModelCall.everywhere.create(
        workspace_id=run.workspace_id,
        generation=run if isinstance(run, Generation) else None,
        stage=record.step,
        is_own_key=_is_own_key(run),
        created_at=timezone.now(),
        **kept,
    )
