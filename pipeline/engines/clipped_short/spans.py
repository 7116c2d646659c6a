"""Finds the stretches of a talk that make a film: whole sentences in sequence, 15 to 60 seconds long."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from pipeline.engines.base import Fact
from pipeline.engines.checks.allowed_contacts import is_allowed
from pipeline.render.audio.transcript_sentences import sentences, text_of
from pipeline.render.video.material import VideoSpan
from pipeline.text.links import find_links
from pipeline.text.prose.verbatim_edits import collapse, is_balanced, is_clean, opens_dangling

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.engines.base import Brief, PersonaCard, SourceText

MIN_SECONDS: Final = 15.0
MAX_SECONDS: Final = 60.0
BEST_SECONDS: Final = (25.0, 50.0)
"""The shortest and the longest film that is watched to its end and says something."""
PAD_SECONDS: Final = 0.15
"""The time added before the first word and after the last, if nobody speaks then."""
MAX_SHOWN_CHARACTERS: Final = 60_000
"""The part of a transcript from which a model chooses; of a longer transcript it gets the best stretches."""

_WORD: Final = re.compile(r"[^\W\d_]{4,}")
_FIGURE: Final = re.compile(r"\d")
_ASIDE: Final = re.compile(
    r"\b(?:subscribe|sponsor|sponsored|like button|links? below|description below|follow (?:us|me)|sign up|"
    r"newsletter|patreon|(?:welcome|we are|we're) back|before we start|wrote in|today i want to|i promised|this episode)\b",
    re.IGNORECASE,
)
_UNFINISHED: Final = re.compile(
    r"[,;:\-\u2013\u2014]$|\b(?:and|but|so|because|or|the|a|to|of)$", re.IGNORECASE
)
_POINTING: Final = re.compile(r"\b(?:them|they|him|her|hers|it|those|these|his|their)\b", re.IGNORECASE)
_MIN_PAUSE_SECONDS: Final = 0.3
"""The shortest pause that separates two thoughts."""
_ROUNDING_SECONDS: Final = 0.002
"""The tolerance for times that were rounded to thousandths."""


@dataclass(frozen=True)
class FactRange:
    """Consecutive facts of a brief, `facts[first:last]`, with a score."""

    first: int
    last: int
    score: float = 0.0

    def overlaps(self, other: FactRange) -> bool:
        return self.first < other.last and other.first < self.last


def sentences_in(source: SourceText) -> tuple[Fact, ...]:
    """Return the sentences said in the raw item's video, with their offsets in the text and their seconds.

    There are none if there is no transcript, or if the text doesn't contain the transcript's words.
    """
    clip = source.material.spoken if source.material is not None else None
    if clip is None:
        return ()
    base = source.text.rfind(text_of(clip.words))
    if base < 0:
        return ()
    # Offsets of the words in the text.
    starts = [0, *accumulate(len(word.t) + 1 for word in clip.words)]
    return tuple(
        Fact(
            id=f"s{number}",
            text=sentence.text,
            quote=sentence.text,
            start=base + starts[sentence.first],
            end=base + starts[sentence.first] + len(sentence.text),
            kind="spoken",
            seconds=(sentence.start, sentence.end),
        )
        for number, sentence in enumerate(sentences(clip.words), start=1)
    )


def score_sentences(sentences: Sequence[Fact], facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """Return the sentences with scores, by the rank of the facts in them and by the talk's recurring words."""
    word_counts = Counter(
        word for sentence in sentences for word in set(_WORD.findall(sentence.text.lower()))
    )
    facts_by_rank = dict(enumerate(facts))
    return tuple(
        Fact(
            sentence.id,
            sentence.text,
            sentence.quote,
            sentence.start,
            sentence.end,
            sentence.kind,
            round(
                _subject_score(sentence, word_counts, len(sentences)) + _fact_score(sentence, facts_by_rank),
                4,
            ),
            sentence.seconds,
        )
        for sentence in sentences
    )


def _subject_score(sentence: Fact, word_counts: Counter[str], count: int) -> float:
    """Return a score of the sentence's recurring words and figures, 0 to 0.5; the talk has `count` sentences."""
    words = _WORD.findall(sentence.text.lower())
    if not words:
        return 0.0
    # A word that recurs is the subject; a word in every other sentence is only language.
    weight = sum(
        math.log1p(word_counts[word]) for word in words if 1 < word_counts[word] <= max(2, count // 3)
    )
    return min(0.5, 0.15 * weight / math.sqrt(len(words)) + 0.1 * (_FIGURE.search(sentence.text) is not None))


def _fact_score(sentence: Fact, facts_by_rank: dict[int, Fact]) -> float:
    """Return the score of the best fact that the sentence overlaps: 1 for the first, towards 0.5, or 0 for none."""
    for rank, fact in facts_by_rank.items():
        if fact.start < sentence.end and sentence.start < fact.end:
            return 1.0 - 0.5 * rank / max(len(facts_by_rank), 1)
    return 0.0


def find_stretches(sentences: Sequence[Fact], brief: Brief, persona: PersonaCard) -> list[FactRange]:
    """Return every stretch of usable sentences that may be a film, best first."""
    usable = [_is_usable(sentence.text, brief, persona) for sentence in sentences]
    stretches: list[FactRange] = []
    for first in range(len(sentences)):
        total_score = 0.0
        for last in range(first + 1, len(sentences) + 1):
            if not usable[last - 1] or not are_consecutive(sentences, first, last):
                break
            seconds = seconds_of(sentences, first, last)
            if seconds > MAX_SECONDS:
                break
            total_score += sentences[last - 1].score
            if seconds >= MIN_SECONDS:
                stretches.append(
                    FactRange(first, last, round(_score(sentences, first, last, total_score), 4))
                )
    return sorted(stretches, key=lambda stretch: (-stretch.score, stretch.first, stretch.last))


def _is_usable(sentence: str, brief: Brief, persona: PersonaCard) -> bool:
    is_order = any(sentence in order for order in brief.orders)
    return (
        is_clean(sentence)
        and not is_order
        and not find_links(sentence)
        and is_allowed(sentence, brief, persona)
    )


def _score(sentences: Sequence[Fact], first: int, last: int, total_score: float) -> float:
    """Return a stretch's score: the mean of its sentences', and points for beginning, end, pauses and length."""
    opening, ending = sentences[first].text, sentences[last - 1].text
    seconds = seconds_of(sentences, first, last)
    stands_alone = not opens_dangling(opening) and _POINTING.search(opening) is None
    begins_after_pause = _pause_at(sentences, first) >= _MIN_PAUSE_SECONDS
    ends_before_pause = _pause_at(sentences, last) >= _MIN_PAUSE_SECONDS
    score = total_score / (last - first)
    score += 0.35 * stands_alone + 0.15 * is_balanced(opening)
    score += 0.15 * (_FIGURE.search(opening) is not None) + 0.1 * opening.endswith("?")
    score += 0.2 * (_UNFINISHED.search(ending.rstrip()) is None) - 0.2 * ending.endswith("?")
    score -= 0.8 * any(_ASIDE.search(sentence.text) is not None for sentence in sentences[first:last])
    score += 0.1 * begins_after_pause + 0.1 * ends_before_pause
    excess_seconds = max(BEST_SECONDS[0] - seconds, seconds - BEST_SECONDS[1], 0.0)
    return score - 0.06 * excess_seconds


def _pause_at(sentences: Sequence[Fact], edge: int) -> float:
    """Return the seconds of silence at an edge between sentences; the talk's start and end count as one second."""
    if not 0 < edge < len(sentences):
        return 1.0
    return start_of(sentences[edge]) - end_of(sentences[edge - 1])


def choose_stretches(stretches: Sequence[FactRange], limit: int) -> list[FactRange]:
    """Return the best stretches, at most `limit`, none of which shares a sentence with another."""
    chosen: list[FactRange] = []
    for stretch in stretches:
        if len(chosen) == limit:
            break
        if not any(stretch.overlaps(other) for other in chosen):
            chosen.append(stretch)
    return chosen


def is_too_long(sentences: Sequence[Fact]) -> bool:
    """Return whether the transcript is longer than what a model should read to choose."""
    return sum(len(sentence.text) for sentence in sentences) > MAX_SHOWN_CHARACTERS


def are_consecutive(sentences: Sequence[Fact], first: int, last: int) -> bool:
    """Return whether `sentences[first:last]` has every sentence of the talk between its first and its last."""
    return (
        last <= first
        or _sentence_number(sentences[last - 1]) - _sentence_number(sentences[first]) == last - 1 - first
    )


def _sentence_number(sentence: Fact) -> int:
    return int(sentence.id[1:])


def select_sentences(sentences: Sequence[Fact], stretches: Sequence[FactRange]) -> tuple[Fact, ...]:
    """Return the sentences of the best stretches, in order, that together have `MAX_SHOWN_CHARACTERS` at most."""
    chosen_indexes: set[int] = set()
    remaining_characters = MAX_SHOWN_CHARACTERS
    for stretch in stretches:
        new_indexes = [index for index in range(stretch.first, stretch.last) if index not in chosen_indexes]
        cost = sum(len(sentences[index].text) for index in new_indexes)
        if cost > remaining_characters:
            break
        chosen_indexes.update(new_indexes)
        remaining_characters -= cost
    return tuple(sentences[index] for index in sorted(chosen_indexes))


def seconds_of(sentences: Sequence[Fact], first: int, last: int) -> float:
    """Return the length of the stretch with its padding, in seconds."""
    return end_of(sentences[last - 1]) - start_of(sentences[first]) + 2 * PAD_SECONDS


def span_of(name: str, sentences: Sequence[Fact], first: int, last: int) -> VideoSpan:
    """Return the stretch as a span of the video, with padding at both ends that reaches into no other sentence."""
    start, end = start_of(sentences[first]), end_of(sentences[last - 1])
    before = end_of(sentences[first - 1]) if first else 0.0
    after = start_of(sentences[last]) if last < len(sentences) else end + PAD_SECONDS
    return VideoSpan(
        name,
        round(max(start - PAD_SECONDS, min(before, start), 0.0), 3),
        round(min(end + PAD_SECONDS, max(after, end)), 3),
    )


def is_on_edges(span: VideoSpan, sentences: Sequence[Fact]) -> bool:
    """Return whether the span begins and ends with a sentence, apart from the padding."""
    tolerance = PAD_SECONDS + _ROUNDING_SECONDS
    begins = any(-_ROUNDING_SECONDS <= start_of(sentence) - span.start <= tolerance for sentence in sentences)
    return begins and any(
        -_ROUNDING_SECONDS <= span.end - end_of(sentence) <= tolerance for sentence in sentences
    )


def clean_title(words: str) -> str:
    """Return the title on one line."""
    return collapse(words.replace("\n", " "))


def start_of(sentence: Fact) -> float:
    return sentence.seconds[0] if sentence.seconds is not None else 0.0


def end_of(sentence: Fact) -> float:
    return sentence.seconds[1] if sentence.seconds is not None else 0.0
