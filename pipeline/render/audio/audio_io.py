"""Sounds from files and into files: decoded to 48,000 Hz in two channels, encoded as AAC."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import av
import numpy as np

from pipeline.plugins import Refused
from pipeline.render.audio.ffmpeg_filters import SAMPLE_RATE, Sound, silence

if TYPE_CHECKING:
    from collections.abc import Iterator

AAC_BITS: Final = 192_000
"""A second, of the film's sound."""
LONGEST: Final = 600.0
"""Seconds that are decoded at most: the sound is held in memory, 23 MB a minute."""
_CHUNK: Final = 1024


def decode(file: Path | Any, *, longest: float = LONGEST) -> Sound:
    """The first sound of a probed file, or of one that is open; from its beginning, at most so many seconds.

    Raises `Refused` for a file without sound.
    """
    if isinstance(file, Path):
        with av.open(str(file), options={"protocol_whitelist": "file"}) as opened:
            return decode(opened, longest=longest)
    if not file.streams.audio:
        raise Refused("The file has no sound.", code="no_sound")
    stream = file.streams.audio[0]
    resampler = av.AudioResampler(format="flt", layout="stereo", rate=SAMPLE_RATE)
    kept: list[Sound] = []
    there = 0
    for frame in _frames(file, stream):
        for made in resampler.resample(frame):
            part = np.asarray(made.to_ndarray(), np.float32).reshape(-1, 2)
            kept.append(part)
            there += len(part)
        if there >= longest * SAMPLE_RATE:
            break
    sound = np.concatenate(kept)[: round(longest * SAMPLE_RATE)] if kept else silence(0)
    # A file may hold what isn't a number.
    return np.nan_to_num(sound, nan=0.0, posinf=0.0, neginf=0.0)


def _frames(opened: Any, stream: Any) -> Iterator[Any]:
    """All frames, then None, which brings out what the resampler holds; damaged packets are skipped."""
    for packet in opened.demux(stream):
        try:
            yield from packet.decode()
        except av.InvalidDataError:
            continue
    yield None


def encode_aac(file: BinaryIO | Path, sound: Sound, *, bits: int = AAC_BITS) -> None:
    """An MP4 file with the sound alone; on a path its tables stand in front, for which it is written twice."""
    target = str(file) if isinstance(file, Path) else file
    options = {"movflags": "+faststart"} if isinstance(file, Path) else {}
    with av.open(target, "w", format="mp4", options=options) as out:
        stream: Any = out.add_stream("aac", rate=SAMPLE_RATE, layout="stereo")
        stream.bit_rate = bits
        for at in range(0, len(sound), _CHUNK):
            part = np.ascontiguousarray(sound[at : at + _CHUNK].T, np.float32)
            frame = av.AudioFrame.from_ndarray(part, format="fltp", layout="stereo")
            frame.sample_rate = SAMPLE_RATE
            frame.pts = at
            frame.time_base = Fraction(1, SAMPLE_RATE)
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
