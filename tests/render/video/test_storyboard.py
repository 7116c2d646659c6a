from __future__ import annotations

import copy
import json
from dataclasses import replace

import pytest

from pipeline.render.picture_types import DrawnText
from pipeline.render.typography.layout_types import Style
from pipeline.render.typography.text_layout import layout
from pipeline.render.video.storyboard import (
    Audio,
    Caption,
    Crop,
    Motion,
    Overlay,
    Scene,
    Storyboard,
    Transition,
    Visual,
    Word,
    Zoom,
    storyboard_faults,
    texts_outside,
)
from pipeline.render.video.storyboard_json import BadStoryboard, as_json, from_json
from tests.render.video.boards import board, zooming


def test_a_storyboard_is_the_same_after_json():
    for one in (board(), zooming()):
        assert from_json(json.loads(json.dumps(as_json(one)))) == one


def test_the_json_says_all_of_it():
    made = as_json(
        Storyboard(
            scenes=(Scene(0.0, 1.5, Visual("picture", asset="a.jpg", zoom=Zoom(1.0, 1.1))),),
            captions=(Caption((Word("Hello", 0.1, 0.5),), 0.0, 1.0),),
            audio=Audio(voice="voice.wav"),
        )
    )

    assert list(made) == [
        "scenes",
        "overlays",
        "captions",
        "caption_look",
        "told",
        "audio",
        "meta",
        "fps",
        "width",
        "height",
        "version",
    ]
    assert made["scenes"] == [
        {
            "start": 0.0,
            "end": 1.5,
            "visual": {
                "kind": "picture",
                "asset": "a.jpg",
                "colour": "#000000",
                "colour_to": "",
                "crop": {"x": 0.0, "y": 0.0, "width": 1.0, "height": 1.0},
                "zoom": {"start": 1.0, "end": 1.1, "x": 0.5, "y": 0.5},
                "fit": "cover",
                "since": 0.0,
                "shade": 0.0,
            },
            "transition": {"kind": "cut", "seconds": 0.0},
        }
    ]
    assert made["captions"] == [
        {"words": [{"t": "Hello", "start": 0.1, "end": 0.5}], "start": 0.0, "end": 1.0}
    ]
    assert made["audio"]["voice"] == "voice.wav"


def test_frames_and_assets_follow_from_the_scenes():
    one = zooming(seconds=2.0)

    assert (one.frames, one.duration, one.assets) == (60, 2.0, ("dot.png",))
    assert replace(one, fps=25).frames == 50


def _visual(**changes):
    return replace(zooming(), scenes=(Scene(0.0, 2.0, replace(Visual("colour"), **changes)),))


@pytest.mark.parametrize(
    ("broken", "fault"),
    [
        (replace(zooming(), fps=0), "fps: from 1 to 60, not 0."),
        (replace(zooming(), width=1081), "size: even, up to 2160 × 3840 pixels, not 1081 × 1920."),
        (replace(zooming(), scenes=()), "scenes: from 1 to 60, not 0."),
        (
            replace(zooming(), scenes=(Scene(0.0, 1.0, Visual("colour")), Scene(1.5, 2.0, Visual("colour")))),
            "scenes[1]: starts at 1.5 s, and the one before ends at 1 s.",
        ),
        (
            replace(zooming(), scenes=(Scene(0.0, 0.01, Visual("colour")),)),
            "scenes[0]: is shorter than a frame.",
        ),
        (
            replace(zooming(), scenes=(Scene(0.0, 200.0, Visual("colour")),)),
            "scenes: the maximum is 180 seconds, not 200.",
        ),
        (
            replace(zooming(), scenes=(Scene(0.0, 1.0, Visual("colour"), Transition("fade", 0.2)),)),
            "scenes[0]: the first scene begins with a cut.",
        ),
        (
            _visual(kind="picture", asset="../../etc/passwd"),
            "scenes[0]: the asset of a picture is the name of a file, not '../../etc/passwd'.",
        ),
        (_visual(colour="red"), "scenes[0]: colour: a colour is written as #1f3a5f, not 'red'."),
        (
            _visual(crop=Crop(0.5, 0.0, 0.6, 1.0)),
            "scenes[0]: crop: lies within the asset, in shares from 0 to 1.",
        ),
        (
            _visual(zoom=Zoom(0.9, 1.0)),
            "scenes[0]: zoom: from 1 to 4, around a point in shares from 0 to 1.",
        ),
        (_visual(shade=2.0), "scenes[0]: shade: from 0 to 1; since: 0 or later."),
        (
            replace(zooming(), captions=(Caption((), 0.0, 1.0),)),
            "captions[0]: has no words.",
        ),
        (
            replace(zooming(), captions=(Caption((Word("late", 0.0, 1.0),), 1.5, 2.5),)),
            "captions[0]: from 1.5 to 2.5 s, and cards follow one another within the film.",
        ),
        (
            replace(zooming(), captions=(Caption((Word("early", 0.0, 1.0),), 0.5, 2.0),)),
            "captions[0]: 'early' is spoken outside its card or before the word before it.",
        ),
        (
            replace(zooming(), overlays=(Overlay(1.0, 3.0, board().overlays[0].items),)),
            "overlays[0]: from 1 to 3 s, which is not within the film.",
        ),
        (
            replace(zooming(), overlays=(replace(board().overlays[0], enter=Motion("rise", 0.9)),)),
            "overlays[0]: comes and goes in more time than it has.",
        ),
        (replace(zooming(), overlays=(Overlay(0.0, 1.0, ()),)), "overlays[0]: has nothing in it."),
    ],
)
def test_what_cannot_be_filmed_is_said(broken, fault):
    assert fault in storyboard_faults(broken)
    with pytest.raises(BadStoryboard):
        from_json(as_json(broken))


def test_a_good_one_has_no_faults():
    assert storyboard_faults(board()) == ()
    assert storyboard_faults(zooming()) == ()


def _changed(path, value):
    data = copy.deepcopy(as_json(board()))
    *way, last = path
    at = data
    for step in way:
        at = at[step]
    at[last] = value
    return data


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ([], "storyboard: is an object."),
        ({}, "storyboard: lacks scenes."),
        (_changed(["more"], 1), "storyboard: has no member more."),
        (_changed(["scenes"], {}), "storyboard.scenes: is a list."),
        (_changed(["fps"], "30"), "storyboard.fps: is a whole number."),
        (_changed(["fps"], True), "storyboard.fps: is a whole number."),
        (_changed(["scenes", 0, "start"], "now"), "storyboard.scenes[0].start: is a number."),
        (
            _changed(["scenes", 0, "end"], float("nan")),
            "storyboard.scenes[0].end: is not a number that means anything here.",
        ),
        (
            _changed(["scenes", 0, "visual", "kind"], "film"),
            "storyboard.scenes[0].visual.kind: one of colour, picture, clip.",
        ),
        (
            _changed(["overlays", 0, "items", 0, "kind"], "script"),
            "storyboard.overlays[0].items[0]: its kind is not known.",
        ),
        (
            _changed(["captions", 0, "words", 0, "t"], 5),
            "storyboard.captions[0].words[0].t: is a text.",
        ),
    ],
)
def test_what_is_read_is_checked_member_by_member(data, said):
    with pytest.raises(BadStoryboard) as caught:
        from_json(data)

    assert caught.value.message == said


def test_words_beyond_the_safe_area_are_named():
    words = layout("At the very edge", (400, 100), Style(), largest=60, smallest=40)
    inside = DrawnText(100.0, 300.0, words, "#ffffff", "#ffffff")
    beyond = replace(inside, x=700.0)
    low = replace(inside, y=1430.0)

    def on(*items):
        return replace(zooming(), overlays=(Overlay(0.0, 1.0, items),))

    assert texts_outside(on(inside)) == ()
    assert texts_outside(on(beyond)) == ("At the very edge",)
    assert texts_outside(on(inside, low)) == ("At the very edge",)
