"""Examines a written film before it is delivered."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import av
from av.video.reformatter import ColorPrimaries, ColorRange, Colorspace, ColorTrc

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_BOX_HEADER: Final = 8
_LONG_BOX_HEADER: Final = 16


@dataclass(frozen=True)
class FilmFacts:
    """The facts that a film's file declares, or that were counted in it; times are in seconds."""

    frames: int
    is_constant: bool
    fps: Fraction
    size: tuple[int, int]
    codec: str
    profile: str
    pixels: str
    colours: tuple[int, int, int, int]
    """Primaries, transfer, matrix and range, by FFmpeg's numbers."""
    video_seconds: Fraction
    sound: str
    """Codec, profile, rate and channels in one text."""
    sound_seconds: Fraction
    is_fast_start: bool
    first_is_seen: bool
    """Whether the first frame could be decoded."""


_BT709: Final = (int(ColorPrimaries.BT709), int(ColorTrc.BT709), int(Colorspace.ITU709), int(ColorRange.MPEG))
EXPECTED_SOUND: Final = "aac LC 48000 Hz 2"


def probe_film(path: Path) -> FilmFacts:
    """Return the facts of a film. Raises `OSError` or `ValueError` for a file that can't be opened, as `av` does."""
    with av.open(str(path)) as container:
        video: Any = container.streams.video[0]
        audio: Any = container.streams.audio[0]
        times = sorted(packet.pts for packet in container.demux(video) if packet.pts is not None)
        context = video.codec_context
        frame_ticks = video.time_base.denominator / video.time_base.numerator / video.average_rate
        return FilmFacts(
            frames=len(times),
            is_constant=times[:1] == [0]
            and all(after - before == frame_ticks for before, after in pairwise(times)),
            fps=Fraction(video.average_rate),
            size=(context.width, context.height),
            codec=context.name,
            profile=str(context.profile),
            pixels=str(context.pix_fmt),
            colours=(
                int(context.color_primaries),
                int(context.color_trc),
                int(context.colorspace),
                int(context.color_range),
            ),
            video_seconds=Fraction(video.duration) * video.time_base,
            sound=(
                f"{audio.codec_context.name} {audio.profile} {audio.codec_context.sample_rate} Hz "
                f"{audio.codec_context.channels}"
            ),
            sound_seconds=Fraction(audio.duration) * audio.time_base,
            is_fast_start=_is_fast_start(path),
            first_is_seen=_is_first_seen(path),
        )


def _is_first_seen(path: Path) -> bool:
    """Return whether the first frame can be decoded."""
    with av.open(str(path)) as container:
        container.streams.video[0].codec_context.thread_count = 1
        return next(container.decode(video=0), None) is not None


def _is_fast_start(path: Path) -> bool:
    """Return whether the index stands before the pictures, so that a player can start early."""
    names = list(_boxes(path))
    return b"moov" in names and b"mdat" in names and names.index(b"moov") < names.index(b"mdat")


def _boxes(path: Path) -> Iterator[bytes]:
    """Yield the names of a file's outermost boxes, by ISO/IEC 14496-12, 4.2."""
    with path.open("rb") as file:
        while len(header := file.read(_BOX_HEADER)) == _BOX_HEADER:
            length, name = int.from_bytes(header[:4], "big"), header[4:]
            yield name
            if length == 1:
                length = int.from_bytes(file.read(_LONG_BOX_HEADER - _BOX_HEADER), "big")
                file.seek(length - _LONG_BOX_HEADER, 1)
            elif length < _BOX_HEADER:
                return
            else:
                file.seek(length - _BOX_HEADER, 1)


def film_faults(
    facts: FilmFacts, *, frames: int, fps: int, size: tuple[int, int], is_final: bool = True
) -> list[str]:
    """Return how a film differs from its storyboard; a shrunken one, which isn't final, may have a lower profile."""
    seconds = Fraction(frames, fps)
    checks: list[tuple[bool, str]] = [
        (facts.frames == frames, f"it has {facts.frames} frames instead of {frames}"),
        (facts.is_constant, "its frames are not equally long"),
        (facts.fps == fps, f"it has {float(facts.fps):g} frames in a second instead of {fps}"),
        (facts.size == size, f"it is {facts.size[0]} × {facts.size[1]} pixels large"),
        (facts.codec == "h264", f"it is {facts.codec} instead of H.264"),
        (facts.profile == "High" or not is_final, f"its profile is {facts.profile} instead of High"),
        (facts.pixels == "yuv420p", f"its pixels are {facts.pixels}"),
        (facts.colours == _BT709, "it isn't tagged as BT.709 in limited range"),
        # The frames prove the length; a container may round it to thousandths of a second.
        (
            abs(facts.video_seconds - seconds) <= Fraction(1, 2 * fps),
            f"it is {float(facts.video_seconds):g} s long",
        ),
        (facts.sound == EXPECTED_SOUND, f"its sound is {facts.sound}"),
        (
            abs(facts.sound_seconds - seconds) <= Fraction(1, fps),
            f"its sound is {float(facts.sound_seconds):g} s long and its picture {float(seconds):g} s",
        ),
        (facts.is_fast_start, "its index stands at its end"),
        (facts.first_is_seen, "its first frame can't be decoded"),
    ]
    return [fault for is_good, fault in checks if not is_good]
