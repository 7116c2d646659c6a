"""Which words two versions of a text don't share."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

_WORDS_MOST: Final = 1_500
"""Of longer texts whole lines are compared: comparing takes the square of their number."""
_SHARED_SHOWN: Final = 160
"""Characters of shared words that are shown on each side of a difference."""
_WORD: Final = re.compile(r"\s*\S+|\s+$")


@dataclass(frozen=True)
class DiffSegment:
    """Words in a row; `side` is `mine` or `theirs` where only one of the two has them, else empty."""

    side: str
    text: str


def differences(mine: str, theirs: str) -> tuple[DiffSegment, ...]:
    """Both texts as one, in their order; of long passages that both share the ends alone."""
    ours, others = _WORD.findall(mine), _WORD.findall(theirs)
    if max(len(ours), len(others)) > _WORDS_MOST:
        ours, others = mine.splitlines(keepends=True), theirs.splitlines(keepends=True)
    found: list[DiffSegment] = []
    for tag, begin, end, their_begin, their_end in SequenceMatcher(None, ours, others).get_opcodes():
        own, other = "".join(ours[begin:end]), "".join(others[their_begin:their_end])
        pieces = (
            [DiffSegment("", _shortened(own))]
            if tag == "equal"
            else [DiffSegment("mine", own), DiffSegment("theirs", other)]
        )
        found += [one for one in pieces if one.text]
    return tuple(found)


def _shortened(text: str) -> str:
    if len(text) <= 3 * _SHARED_SHOWN:
        return text
    return f"{text[:_SHARED_SHOWN].rstrip()} […] {text[-_SHARED_SHOWN:].lstrip()}"
