"""Splits texts of scripts without spaces into words, and joins words, with a space if their script has one."""

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
"""Characters of scripts without spaces between words: Thai, kana, Chinese characters, and their punctuation."""
_NOT_AT_WORD_START: Final = (
    "\u0e30-\u0e3a\u0e45-\u0e4e、。，．！？：；」』）】〉》ーぁぃぅぇぉっゃゅょァィゥェォッャュョヮ"
)
"""Characters with which no word begins: vowels after their consonant, small kana, closing marks."""
_OPENING_MARKS: Final = "\u0e40-\u0e44「『（【〈《"
_NO_SPACE_BETWEEN: Final = re.compile(f"[{_SPACELESS}]{{2}}|[、。，！？；：].", re.DOTALL)
_POSSIBLE_WORD_EDGE: Final = re.compile(
    f"(?<=[{_SPACELESS}])(?<![{_OPENING_MARKS}])(?=[{_SPACELESS}])(?![{_NOT_AT_WORD_START}])"
)
# A closing mark also separates a phrase from a number, without a space between.
_NUMBER_AFTER_MARK: Final = re.compile("(?<=[、。，！？；：])(?=[0-9A-Za-z])")
# Within "3か月間", and before a particle: "1500円で、", "市は2026年に".
_NEVER_SPLIT: Final = re.compile(
    "(?<=[0-9０-９][かカヶヵケ])(?=[一-鿿])|(?<=[年月日時分秒週])(?=間)|(?<=[一-鿿ァ-ヶー])(?=[はがをでにのもとへ][、0-9０-９])"
)
# The end of a particle or a counter, in a part that is too long for one word.
_PHRASE_ENDS: Final = re.compile("(?<=[ぁ-ん])(?=[一-鿿ァ-ヶ])|(?<=[年月日時分秒週]間)(?=[一-鿿])")
_THAI: Final = re.compile("[\u0e00-\u0e7f]")
_KANA: Final = re.compile("[\u3040-\u30ff]")
MAX_WORD_CHARACTERS: Final = 12
"""The longest word in a script without spaces that fits on a caption card."""


@lru_cache(maxsize=4096)
def split_words(text: str) -> tuple[str, ...]:
    """Return the words of a text without spaces, in scripts that have none; any other text is one word."""
    if text.isascii() or not (_POSSIBLE_WORD_EDGE.search(text) or _NUMBER_AFTER_MARK.search(text)):
        return (text,)
    script = "th" if _THAI.search(text) else "ja" if _KANA.search(text) else "zh"
    cuts, offset = [], 0
    edges = {edge.start() for edge in _POSSIBLE_WORD_EDGE.finditer(text)}
    edges -= {edge.start() for edge in _NEVER_SPLIT.finditer(text)}
    for phrase in _parser(script).parse(text):
        offset += len(phrase)
        if offset in edges or offset == len(text):
            cuts.append(offset)
    cuts = sorted({*cuts, *(edge.start() for edge in _NUMBER_AFTER_MARK.finditer(text))})
    parts = (text[start:end] for start, end in pairwise((0, *cuts)))
    return tuple(word for part in parts for word in _split_long(part))


def _split_long(part: str) -> list[str]:
    """Split a part that is longer than a word may be into even lengths, at ends of phrases if there are enough."""
    # Rounded up; digits and Latin letters are half as wide.
    count = -(-(len(part) + sum(not character.isascii() for character in part)) // (2 * MAX_WORD_CHARACTERS))
    if count == 1:
        return [part]
    unsplittable = {edge.start() for edge in _NEVER_SPLIT.finditer(part)}
    for edges_of in (_PHRASE_ENDS, _POSSIBLE_WORD_EDGE):
        candidates = [
            position for edge in edges_of.finditer(part) if (position := edge.start()) not in unsplittable
        ]
        if len(candidates) >= count - 1:
            break
    edges = [0, *candidates, len(part)]
    targets = [len(part) * number / count for number in range(1, count)]
    nearest = (min((abs(edge - target), edge) for edge in edges)[1] for target in targets)
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


def join_words(words: Iterable[str]) -> str:
    """Join words as in a line: with a space between two, except in scripts that have none."""
    text = ""
    for word in words:
        is_close = not text or not word or _NO_SPACE_BETWEEN.fullmatch(text[-1] + word[0])
        text += word if is_close else f" {word}"
    return text
