"""Credits."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models.expressions import RawSQL

from accounts.ledger import credits, reports
from accounts.ledger.months import month_of
from accounts.models import CreditBalance, LedgerEntry, Notice, Workspace
from config.core.ids import uuid7
from pipeline.models import GeneratedItem, Generation
from tests.simulation.world import START

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.db.models import QuerySet

    from tests.simulation.instance import Instance
    from tests.simulation.world import World


def in_order(rows: QuerySet[Any]) -> list[Any]:
    """Return the rows as they were written: ids are made by clocks that differ."""
    return list(rows.order_by(RawSQL("rowid", ())))


def ledger(world: World, _: Instance) -> Iterator[str]:
    if wrong := reports.check():
        yield f"the check finds {wrong}"
    kinds = LedgerEntry.Kind
    made = Counter(GeneratedItem.everywhere.exclude(status="failed").values_list("generation_id", flat=True))
    for workspace in Workspace.everywhere.select_related("plan"):
        balance = CreditBalance.everywhere.get(workspace=workspace)
        entries = in_order(LedgerEntry.everywhere.filter(workspace=workspace))
        sums = [
            sum(getattr(one, name) for one in entries)
            for name in ("amount", "reserved_change", "used_change")
        ]
        kept = [balance.available, balance.reserved, balance.used]
        usage = reports.usage(workspace, world.now)
        wanted = (balance.granted, balance.used, balance.reserved, balance.available)
        if balance.period_start < month_of(world.now):
            wanted = (workspace.plan.credits_per_month, 0, balance.reserved, workspace.plan.credits_per_month)
        if usage.resets_at != _month_after(world.now):
            yield f"the next credits come at {usage.resets_at}"
        if (usage.limit, usage.used, usage.reserved, usage.available) != wanted:
            yield f"people are shown {usage}, and it is {wanted}"
        if sums != kept:
            yield f"the ledger comes to {sums} and the balance says {kept}"
        if balance.reserved:
            yield f"{balance.reserved} credits are reserved, and nothing is at work"
        left = 0
        month = f"{START:%Y-%m}"
        lines: set[str] = set()
        below: set[str] = set()
        granted = 0
        for one in entries:
            before, left = left, left + one.amount
            if one.kind == kinds.GRANT:
                granted = one.amount
                if (before, one.amount) != (0, workspace.plan.credits_per_month):
                    yield f"a month began with {before} and {one.amount} were granted"
                month = f"{one.created_at:%Y-%m}"
            elif one.kind == kinds.EXPIRE and left:
                yield f"{left} credits outlived their month"
            elif one.kind == kinds.ADJUST:
                granted += one.amount
            elif one.kind == kinds.RESERVE:
                if left < 0:
                    yield f"more was reserved than there was: {left}"
                if left <= 0 < before:
                    lines.add(f"{month}-01:{granted}:100")
                elif left * 5 <= granted < before * 5:
                    lines.add(f"{month}-01:{granted}:80")
            below |= {f"{month}-01:{granted}:100"} if left <= 0 else set()
            below |= {f"{month}-01:{granted}:80"} if left * 5 <= granted else set()
        if balance.granted != granted:
            yield f"{granted} were granted and the balance says {balance.granted}"
        noticed = set(
            Notice.everywhere.filter(workspace=workspace, kind="quota").values_list("key", flat=True)
        )
        if not lines <= noticed:
            yield f"the lines {lines - noticed} were crossed and nobody was told"
        if not noticed <= below:
            yield f"the lines {noticed - below} were told and never crossed"
        by_subject: defaultdict[Any, list[LedgerEntry]] = defaultdict(list)
        for one in entries:
            if one.subject is not None:
                by_subject[one.subject].append(one)
        for run in Generation.everywhere.filter(workspace=workspace):
            yield from _of_run(run, by_subject.pop(run.pk, []), made[run.pk])
        if by_subject:
            yield f"credits moved for {list(by_subject)}, which are no runs"


def closing(world: World, _: Instance) -> Iterator[str]:
    """Credits are reserved and given back once, and whoever does it is told so."""
    with transaction.atomic():
        for workspace in Workspace.everywhere.select_related("plan"):
            credits.adjust(workspace, 1000, "Because.", "operator", now=world.now)
            for used in (0, 1):
                subject = uuid7()
                credits.reserve(workspace, {subject: 1}, now=world.now)
                before = CreditBalance.everywhere.get(workspace=workspace)
                done = [
                    credits.settle(workspace.pk, subject, used=used, now=world.now)
                    if used
                    else credits.release(workspace.pk, subject, now=world.now, reason="No.")
                    for _ in range(2)
                ]
                after = CreditBalance.everywhere.get(workspace=workspace)
                changed = (after.available - before.available, after.used - before.used)
                if (done, changed) != ([True, False], (1 - used, used)):
                    yield f"a reservation was closed twice: {done}, {changed}"
        transaction.set_rollback(True)


def _month_after(now: datetime) -> datetime:
    return (now.replace(day=1) + timedelta(days=31)).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def _of_run(run: Generation, entries: list[LedgerEntry], made: int) -> Iterator[str]:
    kinds = [one.kind for one in entries]
    if not run.credits_reserved:
        return
    wanted = ["reserve", "settle" if run.status == "done" and made else "release"]
    if kinds != wanted:
        yield f"run {run.pk} ({run.status}, {made} made) has {kinds}"
        return
    reserved, closed = entries
    if (reserved.amount, reserved.reserved_change) != (-run.credits_reserved, run.credits_reserved):
        yield f"run {run.pk} reserved {reserved.amount}, {reserved.reserved_change}"
    used = closed.used_change
    if (closed.amount, closed.reserved_change) != (run.credits_reserved - used, -run.credits_reserved):
        yield f"run {run.pk} was settled by {closed.amount}, {closed.reserved_change}"
    if used != made:
        yield f"run {run.pk} made {made} and {used} were charged"
