"""How platforms count: graphemes, UTF-16 units, bytes, code points, addresses at a fixed weight."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import regex

from pipeline.text.links import find_links

if TYPE_CHECKING:
    from collections.abc import Callable


@cache
def _grapheme() -> regex.Pattern[str]:
    return regex.compile(r"\X")


def graphemes(text: str) -> int:
    """Extended grapheme clusters (Unicode, UAX 29): what people see as one sign."""
    return sum(1 for _ in _grapheme().finditer(text))


def utf16_units(text: str) -> int:
    """Units of UTF-16, as JavaScript, Telegram and TikTok count: 2 for everything beyond the basic plane."""
    return len(text) + sum(1 for sign in text if ord(sign) > 0xFFFF)


def utf8_bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def with_links_at(weight: int, count: Callable[[str], int]) -> Callable[[str], int]:
    """`count`, but each address that has a scheme weighs `weight`, however long it is."""

    def counted(text: str) -> int:
        total, position = 0, 0
        for link in find_links(text):
            if not link.has_scheme:
                continue
            total += count(text[position : link.start]) + weight
            position = link.end
        return total + count(text[position:])

    return counted
