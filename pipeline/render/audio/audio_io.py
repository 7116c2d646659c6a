"""Reads sounds from files and writes them: decoded to 48,000 Hz in two channels, encoded as AAC."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import av
import numpy as np

from pipeline.plugins import Refused
from pipeline.render.audio.sound import SAMPLE_RATE, Sound, silence

if TYPE_CHECKING:
    from collections.abc import Iterator

AAC_BITS_PER_SECOND: Final = 192_000
"""The bit rate of the film's sound."""
MAX_DECODED_SECONDS: Final = 600.0
"""The part of a sound that is decoded, because it is held in memory, 23 MB a minute."""
_FRAME_SAMPLES: Final = 1024


def decode(file: Path | Any, *, max_seconds: float = MAX_DECODED_SECONDS) -> Sound:
    """Return the first sound of a probed file, or of an open container, at most `max_seconds` from its beginning.

    Raises `Refused` for a file without sound.
    """
    if isinstance(file, Path):
        with av.open(str(file), options={"protocol_whitelist": "file"}) as opened:
            return decode(opened, max_seconds=max_seconds)
    if not file.streams.audio:
        raise Refused("The file has no sound.", code="no_sound")
    stream = file.streams.audio[0]
    resampler = av.AudioResampler(format="flt", layout="stereo", rate=SAMPLE_RATE)
    parts: list[Sound] = []
    sample_count = 0
    for frame in _decode_frames(file, stream):
        for resampled in resampler.resample(frame):
            part = np.asarray(resampled.to_ndarray(), np.float32).reshape(-1, 2)
            parts.append(part)
            sample_count += len(part)
        if sample_count >= max_seconds * SAMPLE_RATE:
            break
    sound = np.concatenate(parts)[: round(max_seconds * SAMPLE_RATE)] if parts else silence(0)
    # A file may hold samples that aren't numbers.
    return np.nan_to_num(sound, nan=0.0, posinf=0.0, neginf=0.0)


def _decode_frames(opened: Any, stream: Any) -> Iterator[Any]:
    """Yield all frames, then `None`, which flushes the resampler; damaged packets are skipped."""
    for packet in opened.demux(stream):
        try:
            yield from packet.decode()
        except av.InvalidDataError:
            continue
    yield None


def encode_aac(file: BinaryIO | Path, sound: Sound, *, bits_per_second: int = AAC_BITS_PER_SECOND) -> None:
    """Write an MP4 file with the sound alone; in a file at a path the tables come first, so it is written twice."""
    target = str(file) if isinstance(file, Path) else file
    options = {"movflags": "+faststart"} if isinstance(file, Path) else {}
    with av.open(target, "w", format="mp4", options=options) as out:
        stream: Any = out.add_stream("aac", rate=SAMPLE_RATE, layout="stereo")
        stream.bit_rate = bits_per_second
        for start in range(0, len(sound), _FRAME_SAMPLES):
            part = np.ascontiguousarray(sound[start : start + _FRAME_SAMPLES].T, np.float32)
            frame = av.AudioFrame.from_ndarray(part, format="fltp", layout="stereo")
            frame.sample_rate = SAMPLE_RATE
            frame.pts = start
            frame.time_base = Fraction(1, SAMPLE_RATE)
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
