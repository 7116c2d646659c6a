"""Claims as a model names them, by their first words, and as they are kept: the statement itself."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pipeline.text.sentences import split_sentences
from pipeline.writers.claude.answers import Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

SIGN: Final = "\u2026"
"""Ends the first words of a statement. A claim without it is the statement in full."""
_DOTS: Final = "..."


@dataclass(frozen=True)
class _Place:
    """Where a statement begins: in which text of the draft, and in which of its sentences."""

    text: int
    start: int
    end: int


def spelled_out(variant: Mapping[str, Any], place: int) -> dict[str, Any]:
    """The answered variant with each claim's statement in full.

    A statement goes from its first words to the end of their sentence, or to where another claim begins in it. Raises
    `Unreadable` where the words don't stand in the draft: `place` is told.
    """
    claims = variant["claims"]
    texts = list(_texts({name: value for name, value in variant.items() if name not in {"claims", "angle"}}))
    places = [_place_of(claim["text"], texts) if _is_short(claim["text"]) else None for claim in claims]
    faults = [
        f"Variant {place}: `{claim['text']}` of a claim has to stand in the draft."
        for claim, found in zip(claims, places, strict=True)
        if found is None and _is_short(claim["text"])
    ]
    if faults:
        raise Unreadable(faults)
    told = [
        claim if found is None else {**claim, "text": _statement(found, places, texts)}
        for claim, found in zip(claims, places, strict=True)
    ]
    return {**variant, "claims": told}


def _is_short(words: str) -> bool:
    return words.rstrip().endswith((SIGN, _DOTS))


def _place_of(words: str, texts: Sequence[str]) -> _Place | None:
    """Where it is said more than once, as in a summary, the longest: whatever is said has to be proven."""
    begun = words.rstrip().removesuffix(SIGN).removesuffix(_DOTS).strip()
    if not begun:
        return None
    found = [
        _Place(index, match.start(), _end_of(text, match.start()))
        for index, text in enumerate(texts)
        for match in re.finditer(rf"(?<!\w){re.escape(begun)}(?!\w)", text)
    ]
    return max(found, key=lambda place: place.end - place.start, default=None)


def _end_of(text: str, start: int) -> int:
    return next((last for first, last in _sentences(text) if first <= start < last), len(text))


def _statement(found: _Place, places: Sequence[_Place | None], texts: Sequence[str]) -> str:
    others = [
        other.start
        for other in places
        if other is not None and other.text == found.text and found.start < other.start < found.end
    ]
    return texts[found.text][found.start : min(others, default=found.end)].strip().rstrip(",;")


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """A line ends a sentence, whatever it ends with."""
    start = 0
    for line in text.splitlines(keepends=True):
        for first, last in split_sentences(line):
            yield start + first, start + last
        start += len(line)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
        return
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for member in members:
        yield from _texts(member)
