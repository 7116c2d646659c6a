"""Parses the lines of a film's story from a body, and chooses them from a source: hook, passages and call.

A persona tells the story, in sentences that stand alone.
"""

from __future__ import annotations

import math
import re
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Final

from pipeline.engines.checks.persona_rules import first_person_in
from pipeline.engines.shared.film_parts import choose_title
from pipeline.engines.shared.source_sentences import FactSentence, polish_sentence, standalone_sentences
from pipeline.plugins import Refused
from pipeline.render.audio import narration
from pipeline.render.audio.narration import NarrationScript
from pipeline.render.typography.clusters import undrawable_clusters
from pipeline.render.typography.punctuation import typeset
from pipeline.render.video.templates.telling import CALL_SECONDS, CALL_WORDS, MAX_PASSAGES, SLOTS, Telling
from pipeline.text.links import find_links
from pipeline.text.prose.sentences import sentence_continues, statements_in
from pipeline.text.prose.verbatim_edits import (
    count_words,
    counted,
    display_width,
    is_clean,
    is_self_contained,
    paragraph_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipeline.engines.base import Brief, Draft, PersonaCard

STORY_WORDS: Final = (70, 110)
"""The shortest and the longest good story, which takes 20 to 45 seconds."""
MARGIN_WORDS: Final = 5
"""A story that has so many words more than the minimum gets no further sentence.

A model is asked to keep this distance from both limits.
"""
MAX_SENTENCE_CHARACTERS: Final = 220
"""A longer sentence isn't told."""
_MIN_FIRST_PASSAGE_WORDS: Final = 12
"""A shorter first passage is used only if the sentences can't be divided otherwise."""
_MIN_LINES: Final = 3
"""The lines of the shortest body: hook, one passage, end card."""
_WORD: Final = re.compile(r"\w+(?:['’]\w+)*")


def telling_of(draft: Draft) -> Telling:
    """Return the parts of a body, one per line. Raises `Refused` if there are too few or too many lines.

    The line before the end card is the call to action if it is short enough and isn't the only passage.
    """
    lines = [line for raw_line in draft.body.splitlines() if (line := raw_line.strip())]
    passages = lines[1:-1]
    call = passages.pop() if len(passages) > 1 and _is_call(passages[-1]) else ""
    if len(lines) < _MIN_LINES or len(passages) > MAX_PASSAGES:
        message = (
            f"A line each: the hook, one to {MAX_PASSAGES} passages, a call to action of at most {CALL_WORDS} words "
            f"where there is one, the end card. The text has {counted(len(lines), 'line')}, {counted(len(passages), 'passage')} among them."
        )
        raise Refused(message, code="wrong_count")
    return Telling(lines[0], tuple(passages), call, lines[-1])


def _is_call(line: str) -> bool:
    return call_fault(line) is None


def call_fault(line: str) -> str | None:
    """Return why a line can't be a call to action, too long or without a spoken word, or `None` if it can."""
    words = len(line.split())
    if words > CALL_WORDS:
        return f"The call to action has {words} words; the maximum is {CALL_WORDS}."
    spoken_words = narration.silent(NarrationScript((line,), "")).words
    if not spoken_words:
        return "The call to action has no word that can be said."
    if spoken_words[-1].end > CALL_SECONDS:
        seconds = math.ceil(10 * spoken_words[-1].end) / 10
        return f"The call to action takes {seconds:.1f} seconds to say; the maximum is {CALL_SECONDS:g}."
    return None


def tellable_words(text: str, language: str) -> int:
    """Return the number of words in sentences that are short enough to be told and stand alone."""
    return sum(
        count_words(sentence)
        for start, end in statements_in(text)
        if _is_tellable(
            sentence := polish_sentence(text[start:end], is_cut=sentence_continues(text, end)), language
        )
    )


def _is_tellable(sentence: str, language: str) -> bool:
    return (
        len(sentence) <= MAX_SENTENCE_CHARACTERS
        and _WORD.search(sentence) is not None
        and is_clean(sentence)
        and not find_links(sentence)
        and is_self_contained(sentence, language)
    )


def usable_sentences(brief: Brief, persona: PersonaCard) -> list[FactSentence]:
    """Return the sentences that can be told, best first; those in the first person only for a brand lane."""
    return [
        sentence
        for sentence in standalone_sentences(brief, persona, MAX_SENTENCE_CHARACTERS, count=len)
        if not undrawable_clusters(typeset(sentence.words, brief.language))
        and (brief.lane is not None or not first_person_in(sentence.words, brief.language))
    ]


def hook_of(brief: Brief, persona: PersonaCard, usable: Sequence[FactSentence]) -> str | None:
    """Return the source's title, else the first short sentence, or `None` if there is neither.

    A title in the first person is skipped, because it speaks for the author; a brand lane's is used.
    """
    texts = [sentence.words for sentence in usable]
    max_width = SLOTS["hook"].characters
    title = choose_title(brief, persona, texts, max_width=max_width)
    if title is not None and brief.lane is None and first_person_in(title, brief.language):
        return next((candidate for candidate in texts if display_width(candidate) <= max_width), None)
    return title


def choose_sentences(usable: Sequence[FactSentence], *, min_words: int) -> list[FactSentence]:
    """Return the best sentences that together are as long as a story, or none if they have under `min_words`."""
    chosen: list[FactSentence] = []
    count = 0
    for sentence in usable:
        words = count_words(sentence.words)
        if count + words <= STORY_WORDS[1] - CALL_WORDS:
            chosen.append(sentence)
            count += words
        if count >= STORY_WORDS[0] + MARGIN_WORDS:
            break
    return chosen if count >= min_words else []


def split_into_passages(chosen: Sequence[FactSentence]) -> tuple[str, ...]:
    """Return the sentences in at most three passages: no short first one, and the longest as short as possible."""
    word_counts = [count_words(sentence.words) for sentence in chosen]

    def unevenness(edges: tuple[int, ...]) -> tuple[bool, list[int]]:
        run_lengths = [sum(word_counts[start:end]) for start, end in _runs(edges, len(word_counts))]
        # A short first run comes last, since the hook may cover the beginning of the first passage.
        return run_lengths[0] < _MIN_FIRST_PASSAGE_WORDS, sorted(run_lengths, reverse=True)

    count = min(MAX_PASSAGES, len(chosen))
    best_edges = min(combinations(range(1, len(chosen)), count - 1), key=unevenness)
    return tuple(
        paragraph_of(sentence.words for sentence in chosen[start:end])
        for start, end in _runs(best_edges, len(chosen))
    )


def _runs(edges: tuple[int, ...], length: int) -> Iterator[tuple[int, int]]:
    return pairwise((0, *edges, length))
