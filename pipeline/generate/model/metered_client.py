"""Opens clients that check switches and caps, and renew the row's lease, before every call of a model."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from django.conf import settings

from config.core import work_queue
from config.core.errors import Conflict
from pipeline.generate.model.call_ledger import record_call
from pipeline.generate.model.client import TIMEOUT_SECONDS, AccountClient, connect_account
from pipeline.generate.model.keys import key_for, operator_key, own_key, uses_own_key
from pipeline.generate.model.spending_caps import refuse_call
from pipeline.models import Generation, SharedBrief
from pipeline.writers.model_calls import ModelChoice

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pipeline.generate.model.keys import Asker
    from pipeline.models import ModelBatch
    from pipeline.writers.base import CallRecord

CALL_LEASE: Final = timedelta(seconds=TIMEOUT_SECONDS + settings.LEASE_SECONDS)
"""The lease for one call, longer than the one that a row was claimed with, because a call may take longer."""


class LostLease(Conflict):
    """Raised when another task, or a person, has taken the row over; this task's results are thrown away."""


def open_client(run: Asker) -> AbstractContextManager[AccountClient | None]:
    """Return a context that yields a client for this run or draft, or `None` if there is no key."""
    key = key_for(run)
    if not key:
        return nullcontext()
    return connect_account(
        api_key=key,
        base_url=settings.ANTHROPIC_BASE_URL,
        owner="workspace" if uses_own_key(run) else "operator",
        choice=ModelChoice(
            brief=settings.MODEL_BRIEF, draft=settings.MODEL_DRAFT, other=settings.MODEL_OTHER
        ),
        before_call=partial(_before_call, run),
        after_call=partial(_after_call, run),
    )


def open_batch_client(batch: ModelBatch) -> AbstractContextManager[AccountClient | None]:
    """Return a context that yields a client for the batch's key, or `None` if that key is gone."""
    key = own_key(batch) if batch.is_own_key else operator_key()
    if not key:
        return nullcontext()
    return connect_account(
        api_key=key,
        base_url=settings.ANTHROPIC_BASE_URL,
        owner="workspace" if batch.is_own_key else "operator",
        before_call=partial(_before_batch_call, batch),
    )


def _before_call(run: Asker) -> None:
    """Check the switch and the caps, renew the lease, and hold the brief that the run asks for as long.

    Raises `TryLater` if a switch or a cap holds the call back, and `LostLease` if another task has the row.
    """
    refuse_call(run)
    held_until = work_queue.database_now() + CALL_LEASE
    if not run.under_lease().update(wake_at=held_until):
        raise LostLease
    # Other runs that wait for the same brief have to wait as long.
    if isinstance(run, Generation):
        SharedBrief.everywhere.filter(asked_by=run, content__isnull=True).update(asked_until=held_until)
    work_queue.release_connections()


def _before_batch_call(batch: ModelBatch) -> None:
    """Renew the lease. Raises `LostLease` if another task has the batch, so that it isn't sent twice."""
    if not batch.renew_lease(CALL_LEASE):
        raise LostLease
    work_queue.release_connections()


def _after_call(run: Asker, record: CallRecord) -> None:
    """Record the call at once, in its own transaction: it is paid for whatever becomes of the answer."""
    record_call(
        record,
        workspace_id=run.workspace_id,
        generation_id=run.pk if isinstance(run, Generation) else None,
        is_own_key=uses_own_key(run),
    )
