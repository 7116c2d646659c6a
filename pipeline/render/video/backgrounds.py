"""What fills the frame behind everything: flat colours, stills under a moving camera, films."""

from __future__ import annotations

from abc import ABC, abstractmethod
from io import BytesIO
from typing import TYPE_CHECKING, Final

import cv2
import numpy as np
from PIL import Image, ImageOps

from pipeline.render.colour import BLACK, rgb
from pipeline.render.video.storyboard import UnusableAsset
from pipeline.render.video.ycbcr import Plane, Planes, blank, copy, fill, of_rgb

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeline.render.video.footage import Reel
    from pipeline.render.video.storyboard import Crop, Scene, Visual, Zoom

"""What is blurred is made this many times smaller: nobody sees it, and it costs next to nothing."""
_PAD_LIGHT: Final = 0.6
_BLACK: Final = 16
_GREY: Final = 128

Box = tuple[int, int, int, int]
"""Left, top, right, bottom in pixels, all even."""
_PIXELS_MOST: Final = 40_000_000
_FORMATS: Final = ("JPEG", "PNG", "WEBP")
_PAD_BLUR: Final = 9
_PAD_SMALL: Final = 16
"""A background that is blurred is made this many times smaller: nobody sees it, and it costs next to nothing."""
_FLAGS: Final = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
_SEED: Final = 7


class Ground(ABC):
    """A scene's visual, ready to be drawn at any of its frames."""

    is_still = True
    """Whether every frame looks the same."""

    @abstractmethod
    def draw(self, target: Planes, progress: float) -> None:
        """Fill the frame; `progress` runs from 0 at the scene's first frame to 1 where it has gone."""


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
        covering = _even_cover(whole, ratio)
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


def _even_cover(box: Box, ratio: float) -> Box:
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


class Colour(Ground):
    """Flat, or running down from one colour to another, with the grain that keeps bands away."""

    def __init__(self, colour: str, colour_to: str, size: tuple[int, int]) -> None:
        self._flat = colour
        self._ground = None if colour_to in {"", colour} else _gradient(colour, colour_to, size)

    def draw(self, target: Planes, progress: float) -> None:
        del progress
        if self._ground is None:
            fill(target, self._flat)
        else:
            copy(target, self._ground)


def _gradient(first: str, last: str, size: tuple[int, int]) -> Planes:
    width, height = size
    steps = np.linspace(rgb(first), rgb(last), height, dtype=np.float32)[:, None, :]
    grain = np.random.default_rng(_SEED).random((height, width, 1), dtype=np.float32)
    # Adding up to one and cutting off the fraction rounds by chance; in place, for it is a large picture.
    grained = steps + grain
    np.clip(grained, 0, 255, out=grained)
    return of_rgb(grained.astype(np.uint8))


class Still(Ground):
    """A picture under a camera that comes nearer or goes back, between pixels, so that nothing shakes."""

    def __init__(self, picture: Image.Image, scene: Scene, size: tuple[int, int]) -> None:
        visual, self._size = scene.visual, size
        self._zoom = visual.zoom
        self.is_still = visual.zoom.start == visual.zoom.end
        nearest = 1.0 if visual.fit == "pad" else max(visual.zoom.start, visual.zoom.end)
        whole = _prepared(picture, visual.crop, size, nearest, is_padded=visual.fit == "pad")
        if visual.shade:
            whole = np.asarray(cv2.convertScaleAbs(whole, alpha=1 - visual.shade), np.uint8)
        self._planes = of_rgb(whole)

    def draw(self, target: Planes, progress: float) -> None:
        aim(target, self._planes, self._zoom, progress)


def aim(target: Planes, source: Planes, zoom: Zoom, progress: float) -> None:
    """What a camera sees of a picture that is larger than the frame, or as large."""
    near = max(1.0, zoom.start * (zoom.end / zoom.start) ** progress)
    if near == 1.0 and source.y.shape == target.y.shape:
        copy(target, source)
        return
    height, width = target.y.shape
    # By direction: a size in whole pixels hasn't quite the frame's shape.
    across, down = source.y.shape[1] / width / near, source.y.shape[0] / height / near
    left = zoom.x * (source.y.shape[1] - width * across)
    top = zoom.y * (source.y.shape[0] - height * down)
    # Middles of pixels, in the source's own measure.
    x, y = left + across / 2 - 0.5, top + down / 2 - 0.5
    _warp(target.y, source.y, (across, down), (x, y))
    for place in (1, 2):
        # A colour sample stands on its left pixel, and between its two rows.
        _warp(target[place], source[place], (across, down), (x / 2, (y + (down - 1) / 2) / 2))


def _warp(target: Plane, source: Plane, scale: tuple[float, float], at: tuple[float, float]) -> None:
    height, width = target.shape
    matrix = np.array([[scale[0], 0.0, at[0]], [0.0, scale[1], at[1]]])
    cv2.warpAffine(source, matrix, (width, height), dst=target, flags=_FLAGS, borderMode=cv2.BORDER_REPLICATE)


def _prepared(
    picture: Image.Image, crop: Crop, size: tuple[int, int], nearest: float, *, is_padded: bool
) -> Plane:
    """The crop in the size at which the camera is nearest, so that the warp makes nothing larger."""
    width, height = (2 * round(edge * nearest / 2) for edge in size)
    box = (
        crop.x * picture.width,
        crop.y * picture.height,
        (crop.x + crop.width) * picture.width,
        (crop.y + crop.height) * picture.height,
    )
    covering = _covering(box, size[0] / size[1])
    if not is_padded:
        return np.asarray(picture.resize((width, height), Image.Resampling.LANCZOS, box=covering))
    small = (max(2, width // _PAD_SMALL), max(2, height // _PAD_SMALL))
    behind = np.asarray(picture.resize(small, Image.Resampling.BOX, box=covering))
    behind = np.asarray(cv2.GaussianBlur(behind, (_PAD_BLUR, _PAD_BLUR), 0))
    ground = np.asarray(cv2.resize(behind, (width, height), interpolation=cv2.INTER_CUBIC), np.uint8)
    ground = np.asarray(cv2.convertScaleAbs(ground, alpha=0.6), np.uint8)
    share = min(width / (box[2] - box[0]), height / (box[3] - box[1]))
    inner = (
        max(1, round((box[2] - box[0]) * share)),
        max(1, round((box[3] - box[1]) * share)),
    )
    left, top = (width - inner[0]) // 2, (height - inner[1]) // 2
    ground[top : top + inner[1], left : left + inner[0]] = np.asarray(
        picture.resize(inner, Image.Resampling.LANCZOS, box=box)
    )
    return ground


def _covering(box: tuple[float, float, float, float], ratio: float) -> tuple[float, float, float, float]:
    """The largest part around the middle of a box that has the frame's shape."""
    left, top, right, bottom = box
    width, height = right - left, bottom - top
    if width / height > ratio:
        spare = (width - height * ratio) / 2
        return left + spare, top, right - spare, bottom
    spare = (height - width / ratio) / 2
    return left, top + spare, right, bottom - spare


def open_picture(name: str, data: bytes) -> Image.Image:
    """As RGB, upright. Raises `UnusableAsset` for what isn't a picture, or is too large a one."""
    try:
        with Image.open(BytesIO(data), formats=_FORMATS) as opened:
            if opened.width * opened.height > _PIXELS_MOST:
                raise UnusableAsset(name, f"it has more than {_PIXELS_MOST // 1_000_000} megapixels.")
            turned = ImageOps.exif_transpose(opened)
            seen = turned.convert("RGBA") if turned.mode in {"P", "LA", "PA", "RGBA"} else turned
            if seen.mode != "RGBA":
                return seen.convert("RGB")
            ground = Image.new("RGBA", seen.size, BLACK)
            return Image.alpha_composite(ground, seen).convert("RGB")
    except UnusableAsset:
        raise
    # Pillow raises nearly anything at broken files, and each of them means the same here.
    except Exception as error:
        raise UnusableAsset(name, "it is broken, or no JPEG, PNG or WebP.") from error


def ground_of(
    scene: Scene,
    size: tuple[int, int],
    read: Callable[[str], bytes],
    *,
    reel: Callable[[str], Reel],
    frames: int,
    fps: int,
) -> Ground:
    """The visual of a scene that is drawn for so many frames.

    `read` gives the bytes of an asset, `reel` a video. Raises `UnusableAsset`.
    """
    visual = scene.visual
    if visual.kind == "colour":
        return Colour(visual.colour, visual.colour_to, size)
    if visual.kind == "picture":
        return Still(open_picture(visual.asset, read(visual.asset)), scene, size)
    return Moving(reel(visual.asset), visual, size, frames=frames, fps=fps)


def cross(target: Planes, before: Planes, after: Planes, share: float) -> None:
    """`share` of what comes over what was."""
    for place in range(3):
        cv2.addWeighted(before[place], 1 - share, after[place], share, 0, dst=target[place])


def wipe(target: Planes, after: Planes, share: float) -> None:
    """What comes rises from below, over what is there."""
    height = target.y.shape[0]
    edge = round(height * (1 - share) / 2) * 2
    for place in range(3):
        line = edge if place == 0 else edge // 2
        target[place][line:] = after[place][line:]
