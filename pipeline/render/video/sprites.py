"""What lies over the scenes, drawn once by the layout engine of pictures and laid on each frame as planes."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

from pipeline.render.colour import BLACK, WHITE, rgb
from pipeline.render.draw_layout import draw_picture
from pipeline.render.picture_plan import DrawnText, Panel, PicturePlan
from pipeline.render.typography.layout_types import Style
from pipeline.render.typography.punctuation import typeset
from pipeline.render.typography.text_layout import layout
from pipeline.render.typography.word_segmentation import join_words
from pipeline.render.video.ycbcr import Plane, Planes, halved, of_weighed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pipeline.render.video.storyboard import Caption, CaptionStyle, Item

_SHADOW: Final = 88
"""How far the shadow of a panel reaches beyond it, in pixels."""
_LINES_MOST: Final = 2
_CAPTION: Final = Style(weight=800, optical=32, line_height=1.12, align="center")


@dataclass(frozen=True)
class Sprite:
    """`left` and `top` are even, in pixels of the file; the planes are weighed by the opacity, `clear` is 255 less it."""

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


def of_items(
    items: Sequence[Item], size: tuple[int, int], *, shrink: int = 1, portrait: bytes | None = None
) -> Sprite:
    """Things drawn as one, for a film of that size that is filmed `shrink` times smaller."""
    step = 2 * shrink
    left, top, right, bottom = _even(_reach(items), step)
    # What lies outside may move in, but not from further away than a frame.
    left, right = max(left, -size[0]), min(right, 2 * size[0])
    top, bottom = max(top, -size[1]), min(bottom, 2 * size[1])
    moved = tuple(_shifted(item, left, top) for item in items)
    weighed = _weighed(moved, (max(right - left, step), max(bottom - top, step)), portrait)
    return _sprite(weighed, left, top, shrink)


def _shifted(item: Item, left: int, top: int) -> Item:
    if isinstance(item, DrawnText):
        return dataclasses.replace(item, x=item.x - left, y=item.y - top)
    return dataclasses.replace(item, x=item.x - left, y=item.y - top)


def of_caption(
    card: Caption, look: CaptionStyle, active: int | None, *, language: str, shrink: int = 1
) -> Sprite:
    """A card with one of its words marked; `active` is the word's place, None for none.

    Raises `MissingGlyphs` or `TextDoesNotFit`.
    """
    said, accents = _said(card, active, language)
    style = dataclasses.replace(_CAPTION, weight=look.weight)
    height = look.size * style.line_height * _LINES_MOST + 1
    block = layout(
        said,
        (look.width, height),
        style,
        largest=look.size,
        smallest=look.smallest,
        language=language,
        accents=accents,
    )
    edge = look.outline_width + 4
    x, y = look.x - look.width / 2, look.y - block.height / 2
    step = 2 * shrink
    left, top, right, bottom = _even(
        (x - edge, y - edge, x + look.width + edge, y + block.height + edge), step
    )
    words = DrawnText(x - left, y - top, block, look.colour, look.accent)
    weighed = _outlined(_weighed((words,), (right - left, bottom - top), None), look)
    return _sprite(weighed, left, top, shrink)


def _said(card: Caption, active: int | None, language: str) -> tuple[str, list[tuple[int, int]]]:
    said, accents = "", []
    for place, word in enumerate(card.words):
        told = typeset(word.t.strip(), language)
        said = join_words((said, told))
        if place == active:
            accents.append((len(said) - len(told), len(said)))
    return said, accents


def _reach(items: Iterable[Item]) -> tuple[float, float, float, float]:
    """The box of everything that may be drawn."""
    boxes = []
    for item in items:
        if isinstance(item, DrawnText):
            block, spare = item.block, item.block.size
            lines = [run for line in block.lines for run in line.runs]
            starts = min((run.x for run in lines), default=0.0)
            ends = max((run.x + run.width for run in lines), default=0.0)
            boxes.append(
                (
                    item.x + starts - spare / 4,
                    item.y - spare / 4,
                    item.x + ends + spare / 4,
                    item.y + block.height + spare / 4,
                )
            )
            continue
        width, height = (item.width, item.height) if isinstance(item, Panel) else (item.size, item.size)
        spare = _SHADOW if isinstance(item, Panel) and item.has_shadow else 0
        boxes.append(
            (item.x - spare, item.y - spare, item.x + width + spare, item.y + height + spare),
        )
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)


def _even(box: tuple[float, float, float, float], step: int) -> tuple[int, int, int, int]:
    left, top, right, bottom = box
    return (
        int(left // step) * step,
        int(top // step) * step,
        -int(-right // step) * step,
        -int(-bottom // step) * step,
    )


def _weighed(items: tuple[Item, ...], size: tuple[int, int], portrait: bytes | None) -> Plane:
    """Red, green, blue and opacity, the colours weighed by it.

    Drawn on black and on white: what differs is what shines through. So whatever pictures can draw, films can.
    """
    on = [
        np.asarray(
            draw_picture(PicturePlan("", "", size[0], size[1], ground, items, ""), portrait=portrait),
            np.uint8,
        )
        for ground in (BLACK, WHITE)
    ]
    through = cv2.subtract(on[1], on[0])
    # The mean of the three channels evens out what rounding has done to each.
    opacity = 255 - cv2.transform(through, np.full((1, 3), 1 / 3))
    return np.dstack([on[0], opacity])


def _outlined(weighed: Plane, look: CaptionStyle) -> Plane:
    """The same with a round edge behind its letters."""
    if look.outline_width < 1:
        return weighed
    opacity = np.ascontiguousarray(weighed[:, :, 3])
    side = 2 * look.outline_width + 1
    around = cv2.dilate(opacity, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (side, side)))
    around = cv2.GaussianBlur(around, (3, 3), 0)
    behind = cv2.multiply(around, 255 - opacity, scale=1 / 255)
    layers = [
        cv2.add(np.ascontiguousarray(weighed[:, :, place]), cv2.convertScaleAbs(behind, alpha=level / 255))
        for place, level in enumerate((*rgb(look.outline), 255))
    ]
    return np.dstack(layers)


def _sprite(weighed: Plane, left: int, top: int, shrink: int) -> Sprite:
    if shrink > 1:
        height, width = weighed.shape[:2]
        weighed = np.asarray(
            cv2.resize(weighed, (width // shrink, height // shrink), interpolation=cv2.INTER_AREA), np.uint8
        )
    clear = np.ascontiguousarray(255 - weighed[:, :, 3])
    small = halved(clear)
    return Sprite(left // shrink, top // shrink, of_weighed(weighed), Planes(clear, small, small))


def draw_sprite(
    target: Planes, sprite: Sprite, *, strength: float = 1.0, drop: float = 0.0, share: float = 1.0
) -> None:
    """Lay a sprite on a picture: faded by `strength`, `drop` pixels lower, only its left `share`."""
    if strength <= 0.0 or share <= 0.0:
        return
    planes, clear = sprite.planes, sprite.clear
    whole = int(drop // 2) * 2
    if drop != whole:
        planes, clear = _moved(planes, drop - whole, 0), _moved(clear, drop - whole, 255)
    width = sprite.width if share >= 1.0 else round(sprite.width * share / 2) * 2
    top = sprite.top + whole
    for place in range(3):
        half = 1 if place == 0 else 2
        _lay_plane(
            target[place],
            planes[place][:, : width // half],
            clear[place][:, : width // half],
            (sprite.left // half, top // half),
            strength,
        )


def _moved(planes: Planes, down: float, border: int) -> Planes:
    """Shifted by less than two pixels, between pixels where need be."""
    moved = []
    for place, plane in enumerate(planes):
        shift = down if place == 0 else down / 2
        height, width = plane.shape
        matrix = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, -shift]])
        moved.append(
            cv2.warpAffine(
                plane,
                matrix,
                (width, height + 2),
                flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
                borderMode=cv2.BORDER_CONSTANT,
                borderValue=border,
            )
        )
    return Planes(*(np.asarray(one, np.uint8) for one in moved))


def _lay_plane(target: Plane, colour: Plane, clear: Plane, at: tuple[int, int], strength: float) -> None:
    x, y = at
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
