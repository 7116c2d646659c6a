"""Selects the sentences of a source that can stand in a post, and edits them."""

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
from pipeline.text.similarity import distinct_words, is_same_idea
from pipeline.text.weighted_length import weighted_length

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from collections.abc import Set as AbstractSet

    from pipeline.engines.base import Brief, Fact, PersonaCard

MAX_HASHTAGS: Final = 2
THREAD_MARK: Final = "\U0001f9f5"
_MIN_CUT_LENGTH: Final = 60
"""A sentence that is cut to less, by the caller's count, says too little."""

_MIN_WORDS: Final = 4
"""A sentence of fewer words doesn't count."""
_MAX_READ_CHARACTERS: Final = 20_000
"""The part of a source in which sentences are counted."""

_WORD: Final = re.compile(r"\w+")
_LEANING: Final = re.compile(
    # "In that time", "One said", "The other half": understood only after another sentence.
    r"^(?:(?:in|at|for|by|after|before|since|during|from|on|of|under|with|until)\s+)?(?:that|this|these|those|it)\b"
    r"|^(?:one|two|three|another|others|both|the (?:first|second|third|other|former|latter|result|reason|rest))\s"
    r"(?:of (?:them|these|those|it)|said|says|was|were|is|are|had|has|turned|half)\b"
    r"|\b(?:them|of it|the same day|as well|(?:tell|told|asked?|gave|rang|saw|called) (?:her|him)"
    r"|that (?:number|would|sentence|was|this|on)|(?:year|week|day|month|time) it was)\b"
    # Speakers talking about their own talk.
    r"|\b(?:(?:we are|we're|welcome) back|(?:you|listeners) wrote in|i promised|today i want|this episode"
    r"|i(?:'ll| will| want to) tell you|i am telling you|before we (?:start|begin))\b",
    re.IGNORECASE,
)
_MIN_WORDS_WITHOUT_FIGURE: Final = 8
"""Sentences of fewer words say something only with a figure."""
_FIGURE: Final = re.compile(r"\d")
_TRAILING_FUNCTION_WORDS: Final = re.compile(
    r"(?:\s(?:and|so|but|because|then|now|which|that|when|while|or|if|the|an?|of|to|in|on|at|for|with|it|is|was|we|they"
    r"|he|she|i))+$",
    re.IGNORECASE,
)
_SENTENCE_STARTERS: Final = word_set(
    "so and but because then now okay well also which while when if or however anyway"
)
_NO_END_MARK: Final = re.compile(r"[\w,;:\u2013-]$")
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
    """A fact's sentence as it can be posted; its words differ from the fact's quote by the allowed edits only."""

    words: str
    fact: Fact
    leans: bool = False
    """Whether the sentence needs an earlier one or says little, and so is used only if there are too few others."""

    @property
    def claim(self) -> Claim:
        return Claim(text=self.words, quote=self.fact.quote, start=self.fact.start, end=self.fact.end)


def polish_sentence(quote: str, *, is_cut: bool) -> str:
    """Return the sentence capitalised, without a leading "And" or "But".

    With `is_cut`, a sentence that begins in lower case and has no end mark loses its last function words and
    gets an ellipsis.
    """
    sentence = collapse(quote)
    first = sentence.split(" ", 1)[0]
    if first.islower():
        sentence = sentence[0].upper() + sentence[1:]
        if is_cut and _NO_END_MARK.search(sentence):
            sentence = _TRAILING_FUNCTION_WORDS.sub("", sentence).rstrip(" ,;:\u2013-") + "\u2026"
    return trim_conjunction(sentence)


def leans_on_previous(sentence: str, language: str) -> bool:
    """Return whether the sentence is understood only, or better, after the one before it."""
    return leans_back(sentence, language) or _LEANING.search(sentence) is not None


def standalone_sentences(
    brief: Brief, persona: PersonaCard, max_length: int, *, count: Callable[[str], int] = weighted_length
) -> tuple[FactSentence, ...]:
    """Return sentences that can be understood alone, best first, no two alike, without headings.

    Each is shortened to `max_length` by `count`, or left out if that can't be done. Those that lean on others
    come last. Those with an address are left out, because the source shouldn't decide where readers go.
    """
    sentences: list[FactSentence] = []
    ends = {fact.end for fact in brief.facts}
    word_sets: list[frozenset[str]] = []
    for fact in brief.facts:
        sentence = polish_sentence(fact.quote, is_cut=fact.is_cut)
        if (
            brief.is_heading(fact)
            or not is_postable(sentence)
            or not is_self_contained(sentence, brief.language)
        ):
            continue
        words = shorten_sentence(sentence, max_length, may_cut=True, count=count)
        if (
            words is None
            or lacks_antecedent(words)
            or find_links(words)
            or not is_allowed(words, brief, persona)
        ):
            continue
        own_words = distinct_words(words)
        if not any(is_same_idea(own_words, other) for other in word_sets):
            sentences.append(FactSentence(words, fact, leans=_leans(words, fact, ends)))
            word_sets.append(own_words)
    return tuple(sorted(sentences, key=lambda candidate: candidate.leans))


def spread_over_parts(sentences: Sequence[FactSentence], brief: Brief) -> tuple[FactSentence, ...]:
    """Return the sentences with the best one of each part of the source first.

    A part's best one doesn't lean on others. The order is unchanged if they are all of one part.
    """
    best_by_part: dict[str, FactSentence] = {}
    for sentence in sentences:
        if sentence.leans:
            continue
        heading = part_of(sentence.fact, brief)
        best_by_part.setdefault(heading.id if heading else "", sentence)
    if len(best_by_part) <= 1:
        return tuple(sentences)
    leading = list(best_by_part.values())
    return (*leading, *(sentence for sentence in sentences if sentence not in leading))


def part_of(fact: Fact, brief: Brief) -> Fact | None:
    """Return the heading of the source that the fact stands below, or `None` if it stands below none."""
    headings_before = [heading for heading in brief.headings if heading.end <= fact.start]
    return headings_before[-1] if headings_before else None


def _leans(words: str, fact: Fact, ends: AbstractSet[int]) -> bool:
    """Return whether the sentence needs an earlier one, is slight, or continues a fact that ends at one of `ends`."""
    count = len(_WORD.findall(words))
    is_slight = words.isascii() and count < _MIN_WORDS_WITHOUT_FIGURE and _FIGURE.search(words) is None
    first = fact.quote.split(None, 1)[0]
    # It goes on in lower case one character after another fact, where no sentence begins.
    is_mid_sentence = first.islower() and first not in _SENTENCE_STARTERS and fact.start - 1 in ends
    return is_slight or is_mid_sentence or _LEANING.search(words) is not None


def count_sentences(text: str, maximum: int) -> int:
    """Return the number of sentences with enough words in the beginning of the text, but at most `maximum`."""
    sample = text[:_MAX_READ_CHARACTERS]
    spans = statements_in(sample)
    count = sum(count_words(sample[start:end]) >= _MIN_WORDS for start, end in spans)
    return min(maximum, count)


def says_anything(text: str) -> bool:
    """Return whether the text has a visible character of a word."""
    return _VISIBLE.search(text) is not None


def is_postable(sentence: str) -> bool:
    """Return whether the sentence can stand in a post by its characters and hashtags."""
    return (
        says_anything(sentence)
        and is_clean(sentence)
        and THREAD_MARK not in sentence
        and count_hashtags(sentence) <= MAX_HASHTAGS
    )


def shorten_sentence(
    sentence: str, max_length: int, *, may_cut: bool, count: Callable[[str], int] = weighted_length
) -> str | None:
    """Return the sentence with the fewest edits that bring it to `max_length` by `count`, or `None` if none does."""
    without_asides = drop_asides(sentence)
    for wording in (sentence, without_asides):
        if count(wording) <= max_length:
            return wording
    if may_cut:
        for cut in clause_cuts(without_asides):
            if _MIN_CUT_LENGTH <= count(cut) <= max_length:
                return cut
    return None


def angle_of(sentence: str) -> str:
    """Return the angle that the sentence's form suggests, or "story" if it suggests none."""
    return next((angle for angle, pattern in _ANGLES if pattern.search(sentence)), "story")
