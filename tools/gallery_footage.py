"""What the films of the gallery are cut from: a harbour, drawn, with somebody who speaks of it."""

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
_RATE: Final = 15
_SIZE: Final = (640, 360)
_CUT: Final = 11.9
SAID: Final = (
    "Ten years ago this was the loudest harbour in the country. Today 42 electric ferries carry nine million people a "
    "year. Each of them charges for six minutes while people get on, and nobody wants the noise of the old days back."
)
_SKIES: Final = ((120, 180, 230), (250, 190, 140))


def _said() -> tuple[Word, ...]:
    return tuple(
        Word(word, round(1.0 + place * 0.4, 2), round(1.36 + place * 0.4, 2))
        for place, word in enumerate(SAID.split())
    )


def material() -> FilmMaterial:
    upright = Crop(0.34, 0.0, 0.3164, 1.0)
    clip = Clip(
        VIDEO,
        _said(),
        shots=(Shot(0.0, _CUT, upright), Shot(_CUT, SECONDS, None)),
        author="Harbour TV",
        licence="CC BY 4.0",
        seconds=SECONDS,
    )
    return FilmMaterial((clip,), (StillImage(PICTURE, 1600, 1067, "Jane Doe", "CC0"),), credit="Harbour TV")


def files() -> dict[str, bytes]:
    """By the names of the material."""
    return {VIDEO: _video(), PICTURE: _picture()}


@cache
def _video() -> bytes:
    file = BytesIO()
    with av.open(file, "w", format="mp4") as out:
        stream = out.add_stream("libx264", rate=Fraction(_RATE))
        stream.width, stream.height, stream.pix_fmt = *_SIZE, "yuv420p"
        stream.options = {"preset": "ultrafast", "crf": "20"}
        for number in range(round(SECONDS * _RATE)):
            second = number / _RATE
            drawn = _harbour(second, _SIZE, _SKIES[second >= _CUT])
            out.mux(stream.encode(av.VideoFrame.from_ndarray(drawn, format="rgb24")))
        out.mux(stream.encode(None))
    return file.getvalue()


@cache
def _picture() -> bytes:
    out = BytesIO()
    Image.fromarray(_harbour(7.0, (1600, 1067), _SKIES[1])).save(out, "JPEG")
    return out.getvalue()


def _harbour(second: float, size: tuple[int, int], sky: tuple[int, int, int]) -> NDArray[np.uint8]:
    """A ferry on its way, before a row of houses."""
    width, height = size
    down = np.linspace(0.0, 1.0, height)[:, None, None]
    made = np.ascontiguousarray(
        np.broadcast_to(np.array(sky) * (1 - down) + np.array((238, 240, 242)) * down, (height, width, 3)),
    ).astype(np.uint8)
    quay = round(height * 0.62)
    cv2.rectangle(made, (0, quay), (width, height), (36, 92, 128), -1)
    for place in range(10):
        left, high = place * width // 10, height // 12 + (place * 37) % (height // 6)
        cv2.rectangle(
            made, (left, quay - high), (left + width // 14, quay), (124 - 6 * place, 122, 116 + 8 * place), -1
        )
    left = round(width * (0.2 + 0.02 * second))
    cv2.rectangle(
        made, (left, round(height * 0.53)), (left + width // 4, round(height * 0.67)), (246, 246, 240), -1
    )
    cv2.rectangle(
        made,
        (left + width // 16, round(height * 0.45)),
        (left + width // 6, round(height * 0.53)),
        (214, 62, 58),
        -1,
    )
    return made
