"""Builds one brief for a run that is made from several raw items, and maps its claims to them and back."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Final

from config.core import ids
from pipeline.generate.run_state import brief_from, find_brief, store_answer, text_of, try_to_store_answer
from pipeline.generate.shared_brief import refuse_brief
from pipeline.models import GenerationInput, GenerationStage, RawItem
from pipeline.plugins import Refused
from pipeline.writers.base import Usage
from pipeline.writers.topic_and_story_briefs import SourcePart, combine

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from pipeline.engines.base import Brief, Claim, Story
    from pipeline.generate.run_state import Run, RunMaterial
    from pipeline.models import Generation
    from pipeline.writers.base import Writer

BRIEFS: Final = "briefs"
"""Key in `answers`: the brief and usage of each raw item by its id, or `None` for one that is left out."""


def inputs_of(generation: Generation) -> list[GenerationInput]:
    """Return the run's inputs in the order in which their stories are told."""
    return list(GenerationInput.everywhere.filter(generation=generation).order_by("position"))


def find_material(run: Run) -> None:
    """Find the brief of each raw item, and store it before the next one is asked for.

    A raw item whose content was deleted, or which the model refuses, is left out. Raises `Refused` if none is
    left, and `LostLease` if the run is no longer this task's; the writer's `TryLater` and `NeedsReconnect` get
    through.
    """
    for run_input in inputs_of(run.generation):
        _obtain_brief(run.generation, run.writer, run_input, run.client)
    usage = _total_usage(run.generation.answers[BRIEFS])
    store_answer(run.generation, run.next_stage, brief_usage=asdict(usage))


def read_material(run: Run) -> RunMaterial:
    """Return the combined material. Raises `Refused` if too few raw items are left or a quoted one was erased."""
    brief, source = combine(_usable_parts(run.generation, inputs_of(run.generation)))
    reason = run.engine.why_not(source)
    if reason is not None:
        raise Refused(reason, code="too_few_stories")
    return run.build_material(brief, source)


def raw_items_of(brief: Brief) -> list[UUID]:
    """Return the ids of the raw items whose stories are told, in their order."""
    return [key for story in brief.stories if (key := ids.decode("raw", story.id)) is not None]


def join_claim(claim: Mapping[str, Any], brief: Brief) -> dict[str, Any] | None:
    """Return a claim of `split_claims` with its offsets in the combined text.

    Return `None` if its raw item's story isn't told.
    """
    story = next((candidate for candidate in brief.stories if candidate.id == claim["raw_item"]), None)
    if story is None:
        return None
    start = _text_start(story)
    claim_fields = {name: value for name, value in claim.items() if name != "raw_item"}
    return {**claim_fields, "start": claim["start"] + start, "end": claim["end"] + start}


def lock_raw_items(brief: Brief) -> None:
    """Lock the brief's raw items, so that none is erased or withdrawn until the transaction ends.

    Call it before any item is locked.
    """
    # In the order of ids, as every other path that locks several rows does, so that none deadlocks.
    rows = RawItem.everywhere.filter(pk__in=raw_items_of(brief))
    list(rows.select_for_update().order_by("id").values_list("pk"))


def split_claims(claims: Sequence[Claim], brief: Brief) -> list[dict[str, Any]]:
    """Return the claims with the id of their raw item, and with their offsets in that raw item's text."""
    split = []
    for claim in claims:
        story = next(
            candidate for candidate in brief.stories if candidate.start <= claim.start < candidate.end
        )
        start = _text_start(story)
        moved = replace(claim, start=claim.start - start, end=claim.end - start)
        split.append({**asdict(moved), "raw_item": story.id})
    return split


def _text_start(story: Story) -> int:
    """Return the offset of the raw item's text in the combined text: after its title and an empty line."""
    return story.start + len(story.title) + 2


def _obtain_brief(generation: Generation, writer: Writer, run_input: GenerationInput, client: Any) -> None:
    """Find the brief of one input, and store it in the run's answers, or `None` if it is refused."""
    raw_item_hex = run_input.raw_item_id.hex
    stored_briefs: Mapping[str, Any] = generation.answers.get(BRIEFS, {})
    if raw_item_hex in stored_briefs:
        return

    def keep(brief: Any, usage: Mapping[str, Any] | None) -> bool:
        entry = None if brief is None else {"brief": brief, "usage": usage}
        return try_to_store_answer(
            generation, GenerationStage.BRIEF, **{BRIEFS: {**stored_briefs, raw_item_hex: entry}}
        )

    try:
        source = text_of(run_input.raw_item_id, run_input.raw_version)
        find_brief(generation, writer, source, client, raw_item_id=run_input.raw_item_id, keep=keep)
    except Refused as error:
        refuse_brief(generation, error)
        store_answer(generation, GenerationStage.BRIEF, **{BRIEFS: {**stored_briefs, raw_item_hex: None}})


def _usable_parts(generation: Generation, inputs: Sequence[GenerationInput]) -> list[SourcePart]:
    """Return the stories that can be told: those whose brief has facts, and whose text still exists.

    Before drafting, a raw item that was erased is left out for good. Later the drafts may quote it, so its
    erasure raises `Refused`.
    """
    briefs: Mapping[str, Any] = generation.answers[BRIEFS]
    parts: list[SourcePart] = []
    erased: list[str] = []
    for run_input in inputs:
        stored = briefs[run_input.raw_item_id.hex]
        if stored is None or not stored["brief"]["facts"]:
            continue
        try:
            text = text_of(run_input.raw_item_id, run_input.raw_version)
        except Refused:
            if generation.stage != GenerationStage.DRAFT:
                raise
            erased.append(run_input.raw_item_id.hex)
            continue
        parts.append(SourcePart(ids.encode("raw", run_input.raw_item_id), text, brief_from(stored["brief"])))
    if erased:
        store_answer(generation, GenerationStage.DRAFT, **{BRIEFS: {**briefs, **dict.fromkeys(erased)}})
    return parts


def _total_usage(briefs: Mapping[str, Any]) -> Usage:
    usages = [Usage(**stored["usage"]) for stored in briefs.values() if stored is not None]
    if not usages:
        message = "The content of all its raw items was deleted."
        raise Refused(message, code="source_deleted")
    return replace(
        usages[0],
        input_tokens=sum(usage.input_tokens for usage in usages),
        output_tokens=sum(usage.output_tokens for usage in usages),
        cost_micro_usd=sum(usage.cost_micro_usd for usage in usages),
    )
