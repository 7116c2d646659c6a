"""Scripts that part their words by nothing: where a word ends, and how words stand beside each other."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import budoux

if TYPE_CHECKING:
    from collections.abc import Iterable

_SPACELESS: Final = (
    "\u0e00-\u0e7f\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff01-\uff60\U00020000-\U0003ffff"
)
"""Of scripts that part their words by nothing: Thai, kana, Chinese characters, and the marks that go with them."""
_STAYS: Final = (
    "\u0e30-\u0e3a\u0e45-\u0e4e、。，．！？：；」』）】〉》ーぁぃぅぇぉっゃゅょァィゥェォッャュョヮ"
)
"""What no word begins with: vowels behind their consonant, small kana, closing marks."""
_OPENS: Final = "\u0e40-\u0e44「『（【〈《"
_TOUCHING: Final = re.compile(f"[{_SPACELESS}]{{2}}|[、。，！？；：].", re.DOTALL)
_BETWEEN: Final = re.compile(f"(?<=[{_SPACELESS}])(?<![{_OPENS}])(?=[{_SPACELESS}])(?![{_STAYS}])")
# A mark that closes a phrase parts it from a number too, and no space stands there.
_AFTER_MARK: Final = re.compile("(?<=[、。，！？；：])(?=[0-9A-Za-z])")
# Within "3か月間", and before a particle: "1500円で、", "市は2026年に".
_HELD_TOGETHER: Final = re.compile(
    "(?<=[0-9０-９][かカヶヵケ])(?=[一-鿿])|(?<=[年月日時分秒週])(?=間)|(?<=[一-鿿ァ-ヶー])(?=[はがをでにのもとへ][、0-9０-９])"
)
# Where a particle or a counter ends, in what is too long for one word.
_PHRASE_ENDS: Final = re.compile("(?<=[ぁ-ん])(?=[一-鿿ァ-ヶ])|(?<=[年月日時分秒週]間)(?=[一-鿿])")
_THAI: Final = re.compile("[\u0e00-\u0e7f]")
_KANA: Final = re.compile("[\u3040-\u30ff]")
LONGEST_PIECE: Final = 12
"""Signs of a script without spaces that are one word at most: what fits on a caption card."""


@lru_cache(maxsize=4096)
def phrases(text: str) -> tuple[str, ...]:
    """The words of a text without spaces, in scripts that write none; every other text is one word."""
    if text.isascii() or not (_BETWEEN.search(text) or _AFTER_MARK.search(text)):
        return (text,)
    script = "th" if _THAI.search(text) else "ja" if _KANA.search(text) else "zh"
    found, place = [], 0
    edges = {edge.start() for edge in _BETWEEN.finditer(text)}
    edges -= {edge.start() for edge in _HELD_TOGETHER.finditer(text)}
    for phrase in _parser(script).parse(text):
        place += len(phrase)
        if place in edges or place == len(text):
            found.append(place)
    found = sorted({*found, *(edge.start() for edge in _AFTER_MARK.finditer(text))})
    parts = (text[start:end] for start, end in pairwise((0, *found)))
    return tuple(short for part in parts for short in _short(part))


def _short(part: str) -> list[str]:
    """What is longer than a word may be, in even lengths, and at the end of a phrase where it has one."""
    # Digits are half as wide.
    count = -(-(len(part) + sum(not sign.isascii() for sign in part)) // (2 * LONGEST_PIECE))
    if count == 1:
        return [part]
    held = {edge.start() for edge in _HELD_TOGETHER.finditer(part)}
    for edges_of in (_PHRASE_ENDS, _BETWEEN):
        inner = [at for edge in edges_of.finditer(part) if (at := edge.start()) not in held]
        if len(inner) >= count - 1:
            break
    edges = [0, *inner, len(part)]
    wanted = [len(part) * number / count for number in range(1, count)]
    nearest = (min((abs(edge - at), edge) for edge in edges)[1] for at in wanted)
    cuts = sorted({0, len(part), *nearest})
    return [part[start:end] for start, end in pairwise(cuts)]


@cache
def _parser(script: str) -> budoux.Parser:
    load = {
        "ja": budoux.load_default_japanese_parser,
        "th": budoux.load_default_thai_parser,
        "zh": budoux.load_default_simplified_chinese_parser,
    }
    return load[script]()


def joined(words: Iterable[str]) -> str:
    """Words as they stand in a line: with a space between two, but for scripts that write none."""
    said = ""
    for word in words:
        is_close = not said or not word or _TOUCHING.fullmatch(said[-1] + word[0])
        said += word if is_close else f" {word}"
    return said
