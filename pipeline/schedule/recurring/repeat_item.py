"""Runs the task of a recurring item: makes a new variant, or stops the recurrence if its source is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog
from django.db import transaction
from django.db.models import Max
from django.utils.translation import gettext as _

from accounts import notices
from accounts.ledger import credits as credit_account
from config.core import states
from config.core.clock import utc_now
from config.core.crash_points import crash_point
from config.core.ids import encode
from pipeline import limits
from pipeline.engines.base import ANGLES
from pipeline.generate.model.metered_client import LostLease
from pipeline.models import GeneratedItem, Recurrence, RecurrenceStatus, RecurrenceTurn
from pipeline.review import regenerate
from pipeline.schedule.recurring.crud import (
    is_source_paused,
    next_check_at,
    next_moment,
    stop_recurrence,
    why_ended,
)

if TYPE_CHECKING:
    from datetime import datetime

log = structlog.get_logger(__name__)

_UNDECIDED = frozenset({"queued", "generating", "ready"})
_MAX_TITLE_CHARACTERS = 100


def run_recurrence(recurrence: Recurrence) -> None:
    """Run one claimed recurrence; it makes at most one variant, however many of its times were missed."""
    crash_point("recurring.claimed")
    now = utc_now()
    try:
        _run(recurrence, now)
    except (LostLease, states.Overtaken) as error:
        log.info("overtaken", recurrence=recurrence.pk.hex, reason=str(error))
    crash_point("recurring.committed")


def give_up(recurrence: Recurrence) -> None:
    """Skip to the next time after the task has crashed too often."""
    log.error("recurrence_gave_up", recurrence=recurrence.pk.hex)
    row = Recurrence.everywhere.select_related("workspace").get(pk=recurrence.pk)
    now = utc_now()
    due_at = next_moment(row, row.workspace.timezone, after=max(now, row.due_at or now))
    recurrence.sleep_until(next_check_at(due_at, now), due_at=due_at, attempts=0)


def _run(recurrence: Recurrence, now: datetime) -> None:
    """Stop the recurrence if its source is gone, make its variant if one is due, or let it sleep."""
    try:
        with transaction.atomic():
            row = _lock_under_lease(recurrence)
            if not row.workspace.is_at_work:
                # Its time stays, so that one variant is made when the workspace has access again.
                recurrence.sleep_until(now + limits.LANE_DELISTED_WAIT, attempts=0)
                return
            ended = why_ended(row.item)
            if ended is not None:
                _stop_and_notify(row, ended.code, ended.message, now)
                return
            if now < _due_at(row, now):
                recurrence.sleep_until(next_check_at(_due_at(row, now), now), attempts=0)
                return
            _make_variant_or_record_reason(recurrence, row, now)
    except credit_account.QuotaExceeded as error:
        _record_no_credits(recurrence, error, now)


def _lock_under_lease(recurrence: Recurrence) -> Recurrence:
    """Lock and return the row. Raises `LostLease` if it was changed, stopped or claimed again since the claim."""
    rows = Recurrence.everywhere.select_for_update(of=("self",))
    claimed = rows.select_related("workspace__plan", "item__raw_item").filter(pk=recurrence.pk)
    row: Recurrence | None = claimed.first()
    if row is None or row.lease_token != recurrence.lease_token or row.status != RecurrenceStatus.ACTIVE:
        raise LostLease
    return row


def _make_variant_or_record_reason(recurrence: Recurrence, row: Recurrence, now: datetime) -> None:
    """Schedule the next time, and make the variant of this time or record why none is made."""
    due_at = _due_at(row, now)
    _schedule_next(recurrence, row, now)
    if RecurrenceTurn.everywhere.filter(recurrence=row, due_at=due_at).exists():
        # Another task has handled this time already.
        return
    if is_source_paused(row.item):
        _skip_paused(row, due_at, now)
        return
    previous = _find_previous_item(row)
    if previous.status in _UNDECIDED:
        message = _("The previous variant is still in review, so no new one was made.")
        _record_turn(row, "still_waiting", message, due_at=due_at, now=now)
        return
    index = _choose_next_index(previous)
    variant = regenerate.bring_back(row.item, workspace=row.workspace, index=index, now=now)
    _record_turn(row, "made", "", due_at=due_at, now=now, item=variant)
    crash_point("recurring.made")
    # This is the last statement, so that the balance is locked as briefly as possible.
    regenerate.reserve(row.workspace, variant.generation, now)


def _skip_paused(row: Recurrence, due_at: datetime, now: datetime) -> None:
    """Record that the source is paused; after `limits.RECURRING_PAUSED_TIMES` in a row, stop the recurrence."""
    message = _("Its source is paused, so no new variant was made.")
    _record_turn(row, "source_paused", message, due_at=due_at, now=now)
    last = row.turns.order_by("-id").values_list("decision", flat=True)[: limits.RECURRING_PAUSED_TIMES]
    if list(last) == ["source_paused"] * limits.RECURRING_PAUSED_TIMES:
        message = _(
            "Its source was paused at %(times)d of its times in a row. Resume the source, then the item."
        ) % {"times": limits.RECURRING_PAUSED_TIMES}
        _stop_and_notify(row, "source_paused", message, now)


def _find_previous_item(row: Recurrence) -> GeneratedItem:
    """Return the newest variant that still exists, or the recurring item itself."""
    last = row.turns.filter(item__isnull=False).select_related("item").order_by("-id").first()
    return last.item if last is not None and last.item is not None else row.item


def _choose_next_index(previous: GeneratedItem) -> int:
    """Return the index of the next angle, which is 0 after the last one or if the source has nothing more."""
    if (previous.error or {}).get("code") == "no_more_variants":
        return 0
    group = GeneratedItem.everywhere.filter(variant_group=previous.variant_group)
    last: int = group.aggregate(last=Max("variant_index"))["last"] or 0
    return (last + 1) % len(ANGLES)


def _due_at(row: Recurrence, now: datetime) -> datetime:
    return row.due_at or now


def _schedule_next(recurrence: Recurrence, row: Recurrence, now: datetime) -> None:
    """Schedule the next time. Raises `LostLease` if the lease isn't this task's any more."""
    # The claim went by the database's clock, which may be ahead of ours: the next time is after both.
    due_at = next_moment(row, row.workspace.timezone, after=max(now, _due_at(row, now)))
    if not recurrence.sleep_until(next_check_at(due_at, now), due_at=due_at, attempts=0):
        raise LostLease


def _record_turn(
    row: Recurrence,
    decision: str,
    message: str,
    *,
    due_at: datetime,
    now: datetime,
    item: GeneratedItem | None = None,
) -> None:
    """Add an entry to the recurrence's log."""
    RecurrenceTurn.everywhere.create(
        workspace_id=row.workspace_id,
        recurrence=row,
        due_at=due_at,
        decision=decision,
        message=message,
        item=item,
        created_at=now,
    )


def _stop_and_notify(row: Recurrence, code: str, message: str, now: datetime) -> None:
    """Stop the recurrence and notify the workspace, except for test items."""
    stop_recurrence(row, code, message, now=now)
    if row.test:
        return
    title = row.item.title or row.item.excerpt
    notices.record(
        "recurrence_stopped",
        workspace_id=row.workspace_id,
        key=f"{row.pk.hex}:{row.version}",
        title=_("Repeat of “%(title)s” stopped") % {"title": title[:_MAX_TITLE_CHARACTERS] or _("Untitled")},
        text=message,
        path="series/" if row.item.deleted_at else f"items/{encode('gen', row.item_id)}",
        now=now,
    )


def _record_no_credits(recurrence: Recurrence, error: credit_account.QuotaExceeded, now: datetime) -> None:
    with transaction.atomic():
        row = _lock_under_lease(recurrence)
        message = _("This month's credits are used up. It repeats at its next time.")
        _record_turn(row, "no_credits", message, due_at=_due_at(row, now), now=now)
        _schedule_next(recurrence, row, now)
        balance = error.balance
        credit_account.notify_used_up(row.workspace, balance.period_start, balance.granted, now=now)
