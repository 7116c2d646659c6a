"""A film's storyboard by page: shown on the item, changed in a form, and nothing that was typed is lost."""

from __future__ import annotations

import pytest
from django.contrib.messages import get_messages
from django.urls import reverse

from pipeline.generate import run as generation_run
from pipeline.models import Publication
from pipeline.render.video import storyboard_edits
from pipeline.review import decisions, storyboards
from tests.pages.answers import errors
from tests.pipeline.generate.test_videos import GIVEN, filmed, folders, item_with_film
from tests.pipeline.steps import NOON, OTHER_TEXT, claimed, make_items, make_stage, promise, reread

__all__ = ["filmed", "folders"]


@pytest.fixture
def item(newsroom, filmed):
    return item_with_film(newsroom)


def at(item, name="item_storyboard"):
    return reverse(name, kwargs={"ws": item.workspace_id, "gen": item.pk})


def typed(editor, item, **changes):
    """What a browser sends of the form as it is shown, with some fields typed anew."""
    form = editor.get(at(item)).context["form"]
    return {name: form[name].value() for name in form.fields} | changes


def test_the_item_shows_its_scenes_with_times_and_words(editor, item):
    answer = editor.get(at(item, "item_page"))
    page = answer.content.decode()
    scenes = answer.context["scenes"]
    assert [one.number for one in scenes] == [1, 2, 3, 4, 5]
    assert ("Title", GIVEN["title"]) in scenes[0].texts
    assert [f"{scenes[0].start:.1f}–{scenes[0].end:.1f} s" in page, at(item) in page] == [True, True]


def test_what_is_changed_is_filmed_again(editor, item):
    before = storyboards.stored_storyboard(item).board
    sent = typed(editor, item, text_0_0="Harbour boats go electric", seconds_1="6", place_3="2", place_4="0")
    answer = editor.post(at(item), sent)
    assert answer.status_code == 302
    assert [str(one) for one in get_messages(answer.wsgi_request)] == ["Saved. Rendering the video (free)."]
    row = reread(item)
    assert (row.status, row.revision, row.body.splitlines()[0]) == (
        "generating",
        2,
        "Harbour boats go electric",
    )
    (board,) = [storyboards.read_board(row.generation.answers["redraw"]["storyboard"])]
    names = [one.name for one in storyboard_edits.editable_texts(board) if one.name.startswith("point")]
    assert names == ["point 3", "point 1", "point 2"]
    assert (len(board.scenes), len(before.scenes)) == (4, 5)
    lengths = [round(one.end - one.start, 2) for one in board.scenes]
    assert lengths[2] == 6.0


def test_every_fault_is_told_beside_what_it_concerns(editor, item):
    sent = typed(editor, item, text_0_0="word " * 90, seconds_2="0.1", text_1_1=" ")
    answer = editor.post(at(item), sent)
    told = errors(answer)
    assert set(told) == {"seconds_2", "text_1_1"}
    answer = editor.post(at(item), typed(editor, item, text_0_0="word " * 90, seconds_1="5"))
    assert [set(errors(answer)), "5" in answer.content.decode()] == [{"text_0_0"}, True]
    assert "Shorten them." in errors(answer)["text_0_0"][0]
    assert ("word word" in answer.content.decode(), reread(item).revision) == (True, 1)
    everything = typed(editor, item, **{f"place_{place}": "0" for place in range(5)})
    assert errors(editor.post(at(item), everything)) == {"__all__": ["A film has one scene at least."]}


def test_a_film_that_is_too_long_is_told(editor, item):
    answer = editor.post(at(item), typed(editor, item, **{f"seconds_{place}": "60" for place in range(5)}))
    assert "The maximum is 180 seconds, not 300." in str(errors(answer))
    assert reread(item).revision == 1


def test_nothing_changed_is_said_so(editor, item):
    answer = editor.post(at(item), typed(editor, item))
    assert [str(one) for one in get_messages(answer.wsgi_request)] == ["No changes."]
    assert reread(item).version == item.version


def test_whoever_was_overtaken_keeps_what_they_typed(editor, item):

    sent = typed(editor, item, text_1_1="Forty boats carry nine million people a year.")
    title = next(
        one
        for one in storyboard_edits.editable_texts(storyboards.stored_storyboard(item).board)
        if one.name == "title"
    )
    board = storyboard_edits.replace_text(
        storyboards.stored_storyboard(item).board, title, "Boats go electric"
    )
    storyboards.edit(item, board, by="vera", now=NOON)
    generation_run.run_generation(claimed(reread(item).generation))
    answer = editor.post(at(item), sent)
    form = answer.context["form"]
    assert (answer.status_code, answer.context["overtaken"]) == (200, "Edited by someone else.")
    assert [form["text_1_1"].value(), form["text_0_0"].value()] == [
        "Forty boats carry nine million people a year.",
        "Boats go electric",
    ]
    again = editor.post(at(item), {name: form[name].value() for name in form.fields})
    assert (again.status_code, reread(item).revision) == (302, 3)
    assert reread(item).body.splitlines()[:2] == [
        "Boats go electric",
        "Forty boats carry nine million people a year.",
    ]


def test_what_is_scheduled_says_so(editor, newsroom, item):
    promise(item, make_stage(newsroom), publish_at=NOON)
    page = editor.get(at(item)).content.decode()
    assert ["Unschedule the item to edit its storyboard." in page, "Save and render" in page] == [True, False]
    answer = editor.post(at(item), typed(editor, reread(item), seconds_1="6"))
    assert "Its video is scheduled. Unschedule it first" in answer.content.decode()
    assert Publication.everywhere.get().status == "scheduled"


def test_what_has_no_film_has_no_such_page(editor, newsroom, item):
    words = make_items(newsroom, engines=["Short Post"], title="Other", body=OTHER_TEXT)[0]
    assert editor.get(at(words))["Location"] == at(words, "item_page")
    decisions.erase(item, now=NOON)
    assert editor.get(at(item)).status_code == 404
