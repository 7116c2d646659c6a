"""Credits: grant, reserve, settle, release (a refund); the balance is the ledger's sum."""

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
from config.core.datetimes import as_z
from config.core.errors import AppError, Detail
from config.core.ids import encode

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date, datetime
    from uuid import UUID

Kind = LedgerEntry.Kind
_REASON_MOST: Final = 200


class QuotaExceeded(AppError):
    """Too few credits are left for all of it; nothing was taken."""

    code = "quota_exceeded"

    def __init__(self, *, needed: int, balance: CreditBalance) -> None:
        self.balance = balance
        resets_at = as_z(start_of_next_month(balance.period_start))
        what = "credit" if needed == 1 else "credits"
        message = (
            f"This needs {needed} {what} and {max(balance.available, 0)} of {balance.granted} are left "
            f"({balance.reserved} are reserved by work in hand); the next ones come at {resets_at}."
        )
        extra = {"limit": balance.granted, "used": balance.used, "resets_at": resets_at}
        super().__init__(Detail(None, self.code, message, extra))


@dataclass(frozen=True)
class PlanLimits:
    """What holds for one workspace: the plan's numbers, or the operator's where they override it."""

    credits_per_month: int
    active_sources_most: int
    poll_interval_minutes_least: int


def plan_limits(workspace: Workspace) -> PlanLimits:
    """The plan's numbers, and the operator's where they override them."""
    plan = workspace.plan

    def chosen(override: int | None, of_plan: int) -> int:
        return of_plan if override is None else override

    return PlanLimits(
        credits_per_month=chosen(workspace.credits_per_month, plan.credits_per_month),
        active_sources_most=chosen(workspace.active_sources_most, plan.active_sources_most),
        poll_interval_minutes_least=chosen(
            workspace.poll_interval_minutes_least, plan.poll_interval_minutes_least
        ),
    )


def open_account(workspace: Workspace, now: datetime) -> CreditBalance:
    """The balance row and the first grant of a new workspace."""
    granted = plan_limits(workspace).credits_per_month
    balance: CreditBalance = CreditBalance.everywhere.create(
        workspace=workspace, period_start=month_of(now), granted=granted, available=granted
    )
    _enter(_grant(workspace.pk, granted, now))
    return balance


def reserve(workspace: Workspace, amounts: Mapping[UUID, int], *, now: datetime) -> None:
    """Reserve an amount for each subject, all or nothing; two statements unless the month has just turned.

    Call it as the last statement of the transaction that stores the subjects: the balance stays locked until the
    commit. A subject reserves once; doing it again is an IntegrityError. Raises `QuotaExceeded` where too few are left,
    `TransactionManagementError` outside a transaction, and `ValueError` for an amount below 0.
    """
    if not connection.in_atomic_block:
        message = "Reserve credits inside the transaction that stores what they are for."
        raise TransactionManagementError(message)
    if any(amount < 0 for amount in amounts.values()):
        message = "A reservation can't be negative."
        raise ValueError(message)
    wanted = {subject: amount for subject, amount in amounts.items() if amount}
    if not wanted:
        return
    total = sum(wanted.values())
    month = month_of(now)
    left = _take(workspace, total, month)
    if left is None:
        balance = _locked_balance(workspace.pk, now)
        # Again under the lock, and by the period of the row: the month may have turned, and a clock that lags behind
        # the one that turned it must not turn it back.
        month = balance.period_start
        left = _take(workspace, total, month)
        if left is None:
            raise QuotaExceeded(needed=total, balance=balance)
    _enter(
        *(
            LedgerEntry(
                workspace_id=workspace.pk,
                kind=Kind.RESERVE,
                amount=-amount,
                reserved_change=amount,
                subject=subject,
                created_at=now,
            )
            for subject, amount in wanted.items()
        )
    )
    if not workspace.is_unlimited:
        _notify_if_crossed(workspace, month, left, total, now)


# As SQL, because building this statement costs Django as much as the database needs for a whole push.
_TAKE: Final = """
    UPDATE "credit_balance" SET available = available - %s, reserved = reserved + %s
    WHERE workspace_id = %s AND period_start = %s AND (%s OR available >= %s) RETURNING available, granted
"""


@dataclass(frozen=True)
class _Left:
    available: int
    granted: int


def _take(workspace: Workspace, total: int, period_start: date) -> _Left | None:
    """One conditional statement, so that no two can be given the same credit; None where there were too few."""
    key = CreditBalance._meta.get_field("workspace").get_db_prep_value(workspace.pk, connection)
    month = connection.ops.adapt_datefield_value(period_start)
    with connection.cursor() as cursor:
        cursor.execute(_TAKE, [total, total, key, month, workspace.is_unlimited, total])
        left = cursor.fetchone()
    return None if left is None else _Left(*left)


def _notify_if_crossed(workspace: Workspace, month: date, left: _Left, total: int, now: datetime) -> None:
    """The statement that took them says what is left, so that only the reservation that crosses a line asks for more."""
    before = left.available + total
    if left.available <= 0 < before:
        tell_used_up(workspace, month, left.granted, now=now)
    elif left.available * 5 <= left.granted < before * 5:
        title = _("80 %% of %(workspace)s's credits are used") % {"workspace": workspace.name}
        text = _("%(left)d of %(granted)d credits left. They renew at %(at)s.") % {
            "left": left.available,
            "granted": left.granted,
            "at": _utc_text(start_of_next_month(month)),
        }
        _record_notice(workspace, f"{month}:{left.granted}:80", title, text, now)


def tell_used_up(workspace: Workspace, month: date, granted: int, *, now: datetime) -> None:
    """Once for a month and its allowance; call it in the transaction of what found none left."""
    title = _("Credits of %(workspace)s are used up") % {"workspace": workspace.name}
    text = _(
        "Pushes are refused, and items from sources wait, until credits renew at %(at)s. For more credits: %(contact)s."
    ) % {
        "at": _utc_text(start_of_next_month(month)),
        "contact": settings.OPERATOR_CONTACT,
    }
    _record_notice(workspace, f"{month}:{granted}:100", title, text, now)


def _utc_text(moment: datetime) -> str:
    """As people read it, `1 Dec 2026, 00:00 UTC`; the API's errors keep the machine's form."""
    return f"{moment.day} {moment:%b %Y, %H:%M} UTC"


def _record_notice(workspace: Workspace, key: str, title: str, text: str, now: datetime) -> None:
    notices.record(
        "quota", workspace_id=workspace.pk, key=key, title=title, text=text, path="settings/usage", now=now
    )


def settle(workspace_id: UUID, subject: UUID, *, used: int, now: datetime) -> bool:
    """Turn a reservation into what was used, and give the rest back; False where there was nothing to settle.

    Called by whoever ends a run that made something. Only the first call for a subject does anything. More than was
    reserved may be used: the work is done, and the balance shows it. Raises `ValueError` for less than 0.
    """
    if used < 0:
        message = "What was used can't be negative."
        raise ValueError(message)
    return _close(workspace_id, subject, kind=Kind.SETTLE, used=used, now=now, reason="")


def release(workspace_id: UUID, subject: UUID, *, now: datetime, reason: str) -> bool:
    """Give a reservation back whole; False where there was nothing to give back.

    Called by whoever ends a run that made nothing or failed.
    """
    return _close(workspace_id, subject, kind=Kind.RELEASE, used=0, now=now, reason=reason)


_ENTRIES: Final[Prepared[dict[str, Any]]] = Prepared(
    lambda workspace, subject, kinds: (
        LedgerEntry.everywhere.filter(workspace_id=workspace, subject=subject, kind__in=kinds)
        .order_by("id")
        .values("kind", "reserved_change")
    )
)


def _close(workspace_id: UUID, subject: UUID, *, kind: str, used: int, now: datetime, reason: str) -> bool:
    # Within the caller's transaction: whatever fails here undoes all of it.
    with transaction.atomic(savepoint=False):
        # The lock comes before the look: of two workers that close the same subject the second sees the first's entry.
        balance = _locked_balance(workspace_id, now)
        kinds = [str(kind) for kind in (Kind.RESERVE, Kind.SETTLE, Kind.RELEASE)]
        rows = _ENTRIES.ask(workspace=workspace_id, subject=subject, kinds=kinds)
        entries = {row["kind"]: row["reserved_change"] for row in rows}
        reserved = entries.pop(Kind.RESERVE, None)
        if reserved is None or entries:
            return False
        _enter(
            LedgerEntry(
                workspace_id=workspace_id,
                kind=kind,
                amount=reserved - used,
                reserved_change=-reserved,
                used_change=used,
                subject=subject,
                reason=reason[:_REASON_MOST],
                created_at=now,
            )
        )
        _change(balance, available=reserved - used, reserved=-reserved, used=used)
    return True


def adjust(
    workspace: Workspace, amount: int, reason: str, actor: str, *, now: datetime | None = None
) -> None:
    """Give or take credits of the current month by hand; they count into its limit."""
    if not amount:
        return
    now = now or utc_now()
    with transaction.atomic():
        balance = _locked_balance(workspace.pk, now)
        _enter(
            LedgerEntry(
                workspace_id=workspace.pk,
                kind=Kind.ADJUST,
                amount=amount,
                reason=reason[:_REASON_MOST],
                created_at=now,
            )
        )
        _change(balance, available=amount, granted=amount)
        audit.note(
            "credits.adjusted",
            workspace=workspace,
            actor=actor,
            subject=workspace.public_id,
            details={"amount": amount, "reason": reason},
        )


# --- Months ----------------------------------------------------------------------------------------------------------


def turn_month_if_over(workspace_id: UUID, now: datetime) -> None:
    """Turn the month where nobody has yet; the balance stays locked until the transaction ends."""
    _locked_balance(workspace_id, now)


_BALANCE: Final[Prepared[CreditBalance]] = Prepared(
    lambda workspace: CreditBalance.everywhere.select_for_update().filter(workspace_id=workspace)
)


def _locked_balance(workspace_id: UUID, now: datetime) -> CreditBalance:
    """The balance, locked until the commit, in the month of `now`; turns the month where nobody has yet."""
    # The lock makes the turn happen once, and orders settlements of one workspace. On SQLite the transaction's write
    # lock does.
    balance = _BALANCE.ask(workspace=workspace_id)[0]
    if balance.period_start < month_of(now):
        _turn_month(balance, now)
    return balance


def _turn_month(balance: CreditBalance, now: datetime) -> None:
    """What is left expires and the plan's credits come; reservations go on into the new month."""
    workspace = Workspace.everywhere.select_related("plan").get(pk=balance.workspace_id)
    granted = plan_limits(workspace).credits_per_month
    entries = []
    if balance.available or balance.used:
        entries.append(
            LedgerEntry(
                workspace_id=workspace.pk,
                kind=Kind.EXPIRE,
                amount=-balance.available,
                # `used` speaks of one month, so its sum starts again too.
                used_change=-balance.used,
                reason=f"{balance.period_start:%Y-%m} has ended",
                created_at=now,
            )
        )
    entries.append(_grant(workspace.pk, granted, now))
    _enter(*entries)
    balance.period_start = month_of(now)
    balance.granted = balance.available = granted
    balance.used = 0
    balance.save(update_fields=["period_start", "granted", "available", "used"])


# --- Writing ---------------------------------------------------------------------------------------------------------


def _grant(workspace_id: UUID, amount: int, now: datetime) -> LedgerEntry:
    return LedgerEntry(
        workspace_id=workspace_id,
        kind=Kind.GRANT,
        amount=amount,
        reason=f"credits of {month_of(now):%Y-%m}",
        created_at=now,
    )


def _enter(*entries: LedgerEntry) -> None:
    """One statement; an entry that moves nothing is left out."""
    insert([entry for entry in entries if entry.amount or entry.reserved_change or entry.used_change])


def _change(balance: CreditBalance, **changes: int) -> None:
    """Add each change to its column, as the row has it by then."""
    CreditBalance.everywhere.filter(pk=balance.pk).update(
        **{name: F(name) + change for name, change in changes.items()}
    )


def public_id(entry: LedgerEntry) -> str:
    return encode("led", entry.pk)
