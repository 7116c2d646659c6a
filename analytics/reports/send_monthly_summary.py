"""Sends each workspace a summary of the month before on the first of the month, on its own clocks, as a notice.

The notice has the month as its key, and is written in the transaction that sets the next date: a killed task tells of no
month twice, and leaves none out. Who is told, and how, is each person's choice (`accounts.notices`).
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
from analytics.reports.monthly_summary import month_after, month_before, summary_of
from config.core.clock import utc_now
from config.core.crash_points import crash_point

log = structlog.get_logger(__name__)
LEASE: Final = timedelta(seconds=max(settings.LEASE_SECONDS, 120))
MOVED_WITHIN: Final = timedelta(days=2)
"""A workspace that moves to other clocks at the turn of a month has its first at most that much earlier."""


def open_summary(workspace: Workspace, _language: str = "") -> None:
    """What a new workspace is given."""
    turn = next_turn(utc_now(), workspace.timezone)
    MonthlySummary.everywhere.create(workspace=workspace, due_at=turn, wake_at=turn)


def send_monthly_summary(row: MonthlySummary, *, now: datetime | None = None) -> None:
    """Work one claimed row; of a month without publications nothing is told."""
    now = now or utc_now()
    workspace = Workspace.everywhere.get(pk=row.workspace_id)
    if workspace.deleted_at is not None:
        row.sleep_until(None, attempts=0)
        return
    turn = last_turn(now, workspace.timezone)
    is_due = row.due_at is not None and turn >= row.due_at - MOVED_WITHIN
    month = month_before(turn.astimezone(ZoneInfo(workspace.timezone)).date())
    found = summary_of(workspace, month) if is_due else None
    following = next_turn(now, workspace.timezone)
    with transaction.atomic():
        if found is not None:
            notices.record(
                NoticeKind.MONTHLY,
                workspace_id=workspace.pk,
                key=f"{month:%Y-%m}",
                title=found.title,
                text=found.text,
                path=found.path,
                now=now,
            )
        if not row.sleep_until(following, due_at=following, attempts=0):
            # Another hand has it: what it writes is the same.
            transaction.set_rollback(True)
            return
        crash_point("monthly.recorded")


def give_up(row: MonthlySummary) -> None:
    log.error("month_not_told", workspace=row.workspace_id.hex)
    following = next_turn(utc_now(), row.workspace.timezone)
    row.sleep_until(following, due_at=following, attempts=0)


def next_turn(after: datetime, zone: str) -> datetime:
    """The first morning of a month, at the digest's hour of the clocks there, that is after that moment."""
    first = after.astimezone(ZoneInfo(zone)).date().replace(day=1)
    turn = _turn_of(first, zone)
    return turn if turn > after else _turn_of(month_after(first), zone)


def last_turn(until: datetime, zone: str) -> datetime:
    """The last such morning that is over by then."""
    first = until.astimezone(ZoneInfo(zone)).date().replace(day=1)
    turn = _turn_of(first, zone)
    return turn if turn <= until else _turn_of(month_before(first), zone)


def _turn_of(first: date, zone: str) -> datetime:
    return datetime.combine(first, time(limits.DIGEST_HOUR), tzinfo=ZoneInfo(zone)).astimezone(UTC)
