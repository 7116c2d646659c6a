"""Draws the backgrounds of scenes: flat colours and gradients, stills under a moving camera, clips."""

from __future__ import annotations

from abc import ABC, abstractmethod
from io import BytesIO
from typing import TYPE_CHECKING, Final

import cv2
import numpy as np
from PIL import Image, ImageOps

from pipeline.render.colour import BLACK, rgb
from pipeline.render.video.storyboard import UnusableAsset
from pipeline.render.video.ycbcr import Plane, Planes, copy, fill, new_planes, planes_of_rgb

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeline.render.video.footage import Reel
    from pipeline.render.video.storyboard import Crop, Scene, Visual, Zoom

_PAD_BRIGHTNESS: Final = 0.6
"""The share of its brightness that a blurred background keeps."""
# Levels of a black pixel in limited range: 16 for the brightness, 128 for both colours.
_BLACK_LEVEL: Final = 16
_NEUTRAL_LEVEL: Final = 128

Box = tuple[int, int, int, int]
"""Left, top, right and bottom in pixels, all even."""
_MAX_PIXELS: Final = 40_000_000
_FORMATS: Final = ("JPEG", "PNG", "WEBP")
_PAD_BLUR: Final = 9
_PAD_SHRINK: Final = 16
"""A background is made this many times smaller before it is blurred, which isn't seen and costs very little."""
_WARP_FLAGS: Final = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
_GRAIN_SEED: Final = 7


class Background(ABC):
    """A scene's visual, ready to be drawn at any frame of the scene."""

    is_still = True
    """Whether every frame looks the same."""

    @abstractmethod
    def draw(self, target: Planes, progress: float) -> None:
        """Fill the frame; `progress` runs from 0 at the scene's first frame to 1 at its end."""


class ClipBackground(Background):
    """A clip, in a scene that is drawn for `frames` frames; each shows the video's second of the same time."""

    is_still = False

    def __init__(self, reel: Reel, visual: Visual, size: tuple[int, int], *, frames: int, fps: int) -> None:
        self._reel, self._visual, self._size = reel, visual, size
        self._frames, self._fps = frames, fps
        self._source: Planes | None = None
        self._filled = new_planes(*size)

    def draw(self, target: Planes, progress: float) -> None:
        passed_frames = round(progress * max(self._frames - 1, 1))
        source = self._reel.frame_at(self._visual.since + passed_frames / self._fps)
        if source is not self._source:
            self._fill(source)
            self._source = source
        copy(target, self._filled)

    def _fill(self, source: Planes) -> None:
        crop_box = _crop_box(self._visual.crop, source)
        # The ratio of the file's pixels, which may be wider than high.
        pixel_aspect = self._reel.width / self._reel.height / (source.y.shape[1] / source.y.shape[0])
        ratio = self._size[0] / self._size[1] / pixel_aspect
        cover_box = _cover_box_even(crop_box, ratio)
        if self._visual.fit == "cover":
            _scale(self._filled, source, cover_box)
        else:
            _draw_blurred(self._filled, source, cover_box)
            _scale(_fitted_part(self._filled, crop_box, pixel_aspect), source, crop_box)
        if self._visual.shade:
            _darken(self._filled, 1 - self._visual.shade)


def _crop_box(crop: Crop, source: Planes) -> Box:
    """Return the crop in pixels of the source's planes."""
    height, width = source.y.shape
    return (
        _even(crop.x * width),
        _even(crop.y * height),
        max(_even((crop.x + crop.width) * width), 2),
        max(_even((crop.y + crop.height) * height), 2),
    )


def _even(value: float) -> int:
    return 2 * round(value / 2)


def _cover_box_even(box: Box, ratio: float) -> Box:
    """Return the largest part around the middle of a box that has the frame's ratio, with even edges."""
    left, top, right, bottom = box
    width, height = right - left, bottom - top
    if width / height > ratio:
        spare = _even((width - height * ratio) / 2)
        return left + spare, top, right - spare, bottom
    spare = _even((height - width / ratio) / 2)
    return left, top + spare, right, bottom - spare


def _scale(target: Planes, source: Planes, box: Box) -> None:
    """Scale a box of the source to the whole target."""
    left, top, right, bottom = box
    for index in range(3):
        divisor = 1 if index == 0 else 2
        region = source[index][top // divisor : bottom // divisor, left // divisor : right // divisor]
        height, width = target[index].shape
        is_smaller = region.shape[1] > width
        # Cubic keeps edges sharp where a part is enlarged; in the colour planes nobody sees a difference.
        enlarging = cv2.INTER_CUBIC if index == 0 else cv2.INTER_LINEAR
        interpolation = cv2.INTER_AREA if is_smaller else enlarging
        target[index][:] = cv2.resize(
            np.ascontiguousarray(region), (width, height), interpolation=interpolation
        )


def _draw_blurred(target: Planes, source: Planes, box: Box) -> None:
    """Fill the target with a blurred and darkened box of the source."""
    height, width = target.y.shape
    small = new_planes(max(2, _even(width / _PAD_SHRINK)), max(2, _even(height / _PAD_SHRINK)))
    _scale(small, source, box)
    for index, neutral in ((0, _BLACK_LEVEL), (1, _NEUTRAL_LEVEL), (2, _NEUTRAL_LEVEL)):
        soft = cv2.GaussianBlur(small[index], (_PAD_BLUR, _PAD_BLUR), 0)
        dark = _scale_toward(np.asarray(soft, np.uint8), neutral, _PAD_BRIGHTNESS)
        plane_height, plane_width = target[index].shape
        target[index][:] = cv2.resize(dark, (plane_width, plane_height), interpolation=cv2.INTER_CUBIC)


def _scale_toward(plane: Plane, base: int, share: float) -> Plane:
    """Return the levels scaled toward `base`, of whose distance `share` remains."""
    return np.asarray(cv2.convertScaleAbs(plane, alpha=share, beta=base * (1 - share)), np.uint8)


def _fitted_part(target: Planes, box: Box, pixel_aspect: float) -> Planes:
    """Return the part of the frame in which the whole box fits, as views of the target's planes."""
    height, width = target.y.shape
    ratio = (box[2] - box[0]) * pixel_aspect / (box[3] - box[1])
    inner = (width, _even(width / ratio)) if ratio >= width / height else (_even(height * ratio), height)
    inner_size = max(inner[0], 2), max(inner[1], 2)
    left, top = _even((width - inner_size[0]) / 2), _even((height - inner_size[1]) / 2)
    return Planes(
        *(
            plane[
                top // divisor : (top + inner_size[1]) // divisor,
                left // divisor : (left + inner_size[0]) // divisor,
            ]
            for plane, divisor in zip(target, (1, 2, 2), strict=True)
        )
    )


def _darken(target: Planes, share: float) -> None:
    for plane, base in zip(target, (_BLACK_LEVEL, _NEUTRAL_LEVEL, _NEUTRAL_LEVEL), strict=True):
        plane[:] = _scale_toward(plane, base, share)


class ColourBackground(Background):
    """A flat colour, or a gradient down to another one, with grain against visible bands."""

    def __init__(self, colour: str, colour_to: str, size: tuple[int, int]) -> None:
        self._flat = colour
        self._gradient = None if colour_to in {"", colour} else _gradient(colour, colour_to, size)

    def draw(self, target: Planes, progress: float) -> None:
        del progress
        if self._gradient is None:
            fill(target, self._flat)
        else:
            copy(target, self._gradient)


def _gradient(first: str, last: str, size: tuple[int, int]) -> Planes:
    width, height = size
    rows = np.linspace(rgb(first), rgb(last), height, dtype=np.float32)[:, None, :]
    grain = np.random.default_rng(_GRAIN_SEED).random((height, width, 1), dtype=np.float32)
    # Noise added before the fraction is cut off dithers; in place, because the picture is large.
    grained = rows + grain
    np.clip(grained, 0, 255, out=grained)
    return planes_of_rgb(grained.astype(np.uint8))


class StillBackground(Background):
    """A picture under a camera that moves nearer or back, in fractions of pixels, so that nothing shakes."""

    def __init__(self, picture: Image.Image, scene: Scene, size: tuple[int, int]) -> None:
        visual, self._size = scene.visual, size
        self._zoom = visual.zoom
        self.is_still = visual.zoom.start == visual.zoom.end
        max_zoom = 1.0 if visual.fit == "pad" else max(visual.zoom.start, visual.zoom.end)
        pixels = _prepare_still(picture, visual.crop, size, max_zoom, is_padded=visual.fit == "pad")
        if visual.shade:
            pixels = np.asarray(cv2.convertScaleAbs(pixels, alpha=1 - visual.shade), np.uint8)
        self._planes = planes_of_rgb(pixels)

    def draw(self, target: Planes, progress: float) -> None:
        draw_through_camera(target, self._planes, self._zoom, progress)


def draw_through_camera(target: Planes, source: Planes, zoom: Zoom, progress: float) -> None:
    """Draw the part that a camera sees of a picture that is at least as large as the frame."""
    zoom_factor = max(1.0, zoom.start * (zoom.end / zoom.start) ** progress)
    if zoom_factor == 1.0 and source.y.shape == target.y.shape:
        copy(target, source)
        return
    height, width = target.y.shape
    # Per direction: a size in whole pixels hasn't quite the frame's ratio.
    scale_x, scale_y = source.y.shape[1] / width / zoom_factor, source.y.shape[0] / height / zoom_factor
    left = zoom.x * (source.y.shape[1] - width * scale_x)
    top = zoom.y * (source.y.shape[0] - height * scale_y)
    # Centres of pixels, in the source's coordinates.
    x, y = left + scale_x / 2 - 0.5, top + scale_y / 2 - 0.5
    _warp(target.y, source.y, (scale_x, scale_y), (x, y))
    for index in (1, 2):
        # A colour sample lies on its left pixel, and between its two rows.
        _warp(target[index], source[index], (scale_x, scale_y), (x / 2, (y + (scale_y - 1) / 2) / 2))


def _warp(target: Plane, source: Plane, scale: tuple[float, float], offset: tuple[float, float]) -> None:
    """Draw the source into the target, scaled and shifted by fractions of pixels."""
    height, width = target.shape
    matrix = np.array([[scale[0], 0.0, offset[0]], [0.0, scale[1], offset[1]]])
    cv2.warpAffine(
        source, matrix, (width, height), dst=target, flags=_WARP_FLAGS, borderMode=cv2.BORDER_REPLICATE
    )


def _prepare_still(
    picture: Image.Image, crop: Crop, size: tuple[int, int], max_zoom: float, *, is_padded: bool
) -> Plane:
    """Return the crop at the size for the nearest camera, so that the camera never enlarges a pixel."""
    width, height = (2 * round(edge * max_zoom / 2) for edge in size)
    box = (
        crop.x * picture.width,
        crop.y * picture.height,
        (crop.x + crop.width) * picture.width,
        (crop.y + crop.height) * picture.height,
    )
    cover_box = _cover_box(box, size[0] / size[1])
    if not is_padded:
        return np.asarray(picture.resize((width, height), Image.Resampling.LANCZOS, box=cover_box))
    small = (max(2, width // _PAD_SHRINK), max(2, height // _PAD_SHRINK))
    blurred = np.asarray(picture.resize(small, Image.Resampling.BOX, box=cover_box))
    blurred = np.asarray(cv2.GaussianBlur(blurred, (_PAD_BLUR, _PAD_BLUR), 0))
    canvas = np.asarray(cv2.resize(blurred, (width, height), interpolation=cv2.INTER_CUBIC), np.uint8)
    canvas = np.asarray(cv2.convertScaleAbs(canvas, alpha=0.6), np.uint8)
    scale = min(width / (box[2] - box[0]), height / (box[3] - box[1]))
    inner_size = (max(1, round((box[2] - box[0]) * scale)), max(1, round((box[3] - box[1]) * scale)))
    left, top = (width - inner_size[0]) // 2, (height - inner_size[1]) // 2
    canvas[top : top + inner_size[1], left : left + inner_size[0]] = np.asarray(
        picture.resize(inner_size, Image.Resampling.LANCZOS, box=box)
    )
    return canvas


def _cover_box(box: tuple[float, float, float, float], ratio: float) -> tuple[float, float, float, float]:
    """Return the largest part around the middle of a box that has the frame's ratio."""
    left, top, right, bottom = box
    width, height = right - left, bottom - top
    if width / height > ratio:
        spare = (width - height * ratio) / 2
        return left + spare, top, right - spare, bottom
    spare = (height - width / ratio) / 2
    return left, top + spare, right, bottom - spare


def open_picture(name: str, data: bytes) -> Image.Image:
    """Return the picture as RGB, upright, on black if it is transparent.

    Raises `UnusableAsset` if the bytes are no whole JPEG, PNG or WebP picture, or have too many pixels.
    """
    try:
        with Image.open(BytesIO(data), formats=_FORMATS) as opened:
            if opened.width * opened.height > _MAX_PIXELS:
                raise UnusableAsset(name, f"it has more than {_MAX_PIXELS // 1_000_000} megapixels.")
            upright = ImageOps.exif_transpose(opened)
            converted = upright.convert("RGBA") if upright.mode in {"P", "LA", "PA", "RGBA"} else upright
            if converted.mode != "RGBA":
                return converted.convert("RGB")
            backdrop = Image.new("RGBA", converted.size, BLACK)
            return Image.alpha_composite(backdrop, converted).convert("RGB")
    except UnusableAsset:
        raise
    # Pillow raises nearly any error for broken files, and each of them means the same here.
    except Exception as error:
        raise UnusableAsset(name, "it is broken, or no JPEG, PNG or WebP.") from error


def background_of(
    scene: Scene,
    size: tuple[int, int],
    read: Callable[[str], bytes],
    *,
    reel: Callable[[str], Reel],
    frames: int,
    fps: int,
) -> Background:
    """Return the background of a scene that is drawn for so many frames.

    `read` returns the bytes of an asset, `reel` opens a video. Raises `UnusableAsset` if the asset can't be read.
    """
    visual = scene.visual
    if visual.kind == "colour":
        return ColourBackground(visual.colour, visual.colour_to, size)
    if visual.kind == "picture":
        return StillBackground(open_picture(visual.asset, read(visual.asset)), scene, size)
    return ClipBackground(reel(visual.asset), visual, size, frames=frames, fps=fps)


def crossfade(target: Planes, before: Planes, after: Planes, share: float) -> None:
    """Blend two frames into the target; `share` is that of `after`."""
    for index in range(3):
        cv2.addWeighted(before[index], 1 - share, after[index], share, 0, dst=target[index])


def wipe(target: Planes, after: Planes, share: float) -> None:
    """Draw `share` of `after` from below over what the target shows."""
    height = target.y.shape[0]
    edge = round(height * (1 - share) / 2) * 2
    for index in range(3):
        line = edge if index == 0 else edge // 2
        target[index][line:] = after[index][line:]
