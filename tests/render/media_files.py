"""Small pictures, sounds and videos for tests, made by the encoders that are there."""

from __future__ import annotations

import io
from fractions import Fraction

import av
import numpy as np
from PIL import Image

RATE = 48_000


def video(
    form="mp4",
    *,
    seconds=1.0,
    size=(64, 48),
    fps=30,
    codec="libx264",
    sound="aac",
    options=None,
    times=None,
    pixels="yuv420p",
):
    """A film of grey frames, its sound a tone; `times` are the frames' own, in frames."""
    file = io.BytesIO()
    with av.open(file, "w", format=form, options=options or {}) as out:
        picture = out.add_stream(codec, rate=fps)
        picture.width, picture.height, picture.pix_fmt = *size, pixels
        heard = out.add_stream(sound, rate=RATE, layout="stereo") if sound else None
        for number, time in enumerate(times or range(round(seconds * fps))):
            frame = av.VideoFrame.from_ndarray(
                np.full((size[1] * 3 // 2, size[0]), number * 7 % 256, np.uint8), format="yuv420p"
            )
            frame = frame.reformat(format=pixels)
            frame.pts, frame.time_base = time, Fraction(1, fps)
            out.mux(picture.encode(frame))
        out.mux(picture.encode(None))
        if heard is not None:
            _sound(out, heard, seconds)
    return file.getvalue()


def audio(form, codec, *, seconds=1.0, streams=1, rate=RATE):
    file = io.BytesIO()
    with av.open(file, "w", format=form) as out:
        for stream in [out.add_stream(codec, rate=rate, layout="stereo") for _ in range(streams)]:
            _sound(out, stream, seconds, rate)
    return file.getvalue()


def _sound(out, stream, seconds, rate=RATE):
    total = round(seconds * rate)
    wave = (0.1 * np.sin(np.arange(total) * 0.05)).astype(np.float32)
    resampler = av.AudioResampler(
        format=stream.codec_context.format, layout="stereo", rate=rate, frame_size=960
    )
    frame = av.AudioFrame.from_ndarray(np.stack([wave, wave]), format="fltp", layout="stereo")
    frame.sample_rate, frame.pts = rate, 0
    for given in (frame, None):
        for part in resampler.resample(given):
            out.mux(stream.encode(part))
    out.mux(stream.encode(None))


def picture(form, size=(64, 48), **options):
    file = io.BytesIO()
    noise = np.random.default_rng(3).integers(0, 255, (size[1], size[0], 3), np.uint8)
    Image.fromarray(noise).save(file, form, **options)
    return file.getvalue()
