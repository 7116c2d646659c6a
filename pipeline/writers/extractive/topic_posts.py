"""Makes posts without a model from a topic: the sentences of its notes and evidence, as from a source."""

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

_MAX_DRAFTS_TRIED: Final = 24
"""Drafts of one topic that are tried to find one that wasn't said recently."""


def topic_sentences(brief: Brief) -> tuple[Fact, ...]:
    """Return what the topic's notes and evidence say, in their order, without sentences that only repeat its
    title.
    """
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
    """Return at most `variants` drafts whose every claim is a sentence of the topic's notes or evidence.

    `rank` returns the most telling sentences of a text with a title, best first. Drafts that `judge` fails
    are skipped; if all that are left only repeat earlier items, one of them is returned, so that the caller
    can change the topic. Raises `Refused` if the topic says too little for the engine.
    """
    facts = _ranked_sentences(brief, rank)
    length = sum(len(fact.quote) for fact in facts)
    topic_brief = replace(brief, facts=facts, characters=length)
    drafts = draft_without_model(engine, topic_brief, persona, variants=_MAX_DRAFTS_TRIED, seed=seed)
    accepted: list[Draft] = []
    repeated: list[Draft] = []
    faults: list[str] = []
    # A draft without claims is the topic's title, which says nothing about it.
    for draft in (candidate for candidate in drafts if candidate.claims):
        failed = [] if judge is None else [check for check in judge(draft) if check.outcome == "failed"]
        if not failed:
            accepted.append(draft)
        elif all(check.code == REPETITION for check in failed):
            repeated.append(draft)
        else:
            faults += [check.message for check in failed]
        if len(accepted) == variants:
            break
    if accepted or repeated:
        return tuple(accepted or repeated[:1])
    fault = f" {faults[0]}" if faults else ""
    message = (
        f"The notes and evidence of the topic have no sentence that could stand as a {engine.name}.{fault} Add whole "
        "sentences to them."
    )
    raise Refused(message, code="nothing_to_say")


def _ranked_sentences(brief: Brief, rank: Callable[[str, str], Sequence[str]]) -> tuple[Fact, ...]:
    """Return the topic's most telling sentences, best first."""
    facts = topic_sentences(brief)
    rank_by_quote: dict[str, int] = {}
    for quote in rank("\n\n".join(fact.quote for fact in facts), brief.title):
        rank_by_quote.setdefault(quote, len(rank_by_quote))
    # A sentence that isn't among the most telling ones repeats another, or says little.
    return tuple(
        sorted(
            (fact for fact in facts if fact.quote in rank_by_quote),
            key=lambda fact: rank_by_quote[fact.quote],
        )
    )
