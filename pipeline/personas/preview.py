"""What a persona would make of some words: written and drawn by the offline writer, stored nowhere, spent nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline import plugins
from pipeline.engines.base import Engine, SourceText
from pipeline.engines.checks.persona_rules import drafted
from pipeline.generate.checks import judge
from pipeline.generate.persona_cards import persona_card
from pipeline.media import pictures
from pipeline.plugins import Refused
from pipeline.render.image import render
from pipeline.render.plan import Media
from pipeline.render.portrait import UnusablePicture
from pipeline.text.normalization import seen_text
from pipeline.writers.base import Writer

if TYPE_CHECKING:
    from pipeline.engines.base import Draft, PersonaCard
    from pipeline.models import Persona


@dataclass(frozen=True)
class Tried:
    """One engine's sample: the words, the PNG where it draws them, and what stands against it, in sentences."""

    engine: str
    words: str = ""
    picture: bytes | None = None
    faults: tuple[str, ...] = ()


def try_out(persona: Persona, text: str) -> list[Tried]:
    """A sample of every engine that makes something of text alone."""
    card = persona_card(persona.pk, persona.version)
    source = SourceText(
        title="",
        text=seen_text(text, "text"),
        url="",
        author="",
        language=persona.language,
        published_at=None,
    )
    portrait, warnings = pictures.portrait_of(persona.workspace_id, card)
    return [
        _try(engine, source, card, portrait, tuple(check.message for check in warnings))
        for engine in plugins.every("engines", Engine)
        if "text" in engine.made_from
    ]


def _try(
    engine: Engine, source: SourceText, card: PersonaCard, portrait: bytes | None, warnings: tuple[str, ...]
) -> Tried:
    reason = engine.why_not(source) or engine.unshown(source)
    if reason is not None:
        return Tried(engine.name, faults=(reason,))
    try:
        return _write(engine, source, card, portrait, warnings)
    except Refused as refused:
        return Tried(engine.name, faults=(refused.message,))


def _write(
    engine: Engine, source: SourceText, card: PersonaCard, portrait: bytes | None, warnings: tuple[str, ...]
) -> Tried:
    brief = plugins.get("writers", "extractive", Writer).brief(source).brief
    drafts = drafted(engine, brief, card, variants=1, seed=source.text[:100])
    if not drafts:
        return Tried(engine.name, faults=("No sentence of these words keeps all rules of the persona.",))
    draft = drafts[0]
    faults = tuple(
        check.message for check in judge(engine, draft, brief, source, card) if check.outcome == "failed"
    )
    if faults or not engine.sizes:
        return Tried(engine.name, draft.body, faults=faults)
    try:
        return Tried(engine.name, draft.body, _draw(engine, draft, card, portrait), warnings)
    except UnusablePicture as unusable:
        return Tried(engine.name, draft.body, _draw(engine, draft, card, None), (unusable.message,))


def _draw(engine: Engine, draft: Draft, card: PersonaCard, portrait: bytes | None) -> bytes | None:
    """The last of the engine's sizes, which is the squarest."""
    layout = engine.plan(draft, card, Media(has_portrait=portrait is not None, size=engine.sizes[-1]))
    return render(layout, portrait=portrait)[0].bytes if layout is not None else None
