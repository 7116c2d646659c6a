"""Saved views of Content: a name for what is filtered, the same for everybody of the workspace, deleted with an undo."""

from __future__ import annotations

import re
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts import workspaces
from config.core.errors import Invalid
from config.core.ids import encode
from pipeline import limits
from pipeline.models import SavedView, Source
from pipeline.workspace import saved_views
from tests.pages.answers import at, said, text_of


def save(client, workspace, name, filters="status=ready&bucket=text", **more):
    return client.post(at(workspace, "item_view_save"), {"name": name, "filters": filters}, **more)


def kept(workspace):
    return list(SavedView.objects.of(workspace).order_by("name").values_list("name", "filters"))


def test_what_is_filtered_is_saved_under_a_name(editor, newsroom, as_person, vera):
    source = Source.everywhere.get(workspace=newsroom, is_push=True, test=False)
    query = urlencode(
        {"q": "tram & line", "status": "ready", "bucket": "", "source": encode("src", source.pk)}
    )
    shown = text_of(editor.get(f"{at(newsroom, 'items_page')}?{query}"))
    sent = re.search(r'name="filters" value="([^"]+)"', shown)[1].replace("&amp;", "&")
    answer = save(editor, newsroom, "  Trams   to review ", sent)
    filters = {"q": "tram & line", "status": "ready", "source": encode("src", source.pk)}
    assert kept(newsroom) == [("Trams to review", filters)]
    page = editor.get(answer["Location"])
    assert page.context["current"].name == "Trams to review"
    # A viewer finds it too, and changes nothing.
    theirs = text_of(as_person(vera).get(answer["Location"]))
    assert ("Trams to review" in theirs, "Delete view" in theirs, "Save view" in theirs) == (
        True,
        False,
        False,
    )
    assert save(as_person(vera), newsroom, "Mine").status_code == 403


def test_a_page_further_back_is_of_the_same_view(editor, newsroom):
    save(editor, newsroom, "Ready", "status=ready&before=gen_x")
    assert kept(newsroom) == [("Ready", {"status": "ready"})]
    assert editor.get(at(newsroom, "items_page") + "?status=ready&bucket=").context["current"].name == "Ready"
    assert editor.get(at(newsroom, "items_page")).context["current"] is None


@pytest.mark.parametrize(
    ("name", "filters", "message"),
    [
        ("", "status=ready", "Enter a name for the view."),
        ("   ", "status=ready", "Enter a name for the view."),
        ("x" * 61, "status=ready", "A view's name has at most 60 characters."),
        ("There", "status=failed", "There is a view named There already; choose another name."),
        ("None", "", "Choose a filter first, then save it."),
        ("None", "status=nonsense", "Choose a filter first, then save it."),
    ],
)
def test_what_is_no_view_is_refused_in_words(editor, newsroom, name, filters, message):
    save(editor, newsroom, "There")
    answer = save(editor, newsroom, name, filters)
    assert said(answer)[-1] == message
    assert [one for one, _filters in kept(newsroom)] == ["There"]


def test_so_many_and_no_more(newsroom):
    for number in range(limits.SAVED_VIEWS):
        saved_views.create(newsroom, f"View {number}", {"status": "ready"})
    with pytest.raises(Invalid, match="delete one first"):
        saved_views.create(newsroom, "One more", {"status": "ready"})


def test_a_view_is_renamed(editor, newsroom):
    save(editor, newsroom, "Old")
    save(editor, newsroom, "Other", "status=failed")
    view = SavedView.everywhere.get(name="Old")
    answer = editor.post(at(newsroom, "item_view_rename", viw=view.pk), {"name": "New"})
    assert answer["Location"] == at(newsroom, "items_page") + "?bucket=text&status=ready"
    taken = editor.post(at(newsroom, "item_view_rename", viw=view.pk), {"name": "Other"})
    assert said(taken)[-1] == "There is a view named Other already; choose another name."
    assert [name for name, _filters in kept(newsroom)] == ["New", "Other"]


def test_a_deleted_view_is_taken_back(editor, newsroom):
    save(editor, newsroom, "Ready & waiting", "q=a%26b&status=ready")
    before = kept(newsroom)
    view = SavedView.everywhere.get()
    answer = editor.post(at(newsroom, "item_view_delete", viw=view.pk), follow=True)
    assert kept(newsroom) == []
    *_before, toast = [str(one).replace("&amp;", "&") for one in answer.context["messages"]]
    fields = dict(re.findall(r'name="(name|filters)" value="([^"]*)"', toast))
    editor.post(re.search(r'action="([^"]+)"', toast)[1], fields)
    assert kept(newsroom) == before


def test_nothing_of_another_workspace_is_there(editor, newsroom, charlie, as_person):
    theirs = workspaces.memberships_of(charlie)[0].workspace
    save(as_person(charlie), theirs, "Theirs")
    view = SavedView.everywhere.get()
    assert "Theirs" not in text_of(editor.get(at(newsroom, "items_page")))
    for name in ("item_view_rename", "item_view_delete"):
        assert editor.post(at(newsroom, name, viw=view.pk), {"name": "Mine"}).status_code == 404
    # The same name is free in each workspace.
    save(editor, newsroom, "Theirs")
    assert [len(kept(one)) for one in (newsroom, theirs)] == [1, 1]


def test_many_views_cost_one_statement(editor, newsroom):
    def cost():
        with CaptureQueriesContext(connection) as asked:
            editor.get(at(newsroom, "items_page"))
        return len(asked)

    save(editor, newsroom, "One")
    cost()
    one = cost()
    for number in range(20):
        saved_views.create(newsroom, f"View {number}", {"status": "ready"})
    assert cost() == one
