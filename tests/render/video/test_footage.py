"""Videos within films: the frame that is asked for, from any of them, in its own colours; sound to the sample."""

from __future__ import annotations

import io
import struct

import cv2
import numpy as np
import pytest
from av.video.reformatter import Colorspace

from pipeline.plugins import Refused
from pipeline.render.audio import mix
from pipeline.render.audio.loudness import TARGET_LUFS, measure
from pipeline.render.video.footage import Reel, read_clip_sound
from pipeline.render.video.frame_composer import Composer
from pipeline.render.video.storyboard import (
    Audio,
    Crop,
    Scene,
    Storyboard,
    Take,
    UnusableAsset,
    Visual,
    Zoom,
    storyboard_faults,
)
from pipeline.render.video.ycbcr import new_planes, to_rgb
from tests.render import footage_files
from tests.render.footage_files import number_in

SECONDS = 12.0


@pytest.fixture(scope="module")
def long():
    """Keyframes every eight seconds, so that hardly any second begins with one."""
    return footage_files.video(seconds=SECONDS, size=(320, 180), group=240, clicks=(3.0, 7.5))


def reel(data):
    return Reel("clip.mp4", io.BytesIO(data))


def frame(data, number, visual, *, seconds=2.0, shrink=4):
    composer = Composer(
        Storyboard((Scene(0.0, seconds, visual),)),
        {}.__getitem__,
        shrink=shrink,
        watch=lambda name: io.BytesIO(data),
    )
    planes = new_planes(*composer.size)
    composer.draw(planes, number)
    composer.close()
    return planes


@pytest.mark.parametrize("second", [0.0, 0.1, 4.97, 7.99, 8.0, 8.03, 11.5])
def test_any_second_shows_its_own_frame(long, second):
    watched = reel(long)
    assert number_in(watched.frame_at(second).y) == int(second * 30 + 0.06)
    watched.close()


def test_frames_follow_one_another_and_going_back_is_the_same(long):
    watched = reel(long)
    there = [number_in(watched.frame_at(4.4 + step / 30).y) for step in range(60)]
    assert there == list(range(132, 192))
    assert number_in(watched.frame_at(1.0).y) == 30
    watched.close()


@pytest.mark.parametrize("fps", [12, 24, 25, 50, 60])
def test_any_rate_becomes_frames_of_thirty_a_second(fps):
    watched = reel(footage_files.video(seconds=3.0, fps=fps, size=(320, 180), audio=None))
    shown = [number_in(watched.frame_at(0.5 + step / 30).y) for step in range(60)]
    watched.close()
    exact = [(0.5 + step / 30) * fps for step in range(60)]
    assert [abs(one - at) <= 1 for one, at in zip(shown, exact, strict=True)] == [True] * 60


@pytest.mark.parametrize(
    ("matrix", "is_full"),
    [
        (Colorspace.ITU709, False),
        (Colorspace.ITU709, True),
        (Colorspace.ITU601, False),
        (Colorspace.ITU601, True),
    ],
)
@pytest.mark.parametrize(
    "rgb", [(200, 40, 40), (40, 170, 60), (60, 60, 200), (128, 128, 128), (235, 235, 235)]
)
def test_colours_are_those_of_the_source(matrix, is_full, rgb):
    def flat(number, *, size, scene):
        del number, scene
        return np.full((size[1], size[0], 3), rgb, np.uint8)

    data = footage_files.video(
        seconds=0.5, size=(320, 180), draw=flat, matrix=matrix, is_full=is_full, audio=None
    )
    watched = reel(data)
    seen = to_rgb(watched.frame_at(0.2))[90, 160].astype(int)
    watched.close()
    # Rounded to eight bits twice; another matrix or range would be off by 15 and more.
    assert np.abs(seen - rgb).max() <= 6


def turned(data):
    """The same file with a camera's note that it was held upright: a quarter against the clock."""
    plain = struct.pack(">9i", 0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)
    noted = struct.pack(">9i", 0, 0x10000, 0, -0x10000, 0, 0, 180 << 16, 0, 0x40000000)
    at = data.index(plain, data.index(b"tkhd"))
    return data[:at] + noted + data[at + len(plain) :]


def test_video_that_was_held_upright_is_shown_upright():
    watched = reel(turned(footage_files.video(seconds=0.5, size=(320, 180), audio=None)))
    seen = watched.frame_at(10 / 30)
    assert (watched.width, watched.height) == (180, 320) == seen.y.shape[::-1]
    # The top of the file is the right side of what is seen.
    assert number_in(np.rot90(seen.y)) == 10
    watched.close()


def test_odd_sizes_fill_the_frame():
    data = footage_files.video(seconds=0.5, size=(319, 181), codec="libx264", audio=None, pixels="yuv444p")
    for fit in ("cover", "pad"):
        planes = frame(data, 3, Visual("clip", asset="a.mp4", fit=fit), seconds=0.4)
        assert planes.y.shape == (480, 270)
        assert planes.y.std() > 5


def test_pad_shows_the_whole_width_before_a_blurred_ground(long):
    planes = frame(long, 15, Visual("clip", asset="a.mp4", fit="pad", since=2.0))
    height = round(270 * 180 / 320)
    top = (480 - height) // 2
    assert number_in(planes.y[top : top + height]) == 75
    assert np.abs(np.diff(planes.y[10].astype(int))).max() <= 4


def test_cover_shows_the_part_that_was_chosen(long):
    planes = frame(long, 0, Visual("clip", asset="a.mp4", crop=Crop(0.0, 0.0, 0.316, 1.0), since=4.0))
    watched = reel(long)
    part = watched.frame_at(4.0).y[:, : round(0.316 * 320)]
    wanted = cv2.resize(part, (270, 480))
    watched.close()
    assert np.abs(planes.y.astype(int) - wanted).mean() < 3


def test_shade_darkens(long):
    bright = frame(long, 0, Visual("clip", asset="a.mp4", since=4.0)).y.mean()
    dark = frame(long, 0, Visual("clip", asset="a.mp4", since=4.0, shade=0.5)).y.mean()
    assert dark == pytest.approx(16 + (bright - 16) / 2, abs=1.5)


def test_two_scenes_of_one_video_are_seen_at_once(long):
    board = Storyboard(
        (
            Scene(0.0, 1.0, Visual("clip", asset="a.mp4", since=1.0)),
            Scene(1.0, 2.0, Visual("clip", asset="a.mp4", since=9.0)),
        )
    )
    composer = Composer(board, {}.__getitem__, shrink=4, watch=lambda name: io.BytesIO(long))
    planes = new_planes(*composer.size)
    for number, shows in ((0, 30), (29, 59), (30, 270), (59, 299), (0, 30)):
        composer.draw(planes, number)
        watched = reel(long)
        wide = watched.frame_at(shows / 30)
        watched.close()
        middle = wide.y[:, 109:211]
        assert np.abs(planes.y.astype(int) - cv2.resize(middle, (270, 480))).mean() < 4
    composer.close()


@pytest.mark.parametrize("rate", [48_000, 44_100])
def test_sound_is_cut_to_the_sample(rate):
    data = footage_files.video(seconds=6.0, size=(64, 64), clicks=(3.0,), rate=rate, audio="aac")
    cut = read_clip_sound("a.mp4", io.BytesIO(data), 2.5, 48_000)
    assert cut.shape == (48_000, 2)
    loud = np.flatnonzero(np.abs(cut[:, 0]) > 0.3)
    # An encoder of sound smears a beginning over some hundred samples.
    assert abs(loud[0] - 24_000) < 120
    assert not np.abs(cut[:22_000]).max() > 0.3


def test_lossless_sound_is_the_very_samples():
    data = footage_files.video(seconds=4.0, size=(64, 64), clicks=(1.5,), form="matroska", audio="flac")
    cut = read_clip_sound("a.mkv", io.BytesIO(data), 1.25, 24_000)
    wanted = footage_files.wave(4.0, (1.5,))[60_000:84_000]
    assert np.abs(cut[:, 0] - wanted).max() < 1e-3


def test_sound_ends_where_the_video_ends():
    data = footage_files.video(seconds=2.0, size=(64, 64))
    cut = read_clip_sound("a.mp4", io.BytesIO(data), 1.5, 48_000)
    assert np.abs(cut[:23_000]).max() > 0.01
    assert not cut[28_000:].any()


def test_takes_are_where_they_belong_and_as_loud_as_films_are(long):
    board = Storyboard(
        (Scene(0.0, 8.0, Visual("clip", asset="a.mp4", since=2.0)),),
        audio=Audio(takes=(Take("a.mp4", 2.0, 0.0, 8.0),)),
    )
    made = mix.film_sound(board, lambda name: io.BytesIO(long))
    assert made is not None
    assert made.shape == (8 * 48_000, 2)
    assert measure(made).integrated == pytest.approx(TARGET_LUFS, abs=0.5)
    loud = np.abs(made[:, 0])
    assert abs(int(np.argmax(loud[36_000:60_000])) + 36_000 - 48_000) < 1_600


def test_silent_video_makes_a_silent_film():
    data = footage_files.video(seconds=2.0, size=(64, 64), audio=None)
    board = Storyboard(
        (Scene(0.0, 1.0, Visual("clip", asset="a.mp4")),), audio=Audio(takes=(Take("a.mp4", 0.0, 0.0, 1.0),))
    )
    assert mix.film_sound(board, lambda name: io.BytesIO(data)) is None


def test_second_that_the_video_does_not_have_is_named(long):
    watched = reel(long)
    with pytest.raises(UnusableAsset, match=r"it ends after 12\.0 seconds, and second 20\.0 is asked for"):
        watched.frame_at(20.0)
    watched.close()


def watch(data):
    watched = reel(data)
    for step in range(330):
        watched.frame_at(step / 30)


@pytest.mark.parametrize("name", ["text", "half", "middle", "sound"])
def test_broken_videos_are_refused_in_a_sentence(long, name):
    given = {
        "text": b"not a video at all" * 40,
        "half": long[: len(long) // 3],
        "middle": long[: len(long) // 4] + bytes(len(long) // 2) + long[3 * len(long) // 4 :],
        "sound": footage_files.video(seconds=1.0, size=(64, 64))[:600],
    }[name]
    with pytest.raises(Refused, match=r"^[A-Z].*[.]$"):
        watch(given)


def test_clip_is_not_zoomed_and_takes_follow_one_another():
    board = Storyboard(
        (Scene(0.0, 1.0, Visual("clip", asset="a.mp4", zoom=Zoom(1.0, 1.2))),),
        audio=Audio(takes=(Take("a.mp4", 0.0, 0.5, 1.0), Take("a.mp4", 0.0, 0.0, 0.5))),
    )
    assert [one.split(":")[0] for one in storyboard_faults(board)] == ["scenes[0]", "audio.takes[1]"]
