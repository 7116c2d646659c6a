"""Finds the words that two versions of a text don't share."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

_MAX_WORDS: Final = 1_500
"""The most words of a text that is compared word by word; the cost grows with the square of their number."""
_SHARED_CHARACTERS: Final = 160
"""The characters of shared text that are shown on each side of a difference."""
# Matches a word with the white space before it, and white space at the end of the text.
_WORD: Final = re.compile(r"\s*\S+|\s+$")


@dataclass(frozen=True)
class DiffSegment:
    """Consecutive words; `side` is `mine` or `theirs` if only that text has them, and empty if both have them."""

    side: str
    text: str


def differences(mine: str, theirs: str) -> tuple[DiffSegment, ...]:
    """Return both texts merged in their order; only the ends of long passages that both share are kept."""
    my_words, their_words = _WORD.findall(mine), _WORD.findall(theirs)
    if max(len(my_words), len(their_words)) > _MAX_WORDS:
        my_words, their_words = mine.splitlines(keepends=True), theirs.splitlines(keepends=True)
    segments: list[DiffSegment] = []
    for tag, my_begin, my_end, their_begin, their_end in SequenceMatcher(
        None, my_words, their_words
    ).get_opcodes():
        my_text, their_text = "".join(my_words[my_begin:my_end]), "".join(their_words[their_begin:their_end])
        pieces = (
            [DiffSegment("", _shorten(my_text))]
            if tag == "equal"
            else [DiffSegment("mine", my_text), DiffSegment("theirs", their_text)]
        )
        segments += [segment for segment in pieces if segment.text]
    return tuple(segments)


def _shorten(text: str) -> str:
    """Return the ends of a long text with `[…]` between them, or a short text whole."""
    if len(text) <= 3 * _SHARED_CHARACTERS:
        return text
    return f"{text[:_SHARED_CHARACTERS].rstrip()} […] {text[-_SHARED_CHARACTERS:].lstrip()}"
