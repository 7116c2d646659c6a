"""Runs FFmpeg's filters over sounds: arrays of floats in, arrays of floats out."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import av
import numpy as np
from av.filter import Graph
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Sound: TypeAlias = NDArray[np.float32]
"""Samples at 48,000 Hz, of the shape (samples, 2), from -1 to 1."""
SAMPLE_RATE: Final = 48_000
_CHUNK_SAMPLES: Final = 4_800
"""Samples that are passed to the filters at once: a tenth of a second."""


def to_decibels(amplitude: float) -> float:
    """Return the amplitude in decibels, 0 dB for 1 and minus infinity for silence."""
    return 20 * math.log10(amplitude) if amplitude > 0 else -math.inf


def from_decibels(decibels: float) -> float:
    """Return the amplitude for a level in decibels."""
    return float(10.0 ** (decibels / 20))


def silence(seconds: float, *, samples: int | None = None) -> Sound:
    """Return so many seconds of silence, or exactly `samples` samples if they are passed."""
    return np.zeros((round(seconds * SAMPLE_RATE) if samples is None else samples, 2), np.float32)


def pad_or_cut(sound: Sound, samples: int) -> Sound:
    """Return the sound at exactly `samples` samples: cut, or followed by silence."""
    if len(sound) >= samples:
        return sound[:samples]
    return np.concatenate(
        [sound, silence((samples - len(sound)) / SAMPLE_RATE, samples=samples - len(sound))]
    )


def run_filters(
    sounds: Sequence[Sound],
    filters: Sequence[tuple[str, str]],
    *,
    on_frame: Callable[[Any], None] | None = None,
) -> Sound:
    """Run the sounds through a chain of filters, the first of which takes all of them, and return the result.

    The sounds have to be as long as the first. `on_frame` is called with every frame of the result; then nothing is
    collected, and an empty sound is returned.
    """
    graph = Graph()
    sample_format = "flt"
    sources = [
        graph.add_abuffer(
            sample_rate=SAMPLE_RATE, format=sample_format, layout="stereo", time_base=Fraction(1, SAMPLE_RATE)
        )
        for _ in sounds
    ]
    chain = [graph.add(name, options) for name, options in filters]
    # Whatever format a filter prefers, the result has the format of the input.
    chain.append(
        graph.add("aformat", f"sample_fmts={sample_format}:channel_layouts=stereo:sample_rates={SAMPLE_RATE}")
    )
    sink = graph.add("abuffersink")
    for index, source in enumerate(sources):
        source.link_to(chain[0], 0, index)
    for current, following in zip(chain, [*chain[1:], sink], strict=True):
        current.link_to(following)
    graph.configure()
    parts: list[Sound] = []
    for start in range(0, len(sounds[0]), _CHUNK_SAMPLES):
        for source, sound in zip(sources, sounds, strict=True):
            source.push(_to_frame(sound[start : start + _CHUNK_SAMPLES], start, sample_format))
        _collect_frames(sink, parts, on_frame)
    for source in sources:
        source.push(None)
    _collect_frames(sink, parts, on_frame)
    return np.concatenate(parts) if parts else silence(0)


def _to_frame(samples: Sound, start: int, sample_format: str) -> av.AudioFrame:
    frame = av.AudioFrame.from_ndarray(
        np.ascontiguousarray(samples, np.float32).reshape(1, -1), format=sample_format, layout="stereo"
    )
    frame.sample_rate = SAMPLE_RATE
    frame.pts = start
    frame.time_base = Fraction(1, SAMPLE_RATE)
    return frame


def _collect_frames(sink: Any, parts: list[Sound], on_frame: Callable[[Any], None] | None) -> None:
    """Collect the frames that are ready, or call `on_frame` with each."""
    while True:
        try:
            frame = sink.pull()
        # The filters need more input, or have given everything.
        except (av.BlockingIOError, av.EOFError):
            return
        if on_frame is not None:
            on_frame(frame)
        else:
            parts.append(frame.to_ndarray().reshape(-1, 2))
