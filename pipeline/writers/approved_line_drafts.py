"""Drafts posts without a model and without a source, as approved lines of the persona, word for word."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pipeline.engines.base import APPROVED
from pipeline.plugins import Refused
from pipeline.text.prose.verbatim_edits import collapse
from pipeline.text.similarity import is_same_idea

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipeline.engines.base import Brief, Draft, Engine, Fact, PersonaCard
    from pipeline.writers.base import Judge

NEEDS_AI: Final = "needs_ai"
"""Code of the refusal if only a model could write the draft."""
LINES_USED_UP: Final = "lines_used_up"
"""Code of the refusal if every line that fits repeats a recent item."""
REPETITION: Final = "repetition"
"""Code of the check that fails a draft similar to a recent item."""
_WORD: Final = re.compile(r"[^\W_]{3,}")


def draft_approved_lines(
    engine: Engine, brief: Brief, persona: PersonaCard, *, variants: int, seed: str, judge: Judge | None
) -> tuple[Draft, ...]:
    """Return drafts that are approved lines word for word, the most relevant to the topic first.

    A line that the engine would have to cut, that `judge` fails, or that is like another draft is skipped. Raises
    `Refused`, with the code `needs_ai` if there is no approved line or the engine needs a source, `lines_used_up`
    if a line that fits repeats a recent item, and `nothing_to_say` if none fits, or if too few are about the topic
    for an engine that needs several.
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
    accepted: list[Draft] = []
    repeated = 0
    make_drafts = _single_line_drafts if engine.least_lines == 1 else _several_line_drafts
    for draft in make_drafts(engine, brief, persona, lines, seed):
        failed = [] if judge is None else [check.code for check in judge(draft) if check.outcome == "failed"]
        repeated += REPETITION in failed
        if not failed and not any(_is_same_idea(draft.body, earlier.body) for earlier in accepted):
            accepted.append(draft)
        if len(accepted) == variants:
            break
    if accepted:
        return tuple(accepted)
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


def _single_line_drafts(
    engine: Engine, brief: Brief, persona: PersonaCard, lines: Sequence[Fact], seed: str
) -> Iterator[Draft]:
    """Yield drafts of one line each; lines that the engine refuses or cuts are left out."""
    for line in _rank_by_topic(brief, lines):
        try:
            drafts = engine.offline(replace(brief, facts=(line,)), persona, variants=1, seed=seed)
        except Refused:
            continue
        for draft in drafts:
            if collapse(line.quote) in collapse(draft.body):
                yield draft


def _several_line_drafts(
    engine: Engine, brief: Brief, persona: PersonaCard, lines: Sequence[Fact], seed: str
) -> Iterator[Draft]:
    """Yield drafts of several lines that are all about the topic, without those that the engine has cut.

    Unrelated lines wouldn't make sense together. Raises `Refused` if there are fewer than the engine needs, or if
    the engine refuses them.
    """
    topic_text = _topic_words(brief)
    relevant = [line for line in _rank_by_topic(brief, lines) if count_shared_words(line.quote, topic_text)]
    if len(relevant) < engine.least_lines:
        message = (
            f"Without a model a {engine.name} is made of {engine.least_lines} approved lines or more that speak of the "
            f"topic; the persona has {len(relevant)}. Add approved lines, or enter a key for the model in the workspace's "
            "settings."
        )
        raise Refused(message, code="nothing_to_say")
    drafts = engine.offline(replace(brief, facts=tuple(relevant)), persona, variants=len(relevant), seed=seed)
    for draft in drafts:
        body = collapse(draft.body)
        if all(collapse(claim.quote) in body for claim in draft.claims):
            yield draft


def _rank_by_topic(brief: Brief, lines: Sequence[Fact]) -> list[Fact]:
    """Return the lines, the most relevant to the topic first."""
    topic_text = _topic_words(brief)

    def rank(line: Fact) -> tuple[int, bytes]:
        # Lines that are equally relevant are ordered by a hash: by chance, but the same each time. A further
        # variant asks for one more line and takes the last one.
        return -count_shared_words(line.quote, topic_text), hashlib.sha256(
            f"{topic_text}\x00{line.quote}".encode()
        ).digest()

    return sorted(lines, key=rank)


def _topic_words(brief: Brief) -> str:
    """Return the text that lines are compared with: the topic's title and its angle."""
    return f"{brief.title} {brief.lane.angle if brief.lane else ''}"


def count_shared_words(line: str, other: str) -> int:
    """Return how many different words of three characters or more both texts have."""
    return len(_words(line) & _words(other))


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))


def _is_same_idea(body: str, other: str) -> bool:
    """Return whether both texts share enough words to say the same."""
    return is_same_idea(_words(body), _words(other))
