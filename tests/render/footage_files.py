"""A video that says of each frame which one it is: its number in black and white blocks, cuts, speech-like sound."""

from __future__ import annotations

import io
from fractions import Fraction

import av
import cv2
import numpy as np
from av.video.reformatter import ColorRange, Colorspace

RATE = 48_000
BITS = 12
SHARE = 9 / 16 * 9 / 16
"""Of its width: what an upright frame shows. The number stands at the left, in the middle and at the right."""


def picture(number, *, size=(640, 360), scene=0):
    """RGB: a ground by the scene, a disc that moves, and the number as a row of blocks at the top."""
    width, height = size
    hue = (scene * 47) % 180
    ground = cv2.cvtColor(np.uint8([[[hue, 150, 90 + 60 * (scene % 2)]]]), cv2.COLOR_HSV2RGB)[0, 0]
    made = np.empty((height, width, 3), np.uint8)
    made[:] = ground
    rows = np.linspace(0.7, 1.1, height)[:, None, None]
    made = np.clip(made * rows, 0, 255).astype(np.uint8)
    x = int(width * (0.5 + 0.3 * np.sin(number / 20)))
    cv2.circle(made, (x, height * 2 // 3), height // 8, (250, 240, 200), -1)
    # Of two numbers that follow one another one bit differs: nothing here looks like a cut.
    gray = number ^ number >> 1
    block = width * SHARE / BITS
    for left in (0.0, width * (1 - SHARE) / 2, width * (1 - SHARE)):
        for bit in range(BITS):
            value = 235 if gray >> (BITS - 1 - bit) & 1 else 20
            made[: height // 6, round(left + bit * block) : round(left + (bit + 1) * block)] = value
    return made


def number_in(luma, *, share=SHARE):
    """Which frame it is, of its brightness; `share` is how much of the width one number takes."""
    height, width = luma.shape
    block = width * share / BITS
    row = luma[height // 12]
    number = 0
    for bit in range(BITS):
        number = number << 1 | (number & 1 ^ int(row[int((bit + 0.5) * block)] > 128))
    return number


def video(
    *,
    seconds=20.0,
    fps=30,
    size=(640, 360),
    cuts=(),
    form="mp4",
    codec="libx264",
    matrix=Colorspace.ITU709,
    is_full=False,
    group=250,
    clicks=(),
    draw=None,
    pixels="yuv420p",
    audio="aac",
    rate=RATE,
):
    """As a file's bytes; each frame is what `draw` gives for its number and scene. Clicks are seconds of short beeps."""
    file = io.BytesIO()
    every = Fraction(fps)
    with av.open(file, "w", format=form) as out:
        stream = out.add_stream(codec, rate=every)
        stream.width, stream.height, stream.pix_fmt = *size, pixels
        stream.options = {"preset": "ultrafast", "crf": "18"} if codec == "libx264" else {}
        context = stream.codec_context
        context.gop_size = group
        context.colorspace = matrix
        context.color_range = ColorRange.JPEG if is_full else ColorRange.MPEG
        heard = out.add_stream(audio, rate=rate, layout="stereo") if audio else None
        for number in range(round(seconds * every)):
            scene = sum(number / every >= cut for cut in cuts)
            rgb = (draw or picture)(number, size=size, scene=scene)
            frame = av.VideoFrame.from_ndarray(rgb, format="rgb24").reformat(
                format=pixels,
                dst_colorspace=matrix,
                src_color_range=ColorRange.JPEG,
                dst_color_range=ColorRange.JPEG if is_full else ColorRange.MPEG,
            )
            frame.colorspace, frame.color_range = matrix, ColorRange.JPEG if is_full else ColorRange.MPEG
            frame.pts, frame.time_base = number, 1 / every
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
        if heard is not None:
            _sound(out, heard, seconds, clicks, rate)
    return file.getvalue()


def wave(seconds, clicks, rate=RATE):
    """A voice-like hum, and a loud beep of 30 ms at each of the clicks."""
    times = np.arange(round(seconds * rate)) / rate
    hum = 0.05 * np.sin(2 * np.pi * 220 * times) * (0.6 + 0.4 * np.sin(2 * np.pi * 3 * times))
    for click in clicks:
        inside = (times >= click) & (times < click + 0.03)
        hum[inside] = 0.8 * np.sin(2 * np.pi * 1_500 * (times[inside] - click))
    return hum.astype(np.float32)


def _sound(out, stream, seconds, clicks, rate):
    made = wave(seconds, clicks, rate)
    resampler = av.AudioResampler(
        format=stream.codec_context.format, layout="stereo", rate=rate, frame_size=960
    )
    frame = av.AudioFrame.from_ndarray(np.stack([made, made]), format="fltp", layout="stereo")
    frame.sample_rate, frame.pts = rate, 0
    for given in (frame, None):
        for part in resampler.resample(given):
            out.mux(stream.encode(part))
    out.mux(stream.encode(None))
