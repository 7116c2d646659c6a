"""The words of a run: asked for once, and stored before anything else is done with them."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from config.ground.crash import crash_point
from pipeline.stages.generate.starting import wanted
from pipeline.stages.generate.storing import store

if TYPE_CHECKING:
    from pipeline.engines.base import Brief, Engine, PersonaCard
    from pipeline.models import Generation
    from pipeline.writers.base import Judge, Writer


def draft(
    generation: Generation,
    writer: Writer,
    engine: Engine,
    brief: Brief,
    persona: PersonaCard,
    *,
    client: Any,
    judge: Judge,
) -> None:
    variants, hint = wanted(generation)
    drafted = writer.draft(
        engine,
        brief,
        persona,
        variants=variants,
        seed=generation.pk.hex,
        client=client,
        judge=judge,
        hint=hint,
    )
    store(
        generation,
        "render" if engine.sizes else "write",
        drafts=[asdict(one) for one in drafted.drafts],
        draft_usage=asdict(drafted.usage),
    )
    crash_point("generate.drafted")
