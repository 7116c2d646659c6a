"""Finds the headings of a plain text: lines that stand alone over what they name."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from pipeline.text.sentence_edits import collapse, is_clean

_LONGEST: Final = 90
_MOST_WORDS: Final = 14
_LEAST_PARAGRAPH: Final = 80
"""What a heading stands over is no list of short lines."""

_BLOCK: Final = re.compile(r"[^\n]+(?:\n(?!\s*\n)[^\n]+)*")
_MARKS: Final = re.compile(r"\s*#{1,6}\s+")
_LIST: Final = re.compile(
    r"\s*(?:[|`\[]|[-*\u2022\u25aa\u2013\u2014\u00b7]\s|\d{1,3}[.)]\s|\[?\(?\d{1,2}:\d{2})"
)
_LETTER: Final = re.compile(r"[^\W\d_]")
_UNENDING: Final = ".!:;,\u2026\u3002\uff01\uff1a\u061b\u060c"


def find_headings(text: str, *, title: str = "") -> tuple[tuple[int, int], ...]:
    """Where each heading stands, as `text[start:end]`; the title isn't one of them.

    A heading is a line by itself between blank lines, short and without a full stop, over a paragraph. A text of
    such lines alone, as poems and captions are, has none.
    """
    blocks = list(_BLOCK.finditer(text))
    wanted = collapse(title).casefold()
    found: list[tuple[int, int]] = []
    for block, following in pairwise(blocks):
        marks = _MARKS.match(block.group())
        start = block.start() + (marks.end() if marks else 0)
        line = text[start : block.end()].strip()
        start = text.index(line, start)
        is_heading = (
            _is_line(line) and len(following.group()) >= _LEAST_PARAGRAPH and "\n" not in block.group()
        )
        if is_heading and collapse(line).casefold() != wanted:
            found.append((start, start + len(line)))
    return tuple(found)


def _is_line(line: str) -> bool:
    return (
        0 < len(line) <= _LONGEST
        and len(line.split()) <= _MOST_WORDS
        and line[-1] not in _UNENDING
        and not line[0].islower()
        and _LETTER.search(line) is not None
        and _LIST.match(line) is None
        and is_clean(line)
    )
