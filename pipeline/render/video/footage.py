"""Films within films: any moment of a video as planes of BT.709, and any span of its sound, to the sample.

Seconds are counted as a player counts them, from the video's beginning. What is read was probed before, and is still
strange: it is opened in the capped child alone, names no other file, and one whole frame of it is held at a time.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NoReturn

import av
import numpy as np
from av.video.reformatter import ColorRange, Colorspace

from pipeline.render.audio.ffmpeg_filters import SAMPLE_RATE, Sound, silence
from pipeline.render.probe import HEAD_BYTES, demuxer_of
from pipeline.render.video.storyboard import UnusableAsset
from pipeline.render.video.ycbcr import Planes, of_frame

if TYPE_CHECKING:
    from collections.abc import Iterator

_BUFFER: Final = 1024 * 1024
_NEAR: Final = 0.002
"""Seconds by which clocks of containers round."""
_AHEAD: Final = 3.0
"""Seconds that are decoded rather than sought."""
_HELD: Final = 0.5
"""Seconds for which the last frame may stand for what a video doesn't have: its sound is often a little longer."""
_BROKEN: Final = 1.0
"""Seconds without a frame, after damaged packets, that are noticed."""
_LEAD: Final = 0.3
"""Seconds of sound before a span that a decoder needs to come in."""
_DRIFT: Final = 0.02
"""Seconds by which sound may be off its own times before it is put where they say."""
_HIGH: Final = 720
"""Lines from which a video that says nothing of its colours has those of BT.709, and below those of BT.601."""
_PQ: Final = 16
_RANGE_FULL: Final = int(ColorRange.JPEG)
_UNSAID: Final = 2
_MATRICES: Final = {
    1: Colorspace.ITU709,
    4: Colorspace.FCC,
    5: Colorspace.ITU601,
    6: Colorspace.ITU601,
    7: Colorspace.SMPTE240M,
    9: Colorspace.BT2020,
}
"""By the numbers of ITU-T H.273, 8.3."""


def _refuse_to_open(url: str, flags: int, options: Any) -> NoReturn:
    del url, flags, options
    message = "it names other files."
    raise OSError(message)


@contextmanager
def _opened(name: str, file: BinaryIO) -> Iterator[Any]:
    """Raises `UnusableAsset` for whatever FFmpeg finds wrong."""
    try:
        file.seek(0)
        demuxer = demuxer_of(file.read(HEAD_BYTES))
        file.seek(0)
        with av.open(
            file,
            "r",
            format=demuxer,
            options={"protocol_whitelist": "none", "format_whitelist": demuxer},
            buffer_size=_BUFFER,
            io_open=_refuse_to_open,
            metadata_errors="replace",
        ) as opened:
            yield opened
    except MemoryError:
        raise
    except (av.FFmpegError, OSError, ValueError, IndexError) as error:
        raise UnusableAsset(name, "it is damaged, or no video.") from error


def _zero(opened: Any) -> float:
    """The second of the file's own clock at which a player begins."""
    return max(0.0, (opened.start_time or 0) / 1_000_000)


class Reel:
    """One video that is being watched. Asked in order it decodes each frame once; asked for the past it seeks.

    `width` and `height` are those that a player shows, in pixels. Close it.
    """

    def __init__(self, name: str, file: BinaryIO) -> None:
        self.name = name
        self._scope = _opened(name, file)
        self._file = self._scope.__enter__()
        pictures = [one for one in self._file.streams.video if not _is_cover(one)]
        if not pictures:
            self.close()
            raise UnusableAsset(name, "it holds no moving picture.")
        self._stream = pictures[0]
        self._stream.codec_context.thread_count = 1
        self.has_sound = bool(self._file.streams.audio)
        self.seconds = (self._file.duration or 0) / 1_000_000
        self._zero = _zero(self._file)
        self._frames: Iterator[Any] = iter(())
        self._shown: Any = None
        self._next: Any = None
        self._faults = 0
        self._made: tuple[Any, Planes] | None = None
        self._first = 0.0
        try:
            self._seek(0.0)
            self._first = self._time(self._shown)
            width, height = self.size_of(self._shown)
        except UnusableAsset:
            self.close()
            raise
        self.width, self.height = width, height

    def close(self) -> None:
        self._scope.__exit__(None, None, None)

    def at(self, second: float) -> Planes:
        """What is seen at a second: the last frame that began by then. Upright, in BT.709 and limited range.

        Raises `UnusableAsset` for a second that the video doesn't have, or that can't be read.
        """
        # What is raised here comes from FFmpeg while the file is open.
        try:
            return self._planes(self._find(second))
        except MemoryError:
            raise
        except (av.FFmpegError, OSError, ValueError) as error:
            raise UnusableAsset(self.name, f"it is damaged around second {second:.1f}.") from error

    def _find(self, second: float) -> Any:
        begun = self._time(self._shown)
        if max(second, self._first) < begun - _NEAR or second > begun + _AHEAD:
            self._seek(second)
        while self._next is not None and self._time(self._next) <= second + _NEAR:
            self._shown, self._next = self._next, next(self._frames, None)
        if self._next is None and second > self._ends() + _HELD:
            message = f"it ends after {self._ends():.1f} seconds, and second {second:.1f} is asked for."
            raise UnusableAsset(self.name, message)
        if self._faults and self._next is not None:
            away = self._time(self._next) - self._time(self._shown)
            if away > _BROKEN:
                raise UnusableAsset(self.name, f"it is damaged around second {second:.1f}.")
        return self._shown

    def _seek(self, second: float) -> None:
        """The frame that is seen then becomes the shown one; at a beginning the first."""
        target = round((second + self._zero) / self._stream.time_base)
        self._faults = 0
        self._file.seek(max(target, 0), stream=self._stream, backward=True)
        self._frames = self._decoded()
        self._shown = next(self._frames, None)
        if self._shown is not None and self._time(self._shown) > second + _NEAR and second > 0:
            # Some indexes lead past what was asked for.
            self._file.seek(0, stream=self._stream, backward=True)
            self._frames = self._decoded()
            self._shown = next(self._frames, None)
        if self._shown is None:
            raise UnusableAsset(self.name, f"no picture can be read from second {second:.1f} on.")
        self._next = next(self._frames, None)

    def _decoded(self) -> Iterator[Any]:
        """Frames with a time, in order; damaged packets are passed over and counted."""
        last = -1.0
        for packet in self._file.demux(self._stream):
            try:
                frames = packet.decode()
            except av.InvalidDataError:
                self._faults += 1
                continue
            for frame in frames:
                if frame.pts is not None and self._time(frame) > last:
                    last = self._time(frame)
                    yield frame

    def _time(self, frame: Any) -> float:
        return float(frame.pts * frame.time_base) - self._zero

    def _ends(self) -> float:
        frame = self._shown
        length = float(frame.duration * frame.time_base) if frame.duration else 1 / 30
        return self._time(frame) + min(length, 1.0)

    def size_of(self, frame: Any) -> tuple[int, int]:
        """As a player shows it: turned, and with its pixels made square."""
        shape = self._stream.codec_context.sample_aspect_ratio
        across = float(shape) if shape else 1.0
        width, height = max(round(frame.width * across), 1), frame.height
        return (height, width) if frame.rotation % 180 else (width, height)

    def _planes(self, frame: Any) -> Planes:
        """The same picture isn't converted twice: a slow video shows each of its frames several times."""
        if self._made is None or self._made[0] is not frame:
            self._made = frame, _upright(of_frame(self._in_709(frame)), frame.rotation)
        return self._made[1]

    def _in_709(self, frame: Any) -> Any:
        if int(frame.color_trc) == _PQ:
            message = "its colours are HDR with PQ, which can't be shown here. Export it as SDR."
            raise UnusableAsset(self.name, message)
        said = int(frame.colorspace)
        if said == _UNSAID or said not in _MATRICES:
            said = 1 if frame.height >= _HIGH else 6
        is_full = int(frame.color_range) == _RANGE_FULL or frame.format.name.startswith("yuvj")
        if frame.format.name == "yuv420p" and said == 1 and not is_full:
            return frame
        return frame.reformat(
            format="yuv420p",
            src_colorspace=_MATRICES[said],
            dst_colorspace=Colorspace.ITU709,
            src_color_range=ColorRange.JPEG if is_full else ColorRange.MPEG,
            dst_color_range=ColorRange.MPEG,
            threads=1,
        )


def _is_cover(stream: Any) -> bool:
    return bool(stream.disposition & av.stream.Disposition.attached_pic)


def _upright(planes: Planes, rotation: int) -> Planes:
    """`rotation` in degrees against the clock, as a camera notes it."""
    turns = round(rotation / 90) % 4
    if not turns:
        return planes
    return Planes(*(np.ascontiguousarray(np.rot90(plane, turns)) for plane in planes))


def heard(name: str, file: BinaryIO, since: float, samples: int) -> Sound:
    """So many samples of a video's sound from a second on, exactly; silence where it has none.

    Raises `UnusableAsset` for what can't be read.
    """
    made = silence(0, samples=samples)
    with _opened(name, file) as opened:
        if not opened.streams.audio:
            return made
        stream = opened.streams.audio[0]
        zero = _zero(opened)
        target = max(0, round((since + zero - _LEAD) / stream.time_base))
        opened.seek(target, stream=stream, backward=True)
        for start, part in _pieces(opened, stream, zero, until=since + samples / SAMPLE_RATE):
            _lay(made, part, round((start - since) * SAMPLE_RATE))
    # A file may hold what isn't a number.
    return np.nan_to_num(made, nan=0.0, posinf=0.0, neginf=0.0)


def _lay(whole: Sound, part: Sound, at: int) -> None:
    """Put a piece where it belongs; what hangs over at either end is left out."""
    part = part[max(0, -at) :]
    at = max(0, at)
    room = whole[at : at + len(part)]
    room[:] = part[: len(room)]


def _pieces(opened: Any, stream: Any, zero: float, *, until: float) -> Iterator[tuple[float, Sound]]:
    """The sound with the second at which each unbroken stretch of it begins."""
    resampler, kept = _resampler(), list[Sound]()
    start = expected = None
    for frame in _sounding(opened, stream):
        begins = float(frame.pts * frame.time_base) - zero
        if begins > until:
            break
        if expected is not None and abs(begins - expected) > _DRIFT:
            yield start or 0.0, _joined(kept, resampler)
            resampler, kept, start = _resampler(), [], None
        start = begins if start is None else start
        expected = begins + frame.samples / frame.sample_rate
        kept += [_floats(one) for one in resampler.resample(frame)]
    if start is not None:
        yield start, _joined(kept, resampler)


def _sounding(opened: Any, stream: Any) -> Iterator[Any]:
    for packet in opened.demux(stream):
        try:
            frames = packet.decode()
        except av.InvalidDataError:
            continue
        yield from (frame for frame in frames if frame.pts is not None)


def _resampler() -> Any:
    return av.AudioResampler(format="flt", layout="stereo", rate=SAMPLE_RATE)


def _floats(frame: Any) -> Sound:
    return np.asarray(frame.to_ndarray(), np.float32).reshape(-1, 2)


def _joined(kept: list[Sound], resampler: Any) -> Sound:
    parts = [*kept, *(_floats(one) for one in resampler.resample(None))]
    return np.concatenate(parts) if parts else silence(0)
