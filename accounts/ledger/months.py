"""Computes the calendar months (UTC) for which credits are granted."""

from __future__ import annotations

from datetime import UTC, date, datetime


def month_of(now: datetime) -> date:
    """Return the first day of the moment's month, in UTC."""
    return now.astimezone(UTC).date().replace(day=1)


def start_of_next_month(month: date) -> datetime:
    """Return the moment at which the month after this one begins, in UTC."""
    year, month_index = divmod(month.year * 12 + month.month, 12)
    return datetime(year, month_index + 1, 1, tzinfo=UTC)
