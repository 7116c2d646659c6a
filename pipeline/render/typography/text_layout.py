"""Text laid out in a box and drawn: the one layout that pictures, captions and thumbnails share.

The largest size at which the text fits is taken; nothing is ever cut. Widths scale with the size, so a paragraph is
measured once and each line once more at the size that was chosen.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final, Literal

from PIL import ImageDraw

from pipeline.plugins import Refused
from pipeline.render.typography import fonts
from pipeline.render.typography.bidi import first_strong_is_rtl, is_rtl_language, levels
from pipeline.render.typography.clusters import fonts_of, split_clusters
from pipeline.render.typography.fit_text import Paragraph, Shape
from pipeline.render.typography.line_breaks import pieces
from pipeline.render.typography.measure import Pen, ink_of, seen_of, sprite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PIL import Image

    from pipeline.render.typography.layout_types import Block, Direction, Style, TextRun

_RATHER_BREAK: Final = 0.8
"""A long word is broken where keeping it whole would shrink the text below this share."""
_LANGUAGE: Final = re.compile(r"[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8})*")
_ROUNDED: Final = 1
"""Pixels by which whole ones may exceed what was measured in parts of them."""


class TextDoesNotFit(Refused):
    """Even at the smallest size the text is larger than its box."""

    def __init__(self, width: float, height: float, smallest: int, *, why: str = "") -> None:
        super().__init__(
            why
            or f"The text doesn't fit into {width:.0f} × {height:.0f} pixels at {smallest} pixels, the smallest "
            "size; shorten it.",
            code="does_not_fit",
        )


def layout(
    text: str,
    box: tuple[float, float],
    style: Style,
    *,
    largest: int,
    smallest: int,
    language: str = "",
    direction: Direction | Literal["auto"] = "auto",
    accents: Sequence[tuple[int, int]] = (),
) -> Block:
    """The text at the largest whole size from `largest` to `smallest` pixels at which it fits the box.

    `accents` are stretches of the text, in code points after NFC, that are drawn in the second colour. With the
    direction `auto` each paragraph follows its first letter, and where it has none the language. Lines are as even
    as can be. Raises `MissingGlyphs` before anything is measured, `TextDoesNotFit` where the smallest size is too large.
    """
    tag = language if _LANGUAGE.fullmatch(language) else ""
    paragraphs = [
        _paragraph(words, direction=direction, language=tag, accents=_within(accents, start, len(words)))
        for start, words in _paragraphs(unicodedata.normalize("NFC", text))
    ]
    shape = Shape(paragraphs, box, style, tag)
    most = largest
    while most >= smallest and (block := _fitted(shape, most, smallest)) is not None:
        left, _, right, _ = ink(block)
        if right - left <= box[0] + _ROUNDED:
            return block
        # The last sign of a line may reach beyond where the next would begin, such as a digit's accent.
        most = block.size - 1
    raise TextDoesNotFit(*box, smallest)


def _fitted(shape: Shape, largest: int, smallest: int) -> Block | None:
    whole = shape.largest_fit(largest, smallest, may_break=False)
    split_up = None
    if whole is None or whole.size < _RATHER_BREAK * largest:
        split_up = shape.largest_fit(largest, smallest, may_break=True)
    if whole is None or (split_up is not None and whole.size < _RATHER_BREAK * split_up.size):
        return split_up
    return whole


def _paragraphs(text: str) -> list[tuple[int, str]]:
    """Each with where it starts; white space at the ends goes, as do empty ones."""
    found = []
    start = 0
    for line in re.split(r"\r\n|[\n\r\x0b\x0c\x85\u2028\u2029]", text):
        end = start + len(line)
        words = line.strip()
        if words:
            found.append((start + len(line) - len(line.lstrip()), words.replace("\t", " ")))
        start = end + (2 if text[end : end + 2] == "\r\n" else 1)
    return found


def _within(accents: Sequence[tuple[int, int]], start: int, length: int) -> list[tuple[int, int]]:
    return [
        (max(first - start, 0), min(end - start, length))
        for first, end in accents
        if first < start + length and end > start
    ]


def _paragraph(
    words: str, *, direction: Direction | Literal["auto"], language: str, accents: list[tuple[int, int]]
) -> Paragraph:
    found = split_clusters(words)
    chosen = fonts_of(found)
    if direction == "auto":
        strong = first_strong_is_rtl(words)
        is_rtl = is_rtl_language(language) if strong is None else strong
    else:
        is_rtl = direction == "rtl"
    by_sign = levels(words, is_rtl=is_rtl)
    by_cluster: list[int] = []
    accented: list[bool] = []
    place = 0
    for cluster in found:
        by_cluster.append(by_sign[place])
        accented.append(any(first <= place < end for first, end in accents))
        place += len(cluster)
    return Paragraph(
        tuple(found), tuple(chosen), tuple(by_cluster), tuple(accented), tuple(pieces(found)), is_rtl
    )


def ink(block: Block) -> tuple[float, float, float, float]:
    """The box of what is really drawn, from the block's top left corner: left, top, right, bottom; emoji apart."""
    boxes = []
    for line in block.lines:
        for run in line.runs:
            if run.font == fonts.EMOJI:
                continue
            left, top, right, bottom = ink_of(run.text, _pen(block, run))
            boxes.append((run.x + left, line.baseline + top, run.x + right, line.baseline + bottom))
    if not boxes:
        return 0.0, 0.0, block.width, block.height
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)


def seen(block: Block) -> tuple[float, float, float, float]:
    """As `ink`, but without the empty part between what is drawn and the baseline; slower, for ornaments."""
    boxes = [
        (run.x + box[0], line.baseline + box[1], run.x + box[2], line.baseline + box[3])
        for line in block.lines
        for run in line.runs
        for box in (seen_of(run.text, _pen(block, run)),)
    ]
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)


def _pen(block: Block, run: TextRun) -> Pen:
    return Pen(run.font, block.size, block.weight, block.optical, block.language, run.direction)


def draw_block(
    image: Image.Image, block: Block, at: tuple[float, float], *, colour: str, accent: str | None = None
) -> None:
    """The block on an RGB image, its top left corner at `at`."""
    pen = ImageDraw.Draw(image)
    for line in block.lines:
        for run in line.runs:
            x, y = at[0] + run.x, at[1] + line.baseline
            if run.font == fonts.EMOJI:
                _draw_emoji(image, run, (x, y), block.size)
                continue
            pen.text(
                (x, y),
                run.text,
                fill=accent if run.is_accented and accent else colour,
                font=fonts.face(run.font, block.size, block.weight, block.optical),
                anchor="ls",
                direction=run.direction,
                language=block.language or None,
            )


def _draw_emoji(image: Image.Image, run: TextRun, at: tuple[float, float], size: int) -> None:
    x, y = at
    clusters = split_clusters(run.text)
    for cluster in reversed(clusters) if run.direction == "rtl" else clusters:
        picture, above = sprite(cluster, size)
        image.paste(picture, (round(x), round(y) - above), picture)
        x += run.width / len(clusters)
