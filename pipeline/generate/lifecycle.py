"""Starts and ends runs, with the statuses of their items and raw item, the credits, and the events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db import transaction

from accounts.ledger import credits as credit_account
from config.core import states
from config.core.clock import utc_now
from config.core.crash_points import crash_point
from config.core.database.prepared_queries import Prepared
from pipeline import events, publish, resources
from pipeline.generate import raw_item_outcomes, recoverable_failures
from pipeline.generate.model import batches
from pipeline.generate.model.keys import has_key
from pipeline.generate.run_state import EARLIER
from pipeline.generate.topics.topic_run import conclude_pick
from pipeline.media import draw_pictures
from pipeline.models import (
    GeneratedItem,
    GeneratedItemStatus,
    Generation,
    GenerationStatus,
    Persona,
    RawItem,
    RawItemStatus,
)
from pipeline.states import ITEMS_IN_MAKING, OPEN_RUNS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from pipeline.engines.base import Engine
    from pipeline.models.generation import GenerationQuerySet

REDRAW: Final = "redraw"
"""Key in `answers` of a run that only draws: the fields that a person sent with the words, for a retry."""

REWRITE: Final = "rewrite"
"""Key in `answers` of a run that rewrites an item: the request, the text before, and the revision that it wrote."""


def start_run(generation: Generation) -> None:
    """Move a queued run, its items and its raw item to running, and fix the versions that it is made of.

    They are the current versions of the persona and the raw item. A run that only draws keeps those of its words.
    """
    if generation.status != GenerationStatus.QUEUED:
        return
    if REDRAW in generation.answers:
        # It draws existing words, so the persona's version stays that of the words.
        states.move(generation, "running", under_lease=True)
        return
    with transaction.atomic():
        raw = lock_raw_item(generation)
        # The persona's version is fixed at the start: the persona may change between two stages.
        personas = _PERSONA_VERSION.ask(pk=generation.persona_id) if generation.persona_id else []
        version = personas[0]["version"] if personas else None
        states.move(generation, "running", under_lease=True, persona_version=version)
        for item in items_of(generation):
            if item.status == GeneratedItemStatus.QUEUED:
                states.move(item, "generating")
        if raw is None:
            return
        if raw.status == RawItemStatus.QUEUED:
            states.move(raw, "processing")
        if raw.content_version != generation.raw_version:
            # It was revised while the run waited: the run uses the newest content.
            generation.raw_version = raw.content_version
            Generation.everywhere.filter(pk=generation.pk).update(raw_version=raw.content_version)


_PERSONA_VERSION: Final[Prepared[dict[str, Any]]] = Prepared(
    lambda pk: Persona.everywhere.filter(pk=pk).values("version")
)
_RAW_ITEM: Final[Prepared[RawItem]] = Prepared(
    lambda pk: RawItem.everywhere.select_for_update().filter(pk=pk)
)
_RUNS_OF_RAW_ITEM: Final[Prepared[dict[str, Any]]] = Prepared(
    lambda raw_item: Generation.everywhere.filter(raw_item_id=raw_item).values("status")
)
_VARIANTS: Final[Prepared[dict[str, Any]]] = Prepared(
    lambda generation: (
        GeneratedItem.everywhere.filter(generation_id=generation)
        .order_by("id")
        .values("variant_index", "hint", "deleted_at")
    )
)


def lock_raw_item(generation: Generation) -> RawItem | None:
    """Lock and return the run's raw item, or return `None` if it has none.

    A raw item is locked before the items that are made from it, everywhere.
    """
    if generation.raw_item_id is None:
        return None
    return _RAW_ITEM.ask(pk=generation.raw_item_id)[0]


def items_of(generation: Generation) -> list[GeneratedItem]:
    """Lock the variant groups of the run's items, as every publisher does, and return its items.

    Deleted items are left out.
    """
    return [
        item
        for item in publish.lock_groups_of(generation.pk)
        if item.generation_id == generation.pk and item.deleted_at is None
    ]


def read_wanted_variants(generation: Generation) -> tuple[int, str]:
    """Return how many variants to write, and the hint of the person who asked for another one, or "".

    The number goes up to the highest index among the run's items, because a further variant must differ from
    those before it.
    """
    items = _VARIANTS.ask(generation=generation.pk)
    hints = (item["hint"] for item in items if item["deleted_at"] is None)
    return max((item["variant_index"] for item in items), default=0) + 1, next(filter(None, hints), "")


def end_run(generation: Generation, now: datetime, *, is_broken: bool = False) -> None:
    """Move the run to `done`, erase its answers except the costs, and forget its calls in batches.

    `is_broken` says that it ended without an error but drew nothing: the request to draw is kept for a retry.
    """
    states.move(
        generation,
        "done",
        under_lease=True,
        wake_at=None,
        attempts=0,
        finished_at=now,
        error=None,
        # The answers quote the source, which may be erased while the items stay.
        answers=_answers_named(generation, REDRAW, EARLIER)
        if is_broken
        else _answers_named(generation, EARLIER),
    )
    _forget_batched_calls(generation)


def erase_words(runs: GenerationQuerySet) -> None:
    """Erase the text that runs hold, their answers and the messages that may quote the content.

    Runs that haven't ended are left as they are.
    """
    ended = runs.ended()
    ended.update(answers={})
    for key, error in ended.filter(error__isnull=False).values_list("pk", "error"):
        Generation.everywhere.filter(pk=key).update(error=recoverable_failures.without_words(error))


def erase_redraw_without_items(generation: Generation, items: Sequence[GeneratedItem]) -> None:
    """Erase the answers of a run that only draws if its item was deleted before the run ended."""
    if REDRAW in generation.answers and not items:
        Generation.everywhere.filter(pk=generation.pk).update(answers={})


def _forget_batched_calls(generation: Generation) -> None:
    if generation.batch_until is not None:
        batches.forget_calls([generation.pk])


def _answers_named(generation: Generation, *names: str) -> dict[str, Any]:
    return {name: generation.answers[name] for name in names if name in generation.answers}


def fail_item(
    generation: Generation,
    item: GeneratedItem,
    code: str,
    message: str,
    now: datetime,
    *,
    checks: Sequence[Mapping[str, Any]] | None = None,
    stage: str = "",
) -> None:
    """Move an item to `failed` and record the event.

    `checks` are those of the draft that failed; without them the checks of the current words stay. `stage` is the
    stage that failed, by default the run's. An item with words can always be retried.
    """
    error = _error_of(generation, code, message, stage)
    if item.revision:
        # Its words stand and were drawn before: a person who edited them must be able to try again.
        error |= {"retryable": True, "action": recoverable_failures.TRY_AGAIN}
    check_fields: dict[str, Any] = (
        {} if checks is None else {"checks": list(checks), "checks_revision": item.revision}
    )
    title = item.title or _provisional_title(item)
    states.move(item, "failed", title=title, error=error, updated_at=now, **check_fields)
    record_item_event(generation, item, "generated.failed", now)


def _provisional_title(item: GeneratedItem) -> str:
    """Return the title of the item's raw item or topic, which is shown while it has no words; else ""."""
    raw, topic = item.raw_item, item.topic
    if raw is not None and raw.deleted_at is None:
        return raw.title
    return str(topic.title) if topic is not None else ""


def _error_of(generation: Generation, code: str, message: str, stage: str = "") -> dict[str, Any]:
    has_model = has_key(generation)
    return recoverable_failures.error_of(code, message, stage or generation.stage, has_model=has_model)


def fail_run(generation: Generation, code: str, message: str) -> None:
    """Fail the run and those of its items that are being made, and return the reserved credits.

    Its raw item or its topic pick is concluded in the same transaction.
    """
    now = utc_now()
    error = _error_of(generation, code, message)
    with transaction.atomic():
        raw = lock_raw_item(generation)
        states.move(
            generation,
            "failed",
            under_lease=True,
            wake_at=None,
            attempts=0,
            finished_at=now,
            error=error,
            answers=_answers_named(generation, REDRAW, EARLIER),
        )
        _forget_batched_calls(generation)
        items = items_of(generation)
        erase_redraw_without_items(generation, items)
        for item in items:
            if item.status in ITEMS_IN_MAKING:
                fail_item(generation, item, code, message, now)
        if raw is not None:
            finish_raw_item(raw, now)
        else:
            conclude_pick(generation, (), now, reason=error)
        settle_credits(generation, None, 0, now)
        crash_point("generate.written")


def settle_credits(generation: Generation, engine: Engine | None, made: int, now: datetime) -> None:
    """Charge the credits for `made` variants, or return the reservation if nothing was made.

    A run without a reservation is left alone.
    """
    if not generation.credits_reserved:
        return
    if engine is not None and made:
        credit_account.settle(generation.workspace_id, generation.pk, used=made * engine.credits, now=now)
    else:
        credit_account.release(generation.workspace_id, generation.pk, now=now, reason="Nothing was made.")


def finish_raw_item(raw: RawItem, now: datetime) -> None:
    """Move the raw item to `processed`, or to `failed` with an event, once its last run is over.

    The raw item's lock makes two runs that end at the same time take turns.
    """
    is_under_way = any(run["status"] in OPEN_RUNS for run in _RUNS_OF_RAW_ITEM.ask(raw_item=raw.pk))
    if raw.status not in {RawItemStatus.QUEUED, RawItemStatus.PROCESSING} or is_under_way:
        return
    if GeneratedItem.everywhere.filter(raw_item=raw).exclude(status=GeneratedItemStatus.FAILED).exists():
        states.move(raw, "processed", reason=None, updated_at=now)
        return
    last_run = Generation.everywhere.filter(raw_item=raw).order_by("-id").first()
    failed_item = (
        GeneratedItem.everywhere.filter(raw_item=raw, status=GeneratedItemStatus.FAILED)
        .order_by("-id")
        .first()
    )
    reason = (
        (last_run.error if last_run else None)
        or (failed_item.error if failed_item else None)
        or {"code": "failed", "message": ""}
    )
    states.move(raw, "failed", reason=reason, updated_at=now)
    events.record(
        "raw.failed",
        workspace_id=raw.workspace_id,
        test=raw.test,
        data={"raw_item": raw_item_outcomes.serialize_raw_item(raw)},
        raw_item_id=raw.pk,
        source_id=raw.source_id,
        request=raw.request_id,
        now=now,
    )


def record_item_event(generation: Generation, item: GeneratedItem, event_type: str, now: datetime) -> None:
    """Record an event about the item, with the item as the API shows it."""
    events.record(
        event_type,
        workspace_id=item.workspace_id,
        test=item.test,
        data={
            "generated_item": resources.GeneratedItem.serialize(
                item,
                assets=draw_pictures.files_of(item),
                requires_approval=generation.workspace.requires_approval,
                now=now,
            )
        },
        generated_item_id=item.pk,
        raw_item_id=item.raw_item_id,
        source_id=item.source_id,
        request=generation.request_id,
        now=now,
    )
