"""Story lines are read from a body, and chosen from a source: the hook, the passages and the call of a film.

A persona tells them in it; lengths are in words and characters, and what can be told stands alone.
"""

from __future__ import annotations

import math
import re
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Final

from pipeline.engines.checks.persona_rules import first_person_in
from pipeline.engines.shared.film_parts import title_from
from pipeline.engines.shared.source_sentences import FactSentence, polish_sentence, standalone_sentences
from pipeline.plugins import Refused
from pipeline.render.audio import narration
from pipeline.render.audio.narration import NarrationScript
from pipeline.render.typography.clusters import undrawable_clusters
from pipeline.render.typography.punctuation import typeset
from pipeline.render.video.templates.telling import CALL_SECONDS, CALL_WORDS, MAX_PASSAGES, SLOTS, Telling
from pipeline.text.links import find_links
from pipeline.text.prose.sentences import goes_on, statements_in
from pipeline.text.prose.verbatim_edits import (
    count_words,
    counted,
    drawn_length,
    is_clean,
    is_self_contained,
    paragraph_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipeline.engines.base import Brief, Draft, PersonaCard

STORY_WORDS: Final = (70, 110)
"""The fewest and the most in which a story is told well: 20 to 45 seconds."""
MARGIN_WORDS: Final = 5
"""No sentence is added once a story has so many more than the fewest; a model is asked to stay within both ends."""
SENTENCE_CHARACTERS_MOST: Final = 220
"""A longer sentence isn't told."""
_FIRST_PASSAGE_WORDS_LEAST: Final = 12
"""A first passage with fewer is taken only where there is no other way to divide the sentences."""
_LINES_LEAST: Final = 3
"""Hook, one passage, end card."""
_WORD: Final = re.compile(r"\w+(?:['’]\w+)*")


def telling_of(draft: Draft) -> Telling:
    """The parts of a body, one a line. Raises `Refused` where there are too few or too many."""
    lines = [line for one in draft.body.splitlines() if (line := one.strip())]
    told = lines[1:-1]
    call = told.pop() if len(told) > 1 and _is_call(told[-1]) else ""
    if len(lines) < _LINES_LEAST or len(told) > MAX_PASSAGES:
        message = (
            f"A line each: the hook, one to {MAX_PASSAGES} passages, a call to action of at most {CALL_WORDS} words "
            f"where there is one, the end card. The text has {counted(len(lines), 'line')}, {counted(len(told), 'passage')} among them."
        )
        raise Refused(message, code="wrong_count")
    return Telling(lines[0], tuple(told), call, lines[-1])


def _is_call(line: str) -> bool:
    return why_not_a_call(line) is None


def why_not_a_call(line: str) -> str | None:
    """Why a line can't be told from a passage; None for one that is short enough for a call to action."""
    words = len(line.split())
    if words > CALL_WORDS:
        return f"The call to action has {words} words; {CALL_WORDS} are the most."
    said = narration.silent(NarrationScript((line,), "")).words
    if not said:
        return "The call to action has no word that can be said."
    if said[-1].end > CALL_SECONDS:
        seconds = math.ceil(10 * said[-1].end) / 10
        return f"The call to action takes {seconds:.1f} seconds to say; {CALL_SECONDS:g} are the most."
    return None


def tellable_words(text: str, language: str) -> int:
    """How many words stand in sentences that are short enough to be told and stand alone."""
    return sum(
        count_words(sentence)
        for start, end in statements_in(text)
        if _is_tellable(sentence := polish_sentence(text[start:end], is_cut=goes_on(text, end)), language)
    )


def _is_tellable(sentence: str, language: str) -> bool:
    return (
        len(sentence) <= SENTENCE_CHARACTERS_MOST
        and _WORD.search(sentence) is not None
        and is_clean(sentence)
        and not find_links(sentence)
        and is_self_contained(sentence, language)
    )


def usable_sentences(brief: Brief, persona: PersonaCard) -> list[FactSentence]:
    """What can be told, best first; what says “I” is told of the persona's own alone."""
    return [
        one
        for one in standalone_sentences(brief, persona, SENTENCE_CHARACTERS_MOST, count=len)
        if not undrawable_clusters(typeset(one.words, brief.language))
        and (brief.lane is not None or not first_person_in(one.words, brief.language))
    ]


def hook_of(brief: Brief, persona: PersonaCard, usable: Sequence[FactSentence]) -> str | None:
    """The source's title, or else a short sentence; one that says “I” is the author's."""
    said = [one.words for one in usable]
    most = SLOTS["hook"].characters
    title = title_from(brief, persona, said, most=most)
    if title is not None and brief.lane is None and first_person_in(title, brief.language):
        return next((one for one in said if drawn_length(one) <= most), None)
    return title


def chosen_sentences(usable: Sequence[FactSentence], *, least: int) -> list[FactSentence]:
    """The best that together are as long as a story is told; none where even all are too short."""
    chosen: list[FactSentence] = []
    count = 0
    for one in usable:
        words = count_words(one.words)
        if count + words <= STORY_WORDS[1] - CALL_WORDS:
            chosen.append(one)
            count += words
        if count >= STORY_WORDS[0] + MARGIN_WORDS:
            break
    return chosen if count >= least else []


def passages_of(chosen: Sequence[FactSentence]) -> tuple[str, ...]:
    """The sentences in at most three runs, of which the longest is as short as can be."""
    words = [count_words(one.words) for one in chosen]

    def unevenness(edges: tuple[int, ...]) -> tuple[bool, list[int]]:
        runs = [sum(words[start:end]) for start, end in _runs(edges, len(words))]
        # The hook may stand over the beginning of the first one.
        return runs[0] < _FIRST_PASSAGE_WORDS_LEAST, sorted(runs, reverse=True)

    count = min(MAX_PASSAGES, len(chosen))
    best = min(combinations(range(1, len(chosen)), count - 1), key=unevenness)
    return tuple(
        paragraph_of(one.words for one in chosen[start:end]) for start, end in _runs(best, len(chosen))
    )


def _runs(edges: tuple[int, ...], length: int) -> Iterator[tuple[int, int]]:
    return pairwise((0, *edges, length))
