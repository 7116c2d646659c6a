"""Reads the videos that a film shows: any frame as planes of BT.709, and any span of the sound, to the sample.

Seconds are counted from the video's beginning, as players count them. A video was probed before and still isn't
trusted: it is opened only in a limited child, may refer to no other file, and is decoded one frame at a time.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NoReturn

import av
import numpy as np
from av.video.reformatter import ColorRange, Colorspace

from pipeline.render.audio.sound import SAMPLE_RATE, Sound, silence
from pipeline.render.probe import HEAD_BYTES, demuxer_of
from pipeline.render.video.storyboard import UnusableAsset
from pipeline.render.video.ycbcr import Planes, frame_planes

if TYPE_CHECKING:
    from collections.abc import Iterator

_BUFFER_BYTES: Final = 1024 * 1024
_CLOCK_TOLERANCE: Final = 0.002
"""The time by which the clocks of containers round."""
_SEEK_BEYOND_SECONDS: Final = 3.0
"""A second further ahead than this is sought; a nearer one is reached by decoding."""
_MAX_LAST_FRAME_SECONDS: Final = 0.5
"""The time for which the last frame stays after the video's end, because the sound is often a little longer."""
_MAX_DAMAGE_SECONDS: Final = 1.0
"""The longest time without a frame, after damaged packets, in a video that doesn't count as damaged."""
_DECODER_LEAD_SECONDS: Final = 0.3
"""The sound before a span that a decoder needs to start up."""
_MAX_DRIFT_SECONDS: Final = 0.02
"""The time by which sound may drift from its timestamps before it is realigned to them."""
_MIN_BT709_LINES: Final = 720
"""A video of so many lines that doesn't name its colours has those of BT.709; a lower one has those of BT.601."""
_PQ_TRANSFER: Final = 16
_FULL_RANGE: Final = int(ColorRange.JPEG)
_UNSPECIFIED_MATRIX: Final = 2
_COLOURSPACE_BY_MATRIX: Final = {
    1: Colorspace.ITU709,
    4: Colorspace.FCC,
    5: Colorspace.ITU601,
    6: Colorspace.ITU601,
    7: Colorspace.SMPTE240M,
    9: Colorspace.BT2020,
}
"""Colour spaces by the numbers of ITU-T H.273, 8.3."""


def _refuse_to_open(url: str, flags: int, options: Any) -> NoReturn:
    # FFmpeg would open a file that the video refers to.
    del url, flags, options
    message = "it names other files."
    raise OSError(message)


@contextmanager
def _open_video(name: str, file: BinaryIO) -> Iterator[Any]:
    """Open a video in FFmpeg. Raises `UnusableAsset` for FFmpeg's errors on opening it, and while it is open."""
    try:
        file.seek(0)
        demuxer = demuxer_of(file.read(HEAD_BYTES))
        file.seek(0)
        with av.open(
            file,
            "r",
            format=demuxer,
            options={"protocol_whitelist": "none", "format_whitelist": demuxer},
            buffer_size=_BUFFER_BYTES,
            io_open=_refuse_to_open,
            metadata_errors="replace",
        ) as opened:
            yield opened
    except MemoryError:
        raise
    except (av.FFmpegError, OSError, ValueError, IndexError) as error:
        raise UnusableAsset(name, "it is damaged, or no video.") from error


def _clock_start(opened: Any) -> float:
    """Return the second of the file's own clock at which a player begins."""
    return max(0.0, (opened.start_time or 0) / 1_000_000)


class Reel:
    """An open video, which decodes each frame once if it is asked in order, and seeks otherwise.

    `width` and `height` are those that a player shows, in pixels. Call `close` at the end. Raises `UnusableAsset` if a
    video can't be read.
    """

    def __init__(self, name: str, file: BinaryIO) -> None:
        self.name = name
        self._scope = _open_video(name, file)
        self._file = self._scope.__enter__()
        video_streams = [stream for stream in self._file.streams.video if not _is_cover(stream)]
        if not video_streams:
            self.close()
            raise UnusableAsset(name, "it holds no moving picture.")
        self._stream = video_streams[0]
        self._stream.codec_context.thread_count = 1
        self.seconds = (self._file.duration or 0) / 1_000_000
        self._clock_start = _clock_start(self._file)
        self._frames: Iterator[Any] = iter(())
        self._current: Any = None
        self._next: Any = None
        self._damaged_packets = 0
        self._converted: tuple[Any, Planes] | None = None
        self._first_time = 0.0
        try:
            self._seek(0.0)
            self._first_time = self._time_of(self._current)
            width, height = self.display_size(self._current)
        except UnusableAsset:
            self.close()
            raise
        self.width, self.height = width, height

    def close(self) -> None:
        self._scope.__exit__(None, None, None)

    def frame_at(self, second: float) -> Planes:
        """Return the last frame that begins by a second, upright, in BT.709 and limited range.

        Raises `UnusableAsset` if the video has no such second, or if it can't be read.
        """
        # Errors here come from FFmpeg while the file is open, which `_open_video` doesn't see.
        try:
            return self._convert(self._find_frame(second))
        except MemoryError:
            raise
        except (av.FFmpegError, OSError, ValueError) as error:
            raise UnusableAsset(self.name, f"it is damaged around second {second:.1f}.") from error

    def _find_frame(self, second: float) -> Any:
        """Return the frame that is seen at a second. Raises `UnusableAsset` after the end and at damaged parts."""
        current_time = self._time_of(self._current)
        if (
            max(second, self._first_time) < current_time - _CLOCK_TOLERANCE
            or second > current_time + _SEEK_BEYOND_SECONDS
        ):
            self._seek(second)
        while self._next is not None and self._time_of(self._next) <= second + _CLOCK_TOLERANCE:
            self._current, self._next = self._next, next(self._frames, None)
        if self._next is None and second > self._end_time() + _MAX_LAST_FRAME_SECONDS:
            message = f"it ends after {self._end_time():.1f} seconds, and second {second:.1f} is asked for."
            raise UnusableAsset(self.name, message)
        if self._damaged_packets and self._next is not None:
            gap = self._time_of(self._next) - self._time_of(self._current)
            if gap > _MAX_DAMAGE_SECONDS:
                raise UnusableAsset(self.name, f"it is damaged around second {second:.1f}.")
        return self._current

    def _seek(self, second: float) -> None:
        """Make a frame up to a second, or the first, the current one. Raises `UnusableAsset` if there is none."""
        target = round((second + self._clock_start) / self._stream.time_base)
        self._damaged_packets = 0
        self._file.seek(max(target, 0), stream=self._stream, backward=True)
        self._frames = self._decode_frames()
        self._current = next(self._frames, None)
        if (
            self._current is not None
            and self._time_of(self._current) > second + _CLOCK_TOLERANCE
            and second > 0
        ):
            # Some indexes lead past the target: the video is decoded from its beginning.
            self._file.seek(0, stream=self._stream, backward=True)
            self._frames = self._decode_frames()
            self._current = next(self._frames, None)
        if self._current is None:
            raise UnusableAsset(self.name, f"no picture can be read from second {second:.1f} on.")
        self._next = next(self._frames, None)

    def _decode_frames(self) -> Iterator[Any]:
        """Yield the frames that have a time, in order; damaged packets are skipped and counted."""
        last = -1.0
        for packet in self._file.demux(self._stream):
            try:
                frames = packet.decode()
            except av.InvalidDataError:
                self._damaged_packets += 1
                continue
            for frame in frames:
                if frame.pts is not None and self._time_of(frame) > last:
                    last = self._time_of(frame)
                    yield frame

    def _time_of(self, frame: Any) -> float:
        return float(frame.pts * frame.time_base) - self._clock_start

    def _end_time(self) -> float:
        frame = self._current
        length = float(frame.duration * frame.time_base) if frame.duration else 1 / 30
        return self._time_of(frame) + min(length, 1.0)

    def display_size(self, frame: Any) -> tuple[int, int]:
        """Return width and height as a player shows them: rotated, and with square pixels."""
        pixel_aspect = self._stream.codec_context.sample_aspect_ratio
        stretch = float(pixel_aspect) if pixel_aspect else 1.0
        width, height = max(round(frame.width * stretch), 1), frame.height
        return (height, width) if frame.rotation % 180 else (width, height)

    def _convert(self, frame: Any) -> Planes:
        """Convert a frame to planes, once: a slow video shows each of its frames several times."""
        if self._converted is None or self._converted[0] is not frame:
            self._converted = frame, _rotate_upright(frame_planes(self._to_bt709(frame)), frame.rotation)
        return self._converted[1]

    def _to_bt709(self, frame: Any) -> Any:
        """Return the frame as YUV 4:2:0 of BT.709 in limited range. Raises `UnusableAsset` for HDR with PQ."""
        # PQ can't be shown, because its brightness would have to be mapped.
        if int(frame.color_trc) == _PQ_TRANSFER:
            message = "its colours are HDR with PQ, which can't be shown here. Export it as SDR."
            raise UnusableAsset(self.name, message)
        matrix = int(frame.colorspace)
        if matrix == _UNSPECIFIED_MATRIX or matrix not in _COLOURSPACE_BY_MATRIX:
            matrix = 1 if frame.height >= _MIN_BT709_LINES else 6
        is_full = int(frame.color_range) == _FULL_RANGE or frame.format.name.startswith("yuvj")
        if frame.format.name == "yuv420p" and matrix == 1 and not is_full:
            return frame
        return frame.reformat(
            format="yuv420p",
            src_colorspace=_COLOURSPACE_BY_MATRIX[matrix],
            dst_colorspace=Colorspace.ITU709,
            src_color_range=ColorRange.JPEG if is_full else ColorRange.MPEG,
            dst_color_range=ColorRange.MPEG,
            threads=1,
        )


def _is_cover(stream: Any) -> bool:
    return bool(stream.disposition & av.stream.Disposition.attached_pic)


def _rotate_upright(planes: Planes, rotation: int) -> Planes:
    """Rotate the planes upright; `rotation` is in degrees counter-clockwise, as cameras note it."""
    turns = round(rotation / 90) % 4
    if not turns:
        return planes
    return Planes(*(np.ascontiguousarray(np.rot90(plane, turns)) for plane in planes))


def read_clip_sound(name: str, file: BinaryIO, since: float, samples: int) -> Sound:
    """Return exactly so many samples of a video's sound from a second on, silent where the video has no sound.

    Raises `UnusableAsset` if the video can't be read.
    """
    sound = silence(0, samples=samples)
    with _open_video(name, file) as opened:
        if not opened.streams.audio:
            return sound
        stream = opened.streams.audio[0]
        clock_start = _clock_start(opened)
        target = max(0, round((since + clock_start - _DECODER_LEAD_SECONDS) / stream.time_base))
        opened.seek(target, stream=stream, backward=True)
        for start, stretch in _sound_stretches(
            opened, stream, clock_start, until=since + samples / SAMPLE_RATE
        ):
            _copy_into(sound, stretch, round((start - since) * SAMPLE_RATE))
    # A file may hold samples that aren't numbers.
    return np.nan_to_num(sound, nan=0.0, posinf=0.0, neginf=0.0)


def _copy_into(sound: Sound, part: Sound, offset: int) -> None:
    """Copy a part into the sound at an offset in samples, without what is outside of the sound."""
    part = part[max(0, -offset) :]
    offset = max(0, offset)
    target = sound[offset : offset + len(part)]
    target[:] = part[: len(target)]


def _sound_stretches(
    opened: Any, stream: Any, clock_start: float, *, until: float
) -> Iterator[tuple[float, Sound]]:
    """Yield the sound with the second at which each unbroken stretch of it begins."""
    resampler, parts = _resampler(), list[Sound]()
    start = expected_start = None
    for frame in _decode_sound(opened, stream):
        frame_start = float(frame.pts * frame.time_base) - clock_start
        if frame_start > until:
            break
        if expected_start is not None and abs(frame_start - expected_start) > _MAX_DRIFT_SECONDS:
            yield start or 0.0, _join(parts, resampler)
            resampler, parts, start = _resampler(), [], None
        start = frame_start if start is None else start
        expected_start = frame_start + frame.samples / frame.sample_rate
        parts += [_to_samples(resampled) for resampled in resampler.resample(frame)]
    if start is not None:
        yield start, _join(parts, resampler)


def _decode_sound(opened: Any, stream: Any) -> Iterator[Any]:
    for packet in opened.demux(stream):
        try:
            frames = packet.decode()
        except av.InvalidDataError:
            continue
        yield from (frame for frame in frames if frame.pts is not None)


def _resampler() -> Any:
    return av.AudioResampler(format="flt", layout="stereo", rate=SAMPLE_RATE)


def _to_samples(frame: Any) -> Sound:
    return np.asarray(frame.to_ndarray(), np.float32).reshape(-1, 2)


def _join(collected: list[Sound], resampler: Any) -> Sound:
    parts = [*collected, *(_to_samples(frame) for frame in resampler.resample(None))]
    return np.concatenate(parts) if parts else silence(0)
