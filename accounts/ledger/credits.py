"""Grants, reserves, settles, releases and adjusts credits; a balance is the sum of its ledger's entries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F
from django.db.transaction import TransactionManagementError
from django.utils.translation import gettext as _

from accounts import audit, notices
from accounts.ledger.months import month_of, start_of_next_month
from accounts.models import CreditBalance, LedgerEntry, Workspace
from config.core.clock import utc_now
from config.core.database.insert import insert
from config.core.database.prepared_queries import Prepared
from config.core.datetimes import format_utc
from config.core.errors import AppError, Detail
from config.core.ids import encode

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date, datetime
    from uuid import UUID

Kind = LedgerEntry.Kind
_MAX_REASON_CHARACTERS: Final = 200


class QuotaExceeded(AppError):
    """Raised if too few credits are left for the whole reservation; nothing was reserved."""

    code = "quota_exceeded"

    def __init__(self, *, needed: int, balance: CreditBalance) -> None:
        self.balance = balance
        resets_at = format_utc(start_of_next_month(balance.period_start))
        unit = "credit" if needed == 1 else "credits"
        message = (
            f"This needs {needed} {unit} and {max(balance.available, 0)} of {balance.granted} are left "
            f"({balance.reserved} are reserved by work in progress); the next ones come at {resets_at}."
        )
        extra = {"limit": balance.granted, "used": balance.used, "resets_at": resets_at}
        super().__init__(Detail(None, self.code, message, extra))


@dataclass(frozen=True)
class PlanLimits:
    """The limits of one workspace."""

    credits_per_month: int
    active_sources_most: int
    poll_interval_minutes_least: int


def plan_limits(workspace: Workspace) -> PlanLimits:
    """Return the workspace's limits: the operator's overrides, and the plan's numbers for the others."""
    plan = workspace.plan

    def override_or_plan(override: int | None, plan_value: int) -> int:
        return plan_value if override is None else override

    return PlanLimits(
        credits_per_month=override_or_plan(workspace.credits_per_month, plan.credits_per_month),
        active_sources_most=override_or_plan(workspace.active_sources_most, plan.active_sources_most),
        poll_interval_minutes_least=override_or_plan(
            workspace.poll_interval_minutes_least, plan.poll_interval_minutes_least
        ),
    )


def open_account(workspace: Workspace, now: datetime) -> CreditBalance:
    """Create a new workspace's balance row and first grant."""
    granted = plan_limits(workspace).credits_per_month
    balance: CreditBalance = CreditBalance.everywhere.create(
        workspace=workspace, period_start=month_of(now), granted=granted, available=granted
    )
    _insert_entries(_grant_entry(workspace.pk, granted, now))
    return balance


def reserve(workspace: Workspace, amounts: Mapping[UUID, int], *, now: datetime) -> None:
    """Reserve an amount for each subject, all or nothing; subjects with the amount 0 get no entry.

    Call it last in the transaction that stores the subjects, because the balance stays locked until the commit.
    It takes two statements, unless the month has just begun or a notice is due. Raises `QuotaExceeded` if too
    few credits are left, `IntegrityError` if a subject has reserved before, `TransactionManagementError` outside
    a transaction, and `ValueError` for an amount below 0.
    """
    if not connection.in_atomic_block:
        message = "Reserve credits inside the transaction that stores what they are for."
        raise TransactionManagementError(message)
    if any(amount < 0 for amount in amounts.values()):
        message = "A reservation can't be negative."
        raise ValueError(message)
    nonzero = {subject: amount for subject, amount in amounts.items() if amount}
    if not nonzero:
        return
    total = sum(nonzero.values())
    month = month_of(now)
    remaining = _reserve_from_balance(workspace, total, month)
    if remaining is None:
        balance = _locked_balance(workspace.pk, now)
        # Try again under the lock, in the row's month: the month may have turned, and a clock that lags
        # behind the one that turned it must not turn it back.
        month = balance.period_start
        remaining = _reserve_from_balance(workspace, total, month)
        if remaining is None:
            raise QuotaExceeded(needed=total, balance=balance)
    _insert_entries(
        *(
            LedgerEntry(
                workspace_id=workspace.pk,
                kind=Kind.RESERVE,
                amount=-amount,
                reserved_change=amount,
                subject=subject,
                created_at=now,
            )
            for subject, amount in nonzero.items()
        )
    )
    if not workspace.is_unlimited:
        _notify_if_crossed(workspace, month, remaining, total, now)


# In SQL, because building this statement costs Django as much time as the database needs for a whole push.
_RESERVE_SQL: Final = """
    UPDATE "credit_balance" SET available = available - %s, reserved = reserved + %s
    WHERE workspace_id = %s AND period_start = %s AND (%s OR available >= %s) RETURNING available, granted
"""


@dataclass(frozen=True)
class _Remaining:
    """The credits of the month that a reservation left, and how many were granted."""

    available: int
    granted: int


def _reserve_from_balance(workspace: Workspace, total: int, period_start: date) -> _Remaining | None:
    """Reserve by one conditional statement, so that no two reservations get the same credit.

    Returns `None`, and reserves nothing, if too few are left or the balance isn't in the month `period_start`.
    """
    workspace_key = CreditBalance._meta.get_field("workspace").get_db_prep_value(workspace.pk, connection)
    month = connection.ops.adapt_datefield_value(period_start)
    with connection.cursor() as cursor:
        cursor.execute(_RESERVE_SQL, [total, total, workspace_key, month, workspace.is_unlimited, total])
        row = cursor.fetchone()
    return None if row is None else _Remaining(*row)


def _notify_if_crossed(
    workspace: Workspace, month: date, remaining: _Remaining, total: int, now: datetime
) -> None:
    """Record a notice if this reservation crossed 80 % or 100 % of the month's credits.

    The statement that reserved returns the remaining credits, so only the reservation that crosses a line costs
    another statement.
    """
    available_before = remaining.available + total
    if remaining.available <= 0 < available_before:
        notify_used_up(workspace, month, remaining.granted, now=now)
    elif remaining.available * 5 <= remaining.granted < available_before * 5:
        title = _("80 %% of %(workspace)s's credits are used") % {"workspace": workspace.name}
        text = _("%(left)d of %(granted)d credits left. They renew at %(at)s.") % {
            "left": remaining.available,
            "granted": remaining.granted,
            "at": _utc_text(start_of_next_month(month)),
        }
        _record_notice(workspace, f"{month}:{remaining.granted}:80", title, text, now)


def notify_used_up(workspace: Workspace, month: date, granted: int, *, now: datetime) -> None:
    """Record once per month and allowance that all credits are used, in the transaction that found none left."""
    title = _("Credits of %(workspace)s are used up") % {"workspace": workspace.name}
    text = _(
        "Pushes are refused, and items from sources wait, until credits renew at %(at)s. For more credits: %(contact)s."
    ) % {
        "at": _utc_text(start_of_next_month(month)),
        "contact": settings.OPERATOR_CONTACT,
    }
    _record_notice(workspace, f"{month}:{granted}:100", title, text, now)


def _utc_text(moment: datetime) -> str:
    """Return the moment, which is in UTC, for people, such as `1 Dec 2026, 00:00 UTC`."""
    return f"{moment.day} {moment:%b %Y, %H:%M} UTC"


def _record_notice(workspace: Workspace, key: str, title: str, text: str, now: datetime) -> None:
    notices.record(
        "quota", workspace_id=workspace.pk, key=key, title=title, text=text, path="settings/usage", now=now
    )


def settle(workspace_id: UUID, subject: UUID, *, used: int, now: datetime) -> bool:
    """Turn a reservation into used credits and give the rest back, at the end of a run that made something.

    Returns `False` if the subject reserved nothing, or was settled or released before. More than was reserved
    may be used: the work is done, and the balance shows it. Raises `ValueError` if `used` is below 0.
    """
    if used < 0:
        message = "What was used can't be negative."
        raise ValueError(message)
    return _close_reservation(workspace_id, subject, kind=Kind.SETTLE, used=used, now=now, reason="")


def release(workspace_id: UUID, subject: UUID, *, now: datetime, reason: str) -> bool:
    """Give a whole reservation back, at the end of a run that made nothing or failed.

    Returns `False` if the subject reserved nothing, or was settled or released before.
    """
    return _close_reservation(workspace_id, subject, kind=Kind.RELEASE, used=0, now=now, reason=reason)


_ENTRIES_OF_SUBJECT: Final[Prepared[dict[str, Any]]] = Prepared(
    lambda workspace, subject, kinds: (
        LedgerEntry.everywhere.filter(workspace_id=workspace, subject=subject, kind__in=kinds)
        .order_by("id")
        .values("kind", "reserved_change")
    )
)


def _close_reservation(
    workspace_id: UUID, subject: UUID, *, kind: str, used: int, now: datetime, reason: str
) -> bool:
    """Write the entry that ends a reservation, or return `False` if there is none or it has ended already."""
    # Without a savepoint: whatever fails here must undo the caller's transaction too.
    with transaction.atomic(savepoint=False):
        # Lock before reading: of two workers that close the same subject, the second sees the first's entry.
        balance = _locked_balance(workspace_id, now)
        kinds = [str(kind) for kind in (Kind.RESERVE, Kind.SETTLE, Kind.RELEASE)]
        rows = _ENTRIES_OF_SUBJECT.ask(workspace=workspace_id, subject=subject, kinds=kinds)
        entries = {row["kind"]: row["reserved_change"] for row in rows}
        reserved = entries.pop(Kind.RESERVE, None)
        if reserved is None or entries:
            return False
        _insert_entries(
            LedgerEntry(
                workspace_id=workspace_id,
                kind=kind,
                amount=reserved - used,
                reserved_change=-reserved,
                used_change=used,
                subject=subject,
                reason=reason[:_MAX_REASON_CHARACTERS],
                created_at=now,
            )
        )
        _add_to_balance(balance, available=reserved - used, reserved=-reserved, used=used)
    return True


def adjust(
    workspace: Workspace, amount: int, reason: str, actor: str, *, now: datetime | None = None
) -> None:
    """Give (above 0), take (below 0) or leave (0) credits of the current month; they change its limit."""
    if not amount:
        return
    now = now or utc_now()
    with transaction.atomic():
        balance = _locked_balance(workspace.pk, now)
        _insert_entries(
            LedgerEntry(
                workspace_id=workspace.pk,
                kind=Kind.ADJUST,
                amount=amount,
                reason=reason[:_MAX_REASON_CHARACTERS],
                created_at=now,
            )
        )
        _add_to_balance(balance, available=amount, granted=amount)
        audit.note(
            "credits.adjusted",
            workspace=workspace,
            actor=actor,
            subject=workspace.public_id,
            details={"amount": amount, "reason": reason},
        )


# --- Months ----------------------------------------------------------------------------------------------------------


def turn_month_if_over(workspace_id: UUID, now: datetime) -> None:
    """Lock the balance until the transaction ends, and begin the month of `now` if that hasn't happened."""
    _locked_balance(workspace_id, now)


_BALANCE_FOR_UPDATE: Final[Prepared[CreditBalance]] = Prepared(
    lambda workspace: CreditBalance.everywhere.select_for_update().filter(workspace_id=workspace)
)


def _locked_balance(workspace_id: UUID, now: datetime) -> CreditBalance:
    """Return the balance, locked until the commit, after beginning the month of `now` if it is a later one."""
    # The lock lets the month begin once, and orders settlements of one workspace. On SQLite the transaction's
    # write lock does both.
    balance = _BALANCE_FOR_UPDATE.ask(workspace=workspace_id)[0]
    if balance.period_start < month_of(now):
        _turn_month(balance, now)
    return balance


def _turn_month(balance: CreditBalance, now: datetime) -> None:
    """Begin a new month: the remaining credits expire, the plan's are granted, and reservations stay."""
    workspace = Workspace.everywhere.select_related("plan").get(pk=balance.workspace_id)
    granted = plan_limits(workspace).credits_per_month
    entries = []
    if balance.available or balance.used:
        entries.append(
            LedgerEntry(
                workspace_id=workspace.pk,
                kind=Kind.EXPIRE,
                amount=-balance.available,
                # `used` counts one month, so its sum begins again at 0.
                used_change=-balance.used,
                reason=f"{balance.period_start:%Y-%m} has ended",
                created_at=now,
            )
        )
    entries.append(_grant_entry(workspace.pk, granted, now))
    _insert_entries(*entries)
    balance.period_start = month_of(now)
    balance.granted = balance.available = granted
    balance.used = 0
    balance.save(update_fields=["period_start", "granted", "available", "used"])


# --- Writing ---------------------------------------------------------------------------------------------------------


def _grant_entry(workspace_id: UUID, amount: int, now: datetime) -> LedgerEntry:
    return LedgerEntry(
        workspace_id=workspace_id,
        kind=Kind.GRANT,
        amount=amount,
        reason=f"credits of {month_of(now):%Y-%m}",
        created_at=now,
    )


def _insert_entries(*entries: LedgerEntry) -> None:
    """Insert the entries in one statement; an entry that changes nothing is left out."""
    insert([entry for entry in entries if entry.amount or entry.reserved_change or entry.used_change])


def _add_to_balance(balance: CreditBalance, **changes: int) -> None:
    """Add each change to its column's current value."""
    CreditBalance.everywhere.filter(pk=balance.pk).update(
        **{name: F(name) + change for name, change in changes.items()}
    )


def public_id(entry: LedgerEntry) -> str:
    return encode("led", entry.pk)
