"""Sentences of a source as they may stand in a post: which will do, with which edits, and which say the same."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pipeline.engines.persona_rules import count_hashtags
from pipeline.weighted_length import weighted_length
from pipeline.wording import clause_cuts, drop_asides, is_clean

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_HASHTAGS: Final = 2
THREAD_MARK: Final = "\U0001f9f5"
_LEAST_CUT: Final = 60
"""A sentence cut shorter than this says too little to stand for it."""
_LIKENESS: Final = 0.4
"""Two sentences that share this much of their words are one idea twice."""

_WORD: Final = re.compile(r"\w+")
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


def says_anything(text: str) -> bool:
    return _VISIBLE.search(text) is not None


def is_postable(sentence: str) -> bool:
    return (
        says_anything(sentence)
        and is_clean(sentence)
        and THREAD_MARK not in sentence
        and count_hashtags(sentence) <= MAX_HASHTAGS
    )


def fitted(
    sentence: str, room: int, *, may_cut: bool, count: Callable[[str], int] = weighted_length
) -> str | None:
    """The sentence with the fewest edits that bring it to `room` or under; None where none does."""
    without_asides = drop_asides(sentence)
    for wording in (sentence, without_asides):
        if count(wording) <= room:
            return wording
    if may_cut:
        for cut in clause_cuts(without_asides):
            if _LEAST_CUT <= count(cut) <= room:
                return cut
    return None


def angle_of(sentence: str) -> str:
    return next((angle for angle, pattern in _ANGLES if pattern.search(sentence)), "story")


def words_of(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


def are_alike(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) >= _LIKENESS * len(one | other)
