"""Makes drafts without a model, and finds which of the persona's rules leaves fewer of them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from pipeline.engines.checks.persona_rules import check_persona, missing_in
from pipeline.plugins import Refused
from pipeline.text.prose.verbatim_edits import is_question

if TYPE_CHECKING:
    from pipeline.engines.base import Brief, Draft, Engine, PersonaCard


def draft_without_model(
    engine: Engine, brief: Brief, persona: PersonaCard, *, variants: int, seed: str
) -> tuple[Draft, ...]:
    """Return the engine's drafts without a model.

    A question makes readers expect its answer, so questions are used only if the persona wants one, or if
    there are fewer drafts without. Raises `Refused` as the engine does; if only the persona's rules stand in
    the way, the message names them.
    """
    preferred_brief = brief if _wants_questions(engine, persona) else _without_questions(brief)
    preferred_drafts: tuple[Draft, ...] = ()
    if preferred_brief.facts and preferred_brief != brief:
        with suppress(Refused):
            preferred_drafts = engine.offline(preferred_brief, persona, variants=variants, seed=seed)
        if len(preferred_drafts) == variants:
            return preferred_drafts
    try:
        drafts = engine.offline(brief, persona, variants=variants, seed=seed)
    except Refused as refused:
        if preferred_drafts:
            return preferred_drafts
        rule = blocking_rule(engine, brief, persona, variants=1, seed=seed)
        if rule is None:
            raise
        message = f"The source's sentences don't keep the persona's rules as a {engine.name}: {rule}"
        raise Refused(message, code=refused.code) from refused
    return drafts if len(drafts) > len(preferred_drafts) else preferred_drafts


def _wants_questions(engine: Engine, persona: PersonaCard) -> bool:
    return engine.takes_stretches or any(
        structure.get("kind") == "ends_with_question" for structure in persona.required_structures
    )


def _without_questions(brief: Brief) -> Brief:
    return replace(brief, facts=tuple(fact for fact in brief.facts if not is_question(fact.text)))


def blocking_rule(
    engine: Engine, brief: Brief, persona: PersonaCard, *, variants: int, seed: str
) -> str | None:
    """Return which of the persona's rules leaves fewer than `variants` drafts; None if it is none of them."""
    if not persona.banned_words and not persona.required_structures:
        return None
    unrestricted = replace(persona, banned_words=(), required_structures=())
    try:
        drafts = engine.offline(brief, unrestricted, variants=variants, seed=seed)
    except Refused:
        return None
    if len(drafts) < variants:
        return None
    for draft in drafts:
        faults = [check.message for check in check_persona(draft, persona) if check.outcome == "failed"]
        if faults := faults or list(missing_in(draft.body, persona)):
            return " ".join(faults)
    return None
