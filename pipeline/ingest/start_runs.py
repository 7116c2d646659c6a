"""The runs and items of a new raw item, its events, and the reservation of their credits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from django.db import transaction

from accounts.ledger import credits as credit_account
from accounts.ledger import months
from config.core import dispatcher, states
from config.core.database.insert import insert
from pipeline import events
from pipeline.generate import raw_item_outcomes
from pipeline.generate.model import batches
from pipeline.generate.model.keys import generation_queue_for
from pipeline.models import (
    GeneratedItem,
    Generation,
    RawItem,
    RawItemStatus,
    WorkspaceDefaults,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from accounts.models import Workspace
    from pipeline.generate.acceptance import GenerationPlan
    from pipeline.models import Event, Source


QUIET_SKIPS: Final = frozenset({"before_first_poll"})
"""Skips that nobody is told of: a source's whole past would be one event each."""


@dataclass(frozen=True)
class ToMake:
    """A raw item and all that its generations are made of."""

    workspace: Workspace
    source: Source
    row: RawItem
    plan: GenerationPlan
    defaults: WorkspaceDefaults


def start_runs(
    to_make: ToMake, *, when_short: Literal["refuse", "wait"], now: datetime
) -> list[GeneratedItem]:
    """The generations, then the events, then the reservation: the balance's row is locked as shortly as can
    be.

    Returns the items that are to be made; none where they wait for credits.
    """
    row = to_make.row
    if when_short == "refuse" or row.test:
        # Somebody has just asked for it, and waits.
        generations, items = start_now(to_make, now, may_wait=False)
        events.write(facts_of_new(row, items, now))
        reserve(to_make.workspace, generations, now)
        return items
    try:
        with transaction.atomic():
            generations, items = start_now(to_make, now)
            events.write(facts_of_new(row, items, now))
            reserve(to_make.workspace, generations, now)
    except credit_account.QuotaExceeded as error:
        wait_for_credits(row, now)
        events.write(facts_of_new(row, (), now))
        balance = error.balance
        credit_account.notify_used_up(to_make.workspace, balance.period_start, balance.granted, now=now)
        return []
    return items


def start_now(
    to_make: ToMake, now: datetime, *, may_wait: bool = True
) -> tuple[list[Generation], list[GeneratedItem]]:
    """Store the runs and their items, and have them worked; with `may_wait` the model may be asked in a
    batch.
    """
    generations, items = rows_of_runs(to_make, now, may_wait=may_wait)
    insert(generations)
    insert(items)
    dispatcher.wake()
    return generations, items


def rows_of_runs(
    to_make: ToMake, now: datetime, *, may_wait: bool = True
) -> tuple[list[Generation], list[GeneratedItem]]:
    """The runs, one for each engine, and their items, one for each variant."""
    workspace, source, row, plan = to_make.workspace, to_make.source, to_make.row, to_make.plan
    queue = generation_queue_for(workspace)
    generations = [
        Generation(
            workspace=workspace,
            test=row.test,
            engine=share.engine.kind,
            raw_item=row,
            raw_version=row.content_version,
            persona_id=row.persona_id,
            variants=share.variants,
            credits_reserved=0 if row.test else share.engine.credits * share.variants,
            due_at=now,
            wake_at=now,
            queue=queue,
            request_id=row.request_id,
            batch_until=batches.waits_until(source.config, now) if may_wait else None,
            created_at=now,
        )
        for share in plan.shares
    ]
    defaults = to_make.defaults
    outlets = source.outlets or (defaults.test_outlets if row.test else defaults.outlets)
    items = [
        GeneratedItem(
            workspace=workspace,
            test=row.test,
            generation=generation,
            source=source,
            raw_item=row,
            persona_id=row.persona_id,
            bucket=share.engine.bucket,
            engine_output=share.engine.name,
            engine_version=share.engine.version,
            variant_group=generation.pk,
            variant_index=index,
            outlets=outlets,
            is_sample=source.is_sample,
            approval_required=workspace.requires_approval,
            created_at=now,
            updated_at=now,
        )
        for share, generation in zip(plan.shares, generations, strict=True)
        for index in range(share.variants)
    ]
    return generations, items


def reserve(workspace: Workspace, generations: Sequence[Generation], now: datetime) -> None:
    """The last statement of the transaction, so that the balance's row is locked for as short as can be.

    Raises `QuotaExceeded`.
    """
    amounts = {run.pk: run.credits_reserved for run in generations if run.credits_reserved}
    if amounts:
        credit_account.reserve(workspace, amounts, now=now)


def wait_for_credits(row: RawItem, now: datetime, **changes: Any) -> None:
    """Have the raw item planned again when the next month begins."""
    resets_at = months.start_of_next_month(months.month_of(now))
    reason = {
        "code": "quota_exceeded",
        "message": "It waits for the credits of the next month.",
        "stage": "push",
    }
    states.move(
        row,
        "waiting_quota",
        reason=reason,
        due_at=resets_at,
        wake_at=resets_at,
        version=row.version,
        **changes,
    )


def reason_of_skip(code: str, message: str) -> dict[str, str]:
    """Why nothing is made of a raw item, as its row keeps it."""
    return {"code": code, "message": message, "stage": "push"}


def facts_of_new(row: RawItem, items: Iterable[GeneratedItem], now: datetime) -> list[Event]:
    """What is told of a raw item that came in: that it did, or why nothing is made of it; and what was left
    out.
    """
    if row.status == RawItemStatus.SKIPPED and (row.reason or {})["code"] in QUIET_SKIPS:
        return []
    return facts_of(row, items, now, was_told=False, skipped_before=())


def facts_of(
    row: RawItem,
    items: Iterable[GeneratedItem],
    now: datetime,
    *,
    was_told: bool,
    skipped_before: Sequence[Mapping[str, Any]],
) -> list[Event]:
    """The events of a raw item that was planned: that it came in, and each engine that is left out. Stores
    nothing.

    `was_told` where it was told that it came in; what is `skipped_before` was told too. The raw item has what
    `items` make pending.
    """
    document = raw_item_outcomes.serialize_new_raw_item(row, items)
    newly_skipped = {
        (skipped["engine_output"], skipped["variant"])
        for skipped in row.skipped
        if skipped not in skipped_before
    }
    what_happened: list[tuple[str, dict[str, Any]]] = (
        [] if was_told else [("raw.skipped" if row.status == RawItemStatus.SKIPPED else "raw.ingested", {})]
    )
    what_happened += [
        ("engine.skipped", {"outcome": outcome})
        for outcome in document["outcomes"]
        if (outcome["engine_output"], outcome["variant"]) in newly_skipped
    ]
    return [
        events.compose(
            event_type,
            workspace_id=row.workspace_id,
            test=row.test,
            data={"raw_item": document, **more},
            raw_item_id=row.pk,
            source_id=row.source_id,
            request=row.request_id,
            now=now,
        )
        for event_type, more in what_happened
    ]
