"""Converts pictures for the encoder: Y, Cb and Cr of BT.709 in limited range, the colours at half the size.

A colour sample lies on the left of its two pixels and between its two rows, H.264's default.
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
"""The conversion of Rec. ITU-R BT.709-6, 3.2 to 3.4 (read on 22 November 2026)."""
_BLACK_LEVELS: Final = np.array([[16.0], [128.0], [128.0]])
_OPAQUE_MATRIX: Final = np.hstack([_MATRIX, _BLACK_LEVELS])
_PREMULTIPLIED_MATRIX: Final = np.hstack([_MATRIX, _BLACK_LEVELS / 255])
"""The conversion for colours that are premultiplied by their opacity, the fourth channel."""
_HALVING_KERNEL: Final = np.array([[1, 2, 1], [1, 2, 1]], dtype=np.float32) / 8


class Planes(NamedTuple):
    """The three planes of a picture; `u` and `v` are half as wide and half as high as `y`."""

    y: Plane
    u: Plane
    v: Plane


def new_planes(width: int, height: int) -> Planes:
    """Return planes of that size, whose content is undefined."""
    half = (height // 2, width // 2)
    return Planes(np.empty((height, width), np.uint8), np.empty(half, np.uint8), np.empty(half, np.uint8))


def frame_planes(frame: VideoFrame) -> Planes:
    """Return the frame's own memory as planes: writing to them changes the frame."""
    views = []
    for plane in frame.planes:
        lines: Any = np.frombuffer(plane, np.uint8)  # type: ignore[call-overload]
        views.append(lines.reshape(-1, plane.line_size)[: plane.height, : plane.width])
    return Planes(*views)


def planes_of_rgb(picture: Plane) -> Planes:
    """Convert a picture of three channels, of even width and height."""
    return _split(cv2.transform(picture, _OPAQUE_MATRIX))


def planes_of_premultiplied(picture: Plane) -> Planes:
    """Convert a picture of four channels with premultiplied colours; the planes are premultiplied too."""
    return _split(cv2.transform(picture, _PREMULTIPLIED_MATRIX))


def halve(plane: Plane) -> Plane:
    """Return the plane at half the size, sampled at the positions of the colour planes."""
    small = cv2.filter2D(plane, -1, _HALVING_KERNEL, anchor=(1, 0), borderType=cv2.BORDER_REPLICATE)
    return np.ascontiguousarray(small[::2, ::2])


def _split(picture: Any) -> Planes:
    y, u, v = cv2.split(picture)
    return Planes(y, halve(u), halve(v))


def fill(target: Planes, colour: str) -> None:
    """Fill the planes with a colour."""
    for plane, value in zip(target, levels(colour), strict=True):
        plane[:] = value


def levels(colour: str) -> tuple[int, int, int]:
    """Return Y, Cb and Cr of a colour."""
    values = _MATRIX @ np.array(rgb(colour), dtype=float) + _BLACK_LEVELS[:, 0]
    y, u, v = (round(float(value)) for value in values)
    return y, u, v


def copy(target: Planes, source: Planes) -> None:
    """Copy the source's planes into the target's."""
    for target_plane, source_plane in zip(target, source, strict=True):
        np.copyto(target_plane, source_plane)


def to_rgb(planes: Planes) -> Plane:
    """Return the picture that a player shows, for thumbnails and tests."""
    height, width = planes.y.shape
    # Colour samples lie a quarter of a sample to the left of where `resize` would take them.
    enlarging = np.array([[0.5, 0.0, 0.0], [0.0, 0.5, -0.25]])
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    full_size = [
        cv2.warpAffine(plane, enlarging, (width, height), flags=flags, borderMode=cv2.BORDER_REPLICATE)
        for plane in (planes.u, planes.v)
    ]
    stacked = cv2.merge([planes.y, *full_size])
    inverse = np.linalg.inv(_MATRIX)
    return np.asarray(cv2.transform(stacked, np.hstack([inverse, -inverse @ _BLACK_LEVELS])), dtype=np.uint8)
