"""Saves a finished run: revisions, checks, credits and events in one transaction."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.db import transaction

from config.core import states
from config.core.clock import utc_now
from config.core.crash_points import crash_point
from config.core.database.insert import insert
from config.core.database.prepared_queries import Prepared
from pipeline import plugins
from pipeline.engines.base import Brief, Check, Draft, Engine
from pipeline.generate import multi_source
from pipeline.generate.autopilot import check_gates, publish_automatically
from pipeline.generate.checks import run_checks_with_visuals
from pipeline.generate.generation_plan import NO_MORE_SENTENCES
from pipeline.generate.lifecycle import (
    end_run,
    fail_item,
    finish_raw_item,
    items_of,
    lock_raw_item,
    record_item_event,
    settle_credits,
)
from pipeline.generate.run_state import EARLIER, as_json, draft_from
from pipeline.generate.topics.topic_run import conclude_pick
from pipeline.holds.source_changes import find_hold_reason
from pipeline.media import draw_pictures
from pipeline.models import GeneratedItem, GeneratedItemStatus, Generation, RawItem, Revision, Source
from pipeline.text.plain_text import plain_text
from pipeline.writers.base import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from pipeline.generate.run_state import Run

MAX_EXCERPT_CHARACTERS: Final = 300


class _Failure(NamedTuple):
    """The reason why a variant can't be saved; `checks` are `None` if no draft was written."""

    code: str
    message: str
    checks: list[dict[str, Any]] | None = None
    stage: str = ""
    """The stage that failed, or "" for the run's own."""


def save_run(run: Run) -> Run:
    """Save each variant or its failure, publish on autopilot, settle the credits and end the run.

    All of it is one transaction.
    """
    generation, engine, persona = run.generation, run.engine, run.persona
    brief, source = run.required_material.brief, run.required_material.source
    drafts = [draft_from(stored) if stored else None for stored in generation.answers["drafts"]]
    total_usage = _add_usage(
        Usage(**generation.answers["brief_usage"]), Usage(**generation.answers["draft_usage"])
    )
    checked = [
        (
            draft,
            run_checks_with_visuals(engine, draft, brief, source, persona, own_words=run.own_words)
            if draft is not None
            else (),
        )
        for draft in drafts
    ]
    drawn_by_index = generation.answers.get("pictures", {})
    now = utc_now()
    with transaction.atomic():
        raw = lock_raw_item(generation)
        multi_source.lock_raw_items(brief)
        end_run(generation, now)
        items = items_of(generation)
        made: list[GeneratedItem] = []
        is_automatic = _is_on_autopilot(items)
        for item in items:
            if item.status != GeneratedItemStatus.GENERATING:
                continue
            drawing = drawn_by_index.get(str(item.variant_index))
            draft, checks = checked[item.variant_index] if item.variant_index < len(checked) else (None, ())
            failure = _find_failure(draft, checks, drawing, raw, brief, is_offline=total_usage.offline)
            if failure is not None:
                fail_item(
                    generation,
                    item,
                    failure.code,
                    failure.message,
                    now,
                    checks=failure.checks,
                    stage=failure.stage,
                )
                continue
            assert draft is not None  # noqa: S101  for the types; a missing draft is a failure
            check_rows = [asdict(check) for check in checks]
            if drawing is not None:
                check_rows += drawing["checks"]
                draw_pictures.replace_files(item, drawing, now=now)
            if is_automatic:
                gate_checks = check_gates(draft, persona, check_rows, is_suspect=brief.is_suspect)
                check_rows += [asdict(gate) for gate in gate_checks]
            _save_ready_item(
                generation,
                item,
                draft,
                checks=check_rows,
                generator=_generator(generation, engine, total_usage),
                raw=raw,
                now=now,
                brief=brief,
            )
            made.append(item)
        if raw is None:
            conclude_pick(generation, made, now)
        else:
            finish_raw_item(raw, now)
        if is_automatic:
            publish_automatically(generation, made, now)
        # Credits are locked last, everywhere, so that no two transactions deadlock.
        settle_credits(generation, engine, len(made), now)
        crash_point("generate.written")
    return run


def _find_failure(
    draft: Draft | None,
    checks: Sequence[Check],
    drawing: Mapping[str, Any] | None,
    raw: RawItem | None,
    brief: Brief,
    *,
    is_offline: bool,
) -> _Failure | None:
    """Return the reason why a variant can't be saved: no draft, a failed check or a failed drawing; else `None`."""
    if draft is None:
        return _Failure("no_more_variants", _no_more_variants_message(raw, brief))
    check_rows = [asdict(check) for check in checks]
    if any(check.outcome == "failed" for check in checks):
        return _Failure("checks_failed", _stopped_message(checks, is_offline=is_offline), check_rows)
    if drawing is not None and drawing["error"]:
        error = drawing["error"]
        return _Failure(error["code"], error["message"], check_rows, error.get("stage", ""))
    return None


def _save_ready_item(
    generation: Generation,
    item: GeneratedItem,
    draft: Draft,
    *,
    checks: Sequence[Mapping[str, Any]],
    generator: Mapping[str, Any],
    raw: RawItem | None,
    now: datetime,
    brief: Brief,
) -> None:
    """Move an item from `generating` to `ready`, with a new revision and its event.

    The caller opens the transaction.
    """
    revision = Revision(
        workspace_id=item.workspace_id,
        item=item,
        number=item.revision + 1,
        title=draft.title[:500],
        body=draft.body,
        body_format=draft.body_format,
        content=as_json(dict(draft.content)),
        overrides=item.overrides,
        made_by=generator["model"],
        created_at=now,
    )
    insert([revision])
    states.move(
        item,
        "ready",
        revision=item.revision + 1,
        title=draft.title[:500],
        body=draft.body,
        body_format=draft.body_format,
        content=as_json(dict(draft.content)),
        **derived_words(draft.body, draft.body_format),
        language=draft.language[:35],
        angle=draft.angle[:20],
        claims=multi_source.split_claims(draft.claims, brief)
        if brief.stories
        else [asdict(claim) for claim in draft.claims],
        checks=list(checks),
        checks_revision=item.revision + 1,
        error=None,
        raw_version=generation.raw_version,
        persona_version=generation.persona_version,
        engine_version=plugins.get("engines", generation.engine, Engine).version,
        held=_hold_reason(generation, raw, brief),
        raw_items=[key.hex for key in multi_source.raw_items_of(brief)],
        generator=dict(generator),
        ready_at=now,
        updated_at=now,
    )
    record_item_event(generation, item, "generated.ready", now)


def _is_on_autopilot(items: Sequence[GeneratedItem]) -> bool:
    """Return whether the items' source publishes on autopilot."""
    source_id = items[0].source_id if items else None
    return source_id is not None and bool(_ON_AUTOPILOT.ask(pk=source_id))


_ON_AUTOPILOT: Final[Prepared[dict[str, Any]]] = Prepared(
    lambda pk: Source.everywhere.filter(pk=pk, autopilot=True).values("pk")
)


def _hold_reason(generation: Generation, raw: RawItem | None, brief: Brief) -> str:
    """Return the code of the reason why the item may not be published yet, or "" if it may.

    A source was withdrawn, deleted or changed meanwhile, or reads like orders to a model.
    """
    reason = ""
    if brief.stories:
        reason = find_hold_reason(generation.pk, multi_source.raw_items_of(brief))
    elif raw is not None and (raw.deleted_at is not None or raw.withdrawn_at is not None):
        reason = "source_withdrawn"
    elif raw is not None and raw.content_version != generation.raw_version:
        reason = "source_changed"
    return reason or ("instructions_in_source" if brief.is_suspect else "")


def _no_more_variants_message(raw: RawItem | None, brief: Brief) -> str:
    if brief.stories:
        return "The stories hold no further sentences of their own."
    if raw is not None:
        return NO_MORE_SENTENCES
    return "There was nothing more to say about the topic that the persona hasn't said in the last 90 days."


def _stopped_message(checks: Sequence[Check], *, is_offline: bool) -> str:
    """Return the failure message, which names the author, because the source must not seem at fault."""
    faults = " ".join(check.message for check in checks if check.outcome == "failed")
    author = "What was put together here" if is_offline else "What the model wrote"
    return f"{author} was stopped: {faults}"


def _add_usage(brief: Usage, draft: Usage) -> Usage:
    """Return the usage of both answers together; provider and model are those of the drafter."""
    return replace(
        draft,
        input_tokens=brief.input_tokens + draft.input_tokens,
        output_tokens=brief.output_tokens + draft.output_tokens,
        cost_micro_usd=brief.cost_micro_usd + draft.cost_micro_usd,
    )


def _generator(generation: Generation, engine: Engine, usage: Usage) -> dict[str, Any]:
    """Return the item's author and cost as the API shows them.

    The variants of a run share its cost; that of earlier tries is added.
    """
    earlier = generation.answers.get(EARLIER, {})
    cost = usage.cost_micro_usd // max(generation.variants, 1) + earlier.get("cost_micro_usd", 0)
    return {
        "provider": usage.provider,
        "model": usage.model,
        "offline": usage.offline,
        "prompt_version": usage.prompt_version,
        "input_tokens": usage.input_tokens + earlier.get("input_tokens", 0),
        "output_tokens": usage.output_tokens + earlier.get("output_tokens", 0),
        "cost_usd": f"{cost / 1_000_000:.6f}",
        "credits": 0 if generation.test else engine.credits,
    }


def derived_words(body: str, body_format: str) -> dict[str, Any]:
    """Return the columns that follow from an item's body, which each revision writes with it."""
    return {"excerpt": _excerpt_of(body, body_format)}


def _excerpt_of(body: str, body_format: str) -> str:
    """Return the first `MAX_EXCERPT_CHARACTERS` characters in plain text, for lists."""
    text = " ".join(plain_text(body, body_format).split())
    if len(text) <= MAX_EXCERPT_CHARACTERS:
        return text
    return f"{text[: MAX_EXCERPT_CHARACTERS - 1].rstrip()}…"
