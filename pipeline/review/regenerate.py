"""Requests new runs for items: retries a failed one, or creates a variant or a fresh recurring item."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import transaction
from django.db.models import Max

from accounts.ledger import credits as credit_account
from config.core import dispatcher, states
from config.core.errors import Conflict, Detail
from config.core.middleware import request_id
from pipeline import generate, plugins
from pipeline.engines.base import ANGLES, Engine
from pipeline.generate import generation_plan, recoverable_failures
from pipeline.generate.lifecycle import REDRAW
from pipeline.generate.model.keys import generation_queue_for
from pipeline.generate.new_item import new_item
from pipeline.ingest import plan_and_estimate
from pipeline.models import (
    GeneratedItem,
    GeneratedItemStatus,
    Generation,
    GenerationInput,
    RawBody,
    RawItem,
    RawItemStatus,
    SeriesIssue,
)
from pipeline.review.decisions import is_drawn
from pipeline.review.rerender import draw_again, lock_with_workspace, refuse_deleted, update_locked
from pipeline.states import ITEMS_IN_MAKING
from pipeline.text.html_text import strip_invisible
from pipeline.text.prose.verbatim_edits import collapse
from pipeline.writers.base import NO_HINTS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from accounts.models import Workspace


def retry(
    item: GeneratedItem, *, workspace: Workspace, now: datetime, expected_version: int | None = None
) -> GeneratedItem:
    """Queue a failed item for a new run; if only its drawing failed, the text stays.

    Raises `Conflict` if its source was deleted, its status doesn't allow it, or a retry can't help;
    `QuotaExceeded` if the credits don't suffice; and `states.Overtaken` if it isn't at the expected version.
    """
    if item.revision and item.status == GeneratedItemStatus.FAILED and is_drawn(item):
        return _retry_drawing(item, now, expected_version)
    with transaction.atomic():
        raw = lock_source(item)
        row = lock_with_workspace(item)
        states.refuse_other_version(row.version, expected_version)
        refuse_deleted(row)
        states.refuse_unless_allowed(row, "queued")
        recoverable_failures.refuse_final(recoverable_failures.current_error(workspace, row))
        generation = _create_run(row, raw, workspace, now, answers=generate.cost_so_far(row.generation))
        # A series finds its digest, and the contents of earlier digests, by the run.
        SeriesIssue.everywhere.filter(generation_id=row.generation_id).update(generation=generation)
        states.move(
            row,
            "queued",
            generation=generation,
            error=None,
            checks=[],
            checks_revision=None,
            claims=[],
            updated_at=now,
        )
        if raw is not None:
            _requeue_raw(raw, now)
        reserve(workspace, generation, now)
    return row


def _retry_drawing(item: GeneratedItem, now: datetime, expected_version: int | None) -> GeneratedItem:
    """Queue a run that only draws, so that a failure such as a full disk doesn't cost a person's edits."""
    with transaction.atomic():
        row = lock_with_workspace(item)
        states.refuse_other_version(row.version, expected_version)
        refuse_deleted(row)
        update_locked(row, now, error=None)
        failed_run = Generation.everywhere.filter(pk=row.generation_id).first()
        drawing_input = failed_run.answers.get(REDRAW, {}) if failed_run is not None else {}
        if failed_run is not None:
            # The new run gets the input, so that erasing the item erases it there and nowhere else.
            other_answers = {name: answer for name, answer in failed_run.answers.items() if name != REDRAW}
            Generation.everywhere.filter(pk=failed_run.pk).update(answers=other_answers)
        draw_again(row, drawing_input.get("alt_texts", {}), now, board=drawing_input.get("storyboard"))
    return row


def regenerate(
    item: GeneratedItem,
    *,
    workspace: Workspace,
    now: datetime,
    hint: str = "",
    expected_version: int | None = None,
) -> GeneratedItem:
    """Create a further variant of the item's group, with a run that gets the `hint`, and return it.

    Raises `Conflict` if the item or its source was deleted, the item is being made, the group is full, no further
    variant can be made, or no model would follow the hint; `QuotaExceeded` if the credits don't suffice; and
    `states.Overtaken` if the item isn't the expected version.
    """
    hint = collapse(strip_invisible(hint))
    with transaction.atomic():
        raw = lock_source(item)
        row = lock_with_workspace(item)
        states.refuse_other_version(row.version, expected_version)
        refuse_deleted(row)
        if row.status in ITEMS_IN_MAKING:
            message = f"It is {row.status}; wait until it is made."
            raise Conflict.because(code="not_made_yet", message=message)
        last = GeneratedItem.everywhere.filter(variant_group=row.variant_group).aggregate(
            last=Max("variant_index")
        )
        index = (last["last"] or 0) + 1
        if index >= len(ANGLES):
            message = f"A group has {len(ANGLES)} variants at most; edit one of them."
            raise Conflict.because(code="no_more_variants", message=message)
        if raw is not None:
            plan_and_estimate.refuse_unmakeable(raw, row, workspace, index=index)
        generation = _create_run(row, raw, workspace, now)
        _refuse_hint(hint, generation)
        variant = _create_variant(row, generation, now, hint=hint, group=row.variant_group, index=index)
        if raw is not None:
            _requeue_raw(raw, now)
        reserve(workspace, generation, now)
    return variant


def bring_back(item: GeneratedItem, *, workspace: Workspace, index: int, now: datetime) -> GeneratedItem:
    """Create a fresh item in its own group, so that it is decided on alone; the old one stays as it is.

    The caller opens the transaction, and calls `reserve` for the item's run last. Raises `Conflict` if the item or
    its source was deleted.
    """
    raw = lock_source(item)
    row = lock_with_workspace(item)
    refuse_deleted(row)
    generation = _create_run(row, raw, workspace, now)
    if raw is not None:
        _requeue_raw(raw, now)
    return _create_variant(row, generation, now, group=generation.pk, index=index)


def _create_variant(
    row: GeneratedItem,
    generation: Generation,
    now: datetime,
    *,
    group: UUID,
    index: int,
    hint: str = "",
) -> GeneratedItem:
    """Create the item of a new run, with the source, outlets and sample mark of the old one."""
    variant = new_item(
        generation,
        generation_plan.engine_named(row.engine_output),
        index=index,
        variant_group=group,
        source_id=row.source_id,
        raw_items=row.raw_items,
        parent=row,
        hint=hint,
        outlets=row.outlets,
        is_sample=row.is_sample,
        now=now,
    )
    variant.save(force_insert=True)
    return variant


def lock_source(item: GeneratedItem) -> RawItem | None:
    """Lock and return the item's raw item, before any item is locked.

    Return `None` for an item that is made from a topic or from several raw items. Raises `Conflict` if the raw item
    or its content was deleted.
    """
    if item.raw_item_id is None and (item.topic_id is not None or item.raw_items):
        return None
    raw: RawItem | None = (
        RawItem.everywhere.select_for_update().filter(pk=item.raw_item_id, deleted_at=None).first()
        if item.raw_item_id
        else None
    )
    if raw is None or not RawBody.everywhere.filter(raw_item=raw).exists():
        message = "The raw item that it was made from was deleted."
        raise Conflict.because(code="source_deleted", message=message, field="raw_item")
    return raw


def _create_run(
    row: GeneratedItem,
    raw: RawItem | None,
    workspace: Workspace,
    now: datetime,
    *,
    answers: Mapping[str, Any] | None = None,
) -> Generation:
    """Create the run that makes the item again. Raises `Conflict` if its topic was deleted."""
    engine = generation_plan.engine_named(row.engine_output)
    generation: Generation = Generation.everywhere.create(
        workspace=workspace,
        test=row.test,
        engine=engine.kind,
        raw_item=raw,
        raw_version=raw.content_version if raw is not None else None,
        topic_id=row.topic_id if raw is None else None,
        persona_id=row.persona_id,
        variants=1,
        credits_reserved=0 if row.test else engine.credits,
        due_at=now,
        wake_at=now,
        queue=generation_queue_for(workspace),
        request_id=request_id(),
        answers=dict(answers or {}),
        created_at=now,
    )
    if raw is None and row.raw_items:
        _copy_inputs(row, generation)
    elif raw is None and not generate.copy_pick(row.generation, generation, now):
        message = "Its topic was deleted."
        raise Conflict.because(code="source_deleted", message=message, field="topic")
    dispatcher.wake()
    return generation


def why_no_hints(item: GeneratedItem) -> str:
    """Return the reason why a hint for a further variant can't be followed, or "" if it can."""
    return _why_no_hints(item.generation)


def _why_no_hints(generation: Generation) -> str:
    engine = plugins.get("engines", generation.engine, Engine)
    if engine.draft_schema() is None:
        return f"No model writes a {engine.name}, so that no hint can be followed. Leave the hint out."
    return NO_HINTS if generate.writer_for(generation).offline else ""


def _refuse_hint(hint: str, generation: Generation) -> None:
    """Raise `Conflict` if there is a hint and it can't be followed."""
    why_not = _why_no_hints(generation) if hint else ""
    if why_not:
        raise Conflict(Detail("hint", "needs_ai", why_not))


def _copy_inputs(row: GeneratedItem, generation: Generation) -> None:
    """Give the run the same raw items in their current versions; the run leaves deleted ones out."""
    versions = dict(RawItem.everywhere.filter(pk__in=row.raw_items).values_list("pk", "content_version"))
    GenerationInput.everywhere.bulk_create(
        GenerationInput(
            workspace_id=row.workspace_id,
            generation=generation,
            raw_item_id=UUID(key),
            raw_version=versions[UUID(key)],
            position=position,
        )
        for position, key in enumerate(row.raw_items)
    )


def _requeue_raw(raw: RawItem, now: datetime) -> None:
    """Move a failed raw item back to `queued`, because it waits for a run again."""
    if raw.status == RawItemStatus.FAILED:
        states.move(raw, "queued", reason=None, updated_at=now)


def reserve(workspace: Workspace, generation: Generation, now: datetime) -> None:
    """Reserve the run's credits, if it costs any; call it last in a transaction, because the balance stays locked.

    Raises `QuotaExceeded` if the credits don't suffice.
    """
    if generation.credits_reserved:
        credit_account.reserve(workspace, {generation.pk: generation.credits_reserved}, now=now)
