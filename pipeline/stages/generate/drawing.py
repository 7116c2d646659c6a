"""Pictures of what was written, and of what a person has written anew."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from config.ground import states
from config.ground.crash import crash_point
from pipeline import plugins
from pipeline.engines.base import Brief, Engine, PersonaCard, SourceText
from pipeline.models import GeneratedItem, Generation
from pipeline.stages import pictures
from pipeline.stages.generate.finishing import end, fail_item
from pipeline.stages.generate.judging import judge
from pipeline.stages.generate.reading import draft_from, draft_of, persona_card
from pipeline.stages.generate.starting import items_of
from pipeline.stages.generate.storing import store


def draw(
    generation: Generation, engine: Engine, brief: Brief, source: SourceText, persona: PersonaCard
) -> None:
    """Draw every variant that is written next; no transaction is open meanwhile."""
    drafts = [draft_from(kept) if kept else None for kept in generation.answers["drafts"]]
    waiting = GeneratedItem.everywhere.filter(generation=generation, status="generating", deleted_at=None)
    drawn = {}
    for item in waiting.order_by("variant_index"):
        draft = drafts[item.variant_index] if item.variant_index < len(drafts) else None
        if draft is None or any(
            check.outcome == "failed" for check in judge(engine, draft, brief, source, persona)
        ):
            continue
        shown_on = source.published_at.date() if source.published_at else None
        drawn[str(item.variant_index)] = pictures.draw(item, engine, draft, persona, shown_on=shown_on)
    store(generation, "write", pictures=drawn)


def redraw(generation: Generation) -> None:
    """Draw an item's newest words, which a person has edited; neither a writer is asked nor a credit spent."""
    if generation.status == "queued":
        states.move(generation, "running", under_lease=True)
    engine = plugins.get("engines", generation.engine, Engine)
    item = (
        GeneratedItem.everywhere.select_related("raw_item")
        .filter(generation=generation, status="generating", deleted_at=None)
        .first()
    )
    if item is not None and generation.stage == "render":
        raw = item.raw_item
        shown_on = raw.published_at.date() if raw is not None and raw.published_at else None
        persona = persona_card(generation.persona_id, generation.persona_version)
        drawn = pictures.draw(item, engine, draft_of(item), persona, shown_on=shown_on)
        store(generation, "write", pictures={str(item.variant_index): drawn})
        crash_point("generate.rendered")
    _write_redrawn(generation)
    crash_point("generate.committed")


def _write_redrawn(generation: Generation) -> None:
    """`generating → ready` again: the words stand already, and that it was made was told when it was made."""
    answers = generation.answers
    now = timezone.now()
    with transaction.atomic():
        end(generation, now)
        for item in items_of(generation):
            drawn = answers.get("pictures", {}).get(str(item.variant_index))
            if item.status != "generating" or drawn is None:
                continue
            if drawn["error"]:
                error = drawn["error"]
                fail_item(generation, item, error["code"], error["message"], now)
                continue
            others = [check for check in item.checks if check["code"] != "portrait"]
            states.move(item, "ready", checks=[*others, *drawn["checks"]], error=None, updated_at=now)
            pictures.replace_files(item, drawn, now=now, alt_texts=answers["redraw"]["alt_texts"])
        crash_point("generate.written")
