"""Posts without a model and without a source: approved lines of the persona, word for word."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pipeline.engines.base import APPROVED
from pipeline.plugins import Refused
from pipeline.text.prose.verbatim_edits import collapse

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipeline.engines.base import Brief, Draft, Engine, Fact, PersonaCard
    from pipeline.writers.base import Judge

NEEDS_AI: Final = "needs_ai"
LINES_USED_UP: Final = "lines_used_up"
REPETITION: Final = "repetition"
"""The check that a judge fails where the persona has said such a thing of late."""
_LIKENESS: Final = 0.4
"""Two variants that share this much of their words are one idea twice."""
_WORD: Final = re.compile(r"[^\W_]{3,}")


def approved_drafts(
    engine: Engine, brief: Brief, persona: PersonaCard, *, variants: int, seed: str, judge: Judge | None
) -> tuple[Draft, ...]:
    """Drafts that are approved lines word for word, those first that say most of the topic's words.

    A line that the engine would have to cut or that `judge` fails is passed by. Raises `Refused`: `needs_ai` without
    any approved line, and for what is made of a source alone; `lines_used_up` where each was said of late;
    `nothing_to_say` where none fits, or too few speak of the topic for what is made of several.
    """
    if not engine.least_lines:
        message = (
            f"Without a model a {engine.name} is taken from a source, and a topic has none. Enter a key for the model in "
            "the workspace's settings."
        )
        raise Refused(message, code=NEEDS_AI)
    lines = [fact for fact in brief.facts if fact.kind == APPROVED]
    if not lines:
        message = (
            "Without a model only approved lines of the persona and what the topic's notes and evidence say may be said, "
            "and there is neither. Add approved lines to the persona or notes to the topic, or enter a key for the model "
            "in the workspace's settings."
        )
        raise Refused(message, code=NEEDS_AI)
    kept: list[Draft] = []
    repeated = 0
    make = _whole_lines if engine.least_lines == 1 else _together
    for draft in make(engine, brief, persona, lines, seed):
        failed = [] if judge is None else [check.code for check in judge(draft) if check.outcome == "failed"]
        repeated += REPETITION in failed
        if not failed and not any(_is_alike(draft.body, other.body) for other in kept):
            kept.append(draft)
        if len(kept) == variants:
            break
    if kept:
        return tuple(kept)
    if repeated:
        message = (
            "Every approved line that fits was said in the last 90 days. Add approved lines to the persona, or enter a "
            "key for the model in the workspace's settings."
        )
        raise Refused(message, code=LINES_USED_UP)
    message = (
        f"None of the persona's approved lines can stand as a {engine.name} by its rules and the persona's."
    )
    raise Refused(message, code="nothing_to_say")


def _whole_lines(
    engine: Engine, brief: Brief, persona: PersonaCard, lines: Sequence[Fact], seed: str
) -> Iterator[Draft]:
    for line in _ranked(brief, lines):
        try:
            drafts = engine.offline(replace(brief, facts=(line,)), persona, variants=1, seed=seed)
        except Refused:
            continue
        for draft in drafts:
            if collapse(line.quote) in collapse(draft.body):
                yield draft


def _together(
    engine: Engine, brief: Brief, persona: PersonaCard, lines: Sequence[Fact], seed: str
) -> Iterator[Draft]:
    """Drafts of several lines that all speak of the topic; of others nobody would see why they stand together."""
    about = _about(brief)
    near = [line for line in _ranked(brief, lines) if shared_words(line.quote, about)]
    if len(near) < engine.least_lines:
        message = (
            f"Without a model a {engine.name} is made of {engine.least_lines} approved lines or more that speak of the "
            f"topic; the persona has {len(near)}. Add approved lines, or enter a key for the model in the workspace's "
            "settings."
        )
        raise Refused(message, code="nothing_to_say")
    drafts = engine.offline(replace(brief, facts=tuple(near)), persona, variants=len(near), seed=seed)
    for draft in drafts:
        body = collapse(draft.body)
        if all(collapse(claim.quote) in body for claim in draft.claims):
            yield draft


def _ranked(brief: Brief, lines: Sequence[Fact]) -> list[Fact]:
    about = _about(brief)

    def rank(line: Fact) -> tuple[int, bytes]:
        # Among lines that say equally much of the topic, chance decides, and the same each time: for a further
        # variant one more is asked for, and the last one taken.
        return -shared_words(line.quote, about), hashlib.sha256(f"{about}\x00{line.quote}".encode()).digest()

    return sorted(lines, key=rank)


def _about(brief: Brief) -> str:
    return f"{brief.title} {brief.lane.angle if brief.lane else ''}"


def shared_words(line: str, about: str) -> int:
    """How many words of three letters or more both have."""
    return len(_words(line) & _words(about))


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))


def _is_alike(one: str, other: str) -> bool:
    words, others = _words(one), _words(other)
    return len(words & others) >= _LIKENESS * len(words | others)
