"""Drafts without a model: the engine's own, and which of the persona's rules leaves fewer of them."""

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
    """The engine's drafts without a model.

    A question is asked for the answer that follows it, so one is taken only where the persona wants it or there are fewer
    drafts without. Raises `Refused` as the engine does; where only the persona's rules stand in the way, the message names
    them.
    """
    told = brief if _wants_questions(engine, persona) else _without_questions(brief)
    answers: tuple[Draft, ...] = ()
    if told.facts and told != brief:
        with suppress(Refused):
            answers = engine.offline(told, persona, variants=variants, seed=seed)
        if len(answers) == variants:
            return answers
    try:
        drafts = engine.offline(brief, persona, variants=variants, seed=seed)
    except Refused as refused:
        if answers:
            return answers
        kept_out = blocking_rule(engine, brief, persona, variants=1, seed=seed)
        if kept_out is None:
            raise
        message = f"The source's sentences don't keep the persona's rules as a {engine.name}: {kept_out}"
        raise Refused(message, code=refused.code) from refused
    return drafts if len(drafts) > len(answers) else answers


def _wants_questions(engine: Engine, persona: PersonaCard) -> bool:
    return engine.takes_stretches or any(
        one.get("kind") == "ends_with_question" for one in persona.required_structures
    )


def _without_questions(brief: Brief) -> Brief:
    return replace(brief, facts=tuple(fact for fact in brief.facts if not is_question(fact.text)))


def blocking_rule(
    engine: Engine, brief: Brief, persona: PersonaCard, *, variants: int, seed: str
) -> str | None:
    """Which of the persona's rules leaves fewer than `variants` drafts; None where the source has no more without them."""
    if not persona.banned_words and not persona.required_structures:
        return None
    free = replace(persona, banned_words=(), required_structures=())
    try:
        drafts = engine.offline(brief, free, variants=variants, seed=seed)
    except Refused:
        return None
    if len(drafts) < variants:
        return None
    for draft in drafts:
        faults = [check.message for check in check_persona(draft, persona) if check.outcome == "failed"]
        if faults := faults or list(missing_in(draft.body, persona)):
            return " ".join(faults)
    return None
