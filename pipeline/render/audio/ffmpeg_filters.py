"""FFmpeg's filters over sounds: arrays of floats in, arrays of floats out."""

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
"""48,000 Hz, of the shape (samples, 2), from -1 to 1."""
SAMPLE_RATE: Final = 48_000
_CHUNK: Final = 4_800
"""Samples that are handed to the filters at once: a tenth of a second."""


def to_decibels(amplitude: float) -> float:
    return 20 * math.log10(amplitude) if amplitude > 0 else -math.inf


def from_decibels(decibels: float) -> float:
    return float(10.0 ** (decibels / 20))


def silence(seconds: float, *, samples: int | None = None) -> Sound:
    """So many seconds without a sound; with `samples` exactly so many of them."""
    return np.zeros((round(seconds * SAMPLE_RATE) if samples is None else samples, 2), np.float32)


def pad_or_cut(sound: Sound, samples: int) -> Sound:
    """A sound of so many samples: cut, or followed by silence."""
    if len(sound) >= samples:
        return sound[:samples]
    return np.concatenate(
        [sound, silence((samples - len(sound)) / SAMPLE_RATE, samples=samples - len(sound))]
    )


def run_filters(
    sounds: Sequence[Sound],
    filters: Sequence[tuple[str, str]],
    *,
    each: Callable[[Any], None] | None = None,
) -> Sound:
    """The sounds through a chain of filters, the first of which takes all of them; all are as long as the first.

    `each` sees every frame that comes out; then nothing is kept, and an empty sound is returned.
    """
    graph = Graph()
    given = "flt"
    sources = [
        graph.add_abuffer(
            sample_rate=SAMPLE_RATE, format=given, layout="stereo", time_base=Fraction(1, SAMPLE_RATE)
        )
        for _ in sounds
    ]
    chain = [graph.add(name, options) for name, options in filters]
    # Whatever a filter prefers, what comes out is what went in.
    chain.append(
        graph.add("aformat", f"sample_fmts={given}:channel_layouts=stereo:sample_rates={SAMPLE_RATE}")
    )
    sink = graph.add("abuffersink")
    for place, source in enumerate(sources):
        source.link_to(chain[0], 0, place)
    for this, following in zip(chain, [*chain[1:], sink], strict=True):
        this.link_to(following)
    graph.configure()
    kept: list[Sound] = []
    for at in range(0, len(sounds[0]), _CHUNK):
        for source, sound in zip(sources, sounds, strict=True):
            source.push(_frame(sound[at : at + _CHUNK], at, given))
        _pull(sink, kept, each)
    for source in sources:
        source.push(None)
    _pull(sink, kept, each)
    return np.concatenate(kept) if kept else silence(0)


def _frame(part: Sound, at: int, given: str) -> av.AudioFrame:
    frame = av.AudioFrame.from_ndarray(
        np.ascontiguousarray(part, np.float32).reshape(1, -1), format=given, layout="stereo"
    )
    frame.sample_rate = SAMPLE_RATE
    frame.pts = at
    frame.time_base = Fraction(1, SAMPLE_RATE)
    return frame


def _pull(sink: Any, kept: list[Sound], each: Callable[[Any], None] | None) -> None:
    while True:
        try:
            frame = sink.pull()
        # The filters want more, or have given all.
        except (av.BlockingIOError, av.EOFError):
            return
        if each is not None:
            each(frame)
        else:
            kept.append(frame.to_ndarray().reshape(-1, 2))
