from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import av
import numpy as np
import pytest

from pipeline.plugins import Refused
from pipeline.render.draw_layout import draw_picture
from pipeline.render.picture_types import PicturePlan
from pipeline.render.video import ycbcr
from pipeline.render.video.encode import SAMPLE_RATE, Quality, encode
from pipeline.render.video.frame_composer import Composer
from pipeline.render.video.storyboard import (
    Crop,
    Motion,
    Overlay,
    Scene,
    Transition,
    UnusableAsset,
    Visual,
    Zoom,
)
from pipeline.render.video.verify import film_faults, probe_film
from tests.render.video.boards import SMALL, board, zooming
from tests.render.video.filming import QUICK, dot, film, frame, png, seen


def test_a_film_is_what_was_asked_for(tmp_path):
    facts = probe_film(film(tmp_path / "a.mp4", board()))

    assert film_faults(facts, frames=60, fps=30, size=SMALL, is_final=False) == []
    assert facts.video_seconds == 2
    assert facts.sound == "aac LC 48000 Hz 2"
    assert abs(facts.sound_seconds - 2) <= Fraction(1, 30)


def test_a_final_film_is_high_profile(tmp_path):
    short = replace(
        zooming(), scenes=(Scene(0.0, 0.5, Visual("colour", colour="#1f3a5f", colour_to="#0b1626")),)
    )

    facts = probe_film(film(tmp_path / "a.mp4", short, quality=Quality("veryfast", 20)))

    assert film_faults(facts, frames=15, fps=30, size=SMALL) == []


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"frames": 59}, "it has 59 frames instead of 60"),
        ({"is_constant": False}, "its frames are not equally long"),
        ({"fps": Fraction(30000, 1001)}, "it has 29.97 frames in a second instead of 30"),
        ({"size": (480, 270)}, "it is 480 × 270 pixels large"),
        ({"codec": "hevc"}, "it is hevc instead of H.264"),
        ({"profile": "Main"}, "its profile is Main instead of High"),
        ({"pixels": "yuv444p"}, "its pixels are yuv444p"),
        ({"colours": (5, 6, 5, 1)}, "it isn't tagged as BT.709 in limited range"),
        ({"video_seconds": Fraction(21, 10)}, "it is 2.1 s long"),
        ({"sound": "mp3 None 44100 Hz 1"}, "its sound is mp3 None 44100 Hz 1"),
        ({"sound_seconds": Fraction(19, 10)}, "its sound is 1.9 s long and its picture 2 s"),
        ({"is_fast_start": False}, "its index stands at its end"),
        ({"first_is_seen": False}, "its first frame can't be decoded"),
    ],
)
def test_a_film_that_differs_is_not_passed_on(tmp_path, changes, fault):
    facts = probe_film(film(tmp_path / "a.mp4", board()))

    broken = replace(facts, **{"profile": "High", **changes})

    assert film_faults(broken, frames=60, fps=30, size=SMALL) == [fault]


def test_frames_of_other_lengths_are_noticed(tmp_path):
    path = tmp_path / "a.mp4"
    with av.open(str(path), "w") as container:
        video = container.add_stream("libx264", rate=30)
        video.width, video.height, video.pix_fmt = 64, 64, "yuv420p"
        audio = container.add_stream("aac", rate=SAMPLE_RATE)
        audio.layout = "stereo"
        silent = av.AudioFrame.from_ndarray(np.zeros((2, 1024), np.float32), format="fltp", layout="stereo")
        silent.sample_rate, silent.pts = SAMPLE_RATE, 0
        for pts in (0, 1, 2, 4, 5):
            one = av.VideoFrame(64, 64, "yuv420p")
            one.pts, one.time_base = pts, Fraction(1, 30)
            container.mux(video.encode(one))
        container.mux(video.encode(None))
        container.mux(audio.encode(silent))
        container.mux(audio.encode(None))

    facts = probe_film(path)

    assert facts.frames == 5
    assert not facts.is_constant
    assert not facts.is_fast_start
    assert facts.colours != (1, 1, 1, 1)


def test_the_sound_is_as_long_as_the_picture_and_at_its_place(tmp_path):
    sound = np.zeros((SAMPLE_RATE, 2), np.float32)
    sound[SAMPLE_RATE // 2 :] = (
        0.5 * np.sin(np.arange(SAMPLE_RATE // 2) * 2 * np.pi * 440 / SAMPLE_RATE)[:, None]
    )

    path = film(tmp_path / "a.mp4", board(), sound=sound)

    with av.open(str(path)) as container:
        parts = [one.to_ndarray()[0] for one in container.decode(audio=0)]
    heard = np.concatenate(parts)
    loud = np.flatnonzero(np.abs(heard) > 0.1)
    assert abs(loud[0] / SAMPLE_RATE - 0.5) < 0.01
    assert abs(loud[-1] / SAMPLE_RATE - 1.0) < 0.03, "silence follows where the sound ends"
    assert abs(len(heard) / SAMPLE_RATE - 2.0) < 1 / 30


@pytest.mark.parametrize(
    ("start", "end", "focus"), [(1.0, 1.08, (0.5, 0.5)), (1.12, 1.0, (0.5, 0.5)), (1.0, 1.1, (0.2, 0.7))]
)
def test_a_zoom_moves_without_shaking(tmp_path, start, end, focus):
    """The middle of a dot is never more than a fifth of a pixel off its path, colour by colour."""
    at = (300.0, 500.0)
    scene = Scene(0.0, 2.0, Visual("picture", asset="dot.png", zoom=Zoom(start, end, *focus)))
    one = replace(zooming(), scenes=(scene,))

    path = film(tmp_path / "a.mp4", one, {"dot.png": dot(at=at)}, quality=Quality("ultrafast", 10))

    off = []
    for number, light in enumerate(seen(path)):
        weight = np.clip(light.astype(float) - 24, 0, None)
        y, x = np.mgrid[: light.shape[0], : light.shape[1]]
        middle = ((x + 0.5) * weight).sum() / weight.sum(), ((y + 0.5) * weight).sum() / weight.sum()
        near = start * (end / start) ** (number / 59)
        ideal = [
            (focus[place] * length + (at[place] - focus[place] * length) * near) / 4
            for place, length in enumerate((1080, 1920))
        ]
        off.append(math.dist(middle, ideal))
    assert len(off) == 60
    assert max(off) <= 0.2


def test_colours_are_those_of_the_pictures():
    """Converted with the matrix that the file is tagged with, and on their places."""
    for colour in ("#1f3a5f", "#d9663b", "#ffffff", "#000000", "#ff0000", "#00ff00", "#0000ff", "#c0c0c0"):
        one = replace(zooming(), scenes=(Scene(0.0, 1.0, Visual("colour", colour=colour)),))
        pixel = frame(one, 0)[100, 100]
        wanted = [int(colour[place : place + 2], 16) for place in (1, 3, 5)]
        assert np.abs(pixel.astype(int) - wanted).max() <= 2, colour

    # By Rec. ITU-R BT.709, and not by BT.601, which has 81, 90, 240.
    assert ycbcr.levels("#ff0000") == (63, 102, 240)


def test_a_player_shows_the_colours_that_were_drawn(tmp_path):
    grounds = ("#d9663b", "#1f3a5f", "#2f8f5b")
    for place, colour in enumerate(grounds):
        one = replace(zooming(), scenes=(Scene(0.0, 0.2, Visual("colour", colour=colour)),))
        path = film(tmp_path / f"{place}.mp4", one, quality=Quality("ultrafast", 10))
        with av.open(str(path)) as container:
            pixel = next(container.decode(video=0)).to_rgb().to_ndarray()[50, 50]
        wanted = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
        assert np.abs(pixel.astype(int) - wanted).max() <= 3, colour


def test_an_overlay_looks_as_it_does_in_a_picture():
    """Pixel by pixel within what halved colours allow, on a ground of any colour."""
    made = board()
    overlay = replace(made.overlays[1], start=0.0, end=1.0, enter=Motion(), leave=Motion())
    ground = "#26547c"
    one = replace(
        made, scenes=(Scene(0.0, 1.0, Visual("colour", colour=ground)),), overlays=(overlay,), captions=()
    )

    filmed = frame(one, 5, shrink=1).astype(int)
    drawn = np.asarray(draw_picture(PicturePlan("", "", 1080, 1920, ground, overlay.items, ""))).astype(int)

    gray = np.abs(filmed.mean(axis=2) - drawn.mean(axis=2))
    assert gray.mean() < 1.0
    assert np.percentile(gray, 99.9) < 12


def test_captions_mark_the_word_that_is_spoken():
    def has_accent(number):
        return bool((np.abs(frame(board(), number).astype(int) - [255, 210, 63]).max(axis=2) < 40).any())

    assert not has_accent(3)
    assert [has_accent(number) for number in (7, 17, 18, 26)] == [True, True, True, True]
    assert not has_accent(28), "nobody speaks at the end of the card"


def test_a_card_does_not_move_when_its_word_changes():
    """The same letters stand at the same places, whichever is marked."""
    first, second = (frame(board(), number, shrink=1) for number in (8, 20))
    edges = [
        np.flatnonzero((one[1140:1260].min(axis=2) < 20).any(axis=0))[[0, -1]] for one in (first, second)
    ]
    assert np.abs(edges[0] - edges[1]).max() <= 1


def test_what_comes_rises_and_rests():
    """A card comes from below its place, faster at first, and stands still afterwards."""
    made = board()
    tops = []
    for number in range(36, 56):
        light = frame(replace(made, captions=()), number).astype(int).min(axis=2)
        rows = np.flatnonzero((light > 200).sum(axis=1) > 100)
        tops.append(rows[0] if len(rows) else None)
    known = [top for top in tops if top is not None]
    assert known == sorted(known, reverse=True)
    assert known[-1] == known[-5] == 150


def test_a_wipe_rises_from_below_and_a_fade_mixes():
    red = Visual("colour", colour="#ff0000")
    blue = Visual("colour", colour="#0000ff")

    def at(kind, number):
        scenes = (Scene(0.0, 1.0, red), Scene(1.0, 2.0, blue, Transition(kind, 0.4)))
        return frame(replace(zooming(), scenes=scenes), number)[:, 100].astype(int)

    assert at("wipe", 29)[:, 2].max() <= 3
    half = at("wipe", 33)
    edge = np.flatnonzero(half[:, 2] > 128)[0]
    assert 20 < edge < 460
    assert (half[:edge, 2] < 128).all()
    assert at("wipe", 42)[:, 2].min() >= 252
    mixed = at("fade", 35)[0]
    assert 60 < mixed[0] < 200
    assert 60 < mixed[2] < 200


def test_a_picture_covers_the_frame_or_stands_whole_before_a_blurred_one():
    pixels = np.zeros((100, 200, 3), np.uint8)
    pixels[:, :100] = [200, 30, 30]
    pixels[:, 100:] = [30, 30, 200]
    files = {"a.png": png(pixels)}

    covering = frame(
        replace(zooming(), scenes=(Scene(0.0, 1.0, Visual("picture", asset="a.png")),)), 0, files
    )
    padded = frame(
        replace(zooming(), scenes=(Scene(0.0, 1.0, Visual("picture", asset="a.png", fit="pad")),)), 0, files
    )
    cropped = Visual("picture", asset="a.png", crop=Crop(0.5, 0.0, 0.5, 1.0), shade=0.5)
    right = frame(replace(zooming(), scenes=(Scene(0.0, 1.0, cropped),)), 0, files)

    assert np.abs(covering[10, 10].astype(int) - [200, 30, 30]).max() < 6
    assert np.abs(covering[10, 260].astype(int) - [30, 30, 200]).max() < 6
    assert np.abs(padded[240, 10].astype(int) - [200, 30, 30]).max() < 6
    assert padded[10, 10].max() < 140, "what is behind is darker"
    assert np.abs(right[10, 10].astype(int) - [15, 15, 100]).max() < 6


@pytest.mark.parametrize(
    "data", [b"", b"nothing", b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"GIF89a" + b"\0" * 40]
)
def test_a_file_that_is_no_picture_is_named(data):
    with pytest.raises(UnusableAsset) as caught:
        frame(zooming(), 0, {"dot.png": data})

    assert caught.value.message == "The file dot.png can't be shown: it is broken, or no JPEG, PNG or WebP."


def test_what_the_drawing_thread_raises_is_raised(tmp_path):
    def draw(_, number):
        if number == 5:
            raise Refused("No.", code="no")

    with pytest.raises(Refused, match="No"):
        encode(tmp_path / "a.mp4", draw, frames=60, size=SMALL, fps=30, quality=QUICK)


def test_what_the_encoding_thread_raises_is_raised(tmp_path):
    drawn = []
    with pytest.raises(ValueError, match="odd"):
        encode(
            tmp_path / "a.mp4",
            lambda _, number: drawn.append(number) or _odd(number),
            frames=5000,
            size=SMALL,
            fps=30,
            quality=QUICK,
            sound=_Odd(),
        )
    assert len(drawn) < 100, "nobody draws for an encoder that has stopped"


def _odd(number):
    del number


class _Odd:
    def __getitem__(self, place):
        message = "odd"
        raise ValueError(message)


def test_progress_is_told_frame_by_frame(tmp_path):
    told = []
    one = replace(zooming(), scenes=(Scene(0.0, 0.5, Visual("colour", colour="#112233")),))
    composer = Composer(one, {}.__getitem__, shrink=4)

    encode(
        tmp_path / "a.mp4",
        composer.draw,
        frames=15,
        size=composer.size,
        fps=30,
        quality=QUICK,
        on_frame=told.append,
    )

    assert told == list(range(15))


def test_any_frame_is_the_same_in_any_order():
    """A thumbnail is the frame that the film has there."""
    made = board()
    composer = Composer(made, {}.__getitem__, shrink=4)
    in_order = []
    for number in range(60):
        target = ycbcr.new_planes(*composer.size)
        composer.draw(target, number)
        in_order.append(target.y)

    for number in (0, 7, 20, 31, 33, 36, 40, 59):
        alone = ycbcr.new_planes(*SMALL)
        Composer(made, {}.__getitem__, shrink=4).draw(alone, number)
        assert np.array_equal(alone.y, in_order[number]), number


def test_a_size_that_cannot_be_made_smaller_is_refused():
    with pytest.raises(ValueError, match="3 times smaller"):
        Composer(board(), {}.__getitem__, shrink=3)


def test_nothing_is_drawn_outside_of_the_frame():
    """An overlay that stands half outside, or moves there, is cut off by the frame's edge and by nothing else."""
    made = board()
    panel = replace(made.overlays[1].items[0], x=-400, y=1700)
    overlay = Overlay(0.0, 1.0, (panel,), enter=Motion("rise", 0.3, 400.0))
    one = replace(made, overlays=(overlay,), captions=())

    for number in range(0, 12, 3):
        assert frame(one, number).shape == (480, 270, 3)
    assert frame(one, 20)[470, 50].min() > 240
