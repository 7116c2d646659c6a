"""Frames into a file: one thread draws, one encodes; no more than a handful of frames are held."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from fractions import Fraction
from queue import Empty, Full, Queue
from typing import TYPE_CHECKING, Any, Final, Literal

import av
import numpy as np
from av.video.reformatter import ColorPrimaries, ColorRange, Colorspace, ColorTrc

from pipeline.render.video.ycbcr import of_frame

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from pipeline.render.video.ycbcr import Planes

SAMPLE_RATE: Final = 48_000
"""A second of sound."""
_CHUNK: Final = 1_024
AUDIO_BITS: Final = 160_000
_HELD: Final = 3
"""Frames between the two threads."""
_WAIT: Final = 0.2
_GROUP_SECONDS: Final = 2
"""Between two frames from which a player can start."""


@dataclass(frozen=True)
class Quality:
    """How x264 is asked; `threads` are its own."""

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
    """Write an MP4 with `frames` frames, each drawn by `draw(planes, number)`, and as much sound.

    `sound` is 48 kHz, of the shape (samples, 2), from -1 to 1; silence follows where it ends, and where there is
    none. `on_frame` is called with each number that is drawn. What `draw` raises is raised; the file isn't whole then.
    """
    # `faststart` writes the index again at the front, so that a player starts before it has everything.
    options = {"movflags": "+faststart", "fflags": "+bitexact"}
    with av.open(str(path), "w", format="mp4", options=options) as container:
        video = container.add_stream("libx264", rate=fps)
        _set_up(video, size, fps, quality)
        audio = container.add_stream("aac", rate=SAMPLE_RATE)
        audio.layout = "stereo"
        audio.bit_rate = AUDIO_BITS
        audio.profile = "LC"
        writer = _Writer(container, video, audio, _Sound(sound, frames * SAMPLE_RATE // fps))
        _Pair(draw, writer, size, on_frame).run(frames, fps)
        writer.finish()


def _set_up(video: Any, size: tuple[int, int], fps: int, quality: Quality) -> None:
    video.width, video.height = size
    video.pix_fmt = "yuv420p"
    video.time_base = Fraction(1, fps)
    context = video.codec_context
    context.gop_size = fps * _GROUP_SECONDS
    context.thread_count = quality.threads
    context.color_primaries = ColorPrimaries.BT709
    context.color_trc = ColorTrc.BT709
    context.colorspace = Colorspace.ITU709
    context.color_range = ColorRange.MPEG
    # The profile is the least that a decoder has to know; ultrafast uses less of it.
    video.options = {"preset": quality.preset, "crf": str(quality.crf), "profile": "high"}


class _Sound:
    """Chunks of the length that AAC takes, up to the film's end."""

    def __init__(self, samples: NDArray[np.float32] | None, length: int) -> None:
        self._samples = samples
        self._length = length
        self._at = 0

    def until(self, sample: int) -> list[Any]:
        """The frames of sound that begin before a sample."""
        made = []
        while self._at < min(sample, self._length):
            size = min(_CHUNK, self._length - self._at)
            block = np.zeros((2, size), np.float32)
            if self._samples is not None:
                part = self._samples[self._at : self._at + size]
                block[:, : len(part)] = part.T
            frame = av.AudioFrame.from_ndarray(block, format="fltp", layout="stereo")
            frame.sample_rate = SAMPLE_RATE
            frame.pts = self._at
            frame.time_base = Fraction(1, SAMPLE_RATE)
            made.append(frame)
            self._at += size
        return made


class _Writer:
    """Packets of picture and sound by turns, as they are played."""

    def __init__(self, container: Any, video: Any, audio: Any, sound: _Sound) -> None:
        self._container, self._video, self._audio, self._sound = container, video, audio, sound

    def write(self, frame: Any, number: int, fps: int) -> None:
        frame.pts = number
        frame.time_base = Fraction(1, fps)
        self._container.mux(self._video.encode(frame))
        for chunk in self._sound.until((number + 1) * SAMPLE_RATE // fps):
            self._container.mux(self._audio.encode(chunk))

    def finish(self) -> None:
        self._container.mux(self._video.encode(None))
        self._container.mux(self._audio.encode(None))


class _Pair:
    """The two threads: this one draws, the other encodes. Frames go round between them."""

    def __init__(
        self,
        draw: Callable[[Planes, int], None],
        writer: _Writer,
        size: tuple[int, int],
        on_frame: Callable[[int], None] | None,
    ) -> None:
        self._draw, self._writer, self._on_frame = draw, writer, on_frame
        self._drawn: Queue[tuple[Any, int] | None] = Queue(_HELD)
        self._free: Queue[Any] = Queue()
        for _ in range(_HELD + 2):
            self._free.put(_frame(size))
        self._error: BaseException | None = None
        self._is_over = threading.Event()

    def run(self, frames: int, fps: int) -> None:
        encoder = threading.Thread(target=self._encode, args=(fps,), name="encode", daemon=True)
        encoder.start()
        try:
            for number in range(frames):
                frame = self._take()
                if frame is None:
                    break
                # Whatever the encoder may still hold stays as it is.
                frame.make_writable()
                self._draw(of_frame(frame), number)
                self._give((frame, number))
                if self._on_frame is not None:
                    self._on_frame(number)
            self._give(None)
        finally:
            self._is_over.set()
            encoder.join()
        if self._error is not None:
            raise self._error

    def _take(self) -> Any:
        while self._error is None:
            try:
                return self._free.get(timeout=_WAIT)
            except Empty:
                continue
        return None

    def _give(self, drawn: tuple[Any, int] | None) -> None:
        while self._error is None:
            try:
                self._drawn.put(drawn, timeout=_WAIT)
            except Full:
                continue
            return

    def _encode(self, fps: int) -> None:
        try:
            while True:
                try:
                    drawn = self._drawn.get(timeout=_WAIT)
                except Empty:
                    if self._is_over.is_set():
                        return
                    continue
                if drawn is None:
                    return
                frame, number = drawn
                self._writer.write(frame, number, fps)
                self._free.put(frame)
        # Raised again by the thread that draws: nobody else would hear of it.
        except BaseException as error:  # noqa: BLE001
            self._error = error


def _frame(size: tuple[int, int]) -> Any:
    frame = av.VideoFrame(*size, "yuv420p")
    frame.color_primaries = ColorPrimaries.BT709
    frame.color_trc = ColorTrc.BT709
    frame.colorspace = Colorspace.ITU709
    frame.color_range = ColorRange.MPEG
    return frame
