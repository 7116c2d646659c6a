"""Encodes drawn frames into a file: one thread draws, another one encodes, and few frames are held in memory."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from fractions import Fraction
from queue import Empty, Full, Queue
from typing import TYPE_CHECKING, Any, Final, Literal

import av
import numpy as np
from av.video.reformatter import ColorPrimaries, ColorRange, Colorspace, ColorTrc

from pipeline.render.video.ycbcr import frame_planes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from pipeline.render.video.ycbcr import Planes

SAMPLE_RATE: Final = 48_000
"""Samples of sound in a second."""
_CHUNK_SAMPLES: Final = 1_024
AUDIO_BITS_PER_SECOND: Final = 160_000
_QUEUED_FRAMES: Final = 3
"""The frames that wait between the two threads."""
_POLL_SECONDS: Final = 0.2
_KEYFRAME_SECONDS: Final = 2
"""The time between two frames from which a player can start."""


@dataclass(frozen=True)
class Quality:
    """Settings of x264: its preset, its constant rate factor and the number of its threads."""

    preset: Literal["ultrafast", "superfast", "veryfast", "faster", "fast", "medium"] = "veryfast"
    crf: int = 20
    threads: int = 2


FINAL: Final = Quality()


def encode(
    path: Path,
    draw: Callable[[Planes, int], None],
    *,
    frames: int,
    size: tuple[int, int],
    fps: int,
    quality: Quality = FINAL,
    sound: NDArray[np.float32] | None = None,
    on_frame: Callable[[int], None] | None = None,
) -> None:
    """Write an MP4 with `frames` frames, each drawn by `draw(planes, number)`, and with sound of the same length.

    `sound` is 48 kHz, of the shape (samples, 2), from -1 to 1; silence follows a short one and replaces a missing one.
    `on_frame` is called with each frame's number after it was drawn. Errors of `draw` and of the encoder are raised;
    the file is incomplete then.
    """
    # `faststart` moves the index to the front, so that a player starts before it has everything.
    options = {"movflags": "+faststart", "fflags": "+bitexact"}
    with av.open(str(path), "w", format="mp4", options=options) as container:
        video = container.add_stream("libx264", rate=fps)
        _configure_video(video, size, fps, quality)
        audio = container.add_stream("aac", rate=SAMPLE_RATE)
        audio.layout = "stereo"
        audio.bit_rate = AUDIO_BITS_PER_SECOND
        audio.profile = "LC"
        writer = _Writer(container, video, audio, _SoundChunks(sound, frames * SAMPLE_RATE // fps))
        _DrawAndEncode(draw, writer, size, on_frame).run(frames, fps)
        writer.finish()


def _configure_video(video: Any, size: tuple[int, int], fps: int, quality: Quality) -> None:
    video.width, video.height = size
    video.pix_fmt = "yuv420p"
    video.time_base = Fraction(1, fps)
    context = video.codec_context
    context.gop_size = fps * _KEYFRAME_SECONDS
    context.thread_count = quality.threads
    context.color_primaries = ColorPrimaries.BT709
    context.color_trc = ColorTrc.BT709
    context.colorspace = Colorspace.ITU709
    context.color_range = ColorRange.MPEG
    # The profile is the least that a decoder has to support; the preset `ultrafast` uses less of it.
    video.options = {"preset": quality.preset, "crf": str(quality.crf), "profile": "high"}


class _SoundChunks:
    """Splits the sound, followed by silence up to the film's end, into chunks of the length that AAC takes."""

    def __init__(self, samples: NDArray[np.float32] | None, length: int) -> None:
        self._samples = samples
        self._length = length
        self._position = 0

    def chunks_until(self, sample: int) -> list[Any]:
        """Return the chunks that begin before a sample and weren't returned yet."""
        chunks = []
        while self._position < min(sample, self._length):
            length = min(_CHUNK_SAMPLES, self._length - self._position)
            block = np.zeros((2, length), np.float32)
            if self._samples is not None:
                part = self._samples[self._position : self._position + length]
                block[:, : len(part)] = part.T
            frame = av.AudioFrame.from_ndarray(block, format="fltp", layout="stereo")
            frame.sample_rate = SAMPLE_RATE
            frame.pts = self._position
            frame.time_base = Fraction(1, SAMPLE_RATE)
            chunks.append(frame)
            self._position += length
        return chunks


class _Writer:
    """Writes packets of picture and sound in turn, in the order of playing."""

    def __init__(self, container: Any, video: Any, audio: Any, sound: _SoundChunks) -> None:
        self._container, self._video, self._audio, self._sound = container, video, audio, sound

    def write(self, frame: Any, number: int, fps: int) -> None:
        frame.pts = number
        frame.time_base = Fraction(1, fps)
        self._container.mux(self._video.encode(frame))
        for chunk in self._sound.chunks_until((number + 1) * SAMPLE_RATE // fps):
            self._container.mux(self._audio.encode(chunk))

    def finish(self) -> None:
        self._container.mux(self._video.encode(None))
        self._container.mux(self._audio.encode(None))


class _DrawAndEncode:
    """Runs two threads: the calling one draws, the other one encodes. Frames are reused between them."""

    def __init__(
        self,
        draw: Callable[[Planes, int], None],
        writer: _Writer,
        size: tuple[int, int],
        on_frame: Callable[[int], None] | None,
    ) -> None:
        """Make the frames that the threads share, two more than wait between them."""
        self._draw, self._writer, self._on_frame = draw, writer, on_frame
        self._drawn: Queue[tuple[Any, int] | None] = Queue(_QUEUED_FRAMES)
        self._free: Queue[Any] = Queue()
        for _ in range(_QUEUED_FRAMES + 2):
            self._free.put(_new_frame(size))
        self._error: BaseException | None = None
        self._is_over = threading.Event()

    def run(self, frames: int, fps: int) -> None:
        """Draw and encode all frames. Raises the error of either thread after both have ended."""
        encoder = threading.Thread(target=self._encode, args=(fps,), name="encode", daemon=True)
        encoder.start()
        try:
            for number in range(frames):
                frame = self._take_free_frame()
                if frame is None:
                    break
                # If the encoder still holds the frame's memory, this gives the frame a copy of it.
                frame.make_writable()
                self._draw(frame_planes(frame), number)
                self._queue_drawn((frame, number))
                if self._on_frame is not None:
                    self._on_frame(number)
            self._queue_drawn(None)
        finally:
            self._is_over.set()
            encoder.join()
        if self._error is not None:
            raise self._error

    def _take_free_frame(self) -> Any:
        """Wait for a frame to draw on and return it, or `None` after an error of the encoder."""
        while self._error is None:
            try:
                return self._free.get(timeout=_POLL_SECONDS)
            except Empty:
                continue
        return None

    def _queue_drawn(self, drawn: tuple[Any, int] | None) -> None:
        """Queue a drawn frame, or `None` for the end, unless the encoder has failed."""
        while self._error is None:
            try:
                self._drawn.put(drawn, timeout=_POLL_SECONDS)
            except Full:
                continue
            return

    def _encode(self, fps: int) -> None:
        """Write the queued frames until the end, or until drawing has ended; store an error."""
        try:
            while True:
                try:
                    drawn = self._drawn.get(timeout=_POLL_SECONDS)
                except Empty:
                    if self._is_over.is_set():
                        return
                    continue
                if drawn is None:
                    return
                frame, number = drawn
                self._writer.write(frame, number, fps)
                self._free.put(frame)
        # The thread that draws raises the error again, which would be lost otherwise.
        except BaseException as error:  # noqa: BLE001
            self._error = error


def _new_frame(size: tuple[int, int]) -> Any:
    frame = av.VideoFrame(*size, "yuv420p")
    frame.color_primaries = ColorPrimaries.BT709
    frame.color_trc = ColorTrc.BT709
    frame.colorspace = Colorspace.ITU709
    frame.color_range = ColorRange.MPEG
    return frame
