"""Starts the runs of a new raw item with their items, events and reserved credits."""

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
from pipeline.generate.new_item import new_item
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
    from pipeline.generate.generation_plan import GenerationPlan
    from pipeline.models import Event, Source


QUIET_SKIPS: Final = frozenset({"before_first_poll"})
"""The skips without an event, because a source's whole past would send one for each entry."""


@dataclass(frozen=True)
class ToMake:
    """A raw item and the rows that its generations are made of."""

    workspace: Workspace
    source: Source
    row: RawItem
    plan: GenerationPlan
    defaults: WorkspaceDefaults


def start_runs(
    to_make: ToMake, *, when_short: Literal["refuse", "wait"], now: datetime
) -> list[GeneratedItem]:
    """Start the runs. Return the items to be made, or none if they wait for credits.

    The order is generations, events, reservation, so that the balance's row is locked as shortly as possible.
    Raises `QuotaExceeded` for too few credits with `when_short="refuse"` or for a test item.
    """
    row = to_make.row
    if when_short == "refuse" or row.test:
        # A person or client asked for it and waits, so no batch and no waiting for credits.
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
    """Save runs and items, and wake the dispatcher. With `may_wait` the source's settings may allow a batch."""
    generations, items = rows_of_runs(to_make, now, may_wait=may_wait)
    insert(generations)
    insert(items)
    dispatcher.wake()
    return generations, items


def rows_of_runs(
    to_make: ToMake, now: datetime, *, may_wait: bool = True
) -> tuple[list[Generation], list[GeneratedItem]]:
    """Return the runs, one for each engine, and their items, one for each variant, none of them saved."""
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
        new_item(
            generation,
            share.engine,
            index=index,
            source=source,
            outlets=outlets,
            is_sample=source.is_sample,
            now=now,
        )
        for share, generation in zip(plan.shares, generations, strict=True)
        for index in range(share.variants)
    ]
    return generations, items


def reserve(workspace: Workspace, generations: Sequence[Generation], now: datetime) -> None:
    """Reserve the credits of these runs. Raises `QuotaExceeded` for too few credits.

    It is the last statement of the transaction, so that the balance's row is locked as shortly as possible.
    """
    amounts = {run.pk: run.credits_reserved for run in generations if run.credits_reserved}
    if amounts:
        credit_account.reserve(workspace, amounts, now=now)


def wait_for_credits(row: RawItem, now: datetime, **changes: Any) -> None:
    """Let the raw item wait for credits, to be planned again when the next month begins."""
    resets_at = months.start_of_next_month(months.month_of(now))
    reason = {
        "code": "quota_exceeded",
        "message": "It waits for next month's credits.",
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
    """Return the reason why nothing is made of a raw item, as its row stores it."""
    return {"code": code, "message": message, "stage": "push"}


def facts_of_new(row: RawItem, items: Iterable[GeneratedItem], now: datetime) -> list[Event]:
    """Return the events of a new raw item: that it came in or was skipped, and each engine left out.

    There are none for a skip of `QUIET_SKIPS`. Stores nothing.
    """
    if row.status == RawItemStatus.SKIPPED and (row.reason or {})["code"] in QUIET_SKIPS:
        return []
    return facts_of(row, items, now, was_announced=False, skipped_before=())


def facts_of(
    row: RawItem,
    items: Iterable[GeneratedItem],
    now: datetime,
    *,
    was_announced: bool,
    skipped_before: Sequence[Mapping[str, Any]],
) -> list[Event]:
    """Return the events of a planned raw item: that it came in, and each engine left out. Stores nothing.

    With `was_announced` its arrival was sent before; the skips in `skipped_before` were sent too. The document
    counts `items` as pending.
    """
    document = raw_item_outcomes.serialize_new_raw_item(row, items)
    newly_skipped = {
        (skipped["engine_output"], skipped["variant"])
        for skipped in row.skipped
        if skipped not in skipped_before
    }
    event_data: list[tuple[str, dict[str, Any]]] = []
    if not was_announced:
        event_data.append(("raw.skipped" if row.status == RawItemStatus.SKIPPED else "raw.ingested", {}))
    event_data += [
        ("engine.skipped", {"outcome": outcome})
        for outcome in document["outcomes"]
        if (outcome["engine_output"], outcome["variant"]) in newly_skipped
    ]
    return [
        events.compose(
            event_type,
            workspace_id=row.workspace_id,
            test=row.test,
            data={"raw_item": document, **data},
            raw_item_id=row.pk,
            source_id=row.source_id,
            request=row.request_id,
            now=now,
        )
        for event_type, data in event_data
    ]
