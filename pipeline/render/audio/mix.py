"""What is heard in a film: a voice made even, the sound of clips, and music that gives way to both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from pipeline.render.audio.ffmpeg_filters import (
    SAMPLE_RATE,
    Sound,
    from_decibels,
    pad_or_cut,
    run_filters,
    silence,
    to_decibels,
)
from pipeline.render.audio.loudness import master, measure
from pipeline.render.video.footage import heard
from pipeline.render.video.storyboard import Audio

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

    from pipeline.render.video.storyboard import Duck, Storyboard

BELOW_LEAST: Final = 12.0
BELOW_MOST: Final = 18.0
"""Decibels by which music lies under a voice while it speaks."""
_DUCKED_BY: Final = 6.0
"""Decibels, about, by which the voice presses the music down."""
_SEAM: Final = 0.5
"""Seconds over which music that is too short goes over into its beginning."""
_SPOKEN: Final = 0.3
"""Seconds; a shorter rest between two words counts as spoken."""
_EDGE: Final = 0.01
"""Seconds in which a take comes and goes, so that no cut clicks."""


def mix(*, voice: Sound | None, music: Sound | None, seconds: float, audio: Audio | None = None) -> Sound:
    """Voice and music of exactly the film's length, not yet at any loudness; silence where there is neither.

    The voice loses what rumbles below 80 Hz and is compressed 3:1. Music lies `audio.music_below` under it while it
    speaks, at least 12 and at most 18 dB, is repeated where it is too short, and fades out at the end.
    """
    how = audio or Audio()
    samples = round(seconds * SAMPLE_RATE)
    spoken = None if voice is None or not len(voice) else pad_or_cut(even(voice), samples)
    if music is None or not len(music):
        return silence(0, samples=samples) if spoken is None else spoken
    bed = _faded(_repeated(music, samples), how.fade_out)
    if spoken is None:
        return bed
    return spoken + _under(bed, spoken, how)


def even(voice: Sound) -> Sound:
    """High-passed at 80 Hz, compressed 3:1, as long as it was."""
    level = measure(voice).integrated
    if level is None:
        return voice
    # The threshold goes with the voice, so that loud and quiet recordings are treated alike.
    threshold = from_decibels(min(max(level - 2.0, -55.0), -1.0))
    press = f"threshold={threshold:.5f}:ratio=3:attack=8:release=120:knee=4:detection=rms"
    made = run_filters([voice], [("highpass", "f=80:p=2"), ("acompressor", press)])
    return pad_or_cut(made, len(voice))


def _repeated(music: Sound, samples: int) -> Sound:
    """At least so long: its end goes over into its beginning, without a gap or a click."""
    seam = min(round(_SEAM * SAMPLE_RATE), len(music) // 2)
    made = music
    rising = np.sqrt(np.linspace(0.0, 1.0, seam, dtype=np.float32))[:, None]
    while len(made) < samples and len(music) > seam:
        joint = made[len(made) - seam :] * rising[::-1] + music[:seam] * rising
        made = np.concatenate([made[: len(made) - seam], joint, music[seam:]])
    return pad_or_cut(made, samples)


def _faded(sound: Sound, seconds: float) -> Sound:
    length = min(round(seconds * SAMPLE_RATE), len(sound))
    if length <= 0:
        return sound
    made = sound.copy()
    # A cosine begins and ends without a corner.
    made[-length:] *= np.cos(np.linspace(0.0, np.pi / 2, length, dtype=np.float32))[:, None] ** 2
    return made


def _under(bed: Sound, voice: Sound, how: Audio) -> Sound:
    """The music as it lies under this voice."""
    level = measure(voice).integrated
    if level is None or measure(bed).integrated is None:
        return bed
    ducked = _ducked(bed, voice, level, how.duck)
    # Both in the same moments, or rests and edges would count for one of them.
    loud = measure(_while_spoken(ducked, voice)).integrated
    spoken = measure(_while_spoken(voice, voice)).integrated
    if loud is None or spoken is None:
        return ducked
    below = min(max(how.music_below, BELOW_LEAST), BELOW_MOST)
    return ducked * np.float32(from_decibels(spoken - below - loud))


def _ducked(bed: Sound, voice: Sound, level: float, duck: Duck) -> Sound:
    threshold = from_decibels(min(max(level - _DUCKED_BY / (1 - 1 / max(duck.ratio, 1.5)), -59.0), -1.0))
    press = (
        f"threshold={threshold:.5f}:ratio={duck.ratio:g}:attack={duck.attack * 1000:g}"
        f":release={duck.release * 1000:g}:knee=2:detection=rms"
    )
    return pad_or_cut(run_filters([bed, voice], [("sidechaincompress", press)]), len(bed))


def _while_spoken(sound: Sound, voice: Sound) -> Sound:
    """What of it sounds together with the voice."""
    width = SAMPLE_RATE // 50
    blocks = len(voice) // width
    loud = np.abs(voice[: blocks * width]).reshape(blocks, width, 2).max(axis=(1, 2))
    reach = np.ones(2 * round(_SPOKEN / 0.04) + 1)
    is_loud = loud > from_decibels(to_decibels(float(loud.max(initial=0.0))) - 30)
    # Widened and narrowed again: short rests are filled, and nothing is added at the ends.
    is_near = np.convolve(is_loud, reach, "same") > 0
    is_spoken = np.convolve(~is_near, reach, "same") == 0
    heard: Sound = sound[: blocks * width].reshape(blocks, width, 2)[is_spoken].reshape(-1, 2)
    return heard


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
    whole = silence(0, samples=board.frames * SAMPLE_RATE // board.fps)
    for take in board.audio.takes:
        start, end = round(take.start * SAMPLE_RATE), min(round(take.end * SAMPLE_RATE), len(whole))
        with watch(take.asset) as file:
            whole[start:end] = _edged(heard(take.asset, file, take.since, end - start))
    return whole


def _edged(sound: Sound) -> Sound:
    length = min(round(_EDGE * SAMPLE_RATE), len(sound) // 2)
    rising = np.linspace(0.0, 1.0, length, dtype=np.float32)[:, None]
    sound[:length] *= rising
    sound[len(sound) - length :] *= rising[::-1]
    return sound
