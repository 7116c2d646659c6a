"""Measures the loudness of a film by BS.1770, brings it to the target, and measures it again after the encoder.

FFmpeg's filters run inside the process. `loudnorm` isn't used, because it leaves its linear mode without a notice, and
then changes every level.
"""

from __future__ import annotations

import io
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import av
import numpy as np

from pipeline.render.audio.audio_io import AAC_BITS_PER_SECOND, decode, encode_aac
from pipeline.render.audio.sound import (
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

TARGET_LUFS: Final = -14.0
"""The loudness to which YouTube, TikTok, Instagram and Spotify turn louder sounds down."""
TOLERANCE_LU: Final = 0.5
"""Distance from the target, in LU, that is delivered without a note."""
MAX_PEAK_DBTP: Final = -1.0
"""The maximum true peak of what is delivered, after the encoder."""
LIMITER_CEILING_DBFS: Final = -2.0
"""The limiter's ceiling before the encoder: AAC adds up to a decibel."""
BLOCK_SECONDS: Final = 0.4
"""The length of a block of BS.1770; a shorter sound has no loudness."""
SILENCE_LUFS: Final = -70.0
"""The loudness below which a block doesn't count."""
MAX_GAIN_DB: Final = 40.0
"""The maximum gain; a sound that needs more is noise."""
_MAX_ROUNDS: Final = 6
"""The maximum of rounds of `master`, and of those of the gain within each round."""
_CLOSE_ENOUGH_LU: Final = 0.1
"""The distance from the aim, in LU, at which no further round is tried."""
_SILENT_PEAK_DBTP: Final = -120.0
"""The number that stands for the peak of silence, which has none in decibels."""


@dataclass(frozen=True)
class Loudness:
    """A measured loudness.

    `integrated` is in LUFS, or `None` if the sound is silent or shorter than a block. `peak` is in dBTP, or -120 for
    silence.
    """

    integrated: float | None
    peak: float
    seconds: float

    @property
    def note(self) -> str:
        """The reason why there is no loudness, for people, or "" if there is one."""
        if self.integrated is not None:
            return ""
        if not self.seconds:
            return "There is no sound."
        if self.seconds < BLOCK_SECONDS:
            return f"The sound lasts {self.seconds:.2f} seconds; loudness is defined from {BLOCK_SECONDS} seconds on."
        return "The sound is silent."


@dataclass(frozen=True)
class Mastered:
    """A sound at the target. `aac` is an MP4 of the sound alone, whose packets a film can take unchanged.

    `loudness` was measured in `aac`, `gain` is in decibels. `note` is the reason why the target isn't reached, or "".
    """

    sound: Sound
    aac: bytes
    loudness: Loudness
    gain: float
    note: str = ""


def measure(sound: Sound) -> Loudness:
    """Return the sound's integrated loudness and its true peak, which is four times oversampled."""
    seconds = len(sound) / SAMPLE_RATE
    if not len(sound):
        return Loudness(None, _SILENT_PEAK_DBTP, 0.0)
    # A block ends every tenth of a second, so a little silence completes the last one.
    values = _ebur128_values(np.concatenate([sound, silence(0.1)]))
    peak = max(to_decibels(float(values.get("lavfi.r128.true_peak", 0.0))), _SILENT_PEAK_DBTP)
    integrated = float(values.get("lavfi.r128.I", SILENCE_LUFS))
    if seconds < BLOCK_SECONDS or not SILENCE_LUFS < integrated < math.inf:
        return Loudness(None, peak, seconds)
    return Loudness(integrated, peak, seconds)


def _ebur128_values(sound: Sound) -> dict[str, str]:
    """Return the measurements of FFmpeg's filter `ebur128` at the end of a sound, by FFmpeg's names."""
    values: dict[str, str] = {}

    def store(frame: Any) -> None:
        values.update(frame.metadata)

    run_filters([sound], [("ebur128", "metadata=1:peak=true:framelog=quiet")], on_frame=store)
    return values


def measure_file(path: Path) -> Loudness:
    """Return the loudness of the first sound of a probed file. Raises `Refused` if the file has no sound."""
    return measure(decode(path))


def sound_faults(loudness: Loudness) -> tuple[str, ...]:
    """Return the faults of a delivered sound, one sentence each; silence has none."""
    messages = []
    if loudness.integrated is not None and abs(loudness.integrated - TARGET_LUFS) > TOLERANCE_LU:
        messages.append(
            f"The loudness is {loudness.integrated:.1f} LUFS, not {TARGET_LUFS:g} ± {TOLERANCE_LU:g}."
        )
    if loudness.peak > MAX_PEAK_DBTP:
        messages.append(f"The true peak is {loudness.peak:.1f} dBTP; the maximum is {MAX_PEAK_DBTP:g}.")
    return tuple(messages)


def master(sound: Sound, *, bits_per_second: int = AAC_BITS_PER_SECOND) -> Mastered:
    """Return the sound at the target: gained, limited, encoded, measured, and again by what was measured.

    `bits_per_second` is the encoder's bit rate. A limiter takes loudness away and an encoder adds peaks, which only
    measuring finds. The best of at most `_MAX_ROUNDS` rounds is returned; they end early at a sound on target, or if
    the next aim would be about the same. A sound without a loudness is only limited.
    """
    before = measure(sound)
    if not len(sound):
        return Mastered(sound, b"", before, 0.0, before.note)
    gain = 0.0 if before.integrated is None else TARGET_LUFS - before.integrated
    aimed_lufs, ceiling = TARGET_LUFS, LIMITER_CEILING_DBFS
    best: tuple[float, Mastered] | None = None
    for _ in range(_MAX_ROUNDS):
        if before.integrated is None:
            # Silence stays silence; a sound too short to have a loudness is only kept from clipping.
            limited, gain = _limit_peaks(sound, ceiling), 0.0
        else:
            limited, gain = _gain_to_target(sound, gain, aim=aimed_lufs, ceiling=ceiling)
        aac = _encode(limited, bits_per_second)
        after = _measure_aac(aac)
        off_target = 0.0 if after.integrated is None else TARGET_LUFS - after.integrated
        over_peak = max(after.peak - MAX_PEAK_DBTP, 0.0)
        # A decibel of a peak over the limit is as bad as ten LU off the target.
        penalty = abs(off_target) + 10 * over_peak
        if best is None or penalty < best[0]:
            note = before.note or " ".join(sound_faults(after))
            best = (penalty, Mastered(limited, aac, after, gain, note))
        is_on_target = abs(off_target) <= TOLERANCE_LU / 2
        is_same_aim = abs(TARGET_LUFS + off_target - aimed_lufs) < _CLOSE_ENOUGH_LU
        if over_peak == 0 and (is_on_target or is_same_aim):
            break
        if over_peak:
            # The ceiling falls by a tenth of a decibel more than the peak was over.
            ceiling -= over_peak + 0.1
        else:
            aimed_lufs = TARGET_LUFS + off_target
    assert best is not None  # noqa: S101  there is at least one round
    return best[1]


def _gain_to_target(sound: Sound, gain: float, *, aim: float, ceiling: float) -> tuple[Sound, float]:
    """Return the limited sound and its gain in decibels, which makes up for the limiter up to `MAX_GAIN_DB`."""
    best: tuple[float, Sound, float] | None = None
    for _ in range(_MAX_ROUNDS):
        gain = min(gain, MAX_GAIN_DB)
        limited = _limit_peaks(sound * np.float32(from_decibels(gain)), ceiling)
        reached = measure(limited).integrated
        off_target = aim - (SILENCE_LUFS if reached is None else reached)
        if best is None or abs(off_target) < abs(best[0]):
            best = (off_target, limited, gain)
        if abs(off_target) <= _CLOSE_ENOUGH_LU or (off_target > 0 and gain == MAX_GAIN_DB):
            break
        gain += off_target
    assert best is not None  # noqa: S101  there is at least one round
    return best[1], best[2]


def _limit_peaks(sound: Sound, ceiling: float) -> Sound:
    """Return the sound with every peak under the ceiling in dBFS, at the same length.

    At four times the sample rate the limiter sees the peaks between samples.
    """
    if measure(sound).peak <= ceiling:
        return sound
    limit = f"limit={from_decibels(ceiling):.5f}:attack=5:release=60:level=false:latency=true"
    limited = run_filters(
        [sound], [("aresample", f"{4 * SAMPLE_RATE}"), ("alimiter", limit), ("aresample", f"{SAMPLE_RATE}")]
    )
    return pad_or_cut(limited, len(sound))


def _encode(sound: Sound, bits_per_second: int) -> bytes:
    buffer = io.BytesIO()
    encode_aac(buffer, sound, bits_per_second=bits_per_second)
    return buffer.getvalue()


def _measure_aac(data: bytes) -> Loudness:
    with av.open(io.BytesIO(data), format="mp4") as opened:
        return measure(decode(opened))
