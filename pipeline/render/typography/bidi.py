"""Computes which way each character runs: the levels of Unicode's bidirectional algorithm (UAX #9, revision 50).

Explicit embeddings, overrides and isolates are left out: they are refused before anything is laid out.
"""

from __future__ import annotations

import unicodedata
from itertools import groupby
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

_NUMBER_CLASSES: Final = ("EN", "AN")
_RTL_CLASSES: Final = frozenset({"R", "AL", "AN"})
_BRACKETS: Final = {"(": ")", "[": "]", "{": "}", "\u2045": "\u2046", "\u27e8": "\u27e9"}
_RTL_LANGUAGES: Final = frozenset(
    {"ar", "arc", "ckb", "dv", "fa", "he", "iw", "ks", "ps", "sd", "ug", "ur", "yi"}
)

Item = TypeVar("Item")


def is_rtl_language(language: str) -> bool:
    """Return whether the language is usually written from right to left; False for an unknown one."""
    return language.lower().replace("_", "-").partition("-")[0] in _RTL_LANGUAGES


def first_strong_is_rtl(text: str) -> bool | None:
    """Return whether the first letter with a direction runs right to left, or `None` if there is no such letter."""
    for character in text:
        bidi_class = unicodedata.bidirectional(character)
        if bidi_class in {"L", "R", "AL"}:
            return bidi_class != "L"
    return None


def levels(text: str, *, is_rtl: bool) -> list[int]:
    """Return an embedding level for each code point of a paragraph: even runs left to right, odd right to left."""
    classes = [unicodedata.bidirectional(character) or "L" for character in text]
    if not is_rtl and _RTL_CLASSES.isdisjoint(classes):
        return [0] * len(classes)
    base = "R" if is_rtl else "L"
    _resolve_weak(classes, base)
    _resolve_brackets(text, classes, base)
    _resolve_neutral(classes, base)
    if is_rtl:
        return [1 if bidi_class == "R" else 2 for bidi_class in classes]
    return [{"L": 0, "R": 1}.get(bidi_class, 2) for bidi_class in classes]


def _resolve_weak(classes: list[str], base: str) -> None:
    """Apply rules W1 to W7, in place."""
    _resolve_marks(classes, base)
    for index in range(1, len(classes) - 1):
        before, bidi_class, after = classes[index - 1 : index + 2]
        is_separator = bidi_class == "CS" or (bidi_class == "ES" and before == "EN")
        if is_separator and before == after and before in _NUMBER_CLASSES:
            classes[index] = before
    index = 0
    for bidi_class, group in groupby(list(classes)):
        end = index + sum(1 for _ in group)
        if bidi_class == "ET" and "EN" in {*classes[max(index - 1, 0) : index], *classes[end : end + 1]}:
            classes[index:end] = ["EN"] * (end - index)
        index = end
    strong = base
    for index, bidi_class in enumerate(classes):
        if bidi_class in {"ES", "ET", "CS"}:
            classes[index] = "ON"
        elif bidi_class == "EN" and strong == "L":
            classes[index] = "L"
        elif bidi_class in {"L", "R"}:
            strong = bidi_class


def _resolve_marks(classes: list[str], base: str) -> None:
    """Apply rules W1 to W3, in place."""
    previous = strong = base
    for index, bidi_class in enumerate(classes):
        resolved = bidi_class
        if bidi_class in {"NSM", "BN"}:
            resolved = previous
        elif bidi_class == "EN" and strong == "AL":
            resolved = "AN"
        if resolved in {"L", "R", "AL"}:
            strong = resolved
        classes[index] = previous = resolved
    classes[:] = ["R" if bidi_class == "AL" else bidi_class for bidi_class in classes]


def _strong_direction(bidi_class: str) -> str | None:
    """Return the class's direction as "R" or "L", numbers counting as "R", or `None` for a neutral one."""
    return "R" if bidi_class in _NUMBER_CLASSES or bidi_class == "R" else "L" if bidi_class == "L" else None


def _resolve_brackets(text: str, classes: list[str], base: str) -> None:
    """Apply rule N0, in place: a pair of brackets takes the direction of its content."""
    opened: list[tuple[int, str]] = []
    pairs: list[tuple[int, int]] = []
    for index, character in enumerate(text):
        if classes[index] != "ON":
            continue
        if character in _BRACKETS:
            opened.append((index, _BRACKETS[character]))
        elif any(closing == character for _, closing in opened):
            # Brackets that were opened within the pair and not closed have no partner.
            while True:
                start, closing = opened.pop()
                if closing == character:
                    pairs.append((start, index))
                    break
    for start, end in sorted(pairs):
        directions_inside = {_strong_direction(bidi_class) for bidi_class in classes[start + 1 : end]} - {
            None
        }
        if base in directions_inside:
            classes[start] = classes[end] = base
        elif directions_inside:
            opposite = "L" if base == "R" else "R"
            before = next(
                (
                    direction
                    for bidi_class in reversed(classes[:start])
                    if (direction := _strong_direction(bidi_class))
                ),
                base,
            )
            classes[start] = classes[end] = opposite if before == opposite else base


def _resolve_neutral(classes: list[str], base: str) -> None:
    """Apply rules N1 and N2, in place."""
    start = 0
    for is_neutral, group in groupby(
        list(classes), key=lambda bidi_class: _strong_direction(bidi_class) is None
    ):
        end = start + sum(1 for _ in group)
        if is_neutral:
            before = _strong_direction(classes[start - 1]) if start else base
            after = _strong_direction(classes[end]) if end < len(classes) else base
            classes[start:end] = [(before or base) if before == after else base] * (end - start)
        start = end


def visual_order(items: Sequence[Item], item_levels: Sequence[int]) -> list[Item]:
    """Return the items of a line from left to right, by rule L2."""
    ordered = list(zip(items, item_levels, strict=True))
    highest = max(item_levels, default=0)
    for level in range(highest, 0, -1):
        start = 0
        while start < len(ordered):
            end = start
            while end < len(ordered) and ordered[end][1] >= level:
                end += 1
            if end > start:
                ordered[start:end] = reversed(ordered[start:end])
            start = max(end, start + 1)
    return [item for item, _ in ordered]
