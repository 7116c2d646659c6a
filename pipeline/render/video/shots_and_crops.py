"""Where a video cuts, and which part of each shot an upright frame should show: found by looking, frame by frame.

A part is one of three: left, middle, right. It is chosen by where things are drawn in detail and where they move, and
stays for the whole shot; a shot in which it happens everywhere is shown whole, before a blurred ground.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

from pipeline.render.video.material import Shot
from pipeline.render.video.storyboard import FPS, SIZE, Crop
from pipeline.render.video.ycbcr import Planes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from pipeline.render.video.footage import Reel
    from pipeline.render.video.ycbcr import Plane

WIDTH: Final = 320
"""Pixels of the small picture that is looked at."""
CUT: Final = 10.0
"""How much of all that can change, in per cent, changes at a cut, beyond what changes from frame to frame around it."""
SPIKE: Final = (4.0, 6.0)
"""Per cent, and times what changed from frame to frame until then, that make a cut of two pictures that are alike."""
_AROUND: Final = 8
"""Frames by which is told what changes from one to the next."""
SHORTEST: Final = 0.4
"""Seconds of a shot; what is shorter is a flash, or part of a fade."""
COVERS: Final = 0.8
"""A video of which an upright frame shows this much of its width is shown from the middle."""
CLEAR: Final = 0.43
"""The share of what happens that a third must hold to be shown alone; a fair share is a third."""
KEEP: Final = 0.06
"""By so much another choice has to be better than that of the shot before."""
_EVERY: Final = 3
"""Frames between two looks at what happens where."""
_MOTION: Final = 0.6
_MIDDLE: Final = 1.08
"""What people film they put in the middle: so much more counts what happens there."""
_WAY: Final = cv2.INTER_AREA
_STILL: Final = 0.4
"""Levels by which noise alone changes a picture."""


@dataclass
class _Seen:
    """What was found in a shot so far: detail and motion in each third."""

    start: float
    detail: np.ndarray[tuple[int], np.dtype[np.float64]]
    motion: np.ndarray[tuple[int], np.dtype[np.float64]]


def find_shots(reel: Reel, start: float, end: float) -> tuple[Shot, ...]:
    """The shots of a span, one after the other without a gap. Raises `UnusableAsset`."""
    seen = list(_seen(reel, start, end))
    starts = [one.start for one in seen]
    ends = [*starts[1:], end]
    crops = _crops(seen, reel.width, reel.height)
    return tuple(Shot(*one) for one in zip(starts, ends, crops, strict=True))


def _seen(reel: Reel, start: float, end: float) -> Iterator[_Seen]:
    """Shot by shot; one that is too short goes with the next."""
    now = _Seen(start, np.zeros(3), np.zeros(3))
    before: Planes | None = None
    earlier: Plane | None = None
    around: deque[float] = deque(maxlen=_AROUND)
    for number in range(max(1, round((end - start) * FPS))):
        second = start + number / FPS
        small = _small(reel, second)
        if before is not None:
            changed = _change(small, before)
            is_cut = _is_cut(changed, around)
            around.append(changed)
            if is_cut and end - second >= SHORTEST:
                if second - now.start >= SHORTEST:
                    yield now
                    now = _Seen(second, np.zeros(3), np.zeros(3))
                earlier = None
        if number % _EVERY == 0:
            now.detail += _thirds(_detail(small.y))
            if earlier is not None:
                now.motion += _thirds(_moved(small.y, earlier))
            earlier = small.y
        before = small
    yield now


def _small(reel: Reel, second: float) -> Planes:
    height = min(max(2, round(WIDTH * reel.height / reel.width)), 2 * WIDTH)
    return Planes(
        *(
            np.asarray(
                cv2.resize(np.ascontiguousarray(plane), (WIDTH // part, height // part), interpolation=_WAY),
                np.uint8,
            )
            for plane, part in zip(reel.at(second), (1, 2, 2), strict=True)
        )
    )


def _change(one: Planes, other: Planes) -> float:
    """Per cent of all that brightness and colours can change."""
    light, *colours = (float(cv2.absdiff(this, that).mean()) for this, that in zip(one, other, strict=True))
    return 100 * (light / 219 + sum(colours) / 224)


def _is_cut(changed: float, around: Collection[float]) -> bool:
    usual = sum(around) / len(around) if around else changed
    least, times = SPIKE
    return changed - usual > CUT or (changed > least and changed > times * usual)


def _detail(small: Plane) -> Plane:
    """Edges, without the finest, which are noise."""
    soft = cv2.GaussianBlur(small, (3, 3), 0)
    across = cv2.Sobel(soft, cv2.CV_16S, 1, 0)
    down = cv2.Sobel(soft, cv2.CV_16S, 0, 1)
    return np.asarray(cv2.addWeighted(cv2.convertScaleAbs(across), 0.5, cv2.convertScaleAbs(down), 0.5, 0))


def _moved(small: Plane, earlier: Plane) -> Plane:
    return np.asarray(cv2.absdiff(small, earlier))


def _thirds(energy: Plane) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    columns = energy.mean(axis=0)
    return np.array([part.mean() for part in np.array_split(columns, 3)], np.float64)


def _crops(seen: list[_Seen], width: int, height: int) -> Iterator[Crop | None]:
    share = SIZE[0] / SIZE[1] * height / width
    if share >= COVERS:
        yield from (Crop() for _ in seen)
        return
    before: int | None = None
    is_first = True
    for one in seen:
        chosen = _choice(one, before, is_first=is_first)
        before, is_first = chosen, False
        yield None if chosen is None else Crop(round((1 - share) * chosen / 2, 6), 0.0, round(share, 6), 1.0)


def _choice(seen: _Seen, before: int | None, *, is_first: bool) -> int | None:
    """The third that is shown, None for all."""
    held = _shares(seen)
    best = int(np.argmax(held))
    if is_first:
        return best if held[best] >= CLEAR else None
    if before is None:
        return best if held[best] >= CLEAR + KEEP else None
    if held[before] >= CLEAR - KEEP and held[best] - held[before] < KEEP:
        return before
    return best if held[best] >= CLEAR else None


def _shares(seen: _Seen) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    motion = np.maximum(seen.motion - _STILL * 0.01 * seen.motion.size, 0.0)
    detail = _share(seen.detail)
    held = detail if motion.sum() <= _STILL else _MOTION * _share(motion) + (1 - _MOTION) * detail
    weighed = held * np.array([1.0, _MIDDLE, 1.0])
    return np.asarray(weighed / weighed.sum())


def _share(
    energy: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    total = float(energy.sum())
    return energy / total if total > 0 else np.full(3, 1 / 3)
