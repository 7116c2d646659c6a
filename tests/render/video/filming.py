"""Films made and read back, small and fast."""

from __future__ import annotations

from io import BytesIO

import av
import numpy as np
from PIL import Image

from pipeline.render.video.encode import Quality, encode
from pipeline.render.video.frame_composer import Composer
from pipeline.render.video.ycbcr import new_planes, to_rgb

QUICK = Quality("ultrafast", 24)


def film(path, board, files=None, *, shrink=4, quality=QUICK, sound=None):
    composer = Composer(board, (files or {}).__getitem__, shrink=shrink)
    encode(
        path,
        composer.draw,
        frames=board.frames,
        size=composer.size,
        fps=board.fps,
        quality=quality,
        sound=sound,
    )
    return path


def frame(board, number, files=None, *, shrink=4):
    """One frame as RGB, without an encoder."""
    composer = Composer(board, (files or {}).__getitem__, shrink=shrink)
    planes = new_planes(*composer.size)
    composer.draw(planes, number)
    return to_rgb(planes)


def seen(path, *, plane="y"):
    """Every frame's brightness as it is decoded."""
    with av.open(str(path)) as container:
        for one in container.decode(video=0):
            yield one.to_ndarray()[: one.height]


def dot(size=(1080, 1920), at=(300, 500), radius=40):
    """A white dot on black, round between pixels too."""
    y, x = np.mgrid[: size[1], : size[0]]
    away = np.hypot(x + 0.5 - at[0], y + 0.5 - at[1])
    light = np.clip(radius + 0.5 - away, 0, 1) * 255
    return png(np.dstack([light] * 3).astype(np.uint8))


def png(pixels):
    out = BytesIO()
    Image.fromarray(pixels).save(out, "PNG", compress_level=1)
    return out.getvalue()
