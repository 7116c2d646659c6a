"""A run that is made from several raw items: what was found in each of them, as one brief."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Final

from config.core import ids
from pipeline.generate import brief as briefing
from pipeline.generate.checkpoint import brief_from, store_answer, text_of, try_to_store_answer
from pipeline.models import GenerationInput, GenerationStage, RawItem
from pipeline.plugins import Refused
from pipeline.writers.base import Usage
from pipeline.writers.topic_and_story_briefs import SourcePart, combine

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from pipeline.engines.base import Brief, Claim
    from pipeline.generate.checkpoint import Run, RunMaterial
    from pipeline.models import Generation
    from pipeline.writers.base import Writer

BRIEFS: Final = "briefs"
"""Where a run keeps what was found in each of its raw items, None where nothing may be made of it."""


def inputs_of(generation: Generation) -> list[GenerationInput]:
    """In the order in which they are told."""
    return list(GenerationInput.everywhere.filter(generation=generation).order_by("position"))


def find_material(run: Run) -> None:
    """A brief of each raw item, asked for once and stored before the next.

    A raw item whose content was deleted, or of which a model makes nothing, is left out. Raises `TryLater` and
    `NeedsReconnect` of the writer.
    """
    for one in inputs_of(run.generation):
        _obtain(run.generation, run.writer, one, run.client)
    usage = _total(run.generation.answers[BRIEFS])
    store_answer(run.generation, run.then, brief_usage=asdict(usage))


def read_material(run: Run) -> RunMaterial:
    """Raises `Refused` where too few of the raw items are left."""
    brief, source = combine(_parts(run.generation, inputs_of(run.generation)))
    reason = run.engine.why_not(source)
    if reason is not None:
        raise Refused(reason, code="too_few_stories")
    return run.resting_on(brief, source)


def raw_items_of(brief: Brief) -> list[UUID]:
    """The raw items that are told, in order; those of the run's inputs of which nothing came aren't among them."""
    return [key for one in brief.stories if (key := ids.decode("raw", one.id)) is not None]


def join_claim(claim: Mapping[str, Any], brief: Brief) -> dict[str, Any] | None:
    """A claim as `split_claims` gives it, at its place in the one text again; None where its raw item isn't told."""
    story = next((one for one in brief.stories if one.id == claim["raw_item"]), None)
    if story is None:
        return None
    start = story.start + len(story.title) + 2
    kept = {name: value for name, value in claim.items() if name != "raw_item"}
    return {**kept, "start": claim["start"] + start, "end": claim["end"] + start}


def lock_raw_items(brief: Brief) -> None:
    """Until the transaction ends nothing that is told is erased or taken back unseen; call it before any item."""
    # In the order of ids, as every other path that locks several rows.
    rows = RawItem.everywhere.filter(pk__in=raw_items_of(brief))
    list(rows.select_for_update().order_by("id").values_list("pk"))


def split_claims(claims: Sequence[Claim], brief: Brief) -> list[dict[str, Any]]:
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
        return try_to_store_answer(generation, GenerationStage.BRIEF, **{BRIEFS: {**known, key: kept}})

    try:
        source = text_of(one.raw_item_id, one.raw_version)
        briefing.find_brief(generation, writer, source, client, raw_item_id=one.raw_item_id, keep=keep)
    except Refused as error:
        briefing.refuse_brief(generation, error)
        store_answer(generation, GenerationStage.BRIEF, **{BRIEFS: {**known, key: None}})


def _parts(generation: Generation, inputs: Sequence[GenerationInput]) -> list[SourcePart]:
    """What is told. A raw item that was erased is left out for good; once drafts quote it, it ends the run."""
    briefs: Mapping[str, Any] = generation.answers[BRIEFS]
    parts: list[SourcePart] = []
    erased: list[str] = []
    for one in inputs:
        kept = briefs[one.raw_item_id.hex]
        if kept is None or not kept["brief"]["facts"]:
            continue
        try:
            text = text_of(one.raw_item_id, one.raw_version)
        except Refused:
            if generation.stage != GenerationStage.DRAFT:
                raise
            erased.append(one.raw_item_id.hex)
            continue
        parts.append(SourcePart(ids.encode("raw", one.raw_item_id), text, brief_from(kept["brief"])))
    if erased:
        store_answer(generation, GenerationStage.DRAFT, **{BRIEFS: {**briefs, **dict.fromkeys(erased)}})
    return parts


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
