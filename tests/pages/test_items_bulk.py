"""Content by page: the items of a story stand together, and several items are decided on at once."""

from __future__ import annotations

import re

import pytest

from config.core.ids import encode
from pipeline.models import GeneratedItem
from tests.pages.answers import at, text_of
from tests.pipeline.steps import make_items, reread

pytestmark = pytest.mark.usefixtures("own_media")


def story(workspace, title, count):
    """The items of one raw item, each of another format."""
    engines = ["Short Post", "Thread", "Quote Graphic"][:count]
    address = f"https://news.example/{title.replace(' ', '-')}"
    return sorted(make_items(workspace, title=title, url=address, engines=engines), key=lambda row: row.pk)


def listed(client, workspace):
    """How many rows each story on the page has."""
    html = text_of(client.get(at(workspace, "items_page")))
    return [body.count("<tr ") for body in re.findall(r"<tbody>(.*?)</tbody>", html, re.DOTALL)]


def boxes(html):
    return re.findall(r'<input type="checkbox" name="items" value="([^"]+)" form="bulk"', html)


def decide(client, workspace, rows, **given):
    tokens = [f"{encode('gen', row.pk)}:{row.version}" for row in rows]
    return client.post(
        at(workspace, "review_decide"), {"items": tokens, "list": "content", "query": "bucket=text", **given}
    )


def test_items_of_a_story_stand_together_where_its_newest_one_stands(editor, newsroom):
    old = story(newsroom, "Tram line approved", 2)
    between = story(newsroom, "Ferry cancelled", 1)
    (late,) = story(newsroom, "Museum opens", 1)
    # As if it were made of the first story later.
    GeneratedItem.everywhere.filter(pk=late.pk).update(raw_item=old[0].raw_item_id)
    found = [
        [row["id"] for row in rows] for rows in editor.get(at(newsroom, "items_page")).context["stories"]
    ]
    assert found == [[late.pk, old[1].pk, old[0].pk], [between[0].pk]]
    assert listed(editor, newsroom) == [3, 1]


def test_open_items_can_be_selected_by_those_who_may_decide(editor, newsroom, as_person, vera):
    ready, scheduled = story(newsroom, "Tram line approved", 2)
    GeneratedItem.everywhere.filter(pk=scheduled.pk).update(status="scheduled")
    html = text_of(editor.get(at(newsroom, "items_page")))
    assert boxes(html) == [f"{encode('gen', ready.pk)}:{ready.version}"]
    assert 'id="bulk"' in html
    theirs = text_of(as_person(vera).get(at(newsroom, "items_page")))
    assert (boxes(theirs), 'id="bulk"' in theirs) == ([], False)
    GeneratedItem.everywhere.filter(pk=ready.pk).update(status="published")
    assert 'id="bulk"' not in text_of(editor.get(at(newsroom, "items_page")))


def test_a_decision_on_several_returns_to_the_same_list_and_is_undone_from_there(editor, newsroom):
    rows = story(newsroom, "Tram line approved", 3)
    answer = decide(editor, newsroom, rows[:2], act="approve")
    assert answer["Location"] == at(newsroom, "items_page") + "?bucket=text"
    assert [reread(row).approved_at is not None for row in rows] == [True, True, False]
    shown = text_of(editor.get(answer["Location"]))
    assert "2 items approved." in shown
    form = next(part for part in shown.split("<form") if 'name="undo"' in part)
    fields = dict(re.findall(r'name="(undo|list|query)" value="([^"]*)"', form))
    back = editor.post(at(newsroom, "review_undo"), fields)
    assert back["Location"] == answer["Location"]
    assert [reread(row).approved_at for row in rows] == [None, None, None]


def test_an_item_that_changed_since_is_refused_and_the_others_are_done(editor, newsroom):
    first, second = story(newsroom, "Tram line approved", 2)
    GeneratedItem.everywhere.filter(pk=second.pk).update(version=second.version + 1)
    answer = decide(editor, newsroom, [first, second], act="reject", reason="Old news")
    assert [reread(row).status for row in (first, second)] == ["rejected", "ready"]
    shown = text_of(editor.get(answer["Location"]))
    assert "Rejected." in shown


def test_of_several_variants_the_first_is_published_however_the_list_is_sorted(editor, newsroom, stage):
    rows = make_items(newsroom, engines=["Short Post"], variants=2)
    GeneratedItem.everywhere.filter(pk__in=[row.pk for row in rows]).update(outlets=[encode("out", stage.pk)])
    newest_first = sorted((reread(row) for row in rows), key=lambda row: row.pk, reverse=True)
    decide(editor, newsroom, newest_first, act="publish", when="now")
    assert [reread(row).status for row in rows] == ["scheduled", "rejected"]


def test_nothing_selected_is_said_where_it_was_tried(editor, newsroom):
    story(newsroom, "Tram line approved", 1)
    answer = decide(editor, newsroom, [], act="approve", query="")
    assert answer["Location"] == at(newsroom, "items_page")
    assert "Choose at least one item." in text_of(editor.get(answer["Location"]))
