"""How loud a film is: measured by BS.1770, mixed, brought to the target and measured again after the encoder.

Sounds are arrays of 32-bit floats at 48,000 Hz, of the shape (samples, 2), from -1 to 1. FFmpeg's filters do the work,
inside the process. `loudnorm` isn't used: it leaves its linear mode without a word, and then moves every level.
"""

from __future__ import annotations

import io
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import av
import numpy as np

from pipeline.render.audio.audio_io import AAC_BITS, decode, encode_aac
from pipeline.render.audio.ffmpeg_filters import (
    SAMPLE_RATE,
    Sound,
    from_decibels,
    pad_or_cut,
    run_filters,
    silence,
    to_decibels,
)

if TYPE_CHECKING:
    from pathlib import Path

TARGET: Final = -14.0
"""LUFS: what YouTube, TikTok, Instagram and Spotify turn louder sounds down to."""
SLACK: Final = 0.5
"""LU off the target with which a sound is delivered without a word of it."""
PEAK: Final = -1.0
"""dBTP of what is delivered, after the encoder."""
CEILING: Final = -2.0
"""dBFS before the encoder: AAC adds up to a decibel."""
BLOCK: Final = 0.4
"""Seconds of a block of BS.1770; a shorter sound has no loudness."""
SILENT: Final = -70.0
"""LUFS: quieter blocks don't count."""
GAIN_MOST: Final = 40.0
"""Decibels; what needs more is noise."""
_ROUNDS: Final = 6
"""Tries at most, of the whole and of the gain within each."""
_NEAR: Final = 0.1
"""LU; a try that is nearer than that to what it aims at is the last."""
_LOWEST: Final = -120.0
"""dBTP that stand for silence, whose peak in decibels has no number."""


@dataclass(frozen=True)
class Loudness:
    """`integrated` in LUFS, None where the sound is silent or shorter than a block; `peak` in dBTP, -120 for none."""

    integrated: float | None
    peak: float
    seconds: float

    @property
    def note(self) -> str:
        """Why there is no loudness, for people; empty where there is one."""
        if self.integrated is not None:
            return ""
        if not self.seconds:
            return "There is no sound."
        if self.seconds < BLOCK:
            return f"The sound lasts {self.seconds:.2f} seconds; loudness is defined from {BLOCK} seconds on."
        return "The sound is silent."


@dataclass(frozen=True)
class Mastered:
    """`aac` is an MP4 of the sound alone, whose packets a film can take as they are; `loudness` was measured in it.

    `note` says what could not be reached, empty where all was.
    """

    sound: Sound
    aac: bytes
    loudness: Loudness
    gain: float
    note: str = ""


def measure(sound: Sound) -> Loudness:
    """Integrated loudness and true peak (four times oversampled)."""
    seconds = len(sound) / SAMPLE_RATE
    if not len(sound):
        return Loudness(None, _LOWEST, 0.0)
    # A block ends every tenth of a second, so a little silence brings the last one out.
    told = _ebur128_values(np.concatenate([sound, silence(0.1)]))
    peak = max(to_decibels(float(told.get("lavfi.r128.true_peak", 0.0))), _LOWEST)
    integrated = float(told.get("lavfi.r128.I", SILENT))
    if seconds < BLOCK or not SILENT < integrated < math.inf:
        return Loudness(None, peak, seconds)
    return Loudness(integrated, peak, seconds)


def _ebur128_values(sound: Sound) -> dict[str, str]:
    """What FFmpeg's filter `ebur128` has measured at the end of a sound, by its own names."""
    told: dict[str, str] = {}

    def note(frame: Any) -> None:
        told.update(frame.metadata)

    run_filters([sound], [("ebur128", "metadata=1:peak=true:framelog=quiet")], each=note)
    return told


def measure_file(path: Path) -> Loudness:
    """The loudness of the first sound of a file that was probed."""
    return measure(decode(path))


def sound_faults(found: Loudness) -> tuple[str, ...]:
    """What is wrong with what is delivered, one sentence each; none for a film without sound."""
    said = []
    if found.integrated is not None and abs(found.integrated - TARGET) > SLACK:
        said.append(f"The loudness is {found.integrated:.1f} LUFS, not {TARGET:g} ± {SLACK:g}.")
    if found.peak > PEAK:
        said.append(f"The true peak is {found.peak:.1f} dBTP; {PEAK:g} is the most.")
    return tuple(said)


def master(sound: Sound, *, bits: int = AAC_BITS) -> Mastered:
    """The sound at the target: measure, gain, limit, encode, verify, and once more from what was found.

    `bits` are those a second of the encoder. A limiter takes loudness away and an encoder adds peaks, so both are
    measured and not reckoned.
    """
    before = measure(sound)
    if not len(sound):
        return Mastered(sound, b"", before, 0.0, before.note)
    gain = 0.0 if before.integrated is None else TARGET - before.integrated
    aim, ceiling = TARGET, CEILING
    best: tuple[float, Mastered] | None = None
    for _ in range(_ROUNDS):
        # Silence stays silence; what is too short to have a loudness is only kept from clipping.
        limited, gain = (
            (_limited(sound, ceiling), 0.0)
            if before.integrated is None
            else _at_target(sound, gain, aim=aim, ceiling=ceiling)
        )
        aac = _encoded(limited, bits)
        after = _measure_aac(aac)
        off = 0.0 if after.integrated is None else TARGET - after.integrated
        over = max(after.peak - PEAK, 0.0)
        # A decibel of a peak over the limit is as bad as ten LU off the target.
        badness = abs(off) + 10 * over
        if best is None or badness < best[0]:
            said = before.note or " ".join(sound_faults(after))
            best = (badness, Mastered(limited, aac, after, gain, said))
        if over == 0 and (abs(off) <= SLACK / 2 or abs(TARGET + off - aim) < _NEAR):
            break
        if over:
            # A tenth of a decibel further than the peak was over.
            ceiling -= over + 0.1
        else:
            aim = TARGET + off
    assert best is not None  # noqa: S101  there is at least one round
    return best[1]


def _at_target(sound: Sound, gain: float, *, aim: float, ceiling: float) -> tuple[Sound, float]:
    """Louder by as much as the limiter takes away, and by `GAIN_MOST` at most."""
    nearest: tuple[float, Sound, float] | None = None
    for _ in range(_ROUNDS):
        gain = min(gain, GAIN_MOST)
        limited = _limited(sound * np.float32(from_decibels(gain)), ceiling)
        found = measure(limited).integrated
        off = aim - (SILENT if found is None else found)
        if nearest is None or abs(off) < abs(nearest[0]):
            nearest = (off, limited, gain)
        if abs(off) <= _NEAR or (off > 0 and gain == GAIN_MOST):
            break
        gain += off
    assert nearest is not None  # noqa: S101  there is at least one round
    return nearest[1], nearest[2]


def _limited(sound: Sound, ceiling: float) -> Sound:
    """No sample beyond the ceiling, as long as it was. Four times the rate sees the peaks between samples."""
    if measure(sound).peak <= ceiling:
        return sound
    limit = f"limit={from_decibels(ceiling):.5f}:attack=5:release=60:level=false:latency=true"
    limited = run_filters(
        [sound],
        [("aresample", f"{4 * SAMPLE_RATE}"), ("alimiter", limit), ("aresample", f"{SAMPLE_RATE}")],
    )
    return pad_or_cut(limited, len(sound))


def _encoded(sound: Sound, bits: int) -> bytes:
    file = io.BytesIO()
    encode_aac(file, sound, bits=bits)
    return file.getvalue()


def _measure_aac(data: bytes) -> Loudness:
    with av.open(io.BytesIO(data), format="mp4") as opened:
        return measure(decode(opened))
