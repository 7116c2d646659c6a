"""Mixes the sound of a film: an evened voice, the sound of clips, and music that gives way to both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from pipeline.render.audio.loudness import master, measure
from pipeline.render.audio.sound import (
    SAMPLE_RATE,
    Sound,
    from_decibels,
    pad_or_cut,
    run_filters,
    silence,
    to_decibels,
)
from pipeline.render.video.footage import read_clip_sound
from pipeline.render.video.storyboard import Audio

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

    from pipeline.render.video.storyboard import Duck, Storyboard

MIN_MUSIC_BELOW_DB: Final = 12.0
MAX_MUSIC_BELOW_DB: Final = 18.0
"""Decibels by which music lies under a voice while it speaks, at least and at most."""
_DUCKING_DB: Final = 6.0
"""The approximate decibels by which the voice presses the music down."""
_CROSSFADE_SECONDS: Final = 0.5
"""The time in which music that is too short fades from its end into its beginning."""
_MAX_REST_SECONDS: Final = 0.3
"""A rest between two words that is shorter than this, in seconds, counts as spoken."""
_TAKE_FADE_SECONDS: Final = 0.01
"""Seconds in which a take fades in and out, so that no cut clicks."""


def mix(*, voice: Sound | None, music: Sound | None, seconds: float, audio: Audio | None = None) -> Sound:
    """Return voice and music, or silence, at exactly the film's length and no set loudness.

    The voice is high-passed at 80 Hz and compressed 3:1. Music lies `audio.music_below` dB under the voice while it
    speaks, at least 12 and at most 18 dB. Music that is too short is repeated, and all music fades out at the end.
    """
    settings = audio or Audio()
    samples = round(seconds * SAMPLE_RATE)
    even_voice = None if voice is None or not len(voice) else pad_or_cut(even_out(voice), samples)
    if music is None or not len(music):
        return silence(0, samples=samples) if even_voice is None else even_voice
    music_bed = _fade_out(_loop_music(music, samples), settings.fade_out)
    if even_voice is None:
        return music_bed
    return even_voice + _duck_to_level(music_bed, even_voice, settings)


def even_out(voice: Sound) -> Sound:
    """Return the voice high-passed at 80 Hz and compressed 3:1, at its length, or unchanged without a loudness."""
    level = measure(voice).integrated
    if level is None:
        return voice
    # The threshold follows the voice's level, so that loud and quiet recordings are treated alike.
    threshold = from_decibels(min(max(level - 2.0, -55.0), -1.0))
    options = f"threshold={threshold:.5f}:ratio=3:attack=8:release=120:knee=4:detection=rms"
    evened = run_filters([voice], [("highpass", "f=80:p=2"), ("acompressor", options)])
    return pad_or_cut(evened, len(voice))


def _loop_music(music: Sound, samples: int) -> Sound:
    """Repeat the music to exactly `samples`: its end fades into its beginning, without a gap or a click."""
    crossfade = min(round(_CROSSFADE_SECONDS * SAMPLE_RATE), len(music) // 2)
    looped = music
    rising = np.sqrt(np.linspace(0.0, 1.0, crossfade, dtype=np.float32))[:, None]
    while len(looped) < samples and len(music) > crossfade:
        overlap = looped[len(looped) - crossfade :] * rising[::-1] + music[:crossfade] * rising
        looped = np.concatenate([looped[: len(looped) - crossfade], overlap, music[crossfade:]])
    return pad_or_cut(looped, samples)


def _fade_out(sound: Sound, seconds: float) -> Sound:
    """Return the sound with its last `seconds` faded out."""
    length = min(round(seconds * SAMPLE_RATE), len(sound))
    if length <= 0:
        return sound
    faded = sound.copy()
    # A cosine begins and ends without an audible corner.
    faded[-length:] *= np.cos(np.linspace(0.0, np.pi / 2, length, dtype=np.float32))[:, None] ** 2
    return faded


def _duck_to_level(bed: Sound, voice: Sound, settings: Audio) -> Sound:
    """Return the music at its set distance under the voice, pressed down while the voice speaks."""
    level = measure(voice).integrated
    if level is None or measure(bed).integrated is None:
        return bed
    ducked = _compress_under(bed, voice, level, settings.duck)
    # Both are measured in the same moments, or rests and edges would count for one of them alone.
    music_level = measure(_only_while_spoken(ducked, voice)).integrated
    voice_level = measure(_only_while_spoken(voice, voice)).integrated
    if music_level is None or voice_level is None:
        return ducked
    distance = min(max(settings.music_below, MIN_MUSIC_BELOW_DB), MAX_MUSIC_BELOW_DB)
    return ducked * np.float32(from_decibels(voice_level - distance - music_level))


def _compress_under(bed: Sound, voice: Sound, level: float, duck: Duck) -> Sound:
    """Compress the music wherever the voice sounds; `level` is the voice's loudness in LUFS."""
    threshold = from_decibels(min(max(level - _DUCKING_DB / (1 - 1 / max(duck.ratio, 1.5)), -59.0), -1.0))
    options = (
        f"threshold={threshold:.5f}:ratio={duck.ratio:g}:attack={duck.attack * 1000:g}"
        f":release={duck.release * 1000:g}:knee=2:detection=rms"
    )
    return pad_or_cut(run_filters([bed, voice], [("sidechaincompress", options)]), len(bed))


def _only_while_spoken(sound: Sound, voice: Sound) -> Sound:
    """Return the parts of the sound during which the voice speaks."""
    block_samples = SAMPLE_RATE // 50
    blocks = len(voice) // block_samples
    peaks = np.abs(voice[: blocks * block_samples]).reshape(blocks, block_samples, 2).max(axis=(1, 2))
    window = np.ones(2 * round(_MAX_REST_SECONDS / 0.04) + 1)
    is_loud = peaks > from_decibels(to_decibels(float(peaks.max(initial=0.0))) - 30)
    # Widened and then narrowed: short rests are filled, and nothing is added at the ends.
    is_near = np.convolve(is_loud, window, "same") > 0
    is_spoken = np.convolve(~is_near, window, "same") == 0
    selected: Sound = (
        sound[: blocks * block_samples].reshape(blocks, block_samples, 2)[is_spoken].reshape(-1, 2)
    )
    return selected


def film_sound(board: Storyboard, watch: Callable[[str], BinaryIO]) -> Sound | None:
    """Return the mastered sound of the film's takes, or `None` if there are none or all are silent.

    `watch` opens an asset. Raises `UnusableAsset` if an asset can't be read.
    """
    if not board.audio.takes:
        return None
    takes = join_takes(board, watch)
    if not takes.any():
        return None
    mixed = mix(voice=takes, music=None, seconds=board.duration, audio=board.audio)
    return master(mixed).sound


def join_takes(board: Storyboard, watch: Callable[[str], BinaryIO]) -> Sound:
    """Return one sound with the takes at their times, faded at their edges so that no cut clicks."""
    sound = silence(0, samples=board.frames * SAMPLE_RATE // board.fps)
    for take in board.audio.takes:
        start, end = round(take.start * SAMPLE_RATE), min(round(take.end * SAMPLE_RATE), len(sound))
        with watch(take.asset) as file:
            sound[start:end] = _fade_edges(read_clip_sound(take.asset, file, take.since, end - start))
    return sound


def _fade_edges(sound: Sound) -> Sound:
    """Fade a take in and out, in place."""
    length = min(round(_TAKE_FADE_SECONDS * SAMPLE_RATE), len(sound) // 2)
    rising = np.linspace(0.0, 1.0, length, dtype=np.float32)[:, None]
    sound[:length] *= rising
    sound[len(sound) - length :] *= rising[::-1]
    return sound
