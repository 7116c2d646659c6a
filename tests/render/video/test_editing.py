"""Storyboards that people change: words, lengths, order; what can't be done is said in a sentence."""

from __future__ import annotations

import dataclasses

import pytest

from pipeline.render.video import storyboard_edits
from pipeline.render.video.storyboard import Audio, Caption, Overlay, Word, storyboard_faults, texts_outside
from pipeline.render.video.storyboard_edits import (
    Unfit,
    editable_texts,
    normalize_text,
    replace_caption,
    replace_text,
)
from pipeline.render.video.storyboard_rearrange import fixed_scenes_reason, rearrange
from pipeline.render.video.templates.points import Cast, PointsTexts, plan

VALUES = PointsTexts(
    "Harbour ferries go electric",
    (
        "Forty-two boats carry nine million people a year.",
        "The city paid 214 million crowns for them.",
        "Each boat charges for six minutes at the quay.",
    ),
    "Source: news.example",
)


@pytest.fixture
def board():
    return plan(VALUES, Cast("Ada Lund", "ada"), language="en", alt_text="Ferries.")


def named(board, name):
    return next(one for one in editable_texts(board) if one.name == name)


def test_texts_are_told_as_people_read_them(board):
    found = [
        (one.name, one.scene, normalize_text(one.words))
        for one in editable_texts(board)
        if one.name not in {"handle", "person"}
    ]
    assert found == [
        ("title", 0, VALUES.title),
        ("number 1", 1, "1"),
        ("point 1", 1, VALUES.points[0]),
        ("number 2", 2, "2"),
        ("point 2", 2, VALUES.points[1]),
        ("number 3", 3, "3"),
        ("point 3", 3, VALUES.points[2]),
        ("label", 4, "Source"),
        ("end", 4, "news.example"),
    ]
    assert len(named(board, "point 1").overlays) > 1


@pytest.mark.parametrize(
    "words",
    [
        "Short.",
        "Forty-two quiet boats carry nine million people a year, in summer and in the long dark winter.",
    ],
)
def test_other_words_stand_where_the_others_stood(board, words):
    before = named(board, "point 1")
    made = replace_text(board, before, words)
    after = named(made, "point 1")
    assert (after.words, after.scene, after.start, after.end) == (words, 1, before.start, before.end)
    assert (storyboard_faults(made), texts_outside(made)) == ((), ())
    # What is said in the caption files follows.
    assert [card.words[0].t for card in made.told][1] == words
    assert [one.words for one in editable_texts(made) if one.name != "point 1"] == [
        one.words for one in editable_texts(board) if one.name != "point 1"
    ]


def test_words_keep_off_what_stands_below(board):
    made = replace_text(
        board, named(board, "title"), "Harbour ferries of the whole long coast go electric this year"
    )
    overlay = made.overlays[named(made, "title").overlays[0]]
    words = overlay.items[0]
    face = next(one for one in made.overlays if one.name == "face")
    assert words.y + words.block.height < face.items[0].y
    assert texts_outside(made) == ()


@pytest.mark.parametrize(
    ("words", "code"),
    [("word " * 400, "does_not_fit"), (" ", "required"), ("Ferries \U00013080", "missing_glyphs")],
)
def test_words_that_cant_be_set_are_refused_where_they_stand(board, words, code):
    text = named(board, "point 2")
    with pytest.raises(Unfit) as refused:
        replace_text(board, text, words)
    assert (refused.value.place, refused.value.code) == (text.key, code)
    assert refused.value.message


def test_a_longer_scene_takes_what_it_shows_with_it(board):
    made = rearrange(board, range(5), {1: 6.0})
    assert [round(one.end - one.start, 2) for one in made.scenes][1] == 6.0
    assert storyboard_faults(made) == ()
    before, after = named(board, "point 1"), named(made, "point 1")
    # It comes as soon as before, and goes with the scene.
    assert after.start - made.scenes[1].start == pytest.approx(before.start - board.scenes[1].start)
    assert after.end == pytest.approx(made.scenes[1].end)
    assert made.duration == pytest.approx(
        board.duration + 6.0 - (board.scenes[1].end - board.scenes[1].start), abs=0.04
    )
    drifting = [one for one in rearrange(board, range(5), {0: 5.0}).overlays if one.enter.kind == "drift"]
    assert drifting[0].enter.seconds > 4


def test_a_short_scene_has_short_motions(board):
    made = rearrange(board, range(5), dict.fromkeys(range(5), 0.5))
    assert (storyboard_faults(made), made.frames) == ((), 75)


def test_scenes_change_places_and_go(board):
    made = rearrange(board, [0, 3, 1, 4], {})
    assert storyboard_faults(made) == ()
    assert [one.words for one in editable_texts(made) if one.name.startswith("point")] == [
        VALUES.points[2],
        VALUES.points[0],
    ]
    assert [card.words[0].t for card in made.told] == [
        VALUES.title,
        VALUES.points[2],
        VALUES.points[0],
        VALUES.end,
    ]
    without_first = rearrange(board, [1, 2], {})
    assert storyboard_faults(without_first) == ()
    assert without_first.scenes[0].transition.kind == "cut"
    assert 0 < without_first.meta.thumbnail_at < without_first.scenes[0].end


@pytest.mark.parametrize(
    ("order", "seconds", "code"),
    [([], {}, "required"), ([0, 1, 2, 3, 4], {2: 0.1}, "too_short")],
)
def test_scenes_that_cant_be_are_refused(board, order, seconds, code):
    with pytest.raises(Unfit) as refused:
        rearrange(board, order, seconds)
    assert refused.value.code == code


def test_a_voice_or_what_goes_through_keeps_the_scenes_as_they_are(board):
    voiced = dataclasses.replace(board, audio=Audio(voice="voice.wav"))
    through = Overlay(0.0, board.duration, board.overlays[0].items, name="name")
    bound = dataclasses.replace(board, overlays=(*board.overlays, through))
    assert fixed_scenes_reason(board) == ""
    for one in (voiced, bound):
        assert fixed_scenes_reason(one)
        assert rearrange(one, range(5), {}) is one
        with pytest.raises(Unfit) as refused:
            rearrange(one, [1, 0, 2, 3, 4], {})
        assert refused.value.code == "fixed_scenes"


def test_captions_keep_their_moments(board):
    words = (Word("Forty-two", 0.0, 0.6), Word("boats", 0.6, 1.0))
    card = Caption(words, 0.0, 1.2)
    spoken = dataclasses.replace(board, captions=(card,))
    same = replace_caption(spoken, 0, "Forty-three ships").captions[0]
    assert [(one.t, one.start, one.end) for one in same.words] == [
        ("Forty-three", 0.0, 0.6),
        ("ships", 0.6, 1.0),
    ]
    more = replace_caption(spoken, 0, "42 big boats")
    assert [one.t for one in more.captions[0].words] == ["42", "big", "boats"]
    assert more.captions[0].words[-1].end == pytest.approx(1.0)
    assert storyboard_faults(more) == ()
    with pytest.raises(Unfit):
        replace_caption(spoken, 0, " ")


def test_keys_are_those_of_the_overlays(board):
    for one in editable_texts(board):
        assert one.key == f"t{one.overlays[0]}"
        assert storyboard_edits.scene_at(board, one.start) == one.scene
