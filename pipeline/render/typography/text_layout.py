"""Lays text out in a box and draws it: the one layout that pictures, captions and thumbnails share.

Text is set at the largest size at which it fits; nothing is ever cut. Widths scale with the size, so a paragraph is
measured once, and each line once more at the chosen size.
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
from pipeline.render.typography.fit_text import Paragraph, TextFitter
from pipeline.render.typography.line_breaks import split_pieces
from pipeline.render.typography.measure import RunStyle, emoji_image, ink_bounds, visible_bounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PIL import Image

    from pipeline.render.typography.layout_types import Block, Direction, Style, TextRun

_MIN_UNBROKEN_SHARE: Final = 0.8
"""A long word is broken if the text would be smaller than this share of its size otherwise."""
_LANGUAGE_TAG: Final = re.compile(r"[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8})*")
_ROUNDING_PIXELS: Final = 1
"""Pixels by which whole pixels may exceed what was measured in fractions of them."""


class TextDoesNotFit(Refused):
    """The text is larger than its box even at the smallest size; `why` replaces the default message."""

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
    """Lay the text out at the largest whole size from `largest` to `smallest` pixels at which it fits the box.

    `box` is width and height in pixels. `accents` are ranges of the text, in code points after NFC, that have the
    second colour. With the direction `auto` each paragraph follows its first letter, or the language if it has none.
    Lines are as even as can be. Raises `MissingGlyphs` before anything is measured, and `TextDoesNotFit` if the text
    doesn't fit at the smallest size.
    """
    language_tag = language if _LANGUAGE_TAG.fullmatch(language) else ""
    paragraphs = [
        _paragraph(
            paragraph_text,
            direction=direction,
            language=language_tag,
            accents=_accents_within(accents, start, len(paragraph_text)),
        )
        for start, paragraph_text in _paragraphs(unicodedata.normalize("NFC", text))
    ]
    shape = TextFitter(paragraphs, box, style, language_tag)
    max_size = largest
    while max_size >= smallest and (block := _fit(shape, max_size, smallest)) is not None:
        left, _, right, _ = ink_box(block)
        if right - left <= box[0] + _ROUNDING_PIXELS:
            return block
        # A line's last character may draw beyond its own width, such as a digit with an accent.
        max_size = block.size - 1
    raise TextDoesNotFit(*box, smallest)


def _fit(shape: TextFitter, largest: int, smallest: int) -> Block | None:
    """Return the block with whole words, or with broken ones if the text is much larger then, or `None`."""
    unbroken = shape.largest_fit(largest, smallest, may_break=False)
    broken = None
    if unbroken is None or unbroken.size < _MIN_UNBROKEN_SHARE * largest:
        broken = shape.largest_fit(largest, smallest, may_break=True)
    if unbroken is None or (broken is not None and unbroken.size < _MIN_UNBROKEN_SHARE * broken.size):
        return broken
    return unbroken


def _paragraphs(text: str) -> list[tuple[int, str]]:
    """Return each paragraph with its start in the text, without white space at its ends; empty ones are left out."""
    paragraphs = []
    start = 0
    for line in re.split(r"\r\n|[\n\r\x0b\x0c\x85\u2028\u2029]", text):
        end = start + len(line)
        stripped = line.strip()
        if stripped:
            paragraphs.append((start + len(line) - len(line.lstrip()), stripped.replace("\t", " ")))
        start = end + (2 if text[end : end + 2] == "\r\n" else 1)
    return paragraphs


def _accents_within(accents: Sequence[tuple[int, int]], start: int, length: int) -> list[tuple[int, int]]:
    """Return the parts of the accents that lie in a paragraph, from the paragraph's start."""
    return [
        (max(first - start, 0), min(end - start, length))
        for first, end in accents
        if first < start + length and end > start
    ]


def _paragraph(
    text: str, *, direction: Direction | Literal["auto"], language: str, accents: list[tuple[int, int]]
) -> Paragraph:
    """Return a paragraph's clusters with fonts, levels and accents. Raises `MissingGlyphs` for undrawable ones."""
    clusters = split_clusters(text)
    cluster_fonts = fonts_of(clusters)
    if direction == "auto":
        first_strong = first_strong_is_rtl(text)
        is_rtl = is_rtl_language(language) if first_strong is None else first_strong
    else:
        is_rtl = direction == "rtl"
    levels_by_character = levels(text, is_rtl=is_rtl)
    levels_by_cluster: list[int] = []
    accents_by_cluster: list[bool] = []
    offset = 0
    for cluster in clusters:
        levels_by_cluster.append(levels_by_character[offset])
        accents_by_cluster.append(any(first <= offset < end for first, end in accents))
        offset += len(cluster)
    return Paragraph(
        tuple(clusters),
        tuple(cluster_fonts),
        tuple(levels_by_cluster),
        tuple(accents_by_cluster),
        tuple(split_pieces(clusters)),
        is_rtl,
    )


def ink_box(block: Block) -> tuple[float, float, float, float]:
    """Return left, top, right and bottom of the ink without emoji, or of the block without ink, from its corner."""
    boxes = []
    for line in block.lines:
        for run in line.runs:
            if run.font == fonts.EMOJI:
                continue
            left, top, right, bottom = ink_bounds(run.text, _run_style(block, run))
            boxes.append((run.x + left, line.baseline + top, run.x + right, line.baseline + bottom))
    if not boxes:
        return 0.0, 0.0, block.width, block.height
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)


def visible_box(block: Block) -> tuple[float, float, float, float]:
    """Return the box of the visible ink alone, which doesn't reach to the baseline; slower, for ornaments."""
    boxes = [
        (run.x + box[0], line.baseline + box[1], run.x + box[2], line.baseline + box[3])
        for line in block.lines
        for run in line.runs
        for box in (visible_bounds(run.text, _run_style(block, run)),)
    ]
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)


def _run_style(block: Block, run: TextRun) -> RunStyle:
    return RunStyle(run.font, block.size, block.weight, block.optical, block.language, run.direction)


def draw_block(
    image: Image.Image, block: Block, at: tuple[float, float], *, colour: str, accent: str | None = None
) -> None:
    """Draw the block on an RGB image, its top left corner at `at`."""
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
        picture, above = emoji_image(cluster, size)
        image.paste(picture, (round(x), round(y) - above), picture)
        x += run.width / len(clusters)
