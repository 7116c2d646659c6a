"""Which stretch of a talk makes a film of its own: whole sentences, one after the other, 15 to 60 seconds."""

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

LEAST: Final = 15.0
MOST: Final = 60.0
AIM: Final = (25.0, 50.0)
"""Seconds of a film that is watched to its end and says something."""
PAD: Final = 0.15
"""Seconds before the first word and after the last, where nobody speaks in them."""
SHOWN_MOST: Final = 60_000
"""Characters of a transcript that a model chooses from; of a longer one it sees the most promising parts."""

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
_QUICK: Final = 0.3
"""Seconds of rest that part two thoughts."""


@dataclass(frozen=True)
class FactRange:
    """`facts[first:last]` of a brief."""

    first: int
    last: int
    score: float = 0.0

    def overlaps(self, other: FactRange) -> bool:
        return self.first < other.last and other.first < self.last


def sentences_in(source: SourceText) -> tuple[Fact, ...]:
    """What is said in the raw item's video, sentence by sentence, each at its place in the text and in the video.

    Empty where there is no transcript, or the text doesn't hold its words.
    """
    clip = source.material.spoken if source.material is not None else None
    if clip is None:
        return ()
    base = source.text.rfind(text_of(clip.words))
    if base < 0:
        return ()
    # Where each word begins in the text.
    starts = [0, *accumulate(len(word.t) + 1 for word in clip.words)]
    return tuple(
        Fact(
            id=f"s{number}",
            text=one.text,
            quote=one.text,
            start=base + starts[one.first],
            end=base + starts[one.first] + len(one.text),
            kind="spoken",
            seconds=(one.start, one.end),
        )
        for number, one in enumerate(sentences(clip.words), start=1)
    )


def weigh_sentences(said: Sequence[Fact], facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """The sentences with a score each: by what the brief found telling, and by the words that the talk is about."""
    common = Counter(word for one in said for word in set(_WORD.findall(one.text.lower())))
    telling = dict(enumerate(facts))
    return tuple(
        Fact(
            one.id,
            one.text,
            one.quote,
            one.start,
            one.end,
            one.kind,
            round(_about(one, common, len(said)) + _found(one, telling), 4),
            one.seconds,
        )
        for one in said
    )


def _about(one: Fact, common: Counter[str], count: int) -> float:
    words = _WORD.findall(one.text.lower())
    if not words:
        return 0.0
    # What is said again and again is the subject; what every other sentence has is only language.
    weight = sum(math.log1p(common[word]) for word in words if 1 < common[word] <= max(2, count // 3))
    return min(0.5, 0.15 * weight / math.sqrt(len(words)) + 0.1 * (_FIGURE.search(one.text) is not None))


def _found(one: Fact, telling: dict[int, Fact]) -> float:
    for rank, fact in telling.items():
        if fact.start < one.end and one.start < fact.end:
            return 1.0 - 0.5 * rank / max(len(telling), 1)
    return 0.0


def find_stretches(said: Sequence[Fact], brief: Brief, persona: PersonaCard) -> list[FactRange]:
    """Every stretch that may be a film, best first. Sentences that lead elsewhere are in none of them."""
    usable = [_is_usable(one.text, brief, persona) for one in said]
    found: list[FactRange] = []
    for first in range(len(said)):
        worth = 0.0
        for last in range(first + 1, len(said) + 1):
            if not usable[last - 1] or not are_consecutive(said, first, last):
                break
            seconds = seconds_of(said, first, last)
            if seconds > MOST:
                break
            worth += said[last - 1].score
            if seconds >= LEAST:
                found.append(FactRange(first, last, round(_score(said, first, last, worth), 4)))
    return sorted(found, key=lambda one: (-one.score, one.first, one.last))


def _is_usable(sentence: str, brief: Brief, persona: PersonaCard) -> bool:
    is_ordered = any(sentence in order for order in brief.orders)
    return (
        is_clean(sentence)
        and not is_ordered
        and not find_links(sentence)
        and is_allowed(sentence, brief, persona)
    )


def _score(said: Sequence[Fact], first: int, last: int, worth: float) -> float:
    """What is said in each second, a good beginning, an end, and a length that is watched to the end."""
    opening, ending = said[first].text, said[last - 1].text
    seconds = seconds_of(said, first, last)
    score = worth / (last - first)
    score += 0.35 * (not opens_dangling(opening) and _POINTING.search(opening) is None) + 0.15 * is_balanced(
        opening
    )
    score += 0.15 * (_FIGURE.search(opening) is not None) + 0.1 * opening.endswith("?")
    score += 0.2 * (_UNFINISHED.search(ending.rstrip()) is None) - 0.2 * ending.endswith("?")
    score -= 0.8 * any(_ASIDE.search(one.text) is not None for one in said[first:last])
    score += 0.1 * (_rest(said, first) >= _QUICK) + 0.1 * (_rest(said, last) >= _QUICK)
    off = max(AIM[0] - seconds, seconds - AIM[1], 0.0)
    return score - 0.06 * off


def _rest(said: Sequence[Fact], edge: int) -> float:
    """Seconds between the sentences at an edge; a second at the beginning and the end of all."""
    if not 0 < edge < len(said):
        return 1.0
    return _start(said[edge]) - _end(said[edge - 1])


def choose_stretches(found: Sequence[FactRange], most: int) -> list[FactRange]:
    """The best, none of which has a sentence of another."""
    taken: list[FactRange] = []
    for one in found:
        if len(taken) == most:
            break
        if not any(one.overlaps(other) for other in taken):
            taken.append(one)
    return taken


def is_too_long(said: Sequence[Fact]) -> bool:
    """Whether there is more than a model should read to choose."""
    return sum(len(one.text) for one in said) > SHOWN_MOST


def are_consecutive(said: Sequence[Fact], first: int, last: int) -> bool:
    """Whether nothing was said between the sentences but what is among them."""
    return last <= first or _number(said[last - 1]) - _number(said[first]) == last - 1 - first


def _number(one: Fact) -> int:
    return int(one.id[1:])


def facts_of_spans(said: Sequence[Fact], found: Sequence[FactRange]) -> tuple[Fact, ...]:
    """Of a long talk the sentences of its best stretches."""
    kept: set[int] = set()
    left = SHOWN_MOST
    for one in found:
        new = [place for place in range(one.first, one.last) if place not in kept]
        cost = sum(len(said[place].text) for place in new)
        if cost > left:
            break
        kept.update(new)
        left -= cost
    return tuple(said[place] for place in sorted(kept))


def seconds_of(said: Sequence[Fact], first: int, last: int) -> float:
    return _end(said[last - 1]) - _start(said[first]) + 2 * PAD


def span_of(name: str, said: Sequence[Fact], first: int, last: int) -> VideoSpan:
    """With the pad at both ends, as far as nobody else's words are in it."""
    start, end = _start(said[first]), _end(said[last - 1])
    before = _end(said[first - 1]) if first else 0.0
    after = _start(said[last]) if last < len(said) else end + PAD
    return VideoSpan(
        name,
        round(max(start - PAD, min(before, start), 0.0), 3),
        round(min(end + PAD, max(after, end)), 3),
    )


def is_on_edges(span: VideoSpan, said: Sequence[Fact]) -> bool:
    """Whether it begins with a sentence and ends with one, but for the pad."""
    slack = PAD + 0.002
    begins = any(-0.002 <= _start(one) - span.start <= slack for one in said)
    return begins and any(-0.002 <= span.end - _end(one) <= slack for one in said)


def clean_title(words: str) -> str:
    return collapse(words.replace("\n", " "))


def _start(one: Fact) -> float:
    return one.seconds[0] if one.seconds is not None else 0.0


def _end(one: Fact) -> float:
    return one.seconds[1] if one.seconds is not None else 0.0
