"""The work of one hand: a series whose time has come makes one digest, and waits for its next time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog
from django.db import transaction
from django.utils.translation import gettext as _

from accounts import credits as credit_account
from config.core import limits, states
from config.core.clock import utc_now
from config.core.crash_points import crash_point
from config.core.errors import NotFound
from pipeline.generate.model.account import LostLease
from pipeline.models import SeriesIssue
from pipeline.schedule.series.create_issue import locked, make, note
from pipeline.schedule.series.crud import next_moment
from pipeline.schedule.series.select import choose

if TYPE_CHECKING:
    from datetime import datetime

    from pipeline.models import Series

log = structlog.get_logger(__name__)


def work(series: Series) -> None:
    """Work one claimed series. Whatever was missed while nobody worked is made up for once."""
    crash_point("series.claimed")
    now = utc_now()
    try:
        _work(series, now)
    except (LostLease, states.Overtaken) as error:
        log.info("overtaken", series=series.pk.hex, reason=str(error))
    crash_point("series.committed")


def give_up(series: Series) -> None:
    """A series that broke again and again goes on at its next time."""
    log.error("series_gave_up", series=series.pk.hex)
    following = _following(series, utc_now())
    series.sleep_until(following, due_at=following, attempts=0)


def _work(series: Series, now: datetime) -> None:
    try:
        with transaction.atomic():
            row = _under_lease(series)
            if not row.workspace.is_at_work:
                # It keeps its time, and is made up for once when the workspace works again.
                series.sleep_until(now + limits.LANE_DELISTED_WAIT, attempts=0)
                return
            _go_on(series, now)
            due_at = _due_at(row, now)
            if SeriesIssue.everywhere.filter(series=row, due_at=due_at).exists():
                # Another hand was there at this time.
                return
            make(row, choose(row, now=now), due_at=due_at, now=now)
    except credit_account.QuotaExceeded as error:
        _say_no_credits(series, error, now)


def _under_lease(series: Series) -> Series:
    """Locked, and still as it was claimed: a person's change takes the lease away."""
    try:
        row = locked(series)
    except NotFound as error:
        raise LostLease from error
    if row.lease_token != series.lease_token or row.is_paused:
        raise LostLease
    return row


def _due_at(series: Series, now: datetime) -> datetime:
    return series.due_at or now


def _following(series: Series, now: datetime) -> datetime | None:
    """Never the same time again: it was claimed by the database's clock, and this process's may be behind it."""
    return next_moment(series, after=max(now, _due_at(series, now)))


def _go_on(series: Series, now: datetime) -> None:
    following = _following(series, now)
    if not series.sleep_until(following, due_at=following, attempts=0):
        raise LostLease


def _say_no_credits(series: Series, error: credit_account.QuotaExceeded, now: datetime) -> None:
    with transaction.atomic():
        row = _under_lease(series)
        message = _(
            "The credits of the month are used up. Make it from the series' page once there are new ones."
        )
        note(row, "no_credits", message, choose(row, now=now), due_at=_due_at(row, now), now=now)
        _go_on(series, now)
        balance = error.balance
        credit_account.tell_used_up(row.workspace, balance.period_start, balance.granted, now=now)
