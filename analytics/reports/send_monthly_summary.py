"""Sends each workspace a summary of the past month as a notice, on the first of a month in its time zone.

The notice's key is the month, and it is written in the transaction that sets the next date, so a killed task
sends no month twice and skips none. Each member chooses whether and how to be notified (`accounts.notices`).
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

import structlog
from django.conf import settings
from django.db import transaction

from accounts import limits, notices
from accounts.models import NoticeKind, Workspace
from analytics.models import MonthlySummary
from analytics.reports.monthly_summary import compose_summary, month_after, month_before
from config.core.clock import utc_now
from config.core.crash_points import crash_point

log = structlog.get_logger(__name__)
LEASE: Final = timedelta(seconds=max(settings.LEASE_SECONDS, 120))
TIMEZONE_CHANGE_SLACK: Final = timedelta(days=2)
"""The longest time by which the first comes earlier if the workspace changes its time zone meanwhile."""


def open_summary(workspace: Workspace, _language: str = "") -> None:
    """Create the schedule of a new workspace's summaries, due on the next first of a month."""
    turn = next_turn(utc_now(), workspace.timezone)
    MonthlySummary.everywhere.create(workspace=workspace, due_at=turn, wake_at=turn)


def send_monthly_summary(row: MonthlySummary, *, now: datetime | None = None) -> None:
    """Record the summary of the past month and schedule the next one, all or nothing.

    A month that isn't due, or in which nothing was published or failed, is only scheduled; the row of a deleted
    workspace ends, and nothing is written if the lease is lost.
    """
    now = now or utc_now()
    workspace = Workspace.everywhere.get(pk=row.workspace_id)
    if workspace.deleted_at is not None:
        row.sleep_until(None, attempts=0)
        return
    turn = last_turn(now, workspace.timezone)
    is_due = row.due_at is not None and turn >= row.due_at - TIMEZONE_CHANGE_SLACK
    month = month_before(turn.astimezone(ZoneInfo(workspace.timezone)).date())
    summary = compose_summary(workspace, month) if is_due else None
    next_due = next_turn(now, workspace.timezone)
    with transaction.atomic():
        if summary is not None:
            notices.record(
                NoticeKind.MONTHLY,
                workspace_id=workspace.pk,
                key=f"{month:%Y-%m}",
                title=summary.title,
                text=summary.text,
                path=summary.path,
                now=now,
            )
        if not row.sleep_until(next_due, due_at=next_due, attempts=0):
            # The lease was lost: another worker has the row, and writes the same.
            transaction.set_rollback(True)
            return
        crash_point("monthly.recorded")


def give_up(row: MonthlySummary) -> None:
    """Skip a month whose workers died again and again, and log an error."""
    log.error("month_not_told", workspace=row.workspace_id.hex)
    next_due = next_turn(utc_now(), row.workspace.timezone)
    row.sleep_until(next_due, due_at=next_due, attempts=0)


def next_turn(after: datetime, zone: str) -> datetime:
    """Return the first morning of a month after the moment, at the digest's hour in the time zone."""
    first = after.astimezone(ZoneInfo(zone)).date().replace(day=1)
    turn = _first_morning(first, zone)
    return turn if turn > after else _first_morning(month_after(first), zone)


def last_turn(until: datetime, zone: str) -> datetime:
    """Return the last first morning of a month that isn't after the moment, at the digest's hour."""
    first = until.astimezone(ZoneInfo(zone)).date().replace(day=1)
    turn = _first_morning(first, zone)
    return turn if turn <= until else _first_morning(month_before(first), zone)


def _first_morning(first: date, zone: str) -> datetime:
    return datetime.combine(first, time(limits.DIGEST_HOUR), tzinfo=ZoneInfo(zone)).astimezone(UTC)
