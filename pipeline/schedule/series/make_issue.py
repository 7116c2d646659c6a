"""Makes one digest when a series' time has come, or records why not, and schedules the next time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog
from django.db import transaction
from django.utils.translation import gettext as _

from accounts.ledger import credits as credit_account
from config.core import dispatcher, states
from config.core.clock import utc_now
from config.core.crash_points import crash_point
from config.core.errors import Conflict, NotFound
from config.core.middleware import request_id
from pipeline import limits
from pipeline.engines.newsletter_digest import PLUGIN as DIGEST
from pipeline.generate.model.keys import generation_queue_for
from pipeline.generate.model.metered_client import LostLease
from pipeline.generate.new_item import new_item
from pipeline.models import Generation, GenerationInput, Series, SeriesIssue, WorkspaceDefaults
from pipeline.schedule.series.crud import next_moment
from pipeline.schedule.series.digest_items import SeriesSelection, select_items

if TYPE_CHECKING:
    from datetime import datetime

log = structlog.get_logger(__name__)


def run_series(series: Series) -> None:
    """Run one claimed series; it makes at most one digest, however many of its times were missed."""
    crash_point("series.claimed")
    now = utc_now()
    try:
        _run(series, now)
    except (LostLease, states.Overtaken) as error:
        log.info("overtaken", series=series.pk.hex, reason=str(error))
    crash_point("series.committed")


def give_up(series: Series) -> None:
    """Skip to the next time after the task has crashed too often."""
    log.error("series_gave_up", series=series.pk.hex)
    due_at = _compute_next_time(series, utc_now())
    series.sleep_until(due_at, due_at=due_at, attempts=0)


def _run(series: Series, now: datetime) -> None:
    """Schedule the next time and make the digest of this one, or wait while the workspace has no access."""
    try:
        with transaction.atomic():
            row = _lock_under_lease(series)
            if not row.workspace.is_at_work:
                # Its time stays, so that one digest is made when the workspace has access again.
                series.sleep_until(now + limits.LANE_DELISTED_WAIT, attempts=0)
                return
            _schedule_next(series, now)
            due_at = _due_at(row, now)
            if SeriesIssue.everywhere.filter(series=row, due_at=due_at).exists():
                # Another task has handled this time already.
                return
            make(row, select_items(row, now=now), due_at=due_at, now=now)
    except credit_account.QuotaExceeded as error:
        _record_no_credits(series, error, now)


def _lock_under_lease(series: Series) -> Series:
    """Lock and return the row. Raises `LostLease` if it was deleted, paused or taken over since the claim."""
    try:
        row = lock_series(series)
    except NotFound as error:
        raise LostLease from error
    if row.lease_token != series.lease_token or row.is_paused:
        raise LostLease
    return row


def _due_at(series: Series, now: datetime) -> datetime:
    return series.due_at or now


def _compute_next_time(series: Series, now: datetime) -> datetime | None:
    """Return the next time after `now` and after the present due time, or `None` without one."""
    # The claim went by the database's clock, which may be ahead of ours.
    return next_moment(series, after=max(now, _due_at(series, now)))


def _schedule_next(series: Series, now: datetime) -> None:
    due_at = _compute_next_time(series, now)
    if not series.sleep_until(due_at, due_at=due_at, attempts=0):
        raise LostLease


def _record_no_credits(series: Series, error: credit_account.QuotaExceeded, now: datetime) -> None:
    with transaction.atomic():
        row = _lock_under_lease(series)
        message = _(
            "The credits of the month are used up. Make it from the series' page once there are new ones."
        )
        record_issue(
            row, "no_credits", message, select_items(row, now=now), due_at=_due_at(row, now), now=now
        )
        _schedule_next(series, now)
        balance = error.balance
        credit_account.notify_used_up(row.workspace, balance.period_start, balance.granted, now=now)


def make_now(series: Series, *, by: str, expected_version: int | None = None) -> SeriesIssue:
    """Make a digest at once.

    Raises `Conflict` if there are too few stories, `QuotaExceeded` if the credits are used up, `NotFound` if the
    series was deleted, and `states.Overtaken` if it isn't the expected version.
    """
    now = utc_now()
    with transaction.atomic():
        row = lock_series(series)
        states.refuse_other_version(row.version, expected_version)
        selection = select_items(row, now=now)
        if len(selection.raw_items) < row.items_least:
            raise Conflict.because(code="too_few_items", message=_too_few_message(row, selection))
        return make(row, selection, due_at=now, by=by, now=now)


def lock_series(series: Series) -> Series:
    """Lock and return the series, so that two digests made at once don't contain the same stories.

    Raises `NotFound` if it was deleted.
    """
    rows = Series.everywhere.select_for_update(of=("self",)).select_related("workspace__plan")
    row: Series | None = rows.filter(pk=series.pk, deleted_at=None).first()
    if row is None:
        raise NotFound
    return row


def make(
    series: Series, selection: SeriesSelection, *, due_at: datetime, by: str = "", now: datetime
) -> SeriesIssue:
    """Create the run, its item, the log entry and last the reservation, in the caller's transaction.

    If there are too few stories, only a log entry is created. Raises `QuotaExceeded` if the credits are used
    up.
    """
    if len(selection.raw_items) < series.items_least:
        message = _too_few_message(series, selection)
        return record_issue(series, "too_few", message, selection, due_at=due_at, by=by, now=now)
    defaults = WorkspaceDefaults.everywhere.get(workspace_id=series.workspace_id)
    persona_id = series.persona_id or defaults.persona_id
    generation = Generation.everywhere.create(
        workspace=series.workspace,
        test=series.test,
        engine=DIGEST.kind,
        persona_id=persona_id,
        credits_reserved=0 if series.test else DIGEST.credits,
        due_at=now,
        wake_at=now,
        queue=generation_queue_for(series.workspace),
        request_id=request_id(),
        created_at=now,
    )
    GenerationInput.everywhere.bulk_create(
        GenerationInput(
            workspace_id=series.workspace_id,
            generation=generation,
            raw_item=row,
            raw_version=row.content_version,
            position=position,
        )
        for position, row in enumerate(selection.raw_items)
    )
    item = new_item(
        generation,
        DIGEST,
        raw_items=[row.pk.hex for row in selection.raw_items],
        outlets=series.outlets or (defaults.test_outlets if series.test else defaults.outlets),
        is_sample=series.is_sample,
        now=now,
    )
    item.save(force_insert=True)
    issue = record_issue(series, "made", "", selection, due_at=due_at, by=by, now=now, generation=generation)
    dispatcher.wake()
    crash_point("series.made")
    if generation.credits_reserved:
        # This is the last statement, so that the balance is locked as briefly as possible.
        amounts = {generation.pk: generation.credits_reserved}
        credit_account.reserve(series.workspace, amounts, now=now)
    return issue


def record_issue(
    series: Series,
    decision: str,
    message: str,
    selection: SeriesSelection,
    *,
    due_at: datetime,
    by: str = "",
    now: datetime,
    generation: Generation | None = None,
) -> SeriesIssue:
    """Add an entry to the series' log."""
    issue: SeriesIssue = SeriesIssue.everywhere.create(
        workspace_id=series.workspace_id,
        series=series,
        due_at=due_at,
        decision=decision,
        message=message,
        found=selection.found,
        generation=generation,
        by=by,
        created_at=now,
    )
    return issue


def _too_few_message(series: Series, selection: SeriesSelection) -> str:
    """Return the message for too few stories."""
    return _(
        "Only %(found)d of at least %(least)d items: nothing else came in within %(days)d days that wasn't told "
        "before. Widen the window, add sources, or ask for fewer."
    ) % {"found": selection.found, "least": series.items_least, "days": series.window_days}
