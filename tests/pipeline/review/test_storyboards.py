"""Storyboards that people change: filmed again without a model, once, and with their words held against the source."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from config.core.errors import Conflict, Invalid
from config.core.states import Overtaken
from pipeline import limits
from pipeline.generate import derived_words
from pipeline.generate import run as generation_run
from pipeline.media import files
from pipeline.models import Asset, Generation, ModelCall, Revision
from pipeline.render.video import film_process, storyboard_edits, storyboard_rearrange
from pipeline.render.video.film_process import RenderFailed
from pipeline.render.video.storyboard import Audio
from pipeline.render.video.storyboard_json import as_json
from pipeline.review import decisions, regenerate, storyboards
from tests.pipeline.generate.test_videos import GIVEN, filmed, folders, item_with_film
from tests.pipeline.steps import (
    NOON,
    balance,
    claimed,
    make_stage,
    pass_points_of_generate,
    promise,
    reread,
    send,
)

__all__ = ["filmed", "folders"]


@pytest.fixture
def item(workspace, filmed):
    return item_with_film(workspace)


def board_of(item):
    return storyboards.stored_storyboard(item).board


def text_of(board, name):
    return next(one for one in storyboard_edits.editable_texts(board) if one.name == name)


def written(board, name, words):
    return storyboard_edits.replace_text(board, text_of(board, name), words)


def edit(item, board, **given):
    return storyboards.edit(item, board, **{"by": "vera", "now": NOON, **given})


def film(item):
    generation_run.run_generation(claimed(reread(item).generation))
    return reread(item)


def refused(item, board):
    with pytest.raises(Invalid) as caught:
        edit(item, board)
    return [(one.field, one.code) for one in caught.value.detail]


def test_other_words_are_filmed_and_are_the_body(workspace, item, filmed):
    before, calls, money = item.body.splitlines(), ModelCall.everywhere.count(), balance(workspace)
    words = "The city paid 214 million crowns for all of them."
    place = before.index("The city paid 214 million crowns for them.")
    changed = edit(item, written(board_of(item), f"point {place}", words))
    assert (changed.status, changed.revision, changed.body.splitlines()[place]) == ("generating", 2, words)
    assert changed.content["script"] == changed.body
    assert {"excerpt": changed.excerpt} == derived_words(changed.body, changed.body_format)
    assert changed.excerpt != item.excerpt
    again = film(item)
    assert (again.status, again.error, balance(workspace)) == ("ready", None, money)
    assert ModelCall.everywhere.count() == calls
    assert [
        storyboard_edits.normalize_text(text_of(filmed[-1].board, f"point {place}").words),
        len(filmed),
    ] == [
        words,
        2,
    ]
    assert board_of(again) == filmed[-1].board
    assert Revision.everywhere.get(item=item, number=2).made_by == "vera"
    # The files before it are served no more.
    assert Asset.everywhere.filter(item=item, role="video", revoked_at=None).count() == 1
    assert [one["outcome"] for one in again.checks if one["code"] == "numbers"] == ["passed"]


def test_a_number_that_the_source_does_not_say_is_told(item):
    changed = edit(item, written(board_of(item), "point 1", "The city paid 999 million crowns for them."))
    (check,) = [one for one in changed.checks if one["code"] == "numbers"]
    assert (check["outcome"], "999" in check["message"]) == ("warning", True)
    again = film(item)
    assert [one["outcome"] for one in again.checks if one["code"] == "numbers"] == ["warning"]
    # Put right, it is told no more.
    assert "214" in str(GIVEN["body"])
    right = edit(again, written(board_of(again), "point 1", "The city paid 214 million crowns for them."))
    assert [one["outcome"] for one in right.checks if one["code"] == "numbers"] == ["passed"]


def test_scenes_go_change_places_and_last_longer(item, filmed):
    lines = item.body.splitlines()
    board = storyboard_rearrange.rearrange(board_of(item), [0, 3, 1, 4], {3: 5.0})
    changed = edit(item, board)
    assert changed.body.splitlines() == [lines[0], lines[3], lines[1], lines[4]]
    again = film(item)
    assert (again.status, len(filmed[-1].board.scenes)) == ("ready", 4)
    film_row = Asset.everywhere.get(item=item, role="video", revoked_at=None)
    assert film_row.duration == pytest.approx(board.duration)


def test_of_two_equal_lines_each_follows_its_own_text(item):
    words = storyboard_edits.normalize_text(text_of(board_of(item), "point 1").words)
    edit(item, written(board_of(item), "point 2", words))
    again = film(item)
    lines = again.body.splitlines()
    assert lines[1] == lines[2] == words

    second = edit(again, written(board_of(again), "point 2", "The quay is quiet."))

    assert second.body.splitlines() == [*lines[:2], "The quay is quiet.", *lines[3:]]


def test_of_two_equal_lines_the_one_whose_scene_goes_is_gone(item):
    words = storyboard_edits.normalize_text(text_of(board_of(item), "point 1").words)
    edit(item, written(board_of(item), "point 2", words))
    again = film(item)
    lines = again.body.splitlines()

    fewer = edit(again, storyboard_rearrange.rearrange(board_of(again), [0, 1, 3, 4], {}))

    assert fewer.body.splitlines() == [*lines[:2], *lines[3:]]


def test_longer_scenes_leave_the_words_alone(item):
    changed = edit(item, storyboard_rearrange.rearrange(board_of(item), range(5), {1: 6.0}))
    assert (changed.body, changed.revision, changed.checks_revision) == (item.body, 2, 2)
    by_code = {one["code"]: one for one in changed.checks}
    assert by_code == {one["code"]: one for one in item.checks}


def test_nothing_changed_writes_nothing(item):
    same = edit(item, board_of(item))
    assert (same.version, same.revision, same.status) == (item.version, 1, "ready")


def test_an_approval_of_before_holds_it(item):
    decisions.approve(item, by="vera", now=NOON)
    changed = edit(reread(item), storyboard_rearrange.rearrange(board_of(item), range(5), {1: 6.0}))
    assert changed.held == "approval_stale"


def test_whoever_was_overtaken_is_told(item):
    decisions.edit(item, {"outlets": []}, by="vera", now=NOON)
    decisions.approve(reread(item), by="vera", now=NOON)
    with pytest.raises(Overtaken):
        edit(
            item,
            storyboard_rearrange.rearrange(board_of(item), range(5), {1: 6.0}),
            expected_version=item.version,
        )
    assert reread(item).revision == 1


@pytest.mark.parametrize("status", ["scheduled", "publish_failed"])
def test_what_is_scheduled_or_failed_is_cancelled_first(workspace, item, status):
    publication = promise(item, make_stage(workspace, "reject"), publish_at=NOON)
    if status == "publish_failed":
        send(publication)
    assert reread(item).status == status
    with pytest.raises(Conflict) as caught:
        edit(reread(item), storyboard_rearrange.rearrange(board_of(item), range(5), {1: 6.0}))
    assert [one.code for one in caught.value.detail] == ["drawn_words"]


def test_what_cant_be_filmed_is_told_at_its_place(item):
    board = board_of(item)
    first = board.overlays[0]
    assert refused(item, replace(board, fps=60)) == [("storyboard.fps", "fixed")]
    beyond = replace(board, overlays=(replace(first, end=99.0), *board.overlays[1:]))
    assert refused(item, beyond) == [("storyboard.overlays[0]", "bad_storyboard")]
    scene = replace(board.scenes[1], end=board.scenes[1].end + 1)
    gap = replace(board, scenes=(board.scenes[0], scene, *board.scenes[2:]))
    assert refused(item, gap) == [("storyboard.scenes[2]", "bad_storyboard")]
    title = text_of(board, "title")
    words = board.overlays[title.overlays[0]]
    low = replace(words, items=(replace(words.items[0], y=1800.0),))
    covered = replace(
        board,
        overlays=tuple(low if place in title.overlays else one for place, one in enumerate(board.overlays)),
    )
    assert refused(item, covered) == [(f"storyboard.overlays[{title.overlays[0]}]", "outside")]
    assert refused(item, replace(board, audio=Audio(voice="other.wav"))) == [
        ("storyboard.scenes", "unknown_asset"),
        ("storyboard.audio", "fixed"),
    ]
    assert reread(item).revision == 1


@pytest.mark.parametrize("changes", [{"colour": "red"}, {"size": -4}, {"size": 10**9}, {"x": 10**8}])
def test_what_no_renderer_draws_is_refused_before_it_is_filmed(item, changes):
    board = board_of(item)
    place, disc = next(
        (place, one) for place, one in enumerate(board.overlays) if one.items[0].kind == "disc"
    )
    odd = replace(disc, items=(replace(disc.items[0], **changes),))
    overlays = tuple(odd if number == place else one for number, one in enumerate(board.overlays))
    assert refused(item, replace(board, overlays=overlays)) == [
        (f"storyboard.overlays[{place}]", "bad_storyboard")
    ]


def test_a_text_whose_lines_say_something_else_is_laid_out_anew(item, filmed):
    board = as_json(board_of(item))
    title = text_of(board_of(item), "title")
    board["overlays"][title.overlays[0]]["items"][0]["block"]["lines"][0]["text"] = (
        "Harbour boats go electric"
    )
    edit(item, storyboards.read_board(board))
    film(item)
    line = text_of(filmed[-1].board, "title")
    block = filmed[-1].board.overlays[line.overlays[0]].items[0].block
    assert line.words.startswith("Harbour boats go electric")
    drawn = " ".join(run.text.strip() for one in block.lines for run in one.runs)
    assert drawn.split() == line.words.split()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda board: board.pop("scenes"), "storyboard"),
        (lambda board: board["scenes"][1].update(end="soon"), "storyboard.scenes[1].end"),
        (lambda board: board["overlays"][0].update(colour="#fff"), "storyboard.overlays[0]"),
    ],
)
def test_members_that_are_none_are_named(item, change, field):
    board = as_json(board_of(item))
    change(board)
    with pytest.raises(Invalid) as caught:
        storyboards.read_board(board)
    assert [one.field for one in caught.value.detail] == [field]


def test_an_item_without_a_film_has_none(workspace, item):
    assert storyboards.stored_storyboard(item) is not None
    (board,) = Asset.everywhere.filter(item=item, role="storyboard")
    files.path_of(board.path).write_text("{}")
    assert storyboards.stored_storyboard(item) is None
    with pytest.raises(Conflict) as caught:
        edit(item, None)
    assert [one.code for one in caught.value.detail] == ["no_storyboard"]


@pytest.mark.parametrize("point", ["generate.claimed", "generate.rendered", "generate.written"])
def test_a_killed_renderer_films_again_and_nothing_else(workspace, item, filmed, monkeypatch, point):
    edit(item, storyboard_rearrange.rearrange(board_of(item), range(5), {1: 6.0}))
    money = balance(workspace)

    class Killed(BaseException):
        pass

    def die(name):
        if name == point:
            raise Killed

    with monkeypatch.context() as patch:
        pass_points_of_generate(patch, die)
        with pytest.raises(Killed):
            generation_run.run_generation(claimed(reread(item).generation))
    again = film(item)
    assert (again.status, again.revision, balance(workspace)) == ("ready", 2, money)
    # What was filmed already is not filmed once more.
    assert len(filmed) == 2
    assert Asset.everywhere.filter(item=item, role="video", revoked_at=None).count() == 1
    assert Generation.everywhere.get(pk=again.generation_id).answers == {}


def test_a_film_that_broke_keeps_the_storyboard_for_the_next_try(item, filmed, monkeypatch):
    board = storyboard_rearrange.rearrange(board_of(item), range(5), {1: 6.0})
    edit(item, board)
    made = film_process.render

    def broken(*_, **__):
        raise RenderFailed("It took more memory than it may have.", code="render_memory")

    monkeypatch.setattr(film_process, "render", broken)
    assert film(item).status == "failed"
    monkeypatch.setattr(film_process, "render", made)
    regenerate.retry(reread(item), workspace=item.workspace, now=NOON)
    assert (film(item).status, filmed[-1].board) == ("ready", board)


def test_what_people_wrote_for_the_files_stays(item):
    film_row = Asset.everywhere.get(item=item, role="video")
    Asset.everywhere.filter(pk=film_row.pk).update(alt_text="Boats at a quay.")
    edit(item, storyboard_rearrange.rearrange(board_of(item), range(5), {1: 6.0}))
    film(item)
    assert Asset.everywhere.get(item=item, role="video", revoked_at=None).alt_text == "Boats at a quay."


def test_json_of_a_film_is_far_below_its_limit(item):
    assert len(json.dumps(as_json(board_of(item)))) < limits.STORYBOARD_BYTES / 2
