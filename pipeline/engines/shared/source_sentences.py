"""Sentences of a source as they may stand in a post: which will do, with which edits, and which say the same."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.engines.base import Claim
from pipeline.engines.checks.allowed_contacts import is_allowed
from pipeline.engines.checks.persona_rules import count_hashtags
from pipeline.text.links import find_links
from pipeline.text.prose.anaphora import lacks_antecedent
from pipeline.text.prose.sentences import statements_in
from pipeline.text.prose.verbatim_edits import (
    clause_cuts,
    collapse,
    count_words,
    drop_asides,
    is_clean,
    is_self_contained,
    leans_back,
    trim_conjunction,
    word_set,
)
from pipeline.text.weighted_length import weighted_length

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from collections.abc import Set as AbstractSet

    from pipeline.engines.base import Brief, Fact, PersonaCard

MAX_HASHTAGS: Final = 2
THREAD_MARK: Final = "\U0001f9f5"
_MIN_CUT: Final = 60
"""A sentence cut shorter than this says too little to stand for it."""
_LIKENESS: Final = 0.4
"""Two sentences that share this much of their words are one idea twice."""

_MIN_WORDS: Final = 4
_LOOKED_THROUGH: Final = 20_000
"""Characters of a source that are looked through for its first sentences."""

_WORD: Final = re.compile(r"\w+")
_LEANING: Final = re.compile(
    # "In that time", "One said", "The other half": understood after another sentence only.
    r"^(?:(?:in|at|for|by|after|before|since|during|from|on|of|under|with|until)\s+)?(?:that|this|these|those|it)\b"
    r"|^(?:one|two|three|another|others|both|the (?:first|second|third|other|former|latter|result|reason|rest))\s"
    r"(?:of (?:them|these|those|it)|said|says|was|were|is|are|had|has|turned|half)\b"
    r"|\b(?:them|of it|the same day|as well|(?:tell|told|asked?|gave|rang|saw|called) (?:her|him)"
    r"|that (?:number|would|sentence|was|this|on)|(?:year|week|day|month|time) it was)\b"
    # What a speaker says of speaking.
    r"|\b(?:(?:we are|we're|welcome) back|(?:you|listeners) wrote in|i promised|today i want|this episode"
    r"|i(?:'ll| will| want to) tell you|i am telling you|before we (?:start|begin))\b",
    re.IGNORECASE,
)
_SLIGHT: Final = 8
"""Sentences of fewer words say something with a figure only."""
_FIGURE: Final = re.compile(r"\d")
_TRAILING: Final = re.compile(
    r"(?:\s(?:and|so|but|because|then|now|which|that|when|while|or|if|the|an?|of|to|in|on|at|for|with|it|is|was|we|they"
    r"|he|she|i))+$",
    re.IGNORECASE,
)
_STARTS: Final = word_set("so and but because then now okay well also which while when if or however anyway")
_UNENDED: Final = re.compile(r"[\w,;:\u2013-]$")
_VISIBLE: Final = re.compile(r"\w")
_ANGLES: Final[tuple[tuple[str, re.Pattern[str]], ...]] = (
    ("question", re.compile(r"[?\uff1f][\"'\u2019\u201d\u00bb)]*$")),
    ("how-to", re.compile(r"^how to\b", re.IGNORECASE)),
    ("myth", re.compile(r"\bmyths?\b", re.IGNORECASE)),
    ("warning", re.compile(r"\b(?:warn(?:s|ed|ing)?|beware|danger(?:s|ous)?|risks?)\b", re.IGNORECASE)),
    ("number", re.compile(r"\d")),
    (
        "contrast",
        re.compile(r"\b(?:but|however|although|though|despite|unlike|instead|whereas)\b", re.IGNORECASE),
    ),
)


@dataclass(frozen=True)
class FactSentence:
    """A fact's sentence as it can be said; its words differ from the quote by the allowed edits only."""

    words: str
    fact: Fact
    leans: bool = False
    """On what was said before: to be said only where too little else is there."""

    @property
    def claim(self) -> Claim:
        return Claim(text=self.words, quote=self.fact.quote, start=self.fact.start, end=self.fact.end)


def polish_sentence(quote: str, *, is_cut: bool) -> str:
    """A sentence begins with a capital letter and without "And" or "But"; what was cut out of one ends with an ellipsis."""
    sentence = collapse(quote)
    first = sentence.split(" ", 1)[0]
    if first.islower():
        sentence = sentence[0].upper() + sentence[1:]
        if is_cut and _UNENDED.search(sentence):
            sentence = _TRAILING.sub("", sentence).rstrip(" ,;:\u2013-") + "\u2026"
    return trim_conjunction(sentence)


def leans_on_previous(sentence: str, language: str) -> bool:
    """Whether it is understood after the one before it only, or better."""
    return leans_back(sentence, language) or _LEANING.search(sentence) is not None


def standalone_sentences(
    brief: Brief, persona: PersonaCard, room: int, *, count: Callable[[str], int] = weighted_length
) -> tuple[FactSentence, ...]:
    """The sentences that can be understood by themselves and fit, best first, none like another and none a heading.

    Those that lean on what was said before come last, and those with an address aren't there: it isn't theirs to say
    where readers go.
    """
    found: list[FactSentence] = []
    ends = {fact.end for fact in brief.facts}
    said: list[frozenset[str]] = []
    for fact in brief.facts:
        sentence = polish_sentence(fact.quote, is_cut=fact.is_cut)
        if (
            brief.is_heading(fact)
            or not is_postable(sentence)
            or not is_self_contained(sentence, brief.language)
        ):
            continue
        words = shorten_sentence(sentence, room, may_cut=True, count=count)
        if (
            words is None
            or lacks_antecedent(words)
            or find_links(words)
            or not is_allowed(words, brief, persona)
        ):
            continue
        bag = words_of(words)
        if not any(are_alike(bag, other) for other in said):
            found.append(FactSentence(words, fact, leans=_leans(words, fact, ends)))
            said.append(bag)
    return tuple(sorted(found, key=lambda one: one.leans))


def spread_over_parts(sentences: Sequence[FactSentence], brief: Brief) -> tuple[FactSentence, ...]:
    """The best of each part of the source first, then the others; in their order where it has no headings."""
    firsts: dict[str, FactSentence] = {}
    for one in sentences:
        part = part_of(one.fact, brief)
        if one.leans:
            continue
        firsts.setdefault(part.id if part else "", one)
    if len(firsts) <= 1:
        return tuple(sentences)
    leading = list(firsts.values())
    return (*leading, *(one for one in sentences if one not in leading))


def part_of(fact: Fact, brief: Brief) -> Fact | None:
    """The heading of the source under which it stands."""
    before = [one for one in brief.headings if one.end <= fact.start]
    return before[-1] if before else None


def _leans(words: str, fact: Fact, ends: AbstractSet[int]) -> bool:
    count = len(_WORD.findall(words))
    is_slight = words.isascii() and count < _SLIGHT and _FIGURE.search(words) is None
    first = fact.quote.split(None, 1)[0]
    # Cut out of a stream of speech where nothing begins.
    is_within = first.islower() and first not in _STARTS and fact.start - 1 in ends
    return is_slight or is_within or _LEANING.search(words) is not None


def count_sentences(text: str, most: int) -> int:
    """How many sentences say something, counted up to `most`."""
    read = text[:_LOOKED_THROUGH]
    spans = statements_in(read)
    said = sum(count_words(read[start:end]) >= _MIN_WORDS for start, end in spans)
    return min(most, said)


def says_anything(text: str) -> bool:
    return _VISIBLE.search(text) is not None


def is_postable(sentence: str) -> bool:
    return (
        says_anything(sentence)
        and is_clean(sentence)
        and THREAD_MARK not in sentence
        and count_hashtags(sentence) <= MAX_HASHTAGS
    )


def shorten_sentence(
    sentence: str, room: int, *, may_cut: bool, count: Callable[[str], int] = weighted_length
) -> str | None:
    """The sentence with the fewest edits that bring it to `room` or under; None where none does."""
    without_asides = drop_asides(sentence)
    for wording in (sentence, without_asides):
        if count(wording) <= room:
            return wording
    if may_cut:
        for cut in clause_cuts(without_asides):
            if _MIN_CUT <= count(cut) <= room:
                return cut
    return None


def angle_of(sentence: str) -> str:
    return next((angle for angle, pattern in _ANGLES if pattern.search(sentence)), "story")


def words_of(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


def are_alike(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) >= _LIKENESS * len(one | other)
