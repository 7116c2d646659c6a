"""A video as what fills the frame: the part of it that is shown, in the frame's size, or whole before a blurred one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

from pipeline.render.video.planes import Plane, Planes, blank, copy
from pipeline.render.video.visual import Ground

if TYPE_CHECKING:
    from pipeline.render.video.footage import Reel
    from pipeline.render.video.storyboard import Crop, Visual

_PAD_SMALL: Final = 16
"""What is blurred is made this many times smaller: nobody sees it, and it costs next to nothing."""
_PAD_BLUR: Final = 9
_PAD_LIGHT: Final = 0.6
_BLACK: Final = 16
_GREY: Final = 128

Box = tuple[int, int, int, int]
"""Left, top, right, bottom in pixels, all even."""


class Moving(Ground):
    """`frames` is how many the scene is drawn for; each shows the video's second that is as far on."""

    is_still = False

    def __init__(self, reel: Reel, visual: Visual, size: tuple[int, int], *, frames: int, fps: int) -> None:
        self._reel, self._visual, self._size = reel, visual, size
        self._frames, self._fps = frames, fps
        self._source: Planes | None = None
        self._drawn = blank(*size)

    def draw(self, target: Planes, progress: float) -> None:
        passed = round(progress * max(self._frames - 1, 1))
        source = self._reel.at(self._visual.since + passed / self._fps)
        if source is not self._source:
            self._fill(source)
            self._source = source
        copy(target, self._drawn)

    def _fill(self, source: Planes) -> None:
        whole = _box(self._visual.crop, source)
        # In pixels as they are shown: those of the file may be longer than wide.
        shape = self._reel.width / self._reel.height / (source.y.shape[1] / source.y.shape[0])
        ratio = self._size[0] / self._size[1] / shape
        covering = _covering(whole, ratio)
        if self._visual.fit == "cover":
            _scale(self._drawn, source, covering)
        else:
            _behind(self._drawn, source, covering)
            _scale(_middle(self._drawn, whole, shape), source, whole)
        if self._visual.shade:
            _dim(self._drawn, 1 - self._visual.shade)


def _box(crop: Crop, source: Planes) -> Box:
    height, width = source.y.shape
    return (
        _even(crop.x * width),
        _even(crop.y * height),
        max(_even((crop.x + crop.width) * width), 2),
        max(_even((crop.y + crop.height) * height), 2),
    )


def _even(value: float) -> int:
    return 2 * round(value / 2)


def _covering(box: Box, ratio: float) -> Box:
    """The largest part around the middle of a box that has the frame's shape."""
    left, top, right, bottom = box
    width, height = right - left, bottom - top
    if width / height > ratio:
        spare = _even((width - height * ratio) / 2)
        return left + spare, top, right - spare, bottom
    spare = _even((height - width / ratio) / 2)
    return left, top + spare, right, bottom - spare


def _scale(target: Planes, source: Planes, box: Box) -> None:
    left, top, right, bottom = box
    for place in range(3):
        part = 1 if place == 0 else 2
        seen = source[place][top // part : bottom // part, left // part : right // part]
        height, width = target[place].shape
        is_smaller = seen.shape[1] > width
        # Cubic keeps edges where a part is made larger; colours show no difference.
        larger = cv2.INTER_CUBIC if place == 0 else cv2.INTER_LINEAR
        way = cv2.INTER_AREA if is_smaller else larger
        target[place][:] = cv2.resize(np.ascontiguousarray(seen), (width, height), interpolation=way)


def _behind(target: Planes, source: Planes, box: Box) -> None:
    height, width = target.y.shape
    small = blank(max(2, _even(width / _PAD_SMALL)), max(2, _even(height / _PAD_SMALL)))
    _scale(small, source, box)
    for place, black in ((0, _BLACK), (1, _GREY), (2, _GREY)):
        soft = cv2.GaussianBlur(small[place], (_PAD_BLUR, _PAD_BLUR), 0)
        dark = _toward(np.asarray(soft, np.uint8), black, _PAD_LIGHT)
        high, wide = target[place].shape
        target[place][:] = cv2.resize(dark, (wide, high), interpolation=cv2.INTER_CUBIC)


def _toward(plane: Plane, base: int, share: float) -> Plane:
    return np.asarray(cv2.convertScaleAbs(plane, alpha=share, beta=base * (1 - share)), np.uint8)


def _middle(target: Planes, box: Box, shape: float) -> Planes:
    """The part of the frame in which a box stands whole."""
    height, width = target.y.shape
    ratio = (box[2] - box[0]) * shape / (box[3] - box[1])
    inner = (width, _even(width / ratio)) if ratio >= width / height else (_even(height * ratio), height)
    inside = max(inner[0], 2), max(inner[1], 2)
    left, top = _even((width - inside[0]) / 2), _even((height - inside[1]) / 2)
    return Planes(
        *(
            plane[
                top // part : (top + inside[1]) // part,
                left // part : (left + inside[0]) // part,
            ]
            for plane, part in zip(target, (1, 2, 2), strict=True)
        )
    )


def _dim(target: Planes, share: float) -> None:
    for plane, base in zip(target, (_BLACK, _GREY, _GREY), strict=True):
        plane[:] = _toward(plane, base, share)
