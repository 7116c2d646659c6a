"""How wide a run of text is, what its ink covers, and what an emoji looks like at a size."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from PIL import Image, ImageDraw

from pipeline.render.typography import fonts

if TYPE_CHECKING:
    from pipeline.render.typography.layout_types import Direction

_EMOJI_SCALE: Final = 0.93
"""They are drawn larger than letters; at this share their height goes with that of capitals."""


class Pen(NamedTuple):
    """All that the width of a run depends on besides its words."""

    font: str
    size: int
    weight: int
    optical: int
    language: str
    direction: Direction


@lru_cache(maxsize=4096)
def advance(text: str, pen: Pen) -> float:
    """How far the pen moves over a run, in pixels."""
    face = fonts.face(pen.font, pen.size, pen.weight, pen.optical)
    if pen.font == fonts.EMOJI:
        return face.getlength(text) * emoji_scale(pen.size)
    return face.getlength(text, direction=pen.direction, language=pen.language or None)


@lru_cache(maxsize=1024)
def ink_of(text: str, pen: Pen) -> tuple[float, float, float, float]:
    """Left, top, right and bottom of what a run of letters draws, from the start of its baseline."""
    face = fonts.face(pen.font, pen.size, pen.weight, pen.optical)
    return face.getbbox(text, direction=pen.direction, language=pen.language or None, anchor="ls")


@lru_cache(maxsize=64)
def seen_of(text: str, pen: Pen) -> tuple[float, float, float, float]:
    """As `ink_of`, but only what is seen: that reaches to the pen and the baseline even where nothing is drawn."""
    left, top, right, bottom = (round(edge) for edge in ink_of(text, pen))
    mask = Image.new("L", (right - left + 2, bottom - top + 2))
    face = fonts.face(pen.font, pen.size, pen.weight, pen.optical)
    ImageDraw.Draw(mask).text(
        (1 - left, 1 - top), text, 255, face, "ls", direction=pen.direction, language=pen.language or None
    )
    box = mask.getbbox() or (0, 0, mask.width, mask.height)
    return left + box[0] - 1, top + box[1] - 1, left + box[2] - 1, top + box[3] - 1


def emoji_scale(size: int) -> float:
    """From the emoji's one size to that of the text."""
    return _EMOJI_SCALE * size / fonts.STRIKE


@lru_cache(maxsize=256)
def sprite(cluster: str, size: int) -> tuple[Image.Image, int]:
    """An emoji at a size and how far it rises above the baseline."""
    face = fonts.face(fonts.EMOJI, size, 400, fonts.SMALLEST_OPTICAL)
    left, top, right, bottom = (int(edge) for edge in face.getbbox(cluster, anchor="ls"))
    large = Image.new("RGBA", (right - left, bottom - top), (255, 255, 255, 0))
    ImageDraw.Draw(large).text((-left, -top), cluster, font=face, anchor="ls", embedded_color=True)
    scale = emoji_scale(size)
    measure = (max(1, round(large.width * scale)), max(1, round(large.height * scale)))
    # Colours are weighed by their opacity, or the edges would turn dark.
    small = large.convert("RGBa").resize(measure, Image.Resampling.LANCZOS).convert("RGBA")
    return small, round(-top * scale)
