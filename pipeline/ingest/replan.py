"""Plans a raw item again that was skipped, failed or waited for credits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from django.db import transaction

from accounts.ledger import credits as credit_account
from accounts.ledger import months
from config.core import states
from config.core.clock import utc_now
from config.core.errors import Conflict
from pipeline import events
from pipeline.generate import raw_item_outcomes, recoverable_failures
from pipeline.generate.generation_plan import NOTHING_TO_MAKE, GenerationPlan
from pipeline.ingest.plan_and_estimate import plan_for
from pipeline.ingest.raw_content import body_of
from pipeline.ingest.start_runs import (
    ToMake,
    facts_of,
    facts_of_new,
    reason_of_skip,
    reserve,
    start_now,
    wait_for_credits,
)
from pipeline.models import (
    RawItem,
    RawItemStatus,
    SourceEntry,
    SourceEntryDecision,
    WorkspaceDefaults,
)

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from accounts.models import Workspace


_REQUEUED_FIELDS: Final = (
    *("status", "lease_token", "reason", "skipped", "version"),
    *("due_at", "wake_at", "attempts", "updated_at"),
)
"""The fields that `_requeue` writes."""


def retry(
    raw_item: RawItem, *, workspace: Workspace, now: datetime, expected_version: int | None = None
) -> RawItem:
    """Start runs again for a failed, skipped or waiting raw item.

    Raises `Conflict` if it was deleted, its status or failure allows no retry, or nothing can be made of it,
    `QuotaExceeded` for too few credits, and `states.Overtaken` if it isn't the expected version.
    """
    with transaction.atomic():
        row = _lock_raw_item(raw_item.pk)
        states.refuse_other_version(row.version, expected_version)
        if row.deleted_at is not None:
            message = "This raw item was deleted; push it again under another identity."
            raise Conflict.because(code="deleted", message=message)
        states.refuse_unless_allowed(row, "queued")
        if row.status == RawItemStatus.PROCESSED:
            message = "Everything that could be made from it was made; regenerate a generated item instead."
            raise Conflict.because(code="nothing_to_retry", message=message)
        if row.status == RawItemStatus.FAILED:
            recoverable_failures.refuse_final(raw_item_outcomes.current_reasons(workspace, [row])[row.pk])
        # This goes before the reservation, because the balance of credits is locked last.
        SourceEntry.everywhere.filter(raw_item=row, source=row.source_id).exclude(
            decision=SourceEntryDecision.NEW
        ).update(decision="new", code="admitted", message="It was generated on request.", decided_at=now)
        replan(row, workspace, when_short="refuse", now=now)
    return row


def resume_waiting(row: RawItem) -> None:
    """Plan a raw item again whose wait for credits is over; it may have to wait for the next month.

    Nothing is done if its status or lease changed meanwhile, and one that was deleted is put to sleep.
    """
    now = utc_now()
    with transaction.atomic():
        locked_row = _lock_raw_item(row.pk)
        if locked_row.status != RawItemStatus.WAITING_QUOTA or locked_row.lease_token != row.lease_token:
            return
        if locked_row.deleted_at is not None:
            locked_row.sleep_until(None)
            return
        replan(locked_row, locked_row.workspace, when_short="wait", now=now)


def give_up_waiting(row: RawItem) -> None:
    """Skip a waiting raw item whose planning failed several times, so that a person sees it."""
    reason = {"code": "gave_up", "message": "It could not be planned; retry it.", "stage": "push"}
    with transaction.atomic():
        states.move(row, "skipped", under_lease=True, reason=reason, wake_at=None)
        events.write(facts_of(row, (), utc_now(), was_announced=False, skipped_before=row.skipped))


def _lock_raw_item(pk: UUID) -> RawItem:
    """Lock and return the raw item, with its source and workspace, which aren't locked.

    The raw item is always locked before the items made of it.
    """
    row: RawItem = (
        RawItem.everywhere.select_for_update(of=("self",))
        .select_related("source", "workspace__plan")
        .get(pk=pk)
    )
    return row


def replan(
    row: RawItem, workspace: Workspace, *, when_short: Literal["refuse", "wait"], now: datetime
) -> None:
    """Plan a raw item that was skipped, failed or waited; the caller has locked the row.

    With `when_short="refuse"` it raises `QuotaExceeded` for too few credits and `Conflict` if nothing can
    be made; with "wait" the row waits for credits, or is skipped with the reason.
    """
    defaults = WorkspaceDefaults.everywhere.get(workspace=workspace)
    plan = plan_for(row, body_of(row), workspace)
    if not plan.shares:
        _record_nothing_to_make(row, plan, when_short=when_short, now=now)
        return
    to_make = ToMake(workspace, row.source, row, plan, defaults)
    if when_short == "refuse":
        _requeue(to_make, now)
        return
    was_announced = _was_announced(row)
    try:
        with transaction.atomic():
            _requeue(to_make, now)
    except credit_account.QuotaExceeded:
        # The transaction was rolled back, but the instance still has the values that the row was to get.
        row.refresh_from_db(fields=list(_REQUEUED_FIELDS))
        if row.status == RawItemStatus.WAITING_QUOTA:
            next_month = months.start_of_next_month(months.month_of(now))
            RawItem.everywhere.filter(pk=row.pk).update(due_at=next_month, wake_at=next_month, attempts=0)
        else:
            skipped_before = list(row.skipped)
            row.skipped = [skip.as_json() for skip in plan.skipped]
            wait_for_credits(row, now, skipped=row.skipped)
            events.write(facts_of(row, (), now, was_announced=was_announced, skipped_before=skipped_before))


def _record_nothing_to_make(
    row: RawItem, plan: GenerationPlan, *, when_short: Literal["refuse", "wait"], now: datetime
) -> None:
    """Mark a waiting row as skipped, or renew a skipped one's reason. Raises `Conflict` with "refuse" instead."""
    message = " ".join(plan.why_not)
    if when_short == "refuse":
        raise Conflict.because(code=NOTHING_TO_MAKE, message=message)
    reason = reason_of_skip(NOTHING_TO_MAKE, message)
    skipped = [skip.as_json() for skip in plan.skipped]
    if row.status == RawItemStatus.WAITING_QUOTA:
        # The items that could be made of it when it came in no longer can.
        states.move(
            row,
            "skipped",
            reason=reason,
            skipped=skipped,
            wake_at=None,
            due_at=None,
            attempts=0,
            updated_at=now,
        )
        events.write(facts_of_new(row, (), now))
    elif row.status == RawItemStatus.SKIPPED:
        # Its content may have changed, so the reason is renewed.
        RawItem.everywhere.filter(pk=row.pk).update(reason=reason, skipped=skipped)
        row.reason, row.skipped = reason, skipped


def _requeue(to_make: ToMake, now: datetime) -> None:
    """Start the raw item's runs, with their events and credits. Raises `QuotaExceeded` for too few credits."""
    row = to_make.row
    was_announced, skipped_before = _was_announced(row), list(row.skipped)
    states.move(
        row,
        "queued",
        reason=None,
        skipped=[skip.as_json() for skip in to_make.plan.skipped],
        wake_at=None,
        due_at=None,
        attempts=0,
        lease_token=row.lease_token + 1,
        updated_at=now,
    )
    generations, items = start_now(to_make, now)
    events.write(facts_of(row, items, now, was_announced=was_announced, skipped_before=skipped_before))
    reserve(to_make.workspace, generations, now)


def _was_announced(row: RawItem) -> bool:
    """Return whether `raw.ingested` was sent, which it wasn't for a raw item skipped at its arrival."""
    return row.status != RawItemStatus.SKIPPED or (row.reason or {}).get("code") == "gave_up"
