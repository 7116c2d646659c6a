"""Repeating items by page: let come back, changed, stopped, each taken back; the list beside the series."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from pipeline.models import Outlet, Recurrence, RecurrenceTurn
from pipeline.schedule import recurring
from tests.pages.answers import said
from tests.pipeline.steps import make_items, promise, reread, send

FORM = {"every_days": "30", "time": "18:30", "version": ""}


@pytest.fixture
def item(newsroom):
    made = make_items(newsroom)[0]
    send(promise(made, Outlet.everywhere.get(workspace=newsroom, platform="simulated")))
    return reread(made)


@pytest.fixture
def row(item):
    return recurring.begin(item, every_days=14, by="alice@example.test", now=timezone.now())


def at(item, name):
    return reverse(name, kwargs={"ws": item.workspace_id, "gen": item.pk})


def the_list(item):
    return reverse("series_page", kwargs={"ws": item.workspace_id})


def text(answer):
    return " ".join(answer.content.decode().split())


def test_the_item_offers_it_to_those_who_may(editor, item, vera, as_person):
    assert at(item, "item_recurring") in text(editor.get(at(item, "item_page")))
    assert at(item, "item_recurring") not in text(as_person(vera).get(at(item, "item_page")))


def test_it_is_let_come_back_and_taken_back(editor, item):
    form = text(editor.get(at(item, "item_recurring")))
    assert ['value="30"' in form, 'value="09:00"' in form] == [True, True]
    answer = editor.post(at(item, "item_recurring"), {**FORM, "once": "a"})
    made = Recurrence.everywhere.get()
    assert (answer["Location"], made.every_days, made.time) == (at(item, "item_page"), 30, "18:30")
    assert [
        "Repeats every 30 days" in said(answer)[0],
        at(item, "item_recurring_stop") in said(answer)[0],
    ] == [
        True,
        True,
    ]
    # A double click changes nothing.
    editor.post(at(item, "item_recurring"), {**FORM, "every_days": "5", "once": "a"})
    assert Recurrence.everywhere.get().version == 1
    page = text(editor.get(at(item, "item_page")))
    assert ["Every 30 days" in page, "Next variant on" in page] == [True, True]
    editor.post(at(item, "item_recurring_stop"), {"version": "1"})
    assert Recurrence.everywhere.get().status == "stopped"


def test_it_is_changed_with_its_undo(editor, item, row):
    answer = editor.post(at(item, "item_recurring"), {**FORM, "version": str(row.version)})
    assert 'name="every_days" value="14"' in said(answer)[0]
    editor.post(at(item, "item_recurring"), {"every_days": "14", "time": "09:00", "version": "2"})
    assert (reread(row).every_days, reread(row).time, reread(row).due_at) == (14, "09:00", row.due_at)


def test_who_looked_at_an_older_version_keeps_what_was_typed(editor, item, row):
    recurring.change(row, {"every_days": 3}, now=timezone.now())
    answer = editor.post(at(item, "item_recurring"), {**FORM, "version": "1", "once": "a"})
    page = text(answer)
    assert [
        "Changed since you opened it. This is the current version." in page,
        'value="30"' in page,
        reread(row).every_days,
    ] == [True, True, 3]
    editor.post(at(item, "item_recurring"), {**FORM, "version": "2", "once": "a"})
    assert reread(row).every_days == 30


def test_it_is_stopped_with_its_undo(editor, item, row):
    answer = editor.post(at(item, "item_recurring_stop"), {"version": "1"})
    assert 'name="on" value="yes"' in said(answer)[0]
    page = text(editor.get(at(item, "item_page")))
    assert ["Stopped by a person." in page, "bob@example.test" in page] == [True, True]
    answer = editor.post(at(item, "item_recurring_stop"), {"on": "yes", "version": "2"})
    assert (reread(row).status, reread(row).due_at) == ("active", row.due_at)
    stale = editor.post(at(item, "item_recurring_stop"), {"version": "1"})
    assert "Changed since you opened it. This is the current version." in said(stale)[-1]


def test_what_makes_no_sense_is_told_beside_its_field(editor, item):
    page = text(
        editor.post(at(item, "item_recurring"), {"every_days": "400", "time": "25:00", "version": ""})
    )
    assert ["366" in page, "valid time" in page, Recurrence.everywhere.count()] == [True, True, 0]


def test_stopping_what_never_came_back_is_not_found(editor, item):
    assert editor.post(at(item, "item_recurring_stop"), {}).status_code == 404


def test_an_item_that_came_back_leads_to_its_first(editor, item, row, newsroom):
    other = make_items(newsroom, external_id="b")[0]
    now = timezone.now()
    RecurrenceTurn.everywhere.create(
        workspace=newsroom, recurrence=row, due_at=now, decision="made", item=other
    )
    page = text(editor.get(at(other, "item_page")))
    assert ["Repeat of" in page, at(item, "item_page") in page] == [True, True]
    assert at(other, "item_page") in text(editor.get(at(item, "item_page")))


def test_the_list_shows_next_last_state_and_why(editor, item, row, newsroom):
    assert "Not yet" in text(editor.get(the_list(item)))
    RecurrenceTurn.everywhere.create(
        workspace=newsroom,
        recurrence=row,
        due_at=timezone.now() - timedelta(days=1),
        decision="still_waiting",
    )
    page = text(editor.get(the_list(item)))
    assert ["Previous still in review" in page, "14 days" in page, at(item, "item_page") in page] == [
        True
    ] * 3
    recurring.change(row, {"status": "stopped"}, by="alice@example.test", now=timezone.now())
    page = text(editor.get(the_list(item)))
    assert ["Stopped by a person." in page, "Stopped" in page] == [True, True]


def test_the_list_takes_the_same_statements_however_long(editor, newsroom, row, item):
    def count():
        with CaptureQueriesContext(connection) as seen:
            editor.get(the_list(item))
        # What stands on every page is kept for a second here and there.
        return sum("recurrence" in query["sql"] for query in seen)

    def came_back(one):
        RecurrenceTurn.everywhere.create(
            workspace=newsroom, recurrence=one, due_at=timezone.now(), decision="made", item=one.item
        )

    came_back(row)
    first = count()
    for number in range(4):
        other = make_items(newsroom, external_id=f"more-{number}")[0]
        came_back(recurring.begin(other, every_days=2, now=timezone.now()))
    assert [first, count()] == [2, 2]


def test_the_empty_list_says_what_to_do(editor, newsroom, vera, as_person):
    address = reverse("series_page", kwargs={"ws": newsroom.pk})
    assert "View published items" in text(editor.get(address))
    page = text(as_person(vera).get(address))
    assert ["View published items" in page, "Ask an owner or editor." in page] == [False, True]
