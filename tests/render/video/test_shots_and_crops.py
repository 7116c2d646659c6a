"""Cuts and crops: found where they were made, the same for a whole shot, steady from one shot to the next."""

from __future__ import annotations

import io

import cv2
import numpy as np
import pytest

from pipeline.plugins import Refused
from pipeline.render.video import shots_and_crops
from pipeline.render.video.footage import Reel
from pipeline.render.video.material import VideoSpan
from pipeline.render.video.shot_process import detect_shots
from tests.render import footage_files

CUTS = (2.0, 4.5, 5.7, 8.1)


def found(data, start, end):
    reel = Reel("a.mp4", io.BytesIO(data))
    made = shots_and_crops.find_shots(reel, start, end)
    reel.close()
    return made


def lively(where):
    """A drawing of which one third moves and is full of detail: 0, 1 or 2; None for all of them."""

    def draw(number, *, size, scene):
        width, height = size
        made = np.full((height, width, 3), (90 + 40 * (scene % 2), 100, 110), np.uint8)
        third = where[scene] if scene < len(where) else where[-1]
        for part in range(3) if third is None else [third]:
            left, wide = part * width // 3, width // 3
            for row in range(6):
                x = left + (number * 5 + row * 31) % (wide - 24)
                cv2.rectangle(
                    made, (x, row * height // 6), (x + 24, row * height // 6 + 20), (240, 230, 40), -1
                )
                cv2.line(made, (left, row * 30), (left + wide, row * 30 + 9), (20, 30, 60), 2)
        return made

    return draw


def test_cuts_are_found_to_the_frame():
    data = footage_files.video(seconds=10.0, size=(320, 180), cuts=CUTS, audio=None)
    made = found(data, 0.5, 9.5)
    assert [one.start for one in made] == pytest.approx([0.5, *CUTS], abs=1 / 30)
    assert [one.end for one in made] == pytest.approx([*CUTS, 9.5], abs=1 / 30)


def test_motion_and_a_fade_are_no_cuts():
    def faded(number, *, size, scene):
        one = footage_files.picture(number, size=size, scene=0)
        other = footage_files.picture(number, size=size, scene=3)
        share = min(max((number - 60) / 30, 0), 1)
        return cv2.addWeighted(one, 1 - share, other, share, 0)

    data = footage_files.video(seconds=5.0, size=(320, 180), draw=faded, audio=None)
    assert len(found(data, 0.0, 5.0)) == 1


def test_flash_is_no_shot():
    def flashing(number, *, size, scene):
        made = footage_files.picture(number, size=size, scene=scene)
        return np.full_like(made, 250) if number == 45 else made

    data = footage_files.video(seconds=4.0, size=(320, 180), draw=flashing, audio=None)
    assert [one.start for one in found(data, 0.0, 4.0)][:1] == [0.0]
    assert all(one.end - one.start >= shots_and_crops.MIN_SHOT_SECONDS for one in found(data, 0.0, 4.0))


@pytest.mark.parametrize(("third", "x"), [(0, 0.0), (1, 0.342), (2, 0.684)])
def test_crop_is_where_it_happens(third, x):
    data = footage_files.video(seconds=2.0, size=(320, 180), draw=lively([third]), audio=None)
    [one] = found(data, 0.0, 2.0)
    assert one.crop is not None
    assert (one.crop.x, one.crop.width) == (pytest.approx(x, abs=0.001), pytest.approx(0.3164, abs=0.001))


def test_what_happens_everywhere_is_shown_whole():
    data = footage_files.video(seconds=2.0, size=(320, 180), draw=lively([None]), audio=None)
    assert [one.crop for one in found(data, 0.0, 2.0)] == [None]


def test_each_shot_has_a_crop_of_its_own():
    data = footage_files.video(
        seconds=6.0, size=(320, 180), draw=lively([0, 2, None]), cuts=(2.0, 4.0), audio=None
    )
    crops = [one.crop for one in found(data, 0.0, 6.0)]
    assert [None if one is None else round(one.x, 2) for one in crops] == [0.0, 0.68, None]


def test_choice_stays_where_another_is_hardly_better():
    def seen(*held):
        return shots_and_crops._ShotActivity(0.0, np.array(held, float), np.zeros(3))

    assert shots_and_crops._choose_third(seen(45, 10, 47), 0, is_first=False) == 0
    assert shots_and_crops._choose_third(seen(20, 10, 70), 0, is_first=False) == 2
    assert shots_and_crops._choose_third(seen(45, 28, 27), None, is_first=False) is None
    assert shots_and_crops._choose_third(seen(45, 28, 27), None, is_first=True) == 0


def test_upright_video_is_shown_from_its_middle():
    data = footage_files.video(seconds=1.0, size=(180, 320), audio=None)
    [one] = found(data, 0.0, 1.0)
    assert one.crop is not None
    assert (one.crop.x, one.crop.width, one.crop.height) == (0.0, 1.0, 1.0)


def test_look_is_the_same_from_a_process_under_limits(tmp_path):
    path = tmp_path / "a.mp4"
    path.write_bytes(footage_files.video(seconds=5.0, size=(320, 180), cuts=(2.0,), audio=None))
    made = detect_shots(path, VideoSpan("a.mp4", 0.5, 4.5))
    assert made == found(path.read_bytes(), 0.5, 4.5)


def test_broken_video_is_refused_by_the_process(tmp_path):
    path = tmp_path / "a.mp4"
    path.write_bytes(b"\x00\x00\x00\x18ftypisom" + bytes(4000))
    with pytest.raises(Refused, match=r"The file a.mp4 can't be shown: "):
        detect_shots(path, VideoSpan("a.mp4", 0.0, 2.0))
    with pytest.raises(Refused, match=r"it isn't there"):
        detect_shots(tmp_path / "b.mp4", VideoSpan("b.mp4", 0.0, 2.0))


def test_more_than_a_film_shows_is_not_looked_at(tmp_path):
    path = tmp_path / "a.mp4"
    path.write_bytes(footage_files.video(seconds=2.0, size=(320, 180), audio=None))
    with pytest.raises(Refused, match=r"^A film shows 180 seconds of a video at most, not 10800\.$"):
        detect_shots(path, VideoSpan("a.mp4", 0.0, 10_800.0))
