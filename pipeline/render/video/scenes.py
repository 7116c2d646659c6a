"""What fills the frame behind everything: flat colours, stills under a moving camera, films."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Final

import cv2
import numpy as np
from PIL import Image, ImageOps

from pipeline.render.colour import BLACK, rgb
from pipeline.render.video.clip_visual import Moving
from pipeline.render.video.planes import Plane, Planes, copy, fill, of_rgb
from pipeline.render.video.unusable import UnusableAsset
from pipeline.render.video.visual import Ground

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeline.render.video.footage import Reel
    from pipeline.render.video.storyboard import Crop, Scene, Zoom

_PIXELS_MOST: Final = 40_000_000
_FORMATS: Final = ("JPEG", "PNG", "WEBP")
_PAD_BLUR: Final = 9
_PAD_SMALL: Final = 16
"""A background that is blurred is made this many times smaller: nobody sees it, and it costs next to nothing."""
_FLAGS: Final = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
_SEED: Final = 7


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
