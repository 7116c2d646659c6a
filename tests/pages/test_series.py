"""Series by page: begun, changed, paused, ended and taken back; what each would tell, and why one was skipped."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import AuditEntry
from config.core.ids import encode
from pipeline.models import Outlet, Series, Source
from pipeline.pages.series import forms
from pipeline.schedule import series
from tests.pages.answers import at, said
from tests.pipeline.steps import push_raw, reread

FORM = {
    "name": "Weekly",
    "timezone": "Europe/Berlin",
    "day_0": "8:30",
    "on_gap": "shift",
    "on_overlap": "first",
    "window_days": "7",
    "items_least": "3",
    "items_most": "5",
    "persona": "",
}


@pytest.fixture
def row(newsroom):
    given = {"name": "Weekly", "slots": [{"weekday": 0, "time": "08:30"}]}
    return series.create(newsroom, given, test=False, now=timezone.now(), by="alice@example.test")


def test_the_empty_list_says_what_to_do(editor, newsroom, vera, as_person):
    assert at(newsroom, "series_add") in editor.get(at(newsroom, "series_page")).content.decode()
    page = as_person(vera).get(at(newsroom, "series_page")).content.decode()
    assert [at(newsroom, "series_add") in page, "Ask an owner or editor" in page] == [False, True]


def test_one_is_begun_once_however_often_it_is_clicked(editor, newsroom):
    source = Source.everywhere.filter(workspace=newsroom, test=False).first()
    given = {**FORM, "once": "a", "sources": [encode("src", source.pk)]}
    answer = editor.post(at(newsroom, "series_add"), given)
    made = Series.everywhere.get()
    assert answer["Location"] == at(newsroom, "series_one", ser=made.pk)
    assert (made.slots, made.items_most, made.sources) == (
        [{"weekday": 0, "time": "08:30"}],
        5,
        [encode("src", source.pk)],
    )
    editor.post(at(newsroom, "series_add"), given)
    assert Series.everywhere.count() == 1
    assert list(AuditEntry.everywhere.filter(action="series.created").values_list("actor", flat=True)) == [
        "bob@example.test"
    ]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"day_0": "noon"}, "day_0"),
        ({"day_0": ""}, "day_0"),
        ({"items_least": "6"}, "items_most"),
        ({"name": " "}, "name"),
        ({"window_days": "0"}, "window_days"),
    ],
)
def test_what_is_wrong_is_told_at_its_field(editor, newsroom, changes, field):
    answer = editor.post(at(newsroom, "series_add"), {**FORM, **changes})
    assert (answer.status_code, set(answer.context["form"].errors)) == (200, {field})
    assert not Series.everywhere.exists()


def test_it_is_changed_and_whoever_was_overtaken_is_told(editor, newsroom, row):
    page = at(newsroom, "series_edit", ser=row.pk)
    form = editor.get(page).context["form"]
    sent = {name: value for name in form.fields if (value := form[name].value())} | {"name": "Daily"}
    series.change(row, {"items_most": 6}, now=timezone.now(), by="vera")
    late = editor.post(page, sent)
    assert "Edited since you opened it. Save again to overwrite, or cancel to see it." in str(
        late.context["form"].errors
    )
    assert (late.context["form"]["name"].value(), reread(row).name) == ("Daily", "Weekly")
    assert editor.post(page, {**sent, "version": "2"}).status_code == 302
    assert reread(row).name == "Daily"


def sent_back(editor, page):
    form = editor.get(page).context["form"]
    return {name: value for name in form.fields if (value := form[name].value())}


def test_saving_something_else_keeps_what_was_deleted_and_what_is_due(editor, newsroom, row):
    sources = [
        Source.everywhere.filter(workspace=newsroom, test=False).first(),
        Source.everywhere.create(workspace=newsroom, type="rss", name="The Gazette"),
    ]
    outlet = Outlet.everywhere.get(workspace=newsroom, platform="feed")
    lists = {"sources": [encode("src", sources[1].pk)], "outlets": [encode("out", outlet.pk)]}
    series.change(row, lists, now=timezone.now())
    Source.everywhere.filter(pk=sources[1].pk).update(deleted_at=timezone.now())
    Outlet.everywhere.filter(pk=outlet.pk).update(deleted_at=timezone.now())
    due = timezone.now() - timedelta(minutes=3)
    Series.everywhere.filter(pk=row.pk).update(due_at=due, wake_at=due)
    page = at(newsroom, "series_edit", ser=row.pk)
    assert "The Gazette (deleted)" in editor.get(page).content.decode()
    assert editor.post(page, {**sent_back(editor, page), "name": "Daily"}).status_code == 302
    kept = reread(row)
    assert (kept.name, kept.sources, kept.outlets, kept.due_at) == (
        "Daily",
        lists["sources"],
        lists["outlets"],
        due,
    )
    # Whoever wants all of them says so.
    editor.post(page, {**sent_back(editor, page), "sources": []})
    assert reread(row).sources == []


def test_a_source_beyond_those_that_are_offered_is_kept(editor, newsroom, row, monkeypatch):
    last = Source.everywhere.create(workspace=newsroom, type="rss", name="The Gazette")
    series.change(row, {"sources": [encode("src", last.pk)]}, now=timezone.now())
    monkeypatch.setattr(forms, "SOURCES_OFFERED", 1)
    page = at(newsroom, "series_edit", ser=row.pk)
    assert "The Gazette" in editor.get(page).content.decode()
    assert editor.post(page, {**sent_back(editor, page), "name": "Daily"}).status_code == 302
    assert (reread(row).name, reread(row).sources) == ("Daily", [encode("src", last.pk)])


def test_taking_back_beyond_the_most_says_so(editor, newsroom, row, monkeypatch):
    editor.post(at(newsroom, "series_delete", ser=row.pk), {"version": "1"})
    monkeypatch.setattr("pipeline.limits.SERIES_MOST", 0)
    answer = editor.post(at(newsroom, "series_restore", ser=row.pk))
    assert (answer["Location"], "0 series at most" in said(answer)[-1]) == (at(newsroom, "series_page"), True)


def test_it_shows_what_it_would_tell_and_why_there_was_none(editor, newsroom, row):
    raw = push_raw(
        newsroom, title="The tram opens", body="The tram line opens on Sunday morning at nine. " * 5
    )
    row.issues.create(
        workspace=newsroom, due_at=timezone.now(), decision="too_few", message="Only 1 of 3.", found=1
    )
    answer = editor.get(at(newsroom, "series_one", ser=row.pk))
    page = answer.content.decode()
    assert [one.pk for one in answer.context["choice"].raw_items] == [raw.raw_item.pk]
    assert ["Only 1 of 3." in page, "Not enough stories" in page, "The tram opens" in page] == [True] * 3
    assert ["stories needed for a digest" in page, "Create digest now" in page] == [True, False]
    assert answer.context["next"] == [
        one.moment for one in series.next_slots(row, after=timezone.now(), most=5)
    ]


def test_making_one_of_too_little_says_why(editor, newsroom, row):
    answer = editor.post(at(newsroom, "series_make", ser=row.pk), {"once": "a"})
    assert "at least 3 items" in said(answer)[0]
    assert not row.issues.exists()


def test_it_pauses_and_goes_on(editor, newsroom, row):
    address = at(newsroom, "series_pause", ser=row.pk)
    editor.post(address, {"version": "1"})
    assert (reread(row).is_paused, reread(row).due_at) == (True, None)
    stale = editor.post(address, {"version": "1", "on": "yes"})
    assert "Changed since you opened it. This is the current version." in said(stale)[-1]
    editor.post(address, {"version": "2", "on": "yes"})
    assert reread(row).is_paused is False


def test_it_ends_and_is_taken_back(editor, newsroom, row):
    answer = editor.post(at(newsroom, "series_delete", ser=row.pk), {"version": "1"})
    assert answer["Location"] == at(newsroom, "series_page")
    assert at(newsroom, "series_restore", ser=row.pk) in said(answer)[0]
    assert editor.get(at(newsroom, "series_one", ser=row.pk)).status_code == 404
    assert editor.get(at(newsroom, "series_page")).context["rows"] == []
    editor.post(at(newsroom, "series_restore", ser=row.pk))
    assert reread(row).deleted_at is None
    assert editor.get(at(newsroom, "series_one", ser=row.pk)).status_code == 200


def test_another_workspaces_series_is_none(newsroom, row, charlie, as_person):
    theirs = charlie.memberships.get().workspace
    client = as_person(charlie)
    for name in ("pause", "make", "delete", "edit"):
        for workspace in (theirs, newsroom):
            assert client.post(at(workspace, f"series_{name}", ser=row.pk), FORM).status_code == 404
    assert reread(row).version == 1
