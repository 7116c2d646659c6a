"""Measures a run of text in pixels, its width and the bounds of its ink, and scales an emoji's image."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from PIL import Image, ImageDraw

from pipeline.render.typography import fonts

if TYPE_CHECKING:
    from pipeline.render.typography.layout_types import Direction

_EMOJI_SCALE: Final = 0.93
"""Emoji are drawn larger than letters; this scale matches the height of capitals."""


class RunStyle(NamedTuple):
    """All that the width of a run depends on, except its text."""

    font: str
    size: int
    weight: int
    optical: int
    language: str
    direction: Direction


@lru_cache(maxsize=4096)
def advance(text: str, run_style: RunStyle) -> float:
    """Return the distance by which a run moves the pen, in pixels."""
    face = fonts.face(run_style.font, run_style.size, run_style.weight, run_style.optical)
    if run_style.font == fonts.EMOJI:
        return face.getlength(text) * emoji_scale(run_style.size)
    return face.getlength(text, direction=run_style.direction, language=run_style.language or None)


@lru_cache(maxsize=1024)
def ink_bounds(text: str, run_style: RunStyle) -> tuple[float, float, float, float]:
    """Return left, top, right and bottom of a run of letters, in pixels from the start of its baseline."""
    face = fonts.face(run_style.font, run_style.size, run_style.weight, run_style.optical)
    return face.getbbox(text, direction=run_style.direction, language=run_style.language or None, anchor="ls")


@lru_cache(maxsize=64)
def visible_bounds(text: str, run_style: RunStyle) -> tuple[float, float, float, float]:
    """Return the bounds of the visible pixels; `ink_bounds` always includes the start of the baseline."""
    left, top, right, bottom = (round(edge) for edge in ink_bounds(text, run_style))
    # A margin of one pixel, because rounding may have cut the ink.
    mask = Image.new("L", (right - left + 2, bottom - top + 2))
    face = fonts.face(run_style.font, run_style.size, run_style.weight, run_style.optical)
    ImageDraw.Draw(mask).text(
        (1 - left, 1 - top),
        text,
        255,
        face,
        "ls",
        direction=run_style.direction,
        language=run_style.language or None,
    )
    box = mask.getbbox() or (0, 0, mask.width, mask.height)
    return left + box[0] - 1, top + box[1] - 1, left + box[2] - 1, top + box[3] - 1


def emoji_scale(size: int) -> float:
    """Return the scale from the emoji's one size to the text's."""
    return _EMOJI_SCALE * size / fonts.EMOJI_PIXELS


@lru_cache(maxsize=256)
def emoji_image(cluster: str, size: int) -> tuple[Image.Image, int]:
    """Return an emoji's image at a size, and the number of pixels by which it rises above the baseline."""
    face = fonts.face(fonts.EMOJI, size, 400, fonts.MIN_OPTICAL_SIZE)
    left, top, right, bottom = (int(edge) for edge in face.getbbox(cluster, anchor="ls"))
    large = Image.new("RGBA", (right - left, bottom - top), (255, 255, 255, 0))
    ImageDraw.Draw(large).text((-left, -top), cluster, font=face, anchor="ls", embedded_color=True)
    scale = emoji_scale(size)
    scaled_size = (max(1, round(large.width * scale)), max(1, round(large.height * scale)))
    # Premultiplied, so that colours are weighed by their opacity; the edges would otherwise turn dark.
    small = large.convert("RGBa").resize(scaled_size, Image.Resampling.LANCZOS).convert("RGBA")
    return small, round(-top * scale)
