"""The calendar months (UTC) for which credits are granted."""

from __future__ import annotations

from datetime import UTC, date, datetime


def month_of(now: datetime) -> date:
    """The first day of the month of that moment, in UTC."""
    return now.astimezone(UTC).date().replace(day=1)


def start_of_next_month(month: date) -> datetime:
    """The moment at which the month after this one begins, in UTC."""
    year, zero_based = divmod(month.year * 12 + month.month, 12)
    return datetime(year, zero_based + 1, 1, tzinfo=UTC)
