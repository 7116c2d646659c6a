"""Finds the cuts of a video, and the part of each shot that an upright frame should show, by the frames themselves.

A part is the left, the middle or the right one. It is chosen by its detail and motion, and stays for the whole shot; a
shot with activity everywhere is shown whole, before a blurred background.
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

ANALYSIS_WIDTH: Final = 320
"""The width in pixels of the small picture that is analysed."""
CUT_CHANGE_PERCENT: Final = 10.0
"""The per cent of the possible change that a cut adds to the usual change from frame to frame around it."""
SPIKE_CHANGE: Final = (4.0, 6.0)
"""The change in per cent, and as a multiple of the usual one, that makes a cut between two similar pictures."""
_CONTEXT_FRAMES: Final = 8
"""The frames whose changes give the usual change."""
MIN_SHOT_SECONDS: Final = 0.4
"""The shortest shot; anything shorter is a flash, or part of a fade."""
CENTRE_CROP_SHARE: Final = 0.8
"""A video is cropped to the middle if an upright frame shows at least this share of its width."""
CLEAR_SHARE: Final = 0.43
"""The share of the activity that a third must hold to be shown alone; an equal share is a third."""
SWITCH_MARGIN: Final = 0.06
"""The lead in share that a third needs over the one of the shot before."""
_FRAMES_PER_SAMPLE: Final = 3
"""One of so many frames is examined for activity."""
_MOTION_WEIGHT: Final = 0.6
"""The share of motion in the activity; the rest is detail."""
_MIDDLE_WEIGHT: Final = 1.08
"""The factor for activity in the middle, where people film their subject."""
_INTERPOLATION: Final = cv2.INTER_AREA
_NOISE_LEVELS: Final = 0.4
"""The levels by which noise alone changes a picture."""


@dataclass
class _ShotActivity:
    """A shot's activity so far: the sums of detail and of motion in each third."""

    start: float
    detail: np.ndarray[tuple[int], np.dtype[np.float64]]
    motion: np.ndarray[tuple[int], np.dtype[np.float64]]


def find_shots(reel: Reel, start: float, end: float) -> tuple[Shot, ...]:
    """Return the shots of a span of seconds, in order, without gaps. Raises `UnusableAsset` if it can't be read."""
    activities = list(_analyse_shots(reel, start, end))
    starts = [activity.start for activity in activities]
    ends = [*starts[1:], end]
    crops = _choose_crops(activities, reel.width, reel.height)
    return tuple(Shot(*fields) for fields in zip(starts, ends, crops, strict=True))


def _analyse_shots(reel: Reel, start: float, end: float) -> Iterator[_ShotActivity]:
    """Yield the activity of each shot; a cut that would make a shot too short is ignored."""
    shot = _ShotActivity(start, np.zeros(3), np.zeros(3))
    previous: Planes | None = None
    previous_sample: Plane | None = None
    recent_changes: deque[float] = deque(maxlen=_CONTEXT_FRAMES)
    for number in range(max(1, round((end - start) * FPS))):
        second = start + number / FPS
        small = _small_frame(reel, second)
        if previous is not None:
            change = _change_percent(small, previous)
            is_cut = _is_cut(change, recent_changes)
            recent_changes.append(change)
            if is_cut and end - second >= MIN_SHOT_SECONDS:
                if second - shot.start >= MIN_SHOT_SECONDS:
                    yield shot
                    shot = _ShotActivity(second, np.zeros(3), np.zeros(3))
                previous_sample = None
        if number % _FRAMES_PER_SAMPLE == 0:
            shot.detail += _mean_by_third(_edges(small.y))
            if previous_sample is not None:
                shot.motion += _mean_by_third(_difference(small.y, previous_sample))
            previous_sample = small.y
        previous = small
    yield shot


def _small_frame(reel: Reel, second: float) -> Planes:
    """Return the frame at a second, scaled to `ANALYSIS_WIDTH`."""
    height = min(max(2, round(ANALYSIS_WIDTH * reel.height / reel.width)), 2 * ANALYSIS_WIDTH)
    return Planes(
        *(
            np.asarray(
                cv2.resize(
                    np.ascontiguousarray(plane),
                    (ANALYSIS_WIDTH // part, height // part),
                    interpolation=_INTERPOLATION,
                ),
                np.uint8,
            )
            for plane, part in zip(reel.frame_at(second), (1, 2, 2), strict=True)
        )
    )


def _change_percent(first: Planes, second: Planes) -> float:
    """Return the difference of two frames, in per cent of the possible change of brightness and colours."""
    brightness, *colours = (
        float(cv2.absdiff(plane, other_plane).mean())
        for plane, other_plane in zip(first, second, strict=True)
    )
    return 100 * (brightness / 219 + sum(colours) / 224)


def _is_cut(change: float, recent_changes: Collection[float]) -> bool:
    """Return whether the change is a cut, compared with the changes around it."""
    usual_change = sum(recent_changes) / len(recent_changes) if recent_changes else change
    min_change, min_ratio = SPIKE_CHANGE
    return change - usual_change > CUT_CHANGE_PERCENT or (
        change > min_change and change > min_ratio * usual_change
    )


def _edges(small: Plane) -> Plane:
    """Return the edges, without the finest ones, which are noise."""
    soft = cv2.GaussianBlur(small, (3, 3), 0)
    horizontal = cv2.Sobel(soft, cv2.CV_16S, 1, 0)
    vertical = cv2.Sobel(soft, cv2.CV_16S, 0, 1)
    return np.asarray(
        cv2.addWeighted(cv2.convertScaleAbs(horizontal), 0.5, cv2.convertScaleAbs(vertical), 0.5, 0)
    )


def _difference(small: Plane, previous: Plane) -> Plane:
    return np.asarray(cv2.absdiff(small, previous))


def _mean_by_third(energy: Plane) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    columns = energy.mean(axis=0)
    return np.array([part.mean() for part in np.array_split(columns, 3)], np.float64)


def _choose_crops(activities: list[_ShotActivity], width: int, height: int) -> Iterator[Crop | None]:
    """Yield the crop of each shot, or `None` for a shot that is shown whole, padded."""
    share = SIZE[0] / SIZE[1] * height / width
    if share >= CENTRE_CROP_SHARE:
        yield from (Crop() for _ in activities)
        return
    previous_third: int | None = None
    is_first = True
    for activity in activities:
        third = _choose_third(activity, previous_third, is_first=is_first)
        previous_third, is_first = third, False
        yield None if third is None else Crop(round((1 - share) * third / 2, 6), 0.0, round(share, 6), 1.0)


def _choose_third(activity: _ShotActivity, previous_third: int | None, *, is_first: bool) -> int | None:
    """Return the third to show, 0 for the left, or `None` for all: that of before, unless another is much better."""
    shares = _share_by_third(activity)
    best = int(np.argmax(shares))
    if is_first:
        return best if shares[best] >= CLEAR_SHARE else None
    if previous_third is None:
        return best if shares[best] >= CLEAR_SHARE + SWITCH_MARGIN else None
    if (
        shares[previous_third] >= CLEAR_SHARE - SWITCH_MARGIN
        and shares[best] - shares[previous_third] < SWITCH_MARGIN
    ):
        return previous_third
    return best if shares[best] >= CLEAR_SHARE else None


def _share_by_third(activity: _ShotActivity) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return each third's share of the activity, of motion and detail together."""
    motion = np.maximum(activity.motion - _NOISE_LEVELS * 0.01 * activity.motion.size, 0.0)
    detail = _normalize(activity.detail)
    combined = (
        detail
        if motion.sum() <= _NOISE_LEVELS
        else _MOTION_WEIGHT * _normalize(motion) + (1 - _MOTION_WEIGHT) * detail
    )
    weighted = combined * np.array([1.0, _MIDDLE_WEIGHT, 1.0])
    return np.asarray(weighted / weighted.sum())


def _normalize(
    energy: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    total = float(energy.sum())
    return energy / total if total > 0 else np.full(3, 1 / 3)
