"""Draws overlays and captions as planes, once, with the layout engine of pictures, and lays them on frames."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

from pipeline.render.colour import BLACK, WHITE, rgb
from pipeline.render.draw_layout import draw_picture
from pipeline.render.picture_types import DrawnText, Panel, PicturePlan
from pipeline.render.typography.layout_types import Style
from pipeline.render.typography.punctuation import typeset
from pipeline.render.typography.text_layout import layout
from pipeline.render.typography.word_segmentation import join_words
from pipeline.render.video.ycbcr import Plane, Planes, halve, planes_of_premultiplied

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pipeline.render.video.storyboard import Caption, CaptionStyle, Item

_SHADOW_REACH: Final = 88
"""The distance by which a panel's shadow reaches beyond the panel, in pixels."""
_MAX_LINES: Final = 2
_CAPTION_STYLE: Final = Style(weight=800, optical=32, line_height=1.12, align="center")


@dataclass(frozen=True)
class Sprite:
    """A drawn overlay. `left` and `top` are even, in pixels of the film.

    `planes` are premultiplied by the opacity; `clear` is 255 less the opacity, for each plane.
    """

    left: int
    top: int
    planes: Planes
    clear: Planes

    @property
    def width(self) -> int:
        return int(self.planes.y.shape[1])

    @property
    def height(self) -> int:
        return int(self.planes.y.shape[0])


def sprite_of_items(
    items: Sequence[Item], size: tuple[int, int], *, shrink: int = 1, portrait: bytes | None = None
) -> Sprite:
    """Draw items as one sprite, for a film of `size` that is made `shrink` times smaller."""
    step = 2 * shrink
    left, top, right, bottom = _round_outwards(_bounds(items), step)
    # Items outside of the frame may move in, but not from further away than a frame.
    left, right = max(left, -size[0]), min(right, 2 * size[0])
    top, bottom = max(top, -size[1]), min(bottom, 2 * size[1])
    shifted = tuple(_shift(item, left, top) for item in items)
    pixels = _premultiplied(shifted, (max(right - left, step), max(bottom - top, step)), portrait)
    return _to_sprite(pixels, left, top, shrink)


def _shift(item: Item, left: int, top: int) -> Item:
    if isinstance(item, DrawnText):
        return dataclasses.replace(item, x=item.x - left, y=item.y - top)
    return dataclasses.replace(item, x=item.x - left, y=item.y - top)


def sprite_of_caption(
    card: Caption, caption_style: CaptionStyle, active: int | None, *, language: str, shrink: int = 1
) -> Sprite:
    """Draw a caption card with one of its words highlighted; `active` is the word's index, or `None` for no word.

    Raises `MissingGlyphs` if the fonts lack a character, and `TextDoesNotFit` if the card is too small.
    """
    text, accents = _marked_text(card, active, language)
    style = dataclasses.replace(_CAPTION_STYLE, weight=caption_style.weight)
    height = caption_style.size * style.line_height * _MAX_LINES + 1
    block = layout(
        text,
        (caption_style.width, height),
        style,
        largest=caption_style.size,
        smallest=caption_style.smallest,
        language=language,
        accents=accents,
    )
    margin = caption_style.outline_width + 4
    x, y = caption_style.x - caption_style.width / 2, caption_style.y - block.height / 2
    step = 2 * shrink
    left, top, right, bottom = _round_outwards(
        (x - margin, y - margin, x + caption_style.width + margin, y + block.height + margin), step
    )
    words = DrawnText(x - left, y - top, block, caption_style.colour, caption_style.accent)
    pixels = _add_outline(_premultiplied((words,), (right - left, bottom - top), None), caption_style)
    return _to_sprite(pixels, left, top, shrink)


def _marked_text(card: Caption, active: int | None, language: str) -> tuple[str, list[tuple[int, int]]]:
    """Return the card's text, and a list with the range of its active word, if it has one."""
    text, accents = "", []
    for index, word in enumerate(card.words):
        word_text = typeset(word.t.strip(), language)
        text = join_words((text, word_text))
        if index == active:
            accents.append((len(text) - len(word_text), len(text)))
    return text, accents


def _bounds(items: Iterable[Item]) -> tuple[float, float, float, float]:
    """Return the box of everything that may be drawn."""
    boxes = []
    for item in items:
        if isinstance(item, DrawnText):
            block, margin = item.block, item.block.size
            lines = [run for line in block.lines for run in line.runs]
            left_edge = min((run.x for run in lines), default=0.0)
            right_edge = max((run.x + run.width for run in lines), default=0.0)
            boxes.append(
                (
                    item.x + left_edge - margin / 4,
                    item.y - margin / 4,
                    item.x + right_edge + margin / 4,
                    item.y + block.height + margin / 4,
                )
            )
            continue
        width, height = (item.width, item.height) if isinstance(item, Panel) else (item.size, item.size)
        margin = _SHADOW_REACH if isinstance(item, Panel) and item.has_shadow else 0
        boxes.append((item.x - margin, item.y - margin, item.x + width + margin, item.y + height + margin))
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)


def _round_outwards(box: tuple[float, float, float, float], step: int) -> tuple[int, int, int, int]:
    """Round a box outwards to multiples of `step`."""
    left, top, right, bottom = box
    return (
        int(left // step) * step,
        int(top // step) * step,
        -int(-right // step) * step,
        -int(-bottom // step) * step,
    )


def _premultiplied(items: tuple[Item, ...], size: tuple[int, int], portrait: bytes | None) -> Plane:
    """Return red, green, blue and opacity, with the colours premultiplied by the opacity.

    The items are drawn on black and on white, and the difference is their transparency, so films can show all that
    pictures can.
    """
    drawings = [
        np.asarray(
            draw_picture(PicturePlan("", "", size[0], size[1], background, items, ""), portrait=portrait),
            np.uint8,
        )
        for background in (BLACK, WHITE)
    ]
    transparency = cv2.subtract(drawings[1], drawings[0])
    # The mean of the three channels evens out the rounding of each.
    opacity = 255 - cv2.transform(transparency, np.full((1, 3), 1 / 3))
    return np.dstack([drawings[0], opacity])


def _add_outline(pixels: Plane, caption_style: CaptionStyle) -> Plane:
    """Add a round outline behind the letters."""
    if caption_style.outline_width < 1:
        return pixels
    opacity = np.ascontiguousarray(pixels[:, :, 3])
    side = 2 * caption_style.outline_width + 1
    widened = cv2.dilate(opacity, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (side, side)))
    widened = cv2.GaussianBlur(widened, (3, 3), 0)
    outline = cv2.multiply(widened, 255 - opacity, scale=1 / 255)
    layers = [
        cv2.add(np.ascontiguousarray(pixels[:, :, channel]), cv2.convertScaleAbs(outline, alpha=level / 255))
        for channel, level in enumerate((*rgb(caption_style.outline), 255))
    ]
    return np.dstack(layers)


def _to_sprite(pixels: Plane, left: int, top: int, shrink: int) -> Sprite:
    if shrink > 1:
        height, width = pixels.shape[:2]
        pixels = np.asarray(
            cv2.resize(pixels, (width // shrink, height // shrink), interpolation=cv2.INTER_AREA), np.uint8
        )
    clear = np.ascontiguousarray(255 - pixels[:, :, 3])
    half_size = halve(clear)
    return Sprite(
        left // shrink, top // shrink, planes_of_premultiplied(pixels), Planes(clear, half_size, half_size)
    )


def draw_sprite(
    target: Planes, sprite: Sprite, *, strength: float = 1.0, drop: float = 0.0, share: float = 1.0
) -> None:
    """Lay the left `share` of a sprite on a frame, `drop` pixels lower and with `strength` as its opacity."""
    if strength <= 0.0 or share <= 0.0:
        return
    planes, clear = sprite.planes, sprite.clear
    even_drop = int(drop // 2) * 2
    if drop != even_drop:
        planes, clear = _shift_down(planes, drop - even_drop, 0), _shift_down(clear, drop - even_drop, 255)
    width = sprite.width if share >= 1.0 else round(sprite.width * share / 2) * 2
    top = sprite.top + even_drop
    for index in range(3):
        divisor = 1 if index == 0 else 2
        _lay_plane(
            target[index],
            planes[index][:, : width // divisor],
            clear[index][:, : width // divisor],
            (sprite.left // divisor, top // divisor),
            strength,
        )


def _shift_down(planes: Planes, pixels: float, border: int) -> Planes:
    """Return the planes shifted down by less than two pixels, which need not be whole."""
    shifted = []
    for index, plane in enumerate(planes):
        shift = pixels if index == 0 else pixels / 2
        height, width = plane.shape
        matrix = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, -shift]])
        shifted.append(
            cv2.warpAffine(
                plane,
                matrix,
                (width, height + 2),
                flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
                borderMode=cv2.BORDER_CONSTANT,
                borderValue=border,
            )
        )
    return Planes(*(np.asarray(shifted_plane, np.uint8) for shifted_plane in shifted))


def _lay_plane(
    target: Plane, colour: Plane, clear: Plane, position: tuple[int, int], strength: float
) -> None:
    """Lay one plane of a sprite on the target's plane, as far as the sprite lies inside of it."""
    x, y = position
    height, width = target.shape
    top, left = max(-y, 0), max(-x, 0)
    bottom, right = min(colour.shape[0], height - y), min(colour.shape[1], width - x)
    if top >= bottom or left >= right:
        return
    under = target[y + top : y + bottom, x + left : x + right]
    colour, clear = colour[top:bottom, left:right], clear[top:bottom, left:right]
    if strength < 1.0:
        colour = np.asarray(cv2.convertScaleAbs(colour, alpha=strength), np.uint8)
        clear = np.asarray(cv2.convertScaleAbs(clear, alpha=strength, beta=255 * (1 - strength)), np.uint8)
    cv2.multiply(under, clear, dst=under, scale=1 / 255)
    cv2.add(under, colour, dst=under)
