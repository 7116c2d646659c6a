"""Makes the footage of the gallery's films: a drawn harbour, and the words of a person who speaks about it."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING, Final

import av
import cv2
import numpy as np
from PIL import Image

from pipeline.render.video.material import Clip, FilmMaterial, Shot, StillImage
from pipeline.render.video.storyboard import Crop, Word

if TYPE_CHECKING:
    from numpy.typing import NDArray

VIDEO: Final = "upl_harbour"
PICTURE: Final = "upl_quay"
SECONDS: Final = 24.0
"""The duration of the video."""
_FRAMES_PER_SECOND: Final = 15
_SIZE: Final = (640, 360)
_CUT_SECOND: Final = 11.9
"""The second of the cut, at which the sky changes."""
SPOKEN_TEXT: Final = (
    "Ten years ago this was the loudest harbour in the country. Today 42 electric ferries carry nine million people a "
    "year. Each of them charges for six minutes while people get on, and nobody wants the noise of the old days back."
)
_SKIES: Final = ((120, 180, 230), (250, 190, 140))


def _timed_words() -> tuple[Word, ...]:
    return tuple(
        Word(word, round(1.0 + index * 0.4, 2), round(1.36 + index * 0.4, 2))
        for index, word in enumerate(SPOKEN_TEXT.split())
    )


def material() -> FilmMaterial:
    """Return the footage as a raw item's material."""
    upright = Crop(0.34, 0.0, 0.3164, 1.0)
    clip = Clip(
        VIDEO,
        _timed_words(),
        shots=(Shot(0.0, _CUT_SECOND, upright), Shot(_CUT_SECOND, SECONDS, None)),
        author="Harbour TV",
        licence="CC BY 4.0",
        seconds=SECONDS,
    )
    return FilmMaterial((clip,), (StillImage(PICTURE, 1600, 1067, "Jane Doe", "CC0"),), credit="Harbour TV")


def files() -> dict[str, bytes]:
    """Return the files of the footage by the names of the material."""
    return {VIDEO: _encode_video(), PICTURE: _encode_picture()}


@cache
def _encode_video() -> bytes:
    file = BytesIO()
    with av.open(file, "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=Fraction(_FRAMES_PER_SECOND))
        stream.width, stream.height, stream.pix_fmt = *_SIZE, "yuv420p"
        stream.options = {"preset": "ultrafast", "crf": "20"}
        for number in range(round(SECONDS * _FRAMES_PER_SECOND)):
            second = number / _FRAMES_PER_SECOND
            pixels = _draw_harbour(second, _SIZE, _SKIES[second >= _CUT_SECOND])
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode(None))
    return file.getvalue()


@cache
def _encode_picture() -> bytes:
    buffer = BytesIO()
    Image.fromarray(_draw_harbour(7.0, (1600, 1067), _SKIES[1])).save(buffer, "JPEG")
    return buffer.getvalue()


def _draw_harbour(second: float, size: tuple[int, int], sky: tuple[int, int, int]) -> NDArray[np.uint8]:
    """Return the pixels of a ferry in front of a row of houses, which moves to the right with the seconds."""
    width, height = size
    gradient = np.linspace(0.0, 1.0, height)[:, None, None]
    pixels = np.ascontiguousarray(
        np.broadcast_to(
            np.array(sky) * (1 - gradient) + np.array((238, 240, 242)) * gradient, (height, width, 3)
        ),
    ).astype(np.uint8)
    quay = round(height * 0.62)
    cv2.rectangle(pixels, (0, quay), (width, height), (36, 92, 128), -1)
    for index in range(10):
        left, house_height = index * width // 10, height // 12 + (index * 37) % (height // 6)
        cv2.rectangle(
            pixels,
            (left, quay - house_height),
            (left + width // 14, quay),
            (124 - 6 * index, 122, 116 + 8 * index),
            -1,
        )
    left = round(width * (0.2 + 0.02 * second))
    cv2.rectangle(
        pixels, (left, round(height * 0.53)), (left + width // 4, round(height * 0.67)), (246, 246, 240), -1
    )
    cv2.rectangle(
        pixels,
        (left + width // 16, round(height * 0.45)),
        (left + width // 6, round(height * 0.53)),
        (214, 62, 58),
        -1,
    )
    return pixels
