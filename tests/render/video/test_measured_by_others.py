"""A film of full size, measured by Debian's ffprobe and ffmpeg, which share no build with the libraries that made it."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
from io import BytesIO
from typing import TYPE_CHECKING

import av
import numpy as np
import pytest

from pipeline.render.audio.audio_io import decode
from pipeline.render.audio.loudness import MAX_PEAK_DBTP, TARGET_LUFS, TOLERANCE_LU, master
from pipeline.render.audio.mix import mix
from pipeline.render.audio.sound import SAMPLE_RATE
from pipeline.render.captions import caption_cards
from pipeline.render.video.film_process import Job, render
from pipeline.render.video.storyboard import Audio, Scene, Storyboard, Visual, Zoom
from pipeline.voices.system import PLUGIN as SYSTEM_VOICE
from tests.render.video.filming import dot

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow]

FPS = 30
DOT = (540.0, 700.0)
ZOOM = Zoom(1.0, 1.08, 0.3, 0.6)
COLOUR = "#d9663b"
TEXT = "The harbour ferries run on batteries now. Forty-two boats were changed, and the last one sails on Monday."


@pytest.fixture(scope="module")
def ffprobe():
    return program("ffprobe")


@pytest.fixture(scope="module")
def ffmpeg():
    return program("ffmpeg")


def program(name):
    found = shutil.which(name)
    if found is None:
        message = f"There is no {name}: install Debian's package ffmpeg."
        if os.environ.get("REQUIRE_SERVICES") == "1":
            pytest.fail(message)
        pytest.skip(message)
    return found


@pytest.fixture(scope="module")
def spoken():
    return SYSTEM_VOICE.speak(TEXT, language="en", environment={})


@pytest.fixture(scope="module")
def board(spoken):
    seconds = math.ceil((len(spoken.samples) / 2 / spoken.rate + 0.5) * FPS) / FPS
    return Storyboard(
        scenes=(
            Scene(0.0, 3.0, Visual("picture", asset="dot.png", zoom=ZOOM)),
            Scene(3.0, seconds, Visual("colour", colour=COLOUR)),
        ),
        captions=caption_cards(spoken.words, film_seconds=seconds),
        audio=Audio(voice="voice.wav"),
    )


@pytest.fixture(scope="module")
def film(board, spoken, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("film")
    (folder / "dot.png").write_bytes(dot(at=DOT))
    music = 0.05 * np.sin(np.arange(5 * SAMPLE_RATE) * 2 * np.pi * 220 / SAMPLE_RATE).astype(np.float32)
    with av.open(BytesIO(spoken.wav())) as opened:
        voice = decode(opened)
    sound = mix(voice=voice, music=np.stack([music, music], axis=1), seconds=board.duration)
    mastered = master(sound)
    assert mastered.note == ""
    (folder / "sound.m4a").write_bytes(mastered.aac)
    job = Job(board, files={"dot.png": folder / "dot.png"}, sound=folder / "sound.m4a")
    made = render(job, folder, on_progress=lambda share: True)
    return made.files["film.mp4"].path


def asked(*command):
    return subprocess.run(command, check=True, capture_output=True, timeout=120)


def test_frames_colours_and_codecs_are_those_of_broadcasting(ffprobe, film, board):
    told = json.loads(
        asked(ffprobe, "-v", "error", "-count_frames", "-show_streams", "-of", "json", film).stdout
    )
    video, audio = sorted(told["streams"], key=lambda one: one["codec_type"], reverse=True)
    assert int(video["nb_read_frames"]) == board.frames == round(board.duration * FPS)
    assert (video["codec_name"], video["profile"], video["pix_fmt"]) == ("h264", "High", "yuv420p")
    assert (video["width"], video["height"]) == (1080, 1920)
    assert (video["r_frame_rate"], video["avg_frame_rate"]) == ("30/1", "30/1")
    tags = ("color_space", "color_transfer", "color_primaries", "color_range")
    assert [video[name] for name in tags] == ["bt709", "bt709", "bt709", "tv"]
    assert (audio["codec_name"], audio["profile"]) == ("aac", "LC")
    assert (audio["sample_rate"], audio["channels"]) == ("48000", 2)
    lengths = float(video["duration"]), float(audio["duration"])
    assert abs(lengths[0] - lengths[1]) <= 1 / FPS
    assert float(video["start_time"]) == float(audio["start_time"]) == 0.0


def test_every_frame_is_equally_long(ffprobe, film, board):
    command = (
        *("-v", "error", "-select_streams", "v:0"),
        *("-show_entries", "frame=best_effort_timestamp_time", "-of", "json"),
    )
    frames = json.loads(asked(ffprobe, *command, film).stdout)["frames"]
    times = np.array([float(one["best_effort_timestamp_time"]) for one in frames])
    assert np.abs(times - np.arange(board.frames) / FPS).max() < 1e-5


def test_the_index_stands_before_the_pictures(ffprobe, film):
    told = asked(ffprobe, "-v", "trace", film).stderr.decode(errors="replace")
    boxes = re.findall(r"type:'(\w{4})' parent:'root'", told)
    assert {"moov", "mdat"} <= set(boxes)
    assert boxes.index("moov") < boxes.index("mdat")


def test_it_is_as_loud_as_the_platforms_want_it(ffmpeg, film, record_property):
    told = asked(
        ffmpeg, "-nostats", "-i", film, "-af", "ebur128=peak=true", "-f", "null", "-"
    ).stderr.decode()
    summary = told[told.rindex("Summary:") :]
    loudness = float(re.search(r"I:\s+(-?[\d.]+) LUFS", summary).group(1))
    peak = float(re.search(r"Peak:\s+(-?[\d.]+) dBFS", summary).group(1))
    assert abs(loudness - TARGET_LUFS) <= TOLERANCE_LU
    assert peak <= MAX_PEAK_DBTP
    record_property("told", f"{loudness:.1f} LUFS, {peak:.1f} dBTP")


def decoded(ffmpeg, film, *, frames, pixels, since=0.0, rows=(0, 1920)):
    """As many frames from a second on, of each the rows from the first to before the second."""
    height = rows[1] - rows[0]
    command = (
        *("-v", "error", "-ss", f"{since:.6f}", "-i", film, "-frames:v", str(frames)),
        *("-vf", f"crop=1080:{height}:0:{rows[0]}", "-pix_fmt", pixels, "-f", "rawvideo", "-"),
    )
    data = np.frombuffer(asked(ffmpeg, *command).stdout, np.uint8)
    return data.reshape(frames, height, 1080, *((3,) if pixels == "rgb24" else ()))


def test_a_zoom_keeps_to_its_path(ffmpeg, film, record_property):
    """The dot's middle is never more than a fifth of a pixel beside it."""
    off = []
    for number, light in enumerate(decoded(ffmpeg, film, frames=90, pixels="gray", rows=(0, 1000))):
        weight = np.clip(light.astype(float) - 24, 0, None)
        y, x = np.mgrid[: weight.shape[0], : weight.shape[1]]
        middle = [((axis + 0.5) * weight).sum() / weight.sum() for axis in (x, y)]
        near = ZOOM.start * (ZOOM.end / ZOOM.start) ** (number / 89)
        stays = ZOOM.x * 1080, ZOOM.y * 1920
        off.append(
            math.dist(middle, [at + (place - at) * near for at, place in zip(stays, DOT, strict=True)])
        )
    assert max(off) <= 0.2
    record_property("told", f"{max(off):.3f} pixels off at most")


def test_each_word_lights_up_when_it_is_spoken(ffmpeg, film, board, spoken, record_property):
    """Seen in the decoded pixels, against the moments that the synthesiser told."""
    # In blue, which white has and the accent doesn't; only a few pixels of it waver around the letters.
    band = decoded(ffmpeg, film, frames=board.frames, pixels="rgb24", rows=(1100, 1300))
    blue = band[..., 2].astype(np.int16)
    changes = (np.abs(np.diff(blue, axis=0)) > 100).sum(axis=(1, 2)) > 500
    seen = (np.flatnonzero(changes) + 1) / FPS
    assert len(spoken.words) == len(TEXT.split())
    # The first word's card stands from the start.
    late = [np.abs(seen - word.start).min() for word in spoken.words[1:]]
    assert max(late) <= 0.05
    record_property(
        "told", f"{len(late)} words, {max(late) * 1000:.0f} ms off at most, of {len(seen)} changes"
    )


def test_a_player_that_knows_only_the_tags_shows_the_colour(ffmpeg, film, board):
    late = board.duration - 0.2
    pixels = decoded(ffmpeg, film, frames=1, pixels="rgb24", since=late)[0][300:500, 300:700].reshape(-1, 3)
    wanted = [int(COLOUR[place : place + 2], 16) for place in (1, 3, 5)]
    assert np.abs(np.median(pixels, axis=0) - wanted).max() <= 3
