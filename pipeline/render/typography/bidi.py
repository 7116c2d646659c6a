"""Which way each character runs: the levels of Unicode's bidirectional algorithm (UAX #9, revision 50).

Without its explicit embeddings, overrides and isolates, which are refused before anything is laid out.
"""

from __future__ import annotations

import unicodedata
from itertools import groupby
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

_NUMBERS: Final = ("EN", "AN")
_RIGHT: Final = frozenset({"R", "AL", "AN"})
_BRACKETS: Final = {"(": ")", "[": "]", "{": "}", "\u2045": "\u2046", "\u27e8": "\u27e9"}
_RTL_LANGUAGES: Final = frozenset(
    {"ar", "arc", "ckb", "dv", "fa", "he", "iw", "ks", "ps", "sd", "ug", "ur", "yi"}
)

Item = TypeVar("Item")


def is_rtl_language(language: str) -> bool:
    """Whether the language is usually written from right to left; False for one that isn't known."""
    return language.lower().replace("_", "-").partition("-")[0] in _RTL_LANGUAGES


def first_strong_is_rtl(text: str) -> bool | None:
    """Whether the first letter with a direction runs right to left; None where there is none."""
    for sign in text:
        kind = unicodedata.bidirectional(sign)
        if kind in {"L", "R", "AL"}:
            return kind != "L"
    return None


def levels(text: str, *, is_rtl: bool) -> list[int]:
    """One embedding level for each code point of a paragraph: even runs left to right, odd right to left."""
    kinds = [unicodedata.bidirectional(sign) or "L" for sign in text]
    if not is_rtl and _RIGHT.isdisjoint(kinds):
        return [0] * len(kinds)
    base = "R" if is_rtl else "L"
    _resolve_weak(kinds, base)
    _resolve_brackets(text, kinds, base)
    _resolve_neutral(kinds, base)
    if is_rtl:
        return [1 if kind == "R" else 2 for kind in kinds]
    return [{"L": 0, "R": 1}.get(kind, 2) for kind in kinds]


def _resolve_weak(kinds: list[str], base: str) -> None:
    """Rules W1 to W7, in place."""
    _resolve_marks(kinds, base)
    for place in range(1, len(kinds) - 1):
        before, kind, after = kinds[place - 1 : place + 2]
        joins = kind == "CS" or (kind == "ES" and before == "EN")
        if joins and before == after and before in _NUMBERS:
            kinds[place] = before
    place = 0
    for kind, group in groupby(list(kinds)):
        end = place + sum(1 for _ in group)
        if kind == "ET" and "EN" in {*kinds[max(place - 1, 0) : place], *kinds[end : end + 1]}:
            kinds[place:end] = ["EN"] * (end - place)
        place = end
    strong = base
    for place, kind in enumerate(kinds):
        if kind in {"ES", "ET", "CS"}:
            kinds[place] = "ON"
        elif kind == "EN" and strong == "L":
            kinds[place] = "L"
        elif kind in {"L", "R"}:
            strong = kind


def _resolve_marks(kinds: list[str], base: str) -> None:
    """Rules W1 to W3, in place."""
    previous = strong = base
    for place, kind in enumerate(kinds):
        found = kind
        if kind in {"NSM", "BN"}:
            found = previous
        elif kind == "EN" and strong == "AL":
            found = "AN"
        if found in {"L", "R", "AL"}:
            strong = found
        kinds[place] = previous = found
    kinds[:] = ["R" if kind == "AL" else kind for kind in kinds]


def _strong(kind: str) -> str | None:
    return "R" if kind in _NUMBERS or kind == "R" else "L" if kind == "L" else None


def _resolve_brackets(text: str, kinds: list[str], base: str) -> None:
    """Rule N0, in place: a pair takes the direction of what it holds."""
    opened: list[tuple[int, str]] = []
    pairs: list[tuple[int, int]] = []
    for place, sign in enumerate(text):
        if kinds[place] != "ON":
            continue
        if sign in _BRACKETS:
            opened.append((place, _BRACKETS[sign]))
        elif any(closing == sign for _, closing in opened):
            while True:
                start, closing = opened.pop()
                if closing == sign:
                    pairs.append((start, place))
                    break
    for start, end in sorted(pairs):
        held = {_strong(kind) for kind in kinds[start + 1 : end]} - {None}
        if base in held:
            kinds[start] = kinds[end] = base
        elif held:
            opposite = "L" if base == "R" else "R"
            before = next((found for kind in reversed(kinds[:start]) if (found := _strong(kind))), base)
            kinds[start] = kinds[end] = opposite if before == opposite else base


def _resolve_neutral(kinds: list[str], base: str) -> None:
    """Rules N1 and N2, in place."""
    place = 0
    for is_neutral, group in groupby(list(kinds), key=lambda kind: _strong(kind) is None):
        end = place + sum(1 for _ in group)
        if is_neutral:
            before = _strong(kinds[place - 1]) if place else base
            after = _strong(kinds[end]) if end < len(kinds) else base
            kinds[place:end] = [(before or base) if before == after else base] * (end - place)
        place = end


def visual_order(items: Sequence[Item], item_levels: Sequence[int]) -> list[Item]:
    """Rule L2: the items of a line from left to right."""
    ordered = list(zip(items, item_levels, strict=True))
    highest = max(item_levels, default=0)
    for level in range(highest, 0, -1):
        place = 0
        while place < len(ordered):
            end = place
            while end < len(ordered) and ordered[end][1] >= level:
                end += 1
            if end > place:
                ordered[place:end] = reversed(ordered[place:end])
            place = max(end, place + 1)
    return [item for item, _ in ordered]
