"""The task of a recurring item: it comes back as a fresh variant, or stops where its source is gone."""

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
_TITLE_CHARACTERS = 100


def run_recurrence(recurrence: Recurrence) -> None:
    """Work one claimed row. Whatever was missed while nobody worked is made up for once."""
    crash_point("recurring.claimed")
    now = utc_now()
    try:
        _work(recurrence, now)
    except (LostLease, states.Overtaken) as error:
        log.info("overtaken", recurrence=recurrence.pk.hex, reason=str(error))
    crash_point("recurring.committed")


def give_up(recurrence: Recurrence) -> None:
    """One that broke again and again goes on at its next time."""
    log.error("recurrence_gave_up", recurrence=recurrence.pk.hex)
    row = Recurrence.everywhere.select_related("workspace").get(pk=recurrence.pk)
    now = utc_now()
    following = next_moment(row, row.workspace.timezone, after=max(now, row.due_at or now))
    recurrence.sleep_until(next_check_at(following, now), due_at=following, attempts=0)


def _work(recurrence: Recurrence, now: datetime) -> None:
    try:
        with transaction.atomic():
            row = _under_lease(recurrence)
            if not row.workspace.is_at_work:
                # It keeps its time, and is made up for once when the workspace works again.
                recurrence.sleep_until(now + limits.LANE_DELISTED_WAIT, attempts=0)
                return
            ended = why_ended(row.item)
            if ended is not None:
                _stop_itself(row, ended.code, ended.message, now)
                return
            if now < _due_at(row, now):
                recurrence.sleep_until(next_check_at(_due_at(row, now), now), attempts=0)
                return
            _take_turn(recurrence, row, now)
    except credit_account.QuotaExceeded as error:
        _say_no_credits(recurrence, error, now)


def _under_lease(recurrence: Recurrence) -> Recurrence:
    """Locked, and still as it was claimed: a person's change takes the lease away."""
    rows = Recurrence.everywhere.select_for_update(of=("self",))
    there = rows.select_related("workspace__plan", "item__raw_item").filter(pk=recurrence.pk)
    row: Recurrence | None = there.first()
    if row is None or row.lease_token != recurrence.lease_token or row.status != RecurrenceStatus.ACTIVE:
        raise LostLease
    return row


def _take_turn(recurrence: Recurrence, row: Recurrence, now: datetime) -> None:
    due_at = _due_at(row, now)
    _go_on(recurrence, row, now)
    if RecurrenceTurn.everywhere.filter(recurrence=row, due_at=due_at).exists():
        # Another hand was there at this time.
        return
    if is_source_paused(row.item):
        _rest(row, due_at, now)
        return
    former = _former(row)
    if former.status in _UNDECIDED:
        message = _("The previous variant is still in review, so no new one was made.")
        _tell(row, "still_waiting", message, due_at=due_at, now=now)
        return
    made = regenerate.bring_back(row.item, workspace=row.workspace, index=_next_index(former), now=now)
    _tell(row, "made", "", due_at=due_at, now=now, item=made)
    crash_point("recurring.made")
    # The last statement, so that the balance is locked for as short as can be.
    regenerate.reserve(row.workspace, made.generation, now)


def _rest(row: Recurrence, due_at: datetime, now: datetime) -> None:
    """A source that rests once may go on; one that rests time after time is as good as gone."""
    message = _("Its source is paused, so no new variant was made.")
    _tell(row, "source_paused", message, due_at=due_at, now=now)
    last = row.turns.order_by("-id").values_list("decision", flat=True)[: limits.RECURRING_PAUSED_TIMES]
    if list(last) == ["source_paused"] * limits.RECURRING_PAUSED_TIMES:
        message = _(
            "Its source was paused at %(times)d of its times in a row. Let the source go on, then the item."
        ) % {"times": limits.RECURRING_PAUSED_TIMES}
        _stop_itself(row, "source_paused", message, now)


def _former(row: Recurrence) -> GeneratedItem:
    """What came back last, or the item itself; one that was erased since counts as decided on."""
    last = row.turns.filter(item__isnull=False).select_related("item").order_by("-id").first()
    return last.item if last is not None and last.item is not None else row.item


def _next_index(former: GeneratedItem) -> int:
    """The next angle; after the last one, and where the source holds no further sentence, the first again."""
    if (former.error or {}).get("code") == "no_more_variants":
        return 0
    group = GeneratedItem.everywhere.filter(variant_group=former.variant_group)
    last: int = group.aggregate(last=Max("variant_index"))["last"] or 0
    return (last + 1) % len(ANGLES)


def _due_at(row: Recurrence, now: datetime) -> datetime:
    return row.due_at or now


def _go_on(recurrence: Recurrence, row: Recurrence, now: datetime) -> None:
    """Never to the same time again: it was claimed by the database's clock, and this process's may be behind
    it.
    """
    following = next_moment(row, row.workspace.timezone, after=max(now, _due_at(row, now)))
    if not recurrence.sleep_until(next_check_at(following, now), due_at=following, attempts=0):
        raise LostLease


def _tell(
    row: Recurrence,
    decision: str,
    message: str,
    *,
    due_at: datetime,
    now: datetime,
    item: GeneratedItem | None = None,
) -> None:
    RecurrenceTurn.everywhere.create(
        workspace_id=row.workspace_id,
        recurrence=row,
        due_at=due_at,
        decision=decision,
        message=message,
        item=item,
        created_at=now,
    )


def _stop_itself(row: Recurrence, code: str, message: str, now: datetime) -> None:
    """Its people hear of it, for nobody else would tell them; test items are nobody's worry."""
    stop_recurrence(row, code, message, now=now)
    if row.test:
        return
    title = row.item.title or row.item.excerpt
    notices.record(
        "recurrence_stopped",
        workspace_id=row.workspace_id,
        key=f"{row.pk.hex}:{row.version}",
        title=_("Repeat of “%(title)s” stopped") % {"title": title[:_TITLE_CHARACTERS] or _("Untitled")},
        text=message,
        path="series/" if row.item.deleted_at else f"items/{encode('gen', row.item_id)}",
        now=now,
    )


def _say_no_credits(recurrence: Recurrence, error: credit_account.QuotaExceeded, now: datetime) -> None:
    with transaction.atomic():
        row = _under_lease(recurrence)
        message = _("This month's credits are used up. It repeats at its next time.")
        _tell(row, "no_credits", message, due_at=_due_at(row, now), now=now)
        _go_on(recurrence, row, now)
        balance = error.balance
        credit_account.notify_used_up(row.workspace, balance.period_start, balance.granted, now=now)
