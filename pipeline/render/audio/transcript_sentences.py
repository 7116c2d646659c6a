"""Splits a transcript's words into spoken sentences with their times."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, Final

from pipeline.text.prose.sentences import sentence_ends

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.render.video.storyboard import Word

MAX_SENTENCE_SECONDS: Final = 15.0
"""Seconds after which a stretch without a full stop is split, at the longest rest of the speaker."""
MIN_REST_SECONDS: Final = 0.5
"""Seconds without a word that end a sentence in a transcript without punctuation."""
MIN_STOPS_PER_WORD: Final = 1 / 40
"""With fewer sentence ends for each word, the transcript counts as unpunctuated."""


@dataclass(frozen=True)
class SpokenSentence:
    """The words `words[first:last]`, spoken from second `start` to second `end`; `text` joins them with blanks."""

    first: int
    last: int
    start: float
    end: float
    text: str

    @property
    def seconds(self) -> float:
        return self.end - self.start


def text_of(words: Sequence[Word]) -> str:
    """Return the spoken text, as it is stored in a raw item."""
    return " ".join(word.t for word in words)


def sentences(words: Sequence[Word]) -> tuple[SpokenSentence, ...]:
    """Return the sentences in order, with every word in one of them; they end at full stops, or at rests."""
    if not words:
        return ()
    edges = _edges_by_punctuation(words)
    is_punctuated = len(edges) - 1 >= MIN_STOPS_PER_WORD * len(words)
    starts: list[int] = [0]
    for first, last in pairwise(edges):
        starts += _split_long(words, first, last, by_rests=not is_punctuated)[1:]
    return tuple(
        SpokenSentence(first, last, words[first].start, words[last - 1].end, text_of(words[first:last]))
        for first, last in pairwise(starts)
    )


def _edges_by_punctuation(words: Sequence[Word]) -> list[int]:
    """Return the indexes of the words that begin a sentence, and one more for the end."""
    ends = set(sentence_ends(text_of(words)))
    edges, offset = [0], 0
    for number, word in enumerate(words, start=1):
        offset += len(word.t)
        if offset in ends and number < len(words):
            edges.append(number)
        offset += 1
    return [*edges, len(words)]


def _split_long(words: Sequence[Word], first: int, last: int, *, by_rests: bool) -> list[int]:
    """Return the index at which the stretch begins, those at which it is split, and the one at which it ends.

    With `by_rests` it is split at every long rest. Then each part that is too long is split at its longest rest, until
    none is. That is the same as to go through all rests from the longest to the shortest, and to split at each the part
    around it if that is too long.
    """
    words_by_rest: dict[int, list[int]] = {}
    for number in range(first + 1, last):
        rest = round(1000 * (words[number].start - words[number - 1].end))
        words_by_rest.setdefault(rest, []).append(number)
    edges = [first, last]
    if by_rests:
        rests = (
            number
            for rest in words_by_rest
            if rest >= 1000 * MIN_REST_SECONDS
            for number in words_by_rest[rest]
        )
        edges = sorted([*edges, *rests])
    for rest in sorted(
        (rest for rest in words_by_rest if 0 < rest < (1000 * MIN_REST_SECONDS if by_rests else inf)),
        reverse=True,
    ):
        numbers = words_by_rest[rest]
        position = 0
        while position < len(numbers):
            edge_index = bisect_right(edges, numbers[position])
            end = bisect_left(numbers, edges[edge_index], position)
            edges[edge_index:edge_index] = _split_at_equal_rests(
                words, edges[edge_index - 1], edges[edge_index], numbers[position:end]
            )
            position = end
    return edges


def _split_at_equal_rests(words: Sequence[Word], first: int, last: int, numbers: Sequence[int]) -> list[int]:
    """Return the cuts after which no part is too long; of equally long rests the middle one comes first."""
    cuts: list[int] = []
    pending = [(first, last, 0, len(numbers))]
    while pending:
        first, last, low, high = pending.pop()
        if low == high or words[last - 1].end - words[first].start <= MAX_SENTENCE_SECONDS:
            continue
        middle = (first + last) / 2
        after_middle = bisect_left(numbers, middle, low, high)
        cut = min(
            range(max(low, after_middle - 1), min(high, after_middle + 1)),
            key=lambda index: abs(numbers[index] - middle),
        )
        cuts.append(numbers[cut])
        pending += [(first, numbers[cut], low, cut), (numbers[cut], last, cut + 1, high)]
    return sorted(cuts)
