"""The tray of the calendar: what it holds for whom, items put into slots from both sides, and what is refused."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts import workspaces
from config.core.ids import encode, uuid7
from pipeline.models import GeneratedItem, Outlet, Publication, PublishQueue, WorkspaceDefaults
from pipeline.pages.calendar import tray
from pipeline.review import decisions
from tests.pages.answers import at, said
from tests.pages.test_calendar import NOW, chosen, items, slot_address
from tests.pipeline.steps import make_items, make_stage, promise, reread

SLOT = datetime(2027, 3, 25, 8, tzinfo=UTC)
"""09:00 on the next day, on the clocks of Berlin."""
SCRIPT = {"X-Calendar": "1"}


@pytest.fixture(autouse=True)
def still_clock():
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture
def editor(editor, newsroom, posts):
    workspaces.lift_limits(newsroom, "operator@example.test")
    return editor


@pytest.fixture
def feed(newsroom):
    return Outlet.everywhere.get(workspace=newsroom, platform="feed")


def shown(client, workspace, **query):
    return client.get(at(workspace, "calendar"), query).context["tray"]


def pks(found):
    return [one.item.pk for one in found.rows]


def schedule_address(item):
    return at(item.workspace, "calendar_schedule", gen=item.pk)


def slot_of(item, outlet, moment="2027-03-25T08:00:00Z"):
    return {"outlet": encode("out", outlet.pk), "at": moment, "version": str(item.version)}


def dropped(client, item, fields):
    answer = client.post(schedule_address(item), fields, headers=SCRIPT)
    return answer.status_code, answer.content.decode()


# --- What it holds ---------------------------------------------------------------------------------------------------


def test_it_holds_what_is_ready_and_not_scheduled_the_newest_first(editor, newsroom, feed):
    plain, approved, edited, held, scheduled, rejected, deleted = items(newsroom, 7)
    decisions.approve(approved, by="bob", now=NOW)
    decisions.approve(edited, by="bob", now=NOW)
    decisions.edit(reread(edited), {"body": "Other words that nobody has seen."}, by="carl", now=NOW)
    GeneratedItem.everywhere.filter(pk=held.pk).update(held="source_changed")
    promise(scheduled, feed, publish_at=NOW + timedelta(days=3))
    decisions.reject(rejected, reason="", by="bob", now=NOW)
    GeneratedItem.everywhere.filter(pk=deleted.pk).update(deleted_at=NOW)
    GeneratedItem.everywhere.filter(pk=plain.pk).update(ready_at=NOW - timedelta(hours=5))
    found = shown(editor, newsroom)
    assert [(one.item.pk, str(one.badge.label), one.outlet_names, one.age) for one in found.rows] == [
        (edited.pk, "Edited since approval", "Workspace feed", "Just now"),
        (approved.pk, "Approved", "Workspace feed", "Just now"),
        (plain.pk, "To review", "Workspace feed", "5 hours ago"),
    ]
    assert (found.count_text, found.older, found.has_unapproved) == ("3", "", True)
    html = editor.get(at(newsroom, "calendar")).content.decode()
    assert "Scheduling an unapproved item approves it." in html
    assert html.count("data-tray") == 3


def test_nothing_of_others_and_no_test_item_is_in_it(editor, newsroom, charlie):
    theirs = PublishQueue.everywhere.exclude(workspace=newsroom).get().workspace
    workspaces.whitelist(theirs, "operator@example.test")
    WorkspaceDefaults.everywhere.filter(workspace=theirs).update(engines=["Short Post"])
    (secret,) = make_items(theirs, title="Secret")
    make_items(newsroom, title="Only a test", test=True)
    (own,) = items(newsroom, 1)
    assert pks(shown(editor, newsroom)) == [own.pk]
    address = at(newsroom, "calendar_schedule", gen=secret.pk)
    fields = slot_of(secret, Outlet.everywhere.get(workspace=newsroom, platform="feed"))
    assert [editor.get(address).status_code, editor.post(address, fields).status_code] == [404, 404]
    assert reread(secret).status == "ready"


def test_an_empty_tray_says_what_to_do(editor, newsroom, feed, vera, as_person):
    html = editor.get(at(newsroom, "calendar")).content.decode()
    assert "Finished items wait here. Create one, or approve what is on hold." in html
    assert f'class="button small primary" href="{at(newsroom, "making")}"' in html
    html = as_person(vera).get(at(newsroom, "calendar")).content.decode()
    assert "Finished items wait here." in html
    assert f'class="button small primary" href="{at(newsroom, "making")}"' not in html
    items(newsroom, 1)
    letters = Outlet.everywhere.create(workspace=newsroom, platform="email_newsletter", name="Letter")
    narrowed = editor.get(at(newsroom, "calendar"), {"outlet": encode("out", letters.pk)})
    assert "No unscheduled item for this outlet" in narrowed.content.decode()


def test_a_viewer_looks_and_schedules_nothing(vera, as_person, editor, newsroom, feed):
    (item,) = items(newsroom, 1)
    viewer = as_person(vera)
    html = viewer.get(at(newsroom, "calendar")).content.decode()
    assert [item.title in html, "data-tray" in html, schedule_address(item) in html] == [True, False, False]
    assert dropped(viewer, item, slot_of(item, feed))[0] == 403
    assert not Publication.everywhere.exists()


def test_it_goes_on_page_by_page(editor, newsroom, feed, monkeypatch):
    monkeypatch.setattr(tray, "ROWS", 2)
    made = [item.pk for item in reversed(items(newsroom, 5))]
    first = shown(editor, newsroom)
    second = shown(editor, newsroom, before=first.older)
    third = shown(editor, newsroom, before=second.older)
    assert [pks(first), pks(second), pks(third)] == [made[:2], made[2:4], made[4:]]
    assert [one.count_text for one in (first, second, third)] == ["2+", "2+", "1+"]
    assert [bool(one.older) for one in (first, second, third)] == [True, True, False]
    html = editor.get(at(newsroom, "calendar"), {"view": "week", "before": first.older}).content.decode()
    assert f"before={second.older}#tray" in html
    assert "Newest" in html


def test_the_outlet_that_is_chosen_narrows_it(editor, newsroom, feed, monkeypatch):
    stage = make_stage(newsroom, name="Harbour")
    Outlet.everywhere.filter(pk=stage.pk).update(is_simulated=False)
    first, second, third, fourth = items(newsroom, 4)
    names = {row.pk: encode("out", row.pk) for row in (feed, stage)}
    for item, outlets in ((second, [stage]), (third, [stage, feed]), (fourth, [])):
        GeneratedItem.everywhere.filter(pk=item.pk).update(outlets=[names[one.pk] for one in outlets])
    found = shown(editor, newsroom, outlet=names[stage.pk])
    # What has no outlet of its own may go there too.
    assert [(one.item.pk, one.outlet_names) for one in found.rows] == [
        (fourth.pk, ""),
        (third.pk, "Harbour, Workspace feed"),
        (second.pk, "Harbour"),
    ]
    assert pks(shown(editor, newsroom, outlet=names[feed.pk])) == [fourth.pk, third.pk, first.pk]
    # No more are looked at than so many; the next page begins behind them.
    monkeypatch.setattr(tray, "MAX_ITEMS_SEARCHED", 2)
    narrowed = shown(editor, newsroom, outlet=names[feed.pk])
    assert pks(narrowed) == [fourth.pk, third.pk]
    following = shown(editor, newsroom, outlet=names[feed.pk], before=narrowed.older)
    assert (pks(following), following.older != "") == ([first.pk], True)


def test_the_statements_and_the_page_do_not_grow_with_what_waits(editor, newsroom, feed):
    (item,) = items(newsroom, 1)
    address = at(newsroom, "calendar")
    narrowed = f"{address}?outlet={encode('out', feed.pk)}"

    def counted(where):
        editor.get(where)
        with CaptureQueriesContext(connection) as seen:
            answer = editor.get(where)
        return len(seen), answer

    few, narrow = counted(address)[0], counted(narrowed)[0]
    copies = []
    for _number in range(400):
        copy = GeneratedItem.everywhere.get(pk=item.pk)
        copy.pk, copy.variant_group, copy._state.adding = uuid7(), uuid7(), True
        copies.append(copy)
    GeneratedItem.everywhere.bulk_create(copies, batch_size=100)
    many, answer = counted(address)
    assert (many, counted(narrowed)[0]) == (few, narrow)
    assert len(answer.context["tray"].rows) == tray.ROWS
    assert len(answer.content) < 150_000


def test_a_week_of_ten_outlets_stays_below_150_kb(editor, newsroom, feed):
    for number in range(9):
        stage = make_stage(newsroom, name=f"Channel {number} of the harbour")
        Outlet.everywhere.filter(pk=stage.pk).update(is_simulated=False)
    items(newsroom, tray.ROWS)
    answer = editor.get(at(newsroom, "calendar"), {"on": "2027-03-29"})
    assert (len(answer.context["board"].lanes), len(answer.context["tray"].rows)) == (10, tray.ROWS)
    assert len(answer.content) < 150_000


def test_its_statements_seek_by_index(editor, newsroom, feed):
    if connection.vendor != "sqlite":
        pytest.skip("tests/architecture/test_plans.py asks PostgreSQL.")
    items(newsroom, 1)
    before = encode("gen", uuid7())
    with CaptureQueriesContext(connection) as seen:
        editor.get(f"{at(newsroom, 'calendar')}?outlet={encode('out', feed.pk)}&before={before}")
        editor.get(at(newsroom, "calendar"))
        editor.get(f"{slot_address(newsroom, feed)}&before={before}")
    asked = [one["sql"] for one in seen if '"generated_item"."held" IN' in one["sql"]]
    # What was found for an outlet is read by its keys.
    asked = [sql for sql in asked if '"generated_item"."id" IN' not in sql]
    assert len(asked) == 3
    with connection.cursor() as cursor:
        for sql in asked:
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
            plan = [str(row[-1]) for row in cursor.fetchall()]
            assert any("generated_item_by_status (workspace_id=? AND test=?" in step for step in plan), plan
            assert not [step for step in plan if "SCAN" in step or "TEMP B-TREE" in step], plan


# --- Into a slot -----------------------------------------------------------------------------------------------------


def test_the_script_drops_an_item_on_a_slot_and_undo_leads_back_to_the_week(editor, newsroom, feed):
    (item,) = items(newsroom, 1)
    before = GeneratedItem.everywhere.values("status", "approved_by", "approved_revision").get(pk=item.pk)
    answer = editor.post(schedule_address(item), slot_of(item, feed), headers=SCRIPT)
    row = Publication.everywhere.get()
    assert (answer.status_code, row.due_at, row.queue.is_default) == (204, SLOT, True)
    message = said(answer)[-1]
    assert "Scheduled for Workspace feed on 25 Mar, 09:00." in message
    assert (reread(item).approved_by, pks(shown(editor, newsroom))) == ("bob@example.test", [])
    address = re.search(r'action="([^"]+)"', message)[1]
    fields = dict(re.findall(r'name="(undo|item|week)" value="([^"]+)"', message))
    back = editor.post(address, fields)
    assert back["Location"] == f"{at(newsroom, 'calendar')}?on=2027-03-25"
    assert reread(row).status == "cancelled"
    assert GeneratedItem.everywhere.values(*before).get(pk=item.pk) == before
    assert pks(shown(editor, newsroom)) == [item.pk]


def test_a_day_takes_it_at_its_first_free_slot(editor, newsroom, feed):
    one, other = items(newsroom, 2)
    promise(one, feed, publish_at=SLOT)
    # As a lane of a week names its outlet, and a month none.
    fields = {"day": "2027-03-25", "version": str(other.version)}
    assert dropped(editor, other, {**fields, "outlet": encode("out", feed.pk)}) == (204, "")
    row = Publication.everywhere.get(item=other)
    assert row.due_at == SLOT + timedelta(hours=3)
    editor.post(at(newsroom, "item_cancel", gen=other.pk), {"version": str(reread(other).version)})
    again = reread(other)
    assert again.status == "ready"
    assert dropped(editor, again, {**fields, "day": "2027-03-26", "version": str(again.version)}) == (204, "")
    assert Publication.everywhere.scheduled().get(item=other).due_at == SLOT + timedelta(days=1)


def test_what_it_is_not_scheduled_for_is_said(editor, newsroom, feed):
    stage = make_stage(newsroom, name="Harbour")
    (item,) = items(newsroom, 1)
    GeneratedItem.everywhere.filter(pk=item.pk).update(
        outlets=[encode("out", one.pk) for one in (feed, stage)]
    )
    answer = editor.post(schedule_address(item), slot_of(item, feed), headers=SCRIPT)
    assert "Not scheduled for Harbour." in said(answer)[-1]


def test_a_form_without_a_script_leads_to_the_week(editor, newsroom, feed):
    (item,) = items(newsroom, 1)
    answer = editor.get(schedule_address(item))
    (slots, *_others) = answer.context["slots"]
    assert (slots.outlet, slots.moments[1], slots.is_paused) == (feed, SLOT, False)
    html = answer.content.decode()
    assert "This item hasn't been approved. Scheduling approves it." in html
    assert f"{at(newsroom, 'item_publish', gen=item.pk)}?when=at" in html
    fields = {**slot_of(item, feed), "once": "one"}
    for _click in range(2):
        answer = editor.post(schedule_address(item), fields)
        assert answer["Location"].startswith(at(newsroom, "calendar"))
    assert Publication.everywhere.get().due_at == SLOT


def test_the_second_of_two_who_take_a_slot_is_told_and_offered_others(editor, newsroom, feed):
    one, other = items(newsroom, 2)
    assert dropped(editor, one, slot_of(one, feed))[0] == 204
    why = "Another post is scheduled there at that time."
    assert dropped(editor, other, slot_of(other, feed)) == (409, why)
    page = editor.post(schedule_address(other), slot_of(other, feed))
    assert (why in page.content.decode(), SLOT in page.context["slots"][0].moments) == (True, False)
    page = editor.post(slot_address(newsroom, feed), chosen(other))
    html = page.content.decode()
    assert [why in html, f"Other slots for {other.title}" in html] == [True, True]
    assert (Publication.everywhere.count(), pks(shown(editor, newsroom))) == (1, [other.pk])


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"version": ""}, "Reload the page, then choose again."),
        ({"version": "99"}, "Changed since you opened it. Choose again."),
        ({"at": "soon"}, "Choose a free slot."),
        ({"at": "2027-03-24T11:00:00Z"}, "Choose a time from now on, and at most 366 days ahead."),
        ({"at": "2028-05-01T11:00:00Z"}, "Choose a time from now on, and at most 366 days ahead."),
        ({"at": "", "day": "2027-03-28"}, "Workspace feed has no free slot on that day."),
        ({"at": "", "day": "0001-01-01"}, "Choose a free slot."),
        ({"at": "", "day": "2027-03-20"}, "Choose a time from now on, and at most 366 days ahead."),
        ({"outlet": encode("out", uuid7())}, "This outlet no longer exists."),
    ],
)
def test_a_refusal_says_why_and_changes_nothing(editor, newsroom, feed, fields, why):
    (item,) = items(newsroom, 1)
    assert dropped(editor, item, {**slot_of(item, feed), **fields}) == (409, why)
    page = editor.post(schedule_address(item), {**slot_of(item, feed), **fields})
    assert page.status_code == 200
    assert why.replace("'", "&#x27;") in page.content.decode()
    assert (Publication.everywhere.count(), reread(item).version) == (0, item.version)


def test_an_item_without_an_outlet_needs_a_lane(editor, newsroom, feed):
    (item,) = items(newsroom, 1)
    GeneratedItem.everywhere.filter(pk=item.pk).update(outlets=[])
    fields = {"day": "2027-03-25", "version": str(item.version)}
    why = "This item has no outlet that takes it. Choose a slot of an outlet."
    assert dropped(editor, item, fields) == (409, why)
    assert dropped(editor, item, {**fields, "outlet": encode("out", feed.pk)}) == (204, "")


def test_where_approval_is_asked_for_the_tray_offers_the_review(editor, newsroom, feed):
    waiting, approved = items(newsroom, 2)
    decisions.approve(approved, by="bob", now=NOW)
    type(newsroom).everywhere.filter(pk=newsroom.pk).update(requires_approval=True)
    html = editor.get(at(newsroom, "calendar")).content.decode()
    assert [schedule_address(waiting) in html, schedule_address(approved) in html] == [False, True]
    assert f'aria-label="Review {waiting.title}"' in html
    assert "Scheduling an unapproved item approves it." not in html
    why = "This workspace publishes only what is approved. Approve it first."
    assert dropped(editor, waiting, slot_of(waiting, feed)) == (409, why)
    assert why in editor.get(schedule_address(waiting)).content.decode()
    html = editor.get(slot_address(newsroom, feed)).content.decode()
    assert [f'aria-label="Review {waiting.title}"' in html, f"Schedule {approved.title}" in html] == [
        True
    ] * 2
    answer = editor.post(slot_address(newsroom, feed), chosen(waiting))
    assert why in answer.content.decode()


def test_what_is_scheduled_already_says_so(editor, newsroom, feed):
    (item,) = items(newsroom, 1)
    promise(item, feed, publish_at=SLOT)
    html = editor.get(schedule_address(item)).content.decode()
    assert "waiting to be scheduled any more: scheduled." in html
    assert not re.search(r'name="at"', html)


def test_a_slot_lists_what_its_outlet_can_take_page_by_page(editor, newsroom, feed, monkeypatch):
    from pipeline import publish
    from pipeline.pages.calendar import items_for_slot

    monkeypatch.setattr(items_for_slot, "ROWS", 2)
    oldest, unfit, newest = items(newsroom, 3)
    real = publish.problems_of
    monkeypatch.setattr(
        publish,
        "problems_of",
        lambda item, *rest: ["too long"] if item.pk == unfit.pk else real(item, *rest),
    )
    answer = editor.get(slot_address(newsroom, feed))
    assert [one.item.pk for one in answer.context["offered"]] == [newest.pk]
    assert "1 item isn't listed" in answer.content.decode()
    older = editor.get(f"{at(newsroom, 'calendar_slot')}?{answer.context['older']}")
    assert [one.item.pk for one in older.context["offered"]] == [oldest.pk]
    assert older.context["older"] == ""


def test_a_day_has_a_button_at_each_free_slot(editor, newsroom, feed, vera, as_person):
    address = f"{at(newsroom, 'calendar')}?view=day&on=2027-03-25"
    html = editor.get(address).content.decode()
    assert html.count('aria-label="Choose an item for ') == 3
    html = as_person(vera).get(address).content.decode()
    assert (html.count("Free slot · Workspace feed"), "Choose an item" in html) == (3, False)
    # A week says how many there are, with the way to the day.
    week = editor.get(at(newsroom, "calendar")).content.decode()
    assert '<a href="?view=day&amp;on=2027-03-25">3 free slots</a>' in week


# --- Tabs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["calendar", "calendar_fill", "queues_page", "queue_add", "series_page"])
def test_each_page_of_the_calendar_has_its_tabs(editor, newsroom, name):
    html = editor.get(at(newsroom, name)).content.decode()
    tabs = html.partition('<nav class="tabs" aria-label="Section">')[2].partition("</nav>")[0]
    assert re.findall(r">([^<]+)</a>", tabs) == ["Calendar", "Posting times", "Recurring"]
    assert tabs.count('aria-current="page"') == 1
    side = html.partition('<nav aria-label="Workspace">')[2].partition("</nav>")[0]
    current = re.search(r'<a href="([^"]+)" aria-current="page">', side)
    assert current[1] == at(newsroom, "calendar")
