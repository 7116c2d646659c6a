"""A run ends, well or not: its items, its raw item and its credits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.utils import timezone

from accounts import credits as credit_account
from config.ground import states
from config.ground.crash import crash_point
from pipeline import events, payloads
from pipeline.models import GeneratedItem, Generation, RawItem
from pipeline.stages import batches, pictures
from pipeline.stages.generate.picks import conclude
from pipeline.stages.generate.starting import items_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from pipeline.engines.base import Engine


REDRAW: Final = "redraw"
"""Where a run that only draws keeps what a person has said with the words: the next try needs it."""


def end(generation: Generation, now: datetime, *, is_broken: bool = False) -> None:
    """`is_broken` where it drew nothing, though it ended as it should."""
    states.move(
        generation,
        "done",
        under_lease=True,
        wake_at=None,
        attempts=0,
        finished_at=now,
        error=None,
        # They quote the source, which may be erased while what was made of it stays.
        answers=_kept_of(generation) if is_broken else {},
    )
    _let_go(generation)


def _let_go(generation: Generation) -> None:
    if generation.batch_until is not None:
        batches.let_go([generation.pk])


def _kept_of(generation: Generation) -> dict[str, Any]:
    return {REDRAW: generation.answers[REDRAW]} if REDRAW in generation.answers else {}


def fail_item(
    generation: Generation,
    item: GeneratedItem,
    code: str,
    message: str,
    now: datetime,
    *,
    checks: Sequence[Mapping[str, Any]] = (),
    stage: str = "",
) -> None:
    error = {"code": code, "message": message, "stage": stage or generation.stage}
    states.move(item, "failed", error=error, checks=list(checks), updated_at=now)
    tell(generation, item, "generated.failed", now)


def fail(generation: Generation, code: str, message: str) -> None:
    """End the run without a word made; the reservation goes back."""
    now = timezone.now()
    error = {"code": code, "message": message, "stage": generation.stage}
    with transaction.atomic():
        raw = (
            RawItem.everywhere.select_for_update().get(pk=generation.raw_item_id)
            if generation.raw_item_id
            else None
        )
        states.move(
            generation,
            "failed",
            under_lease=True,
            wake_at=None,
            attempts=0,
            finished_at=now,
            error=error,
            answers=_kept_of(generation),
        )
        _let_go(generation)
        for item in items_of(generation):
            if item.status in {"queued", "generating"}:
                fail_item(generation, item, code, message, now)
        if raw is not None:
            finish_raw_item(raw, now)
        else:
            conclude(generation, (), now, reason=error)
        settle(generation, None, 0, now)
        crash_point("generate.written")


def settle(generation: Generation, engine: Engine | None, made: int, now: datetime) -> None:
    if not generation.credits_reserved:
        return
    if engine is not None and made:
        credit_account.settle(generation.workspace_id, generation.pk, used=made * engine.credits, now=now)
    else:
        credit_account.release(generation.workspace_id, generation.pk, now=now, reason="Nothing was made.")


def finish_raw_item(raw: RawItem, now: datetime) -> None:
    """`processed` or `failed` once its last run is over; the raw item's lock makes two last ones take turns."""
    runs = list(Generation.everywhere.filter(raw_item=raw).values_list("status", flat=True))
    if raw.status not in {"queued", "processing"} or any(status in {"queued", "running"} for status in runs):
        return
    is_made = GeneratedItem.everywhere.filter(raw_item=raw).exclude(status="failed").exists()
    if is_made:
        states.move(raw, "processed", reason=None, updated_at=now)
        return
    last = Generation.everywhere.filter(raw_item=raw).order_by("-id").first()
    item = GeneratedItem.everywhere.filter(raw_item=raw, status="failed").order_by("-id").first()
    reason = (
        (last.error if last else None) or (item.error if item else None) or {"code": "failed", "message": ""}
    )
    states.move(raw, "failed", reason=reason, updated_at=now)
    events.record(
        "raw.failed",
        workspace_id=raw.workspace_id,
        test=raw.test,
        data={"raw_item": payloads.raw_item(payloads.row_of(raw))},
        raw_item_id=raw.pk,
        source_id=raw.source_id,
        request=raw.request_id,
        now=now,
    )


def tell(generation: Generation, item: GeneratedItem, event_type: str, now: datetime) -> None:
    events.record(
        event_type,
        workspace_id=item.workspace_id,
        test=item.test,
        data={
            "generated_item": payloads.generated_item(
                payloads.row_of(item), assets=pictures.files_of(item), now=now
            )
        },
        generated_item_id=item.pk,
        raw_item_id=item.raw_item_id,
        source_id=item.source_id,
        request=generation.request_id,
        now=now,
    )
