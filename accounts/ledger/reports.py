"""Reports a month's credits, and checks that balances are the sums of their ledgers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import Sum
from django.db.models.functions import Coalesce

from accounts.ledger.credits import plan_limits
from accounts.ledger.months import month_of, start_of_next_month
from accounts.models import CreditBalance, Workspace
from config.core.clock import utc_now

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID


@dataclass(frozen=True)
class UsageReport:
    """The calendar month (UTC) so far, in credits; `limit` includes adjustments by hand.

    `available` may be below 0, in an unlimited workspace, or if more was used than was reserved.
    """

    limit: int
    used: int
    reserved: int
    available: int
    resets_at: datetime


@dataclass(frozen=True)
class Mismatch:
    """A sum of the ledger that differs from the balance; `balance` is `None` if there is no balance row."""

    workspace_id: UUID
    what: str
    """The column of the balance: `available`, `reserved` or `used`."""
    ledger: int
    balance: int | None


def usage(workspace: Workspace, now: datetime) -> UsageReport:
    """Return the month so far; a month that the ledger hasn't begun yet is computed, not written."""
    balance: CreditBalance = CreditBalance.everywhere.get(workspace_id=workspace.pk)
    month = month_of(now)
    if balance.period_start < month:
        granted = plan_limits(workspace).credits_per_month
        return UsageReport(granted, 0, balance.reserved, granted, start_of_next_month(month))
    return UsageReport(
        limit=balance.granted,
        used=balance.used,
        reserved=balance.reserved,
        available=balance.available,
        resets_at=start_of_next_month(balance.period_start),
    )


def is_used_up(workspace: Workspace) -> bool:
    """Return whether the month's credits are used up; an unlimited workspace's never are.

    It reads the database only if the balance wasn't loaded with the workspace.
    """
    if workspace.is_unlimited:
        return False
    balance: CreditBalance | None = getattr(workspace, "credits", None)
    if balance is None or balance.period_start < month_of(utc_now()):
        return False
    return balance.available <= 0


def check() -> list[Mismatch]:
    """Return every sum that differs, read by one statement, so that entries written meanwhile don't matter."""
    rows = Workspace.everywhere.order_by("pk").values_list(
        "pk",
        "credits__available",
        "credits__reserved",
        "credits__used",
        Coalesce(Sum("ledger__amount"), 0),
        Coalesce(Sum("ledger__reserved_change"), 0),
        Coalesce(Sum("ledger__used_change"), 0),
    )
    return [
        Mismatch(pk, column, ledger_sum, stored)
        for pk, *sums in rows
        for column, stored, ledger_sum in zip(
            ("available", "reserved", "used"), sums[:3], sums[3:], strict=True
        )
        if stored != ledger_sum
    ]
