"""A run that is made from several raw items: what was found in each of them, as one brief."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Final

from config.ground import ids
from config.ground.crash import crash_point
from pipeline.models import GenerationInput, RawItem
from pipeline.plugins import Refused
from pipeline.stages.generate import briefing
from pipeline.stages.generate.drafting import draft
from pipeline.stages.generate.judging import judge
from pipeline.stages.generate.reading import brief_from, text_of
from pipeline.stages.generate.storing import store, try_to_store
from pipeline.writers.base import Usage
from pipeline.writers.digest import Part, combine

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.engines.base import Brief, Claim, Engine, PersonaCard, SourceText
    from pipeline.models import Generation
    from pipeline.writers.base import Writer

BRIEFS: Final = "briefs"
"""Where a run keeps what was found in each of its raw items, None where nothing may be made of it."""


def inputs_of(generation: Generation) -> list[GenerationInput]:
    """In the order in which they are told."""
    return list(GenerationInput.everywhere.filter(generation=generation).order_by("position"))


def ask(
    generation: Generation, writer: Writer, engine: Engine, persona: PersonaCard, client: Any
) -> tuple[Brief, SourceText]:
    """Briefs and drafts, each asked for once and stored before the next.

    A raw item whose content was deleted, or of which a model makes nothing, is left out. Raises `Refused` where too
    few are left, and `TryLater` and `NeedsReconnect` of the writer.
    """
    inputs = inputs_of(generation)
    if generation.stage == "brief":
        for one in inputs:
            _obtain(generation, writer, one, client)
        usage = _total(generation.answers[BRIEFS])
        store(generation, "draft", brief_usage=asdict(usage))
        crash_point("generate.briefed")
    brief, source = combine(_parts(generation.answers[BRIEFS], inputs))
    reason = engine.why_not(source)
    if reason is not None:
        raise Refused(reason, code="nothing_to_say")
    if generation.stage == "draft":
        draft(
            generation,
            writer,
            engine,
            brief,
            persona,
            client=client,
            judge=lambda written: judge(engine, written, brief, source, persona),
        )
    return brief, source


def standing_of(generation: Generation) -> str:
    """What holds back what is made: a raw item of it was taken back, or has changed, since it was read."""
    inputs = inputs_of(generation)
    rows = {row.pk: row for row in RawItem.everywhere.filter(pk__in=[one.raw_item_id for one in inputs])}
    if any((row := rows[one.raw_item_id]).deleted_at or row.withdrawn_at for one in inputs):
        return "source_withdrawn"
    if any(rows[one.raw_item_id].content_version != one.raw_version for one in inputs):
        return "source_changed"
    return ""


def placed(claims: Sequence[Claim], brief: Brief) -> list[dict[str, Any]]:
    """Claims by the raw item that says them, each at its place in that one's text."""
    found = []
    for claim in claims:
        story = next(one for one in brief.stories if one.start <= claim.start < one.end)
        start = story.start + len(story.title) + 2
        moved = replace(claim, start=claim.start - start, end=claim.end - start)
        found.append({**asdict(moved), "raw_item": story.id})
    return found


def _obtain(generation: Generation, writer: Writer, one: GenerationInput, client: Any) -> None:
    key = one.raw_item_id.hex
    known: Mapping[str, Any] = generation.answers.get(BRIEFS, {})
    if key in known:
        return

    def keep(brief: Any, usage: Mapping[str, Any] | None) -> bool:
        kept = None if brief is None else {"brief": brief, "usage": usage}
        return try_to_store(generation, "brief", **{BRIEFS: {**known, key: kept}})

    try:
        source = text_of(one.raw_item_id, one.raw_version)
        briefing.find(generation, writer, source, client, raw_item_id=one.raw_item_id, keep=keep)
    except Refused as error:
        briefing.refuse(generation, error)
        store(generation, "brief", **{BRIEFS: {**known, key: None}})


def _parts(briefs: Mapping[str, Any], inputs: Sequence[GenerationInput]) -> list[Part]:
    return [
        Part(
            ids.encode("raw", one.raw_item_id),
            text_of(one.raw_item_id, one.raw_version),
            brief_from(kept["brief"]),
        )
        for one in inputs
        if (kept := briefs[one.raw_item_id.hex]) is not None and kept["brief"]["facts"]
    ]


def _total(briefs: Mapping[str, Any]) -> Usage:
    usages = [Usage(**kept["usage"]) for kept in briefs.values() if kept is not None]
    if not usages:
        message = "The content of all its raw items was deleted."
        raise Refused(message, code="source_deleted")
    return replace(
        usages[0],
        input_tokens=sum(one.input_tokens for one in usages),
        output_tokens=sum(one.output_tokens for one in usages),
        cost_micro_usd=sum(one.cost_micro_usd for one in usages),
    )
