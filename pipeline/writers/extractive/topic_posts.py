"""Posts without a model from what a topic itself says: the sentences of its notes and evidence, as of a source."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pipeline.engines.base import EVIDENCE, OF_TOPIC
from pipeline.engines.shared.offline_drafts import draft_without_model
from pipeline.plugins import Refused
from pipeline.writers.approved_line_drafts import REPETITION

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipeline.engines.base import Brief, Draft, Engine, Fact, PersonaCard
    from pipeline.writers.base import Judge

_TRIED: Final = 24
"""Drafts of one topic that are looked through for what wasn't said of late."""


def sentences_of(brief: Brief) -> tuple[Fact, ...]:
    """What the topic's notes and evidence say, in their order; its title says nothing of it."""
    title = brief.lane.topic.strip() if brief.lane is not None else ""
    return tuple(fact for fact in brief.facts if fact.kind in {OF_TOPIC, EVIDENCE} and fact.quote != title)


def topic_drafts(
    engine: Engine,
    brief: Brief,
    persona: PersonaCard,
    *,
    variants: int,
    seed: str,
    judge: Judge | None,
    rank: Callable[[str, str], Sequence[str]],
) -> tuple[Draft, ...]:
    """Drafts whose every claim is a sentence of the topic's notes or evidence; at most `variants`.

    `rank` gives the sentences of a text that say most, best first, for a title. What `judge` fails is passed by; where
    all that is left was said of late, one such draft is returned, so that the caller can turn to another topic. Raises
    `Refused` where the topic says too little for the engine.
    """
    facts = _ranked(brief, rank)
    length = sum(len(fact.quote) for fact in facts)
    told = replace(brief, facts=facts, characters=length)
    drafts = draft_without_model(engine, told, persona, variants=_TRIED, seed=seed)
    kept: list[Draft] = []
    repeated: list[Draft] = []
    faults: list[str] = []
    # A draft without claims is the topic's title, which says nothing of it.
    for draft in (one for one in drafts if one.claims):
        failed = [] if judge is None else [check for check in judge(draft) if check.outcome == "failed"]
        if not failed:
            kept.append(draft)
        elif all(check.code == REPETITION for check in failed):
            repeated.append(draft)
        else:
            faults += [check.message for check in failed]
        if len(kept) == variants:
            break
    if kept or repeated:
        return tuple(kept or repeated[:1])
    fault = f" {faults[0]}" if faults else ""
    message = (
        f"The notes and evidence of the topic have no sentence that could stand as a {engine.name}.{fault} Add whole "
        "sentences to them."
    )
    raise Refused(message, code="nothing_to_say")


def _ranked(brief: Brief, rank: Callable[[str, str], Sequence[str]]) -> tuple[Fact, ...]:
    facts = sentences_of(brief)
    places: dict[str, int] = {}
    for quote in rank("\n\n".join(fact.quote for fact in facts), brief.title):
        places.setdefault(quote, len(places))
    # What isn't among the most telling ones says the same again, or little.
    return tuple(sorted((fact for fact in facts if fact.quote in places), key=lambda one: places[one.quote]))
