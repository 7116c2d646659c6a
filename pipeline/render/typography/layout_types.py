"""Defines laid-out text as data, which `text_layout.layout` returns and stored layouts consist of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Direction = Literal["ltr", "rtl"]
Align = Literal["start", "center", "end"]


@dataclass(frozen=True)
class Style:
    """The look of text, except its size.

    `optical` is Inter's optical size, from 14 for small text to 32 for titles; `line_height` is in units of the size.
    """

    weight: int = 400
    optical: int = 28
    line_height: float = 1.3
    align: Align = "start"
    hang: float = 0.0
    """The pixels by which a quotation mark that opens a line may hang out to the left, so that the words line up."""


@dataclass(frozen=True)
class TextRun:
    """A stretch of one font and one direction; `x` is its left edge in pixels from the block's left edge."""

    text: str
    font: str
    x: float
    width: float
    direction: Direction
    is_accented: bool = False


@dataclass(frozen=True)
class TextLine:
    """A line: `text` in reading order, `runs` from left to right, `baseline` in pixels from the block's top edge."""

    text: str
    x: float
    baseline: float
    width: float
    runs: tuple[TextRun, ...]


@dataclass(frozen=True)
class Block:
    """Laid-out text, in pixels from the block's top left corner; `width` is the box's, `height` that of the lines."""

    width: float
    height: float
    size: int
    weight: int
    optical: int
    language: str
    direction: Direction
    lines: tuple[TextLine, ...]
