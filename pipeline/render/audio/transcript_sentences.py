"""Sentences that were said, with their times: from the words of a transcript."""

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

LONGEST: Final = 15.0
"""Seconds after which a stretch without a full stop is parted, where the speaker rests longest."""
REST: Final = 0.5
"""Seconds without a word that end a sentence where nobody wrote a full stop."""
FULL_STOPS: Final = 1 / 40
"""Of fewer sentences' ends for each word nobody punctuated the transcript."""


@dataclass(frozen=True)
class SpokenSentence:
    """`words[first:last]`, said from `start` to `end`; `text` is them with blanks between."""

    first: int
    last: int
    start: float
    end: float
    text: str

    @property
    def seconds(self) -> float:
        return self.end - self.start


def text_of(words: Sequence[Word]) -> str:
    """What was said, as it is written into a raw item."""
    return " ".join(word.t for word in words)


def sentences(words: Sequence[Word]) -> tuple[SpokenSentence, ...]:
    """In order, every word in one of them. They end at full stops; where there are none, at rests."""
    if not words:
        return ()
    edges = _by_marks(words)
    is_punctuated = len(edges) - 1 >= FULL_STOPS * len(words)
    parted: list[int] = [0]
    for first, last in pairwise(edges):
        parted += _parted(words, first, last, by_rests=not is_punctuated)[1:]
    return tuple(
        SpokenSentence(first, last, words[first].start, words[last - 1].end, text_of(words[first:last]))
        for first, last in pairwise(parted)
    )


def _by_marks(words: Sequence[Word]) -> list[int]:
    """The numbers of the words before which a sentence begins, and one more for the end."""
    ends = set(sentence_ends(text_of(words)))
    edges, place = [0], 0
    for number, word in enumerate(words, start=1):
        place += len(word.t)
        if place in ends and number < len(words):
            edges.append(number)
        place += 1
    return [*edges, len(words)]


def _parted(words: Sequence[Word], first: int, last: int, *, by_rests: bool) -> list[int]:
    """Where it begins, where it is parted, and where it ends.

    Parted at its longest rest, then each part at its own, until none is too long: which is to go through all rests from
    the longest to the shortest, and to part what is still too long at each.
    """
    numbers_of: dict[int, list[int]] = {}
    for number in range(first + 1, last):
        rest = round(1000 * (words[number].start - words[number - 1].end))
        numbers_of.setdefault(rest, []).append(number)
    edges = [first, last]
    if by_rests:
        there = (number for rest in numbers_of if rest >= 1000 * REST for number in numbers_of[rest])
        edges = sorted([*edges, *there])
    for rest in sorted(
        (rest for rest in numbers_of if 0 < rest < (1000 * REST if by_rests else inf)), reverse=True
    ):
        numbers = numbers_of[rest]
        at = 0
        while at < len(numbers):
            place = bisect_right(edges, numbers[at])
            until = bisect_left(numbers, edges[place], at)
            edges[place:place] = _halved(words, edges[place - 1], edges[place], numbers[at:until])
            at = until
    return edges


def _halved(words: Sequence[Word], first: int, last: int, numbers: Sequence[int]) -> list[int]:
    """Where it is parted so that no part is too long: of rests as long as one another first at the middle one."""
    parted: list[int] = []
    waiting = [(first, last, 0, len(numbers))]
    while waiting:
        first, last, low, high = waiting.pop()
        if low == high or words[last - 1].end - words[first].start <= LONGEST:
            continue
        middle = (first + last) / 2
        right = bisect_left(numbers, middle, low, high)
        at = min(range(max(low, right - 1), min(high, right + 1)), key=lambda one: abs(numbers[one] - middle))
        parted.append(numbers[at])
        waiting += [(first, numbers[at], low, at), (numbers[at], last, at + 1, high)]
    return sorted(parted)
