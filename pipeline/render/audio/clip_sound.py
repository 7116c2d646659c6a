"""What the clips of a film sound like: cut to the sample, made even, and brought to the loudness of films."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from pipeline.render.audio.filters import SAMPLES, Sound, silence
from pipeline.render.audio.loudness import master
from pipeline.render.audio.mix import mix
from pipeline.render.video.footage import heard

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

    from pipeline.render.video.storyboard import Storyboard

_EDGE: Final = 0.01
"""Seconds in which a take comes and goes, so that no cut clicks."""


def sound_of(board: Storyboard, watch: Callable[[str], BinaryIO]) -> Sound | None:
    """As long as the film, at its loudness; None for a film without takes, or whose takes are silent."""
    if not board.audio.takes:
        return None
    cut = joined(board, watch)
    if not cut.any():
        return None
    mixed = mix(voice=cut, music=None, seconds=board.duration, audio=board.audio)
    return master(mixed).sound


def joined(board: Storyboard, watch: Callable[[str], BinaryIO]) -> Sound:
    """The takes where they belong, as they are. A film's frame is a whole number of samples long."""
    whole = silence(0, samples=board.frames * SAMPLES // board.fps)
    for take in board.audio.takes:
        start, end = round(take.start * SAMPLES), min(round(take.end * SAMPLES), len(whole))
        with watch(take.asset) as file:
            whole[start:end] = _edged(heard(take.asset, file, take.since, end - start))
    return whole


def _edged(sound: Sound) -> Sound:
    length = min(round(_EDGE * SAMPLES), len(sound) // 2)
    rising = np.linspace(0.0, 1.0, length, dtype=np.float32)[:, None]
    sound[:length] *= rising
    sound[len(sound) - length :] *= rising[::-1]
    return sound
