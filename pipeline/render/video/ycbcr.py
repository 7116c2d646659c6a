"""Pictures as the encoder wants them: Y, Cb and Cr of BT.709 in limited range, the colours at half the size.

A colour sample lies on the left of its two pixels and between its two rows, as H.264 takes it where nothing is said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from pipeline.render.colour import rgb

if TYPE_CHECKING:
    from av import VideoFrame

Plane = NDArray[np.uint8]

_RED: Final = 0.2126
_GREEN: Final = 0.7152
_BLUE: Final = 0.0722
_Y_RANGE: Final = 219 / 255
_C_RANGE: Final = 224 / 255
_LUMA: Final = np.array([_RED, _GREEN, _BLUE])
_MATRIX: Final = np.vstack(
    [
        _LUMA * _Y_RANGE,
        (np.array([0, 0, 1]) - _LUMA) / (2 * (1 - _BLUE)) * _C_RANGE,
        (np.array([1, 0, 0]) - _LUMA) / (2 * (1 - _RED)) * _C_RANGE,
    ]
)
"""Rec. ITU-R BT.709-6, 3.2 to 3.4 (read on 22 November 2026)."""
_BLACK: Final = np.array([[16.0], [128.0], [128.0]])
_OPAQUE: Final = np.hstack([_MATRIX, _BLACK])
_WEIGHED: Final = np.hstack([_MATRIX, _BLACK / 255])
"""For colours that are already weighed by their opacity, which is the fourth channel."""
_HALVING: Final = np.array([[1, 2, 1], [1, 2, 1]], dtype=np.float32) / 8


class Planes(NamedTuple):
    """The three planes of a picture; `u` and `v` are half as wide and half as high as `y`."""

    y: Plane
    u: Plane
    v: Plane


def blank(width: int, height: int) -> Planes:
    half = (height // 2, width // 2)
    return Planes(np.empty((height, width), np.uint8), np.empty(half, np.uint8), np.empty(half, np.uint8))


def of_frame(frame: VideoFrame) -> Planes:
    """The frame's own memory: what is written into it is in the frame."""
    views = []
    for plane in frame.planes:
        lines: Any = np.frombuffer(plane, np.uint8)  # type: ignore[call-overload]
        views.append(lines.reshape(-1, plane.line_size)[: plane.height, : plane.width])
    return Planes(*views)


def of_rgb(picture: Plane) -> Planes:
    """A picture of three channels, of even width and height."""
    return _split(cv2.transform(picture, _OPAQUE))


def of_weighed(picture: Plane) -> Planes:
    """A picture of four channels whose colours are weighed by its opacity: so are the planes."""
    return _split(cv2.transform(picture, _WEIGHED))


def halved(plane: Plane) -> Plane:
    """A plane in the size, and at the places, of the colours."""
    small = cv2.filter2D(plane, -1, _HALVING, anchor=(1, 0), borderType=cv2.BORDER_REPLICATE)
    return np.ascontiguousarray(small[::2, ::2])


def _split(picture: Any) -> Planes:
    y, u, v = cv2.split(picture)
    return Planes(y, halved(u), halved(v))


def fill(target: Planes, colour: str) -> None:
    for plane, value in zip(target, levels(colour), strict=True):
        plane[:] = value


def levels(colour: str) -> tuple[int, int, int]:
    """Y, Cb and Cr of a colour."""
    made = _MATRIX @ np.array(rgb(colour), dtype=float) + _BLACK[:, 0]
    y, u, v = (round(float(one)) for one in made)
    return y, u, v


def copy(target: Planes, source: Planes) -> None:
    for one, other in zip(target, source, strict=True):
        np.copyto(one, other)


def to_rgb(planes: Planes) -> Plane:
    """For thumbnails and tests: the picture that a player shows."""
    height, width = planes.y.shape
    # Colour samples lie a quarter of a sample to the left of where `resize` takes them.
    move = np.array([[0.5, 0.0, 0.0], [0.0, 0.5, -0.25]])
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    whole = [
        cv2.warpAffine(plane, move, (width, height), flags=flags, borderMode=cv2.BORDER_REPLICATE)
        for plane in (planes.u, planes.v)
    ]
    stacked = cv2.merge([planes.y, *whole])
    back = np.linalg.inv(_MATRIX)
    return np.asarray(cv2.transform(stacked, np.hstack([back, -back @ _BLACK])), dtype=np.uint8)
