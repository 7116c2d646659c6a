"""What decides over a draft: the engine's rules, and the persona's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.engines.persona_rules import check_persona

if TYPE_CHECKING:
    from pipeline.engines.base import Brief, Check, Draft, Engine, PersonaCard, SourceText


def judge(
    engine: Engine, draft: Draft, brief: Brief, source: SourceText, persona: PersonaCard
) -> tuple[Check, ...]:
    """Every rule with its outcome; one that failed stops the draft."""
    return (*engine.check(draft, brief, source, persona), *check_persona(draft, persona))
