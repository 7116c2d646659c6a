"""Composite Short: what it shows while it tells, that it shows nothing twice, and what its checks stop."""

from __future__ import annotations

import dataclasses
import json
from itertools import combinations, pairwise

import pytest

from pipeline.engines.base import SourceText
from pipeline.engines.composite_short import PLUGIN
from pipeline.engines.composite_short.footage import choose_clips, count_visuals
from pipeline.plugins import Refused
from pipeline.render.audio import narration
from pipeline.render.audio.transcript_sentences import text_of
from pipeline.render.picture_types import AvailableMedia
from pipeline.render.video.material import Clip, FilmMaterial, Shot, StillImage
from pipeline.render.video.storyboard import Crop, Word, storyboard_faults, texts_outside
from pipeline.render.video.storyboard_json import as_json, from_json
from pipeline.render.video.templates.composite import PIECE_SECONDS, VisualSource, cut_pieces
from pipeline.render.video.templates.telling import Telling
from tests.engines.test_persona_short import ANN, SENTENCES, TEXT, TITLE, brief

LONG, SHORT, WIDE, TALL = (f"upl_01jd000000000000000000000{number}" for number in range(1, 5))
MATERIAL = FilmMaterial(
    clips=(Clip(LONG, seconds=60.0, author="Harbour TV", licence="CC BY 4.0"), Clip(SHORT, seconds=4.0)),
    stills=(StillImage(WIDE, 1600, 900, "Jane Doe", "CC0"), StillImage(TALL, 900, 1600)),
    credit="Lindholm Times",
)
SOURCE = SourceText(
    TITLE, TEXT, "https://www.lindholm-times.example/ferries", language="en", material=MATERIAL
)


def told(material=MATERIAL, source=SOURCE):
    return PLUGIN.told(brief(), dataclasses.replace(source, material=material))


def draft(material=MATERIAL, **changes):
    made = PLUGIN.offline(told(material), ANN, variants=1, seed="s")[0]
    return dataclasses.replace(made, **changes)


def showing(*clips):
    one = draft()
    return dataclasses.replace(one, content={**one.content, "clips": list(clips)})


def outcomes(one, outcome, material=MATERIAL):
    source = dataclasses.replace(SOURCE, material=material)
    return {
        check.code: check.message
        for check in PLUGIN.check(one, told(material), source, ANN)
        if check.outcome == outcome
    }


def spans(clips):
    return [(one["upload"], one.get("start"), one.get("end")) for one in clips]


def overlapping(clips):
    return [
        (one, other)
        for place, one in enumerate(spans(clips))
        for other in spans(clips)[place + 1 :]
        if one[0] == other[0] and (one[1] is None or (one[1] < other[2] and other[1] < one[2]))
    ]


def test_it_tells_word_for_word_and_shows_everything_once():
    one = draft()
    said = [claim.text for claim in one.claims]

    assert said == [sentence for sentence in SENTENCES if sentence in said]
    assert outcomes(one, "failed") == outcomes(one, "warning") == {}
    shown = one.content["clips"]
    assert {clip["upload"] for clip in shown} == {LONG, SHORT, WIDE, TALL}
    assert overlapping(shown) == []
    by_name = {clip["upload"]: (clip["author"], clip["licence"]) for clip in shown}
    assert by_name == {
        LONG: ("Harbour TV", "CC BY 4.0"),
        SHORT: ("Lindholm Times", ""),
        WIDE: ("Jane Doe", "CC0"),
        TALL: ("Lindholm Times", ""),
    }


def test_film_changes_its_picture_every_three_to_five_seconds():
    one = draft()
    board = PLUGIN.film(one, ANN, AvailableMedia(material=MATERIAL))

    assert storyboard_faults(board) == texts_outside(board) == ()
    assert from_json(json.loads(json.dumps(as_json(board)))) == board
    assert 20 <= board.duration <= 60
    *pieces, end = board.scenes
    assert all(PIECE_SECONDS[0] <= round(scene.end - scene.start, 3) <= PIECE_SECONDS[1] for scene in pieces)
    assert [scene.visual.kind for scene in pieces].count("colour") == 0
    assert end.visual.kind == "colour"
    # What was written down is shown in that order, and of each video no second twice.
    assert [scene.visual.asset for scene in pieces] == [clip["upload"] for clip in one.content["clips"]][
        : len(pieces)
    ]
    seen = [
        {
            "upload": scene.visual.asset,
            "start": scene.visual.since,
            "end": scene.visual.since + scene.end - scene.start,
        }
        for scene in pieces
        if scene.visual.kind == "clip"
    ]
    assert overlapping(seen) == []
    fits = {scene.visual.asset: scene.visual.fit for scene in pieces}
    assert (fits[WIDE], fits[TALL]) == ("pad", "cover")
    assert [word.t for card in board.captions for word in card.words][:4] == TITLE.split()
    credits = [overlay for overlay in board.overlays if overlay.name == "credit"]
    assert "Source: Harbour TV · CC BY 4.0" in str(credits[0].items)
    assert [(one.start, one.end) for one in credits] == [(scene.start, scene.end) for scene in pieces]


def test_moment_at_which_it_was_said_is_shown_while_it_is_told():
    said, at, begins = [], 1.0, {}
    for sentence in SENTENCES:
        begins[sentence] = round(at, 2)
        for word in sentence.split():
            said.append(Word(word, round(at, 2), round(at + 0.3, 2)))
            at += 0.5
        at += 1.0
    words = tuple(said)
    material = FilmMaterial((Clip(LONG, words, seconds=at + 5),), ())
    source = dataclasses.replace(SOURCE, text=text_of(words), material=material)
    found = PLUGIN.told(brief(), source)
    assert found.material.words_at == 0
    one = PLUGIN.offline(found, ANN, variants=1, seed="s")[0]
    board = PLUGIN.film(one, ANN, AvailableMedia(material=material))

    shown = {
        round(scene.visual.since + 0.3, 2): scene for scene in board.scenes if scene.visual.kind == "clip"
    }
    spoken = narration.silent(PLUGIN.script(one, ANN)).words
    for claim in one.claims:
        scene = shown[begins[claim.text]]
        meanwhile = [word.t for word in spoken if scene.start <= word.start < scene.end]
        assert len(set(meanwhile) & set(claim.text.split())) > len(meanwhile) / 2


def test_piece_begins_with_a_cut_that_would_come_at_once():
    one = draft()
    first = one.content["clips"][0]
    begun = first["start"] + 0.4
    shots = (Shot(first["start"], begun, None), Shot(begun, first["end"], Crop(0.3, 0.0, 0.3164, 1.0)))
    clips = (dataclasses.replace(MATERIAL.clips[0], shots=shots), MATERIAL.clips[1])
    board = PLUGIN.film(one, ANN, AvailableMedia(material=dataclasses.replace(MATERIAL, clips=clips)))
    assert board.scenes[0].visual.since == pytest.approx(begun)
    assert board.scenes[0].visual.fit == "cover"


def test_cards_stand_where_nothing_is_left_to_show():
    one = showing(*draft().content["clips"][:3])
    board = PLUGIN.film(one, ANN, AvailableMedia(material=MATERIAL))

    assert storyboard_faults(board) == texts_outside(board) == ()
    kinds = [scene.visual.kind for scene in board.scenes]
    assert kinds[0] == "clip"
    assert kinds.count("colour") > 1
    assert len([kind for kind in kinds if kind != "colour"]) == 3
    # Cards and pictures take turns while there are any.
    assert kinds[1] == "colour"
    assert {overlay.name for overlay in board.overlays} >= {"kicker", "credit", "title"}


@pytest.mark.parametrize(
    ("clips", "says"),
    [
        ([], "names 0 clips and pictures; 3 to 20"),
        ([{"upload": WIDE}, {"upload": TALL}, {"upload": WIDE}], "the same of .*3 twice"),
        (
            [
                {"upload": LONG, "start": 0, "end": 5},
                {"upload": WIDE},
                {"upload": LONG, "start": 4.5, "end": 9},
            ],
            "the same of .*1 twice",
        ),
        (
            [{"upload": LONG, "start": 58, "end": 62}, {"upload": WIDE}, {"upload": TALL}],
            "60.0 seconds long; second 62",
        ),
        (
            [{"upload": LONG, "start": 5, "end": 4}, {"upload": WIDE}, {"upload": TALL}],
            "3 to 10 seconds apart",
        ),
        (
            [{"upload": LONG, "start": 5, "end": 50}, {"upload": WIDE}, {"upload": TALL}],
            "3 to 10 seconds apart",
        ),
        ([{"upload": "upl_other"}, {"upload": WIDE}, {"upload": TALL}], "picture upl_other isn't among"),
        ([{"upload": LONG}, {"upload": WIDE}, {"upload": TALL}], "picture .*1 isn't among"),
        ([5, {"upload": WIDE}, {"upload": TALL}], "Each clip names an upload"),
    ],
)
def test_what_cannot_be_shown_is_refused_in_words(clips, says):
    one = showing(*clips)
    with pytest.raises(Refused, match=says) as refused:
        PLUGIN.film(one, ANN, AvailableMedia(material=MATERIAL))
    assert refused.value.field == "content.clips"
    assert set(outcomes(one, "failed")) == {"footage"}
    PLUGIN.spans(one)


@pytest.mark.parametrize(
    ("material", "count"),
    [
        (None, 0),
        (FilmMaterial((Clip(LONG, seconds=2.0),), (StillImage(WIDE, 200, 900),)), 0),
        (FilmMaterial((Clip(LONG, seconds=12.0),)), 2),
    ],
)
def test_too_little_to_show_is_declined(material, count):
    source = dataclasses.replace(SOURCE, material=material)
    assert PLUGIN.why_not(source).endswith(f"this item has {count}. Upload them and name them in the media.")


def test_too_few_words_are_declined():
    source = dataclasses.replace(SOURCE, text=" ".join(SENTENCES[:3]))
    assert PLUGIN.why_not(SOURCE) is None
    assert PLUGIN.why_not(source).startswith("A Composite Short needs 60 words")
    with pytest.raises(Refused, match=r"^The source holds too few sentences") as refused:
        PLUGIN.offline(
            PLUGIN.told(brief(tuple(SENTENCES[place] for place in (4, 6, 7, 10))), source),
            ANN,
            variants=1,
            seed="s",
        )
    assert refused.value.code == "nothing_to_say"


def test_story_that_is_too_long_is_stopped():
    long = draft(
        body="\n".join([TITLE, *(" ".join(SENTENCES[at : at + 4]) for at in (0, 4, 8)), "Source: x.example"])
    )
    assert "20 to 60 are possible" in outcomes(long, "failed")["length"]


def test_nobody_named_is_a_warning():
    nobody = dataclasses.replace(MATERIAL, credit="")
    assert outcomes(draft(nobody), "warning", nobody) == {
        "credits": f"These have no author: {SHORT}, {TALL}. Name the author in the media, or make sure "
        "that you may show them."
    }


def test_without_material_only_the_words_are_judged():
    assert PLUGIN.film(draft(), ANN, AvailableMedia()) is None
    one = draft()
    bad = dataclasses.replace(one, body=one.body.replace(TITLE, f"{TITLE} " * 8))
    with pytest.raises(Refused, match="doesn't fit"):
        PLUGIN.film(bad, ANN, AvailableMedia())


def test_edit_of_words_or_pictures_is_filmed_again():
    one = draft()
    fewer = showing(*one.content["clips"][:4])
    assert PLUGIN.drawn(one) != PLUGIN.drawn(fewer)
    assert PLUGIN.drawn(one) != PLUGIN.drawn(dataclasses.replace(one, body="x"))
    assert PLUGIN.drawn(one) == PLUGIN.drawn(dataclasses.replace(one, title="x"))


@pytest.mark.parametrize("seconds", [17.0, 23.5, 41.0, 200.0])
@pytest.mark.parametrize("count", [1, 5, 14])
@pytest.mark.parametrize("second", [None, 0.0, 9.0, 16.0])
@pytest.mark.parametrize("turn", [0, 1, 6])
def test_nothing_is_chosen_twice_however_it_lies(seconds, count, second, turn):
    words = (Word("a", 0.5, 0.8), Word("b", seconds - 1, seconds - 0.6))
    material = dataclasses.replace(MATERIAL, clips=(Clip(LONG, words, seconds=seconds), MATERIAL.clips[1]))
    shown = choose_clips(material, [second] * count, turn)
    assert overlapping(shown) == []
    assert len(shown) == min(count, count_visuals(material))
    assert all(0 <= one["start"] < one["end"] <= seconds for one in shown if one["upload"] == LONG)


def test_variants_show_other_parts_of_what_has_no_words():
    material = dataclasses.replace(MATERIAL, clips=(Clip(LONG, seconds=200.0), Clip(SHORT, seconds=90.0)))
    shown = [choose_clips(material, [None] * 6, turn) for turn in range(3)]
    of_videos = [{one for one in spans(clips) if one[1] is not None} for clips in shown]
    assert not any(one & other for one, other in combinations(of_videos, 2))
    # Where there is too little for that they begin with something else, in the order of each video.
    few = dataclasses.replace(MATERIAL, clips=(Clip(LONG, seconds=25.0), Clip(SHORT, seconds=25.0)))
    begun = [choose_clips(few, [None] * 8, turn) for turn in range(2)]
    assert begun[0][0]["upload"] != begun[1][0]["upload"]
    for clips in begun:
        starts = [one["start"] for one in clips if one["upload"] == LONG]
        assert starts == sorted(starts)


@pytest.mark.parametrize("rooms", [[5.0] * 20, [3.0] * 3, [3.2, 5.0, 4.1], []])
@pytest.mark.parametrize("until", [2.0, 5.3, 6.4, 19.7333, 44.4])
def test_pieces_follow_one_another_without_a_gap(rooms, until):
    words = narration.silent(Telling(TITLE, (TEXT[:700],), "", "end").script("en")).words
    pieces = cut_pieces(words, until, rooms)
    assert (pieces[0].start, pieces[-1].end) == (0.0, until)
    assert all(one.end == other.start for one, other in pairwise(pieces))
    assert all(0 < one.end - one.start <= PIECE_SECONDS[1] + 1e-6 for one in pieces)
    assert all(
        one.end - one.start <= rooms[one.source_index] + 1e-6
        for one in pieces
        if one.source_index is not None
    )
    places = [one.source_index for one in pieces if one.source_index is not None]
    assert places == sorted(set(places))


def test_still_and_part_of_a_video_have_their_room():
    assert VisualSource(WIDE).max_seconds == PIECE_SECONDS[1]
    assert VisualSource(LONG, 2.0, 5.5).max_seconds == 3.5
