"""The calendar months (UTC) for which credits are granted."""

from __future__ import annotations

from datetime import UTC, date, datetime


def month_of(now: datetime) -> date:
    return now.astimezone(UTC).date().replace(day=1)


def next_month(month: date) -> datetime:
    year, zero_based = divmod(month.year * 12 + month.month, 12)
    return datetime(year, zero_based + 1, 1, tzinfo=UTC)
