"""The calendar by page: days of 23 and 25 hours, a bounded view, a week filled, and a post moved or refused."""

from __future__ import annotations

import itertools
import re
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts import workspaces
from config.core.ids import encode, uuid7
from pipeline import publish
from pipeline.models import GeneratedItem, Outlet, Publication, PublishQueue, WeekPlan, WorkspaceDefaults
from pipeline.pages.calendar import queries as board
from pipeline.pages.calendar.date_range import date_range_of
from pipeline.publish import workspace_hold
from pipeline.review import decisions
from pipeline.schedule import queues, series
from tests.pages.answers import at, said
from tests.pipeline.steps import make_items, make_stage, promise, reread

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2027, 3, 24, 12, 0, tzinfo=UTC)  # The Wednesday before the clocks of Berlin go forward.


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


def digests(cell):
    return [(one.time, one.name) for one in cell.planned]


def items(workspace, count):
    return [
        make_items(
            workspace,
            title=f"News {number}",
            body=f"News number {number} of the day. " * 6,
            url=f"https://n.example/{number}",
        )[0]
        for number in range(count)
    ]


# --- Days ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("on", "hours"), [("2027-03-28", 23), ("2027-10-31", 25), ("2027-06-06", 24)])
def test_a_day_is_as_long_as_its_clocks_make_it(on, hours):
    (day,) = date_range_of("day", on, date(2027, 1, 1), BERLIN).days
    assert (day.hours, day.has_clock_change) == (hours, hours != 24)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Beirut"])
@pytest.mark.parametrize("view", ["day", "week", "month"])
def test_days_follow_each_other_without_a_hole(zone, view):
    span = date_range_of(view, "2027-01-01", date(2027, 1, 1), ZoneInfo(zone))
    for _step in range(60):
        days = list(span.days)
        for one, other in itertools.pairwise(days):
            assert (one.ends_at, other.on) == (other.starts_at, one.on + timedelta(days=1))
        following = date_range_of(view, span.next.isoformat(), date(2027, 1, 1), ZoneInfo(zone))
        assert following.on > span.on
        back = date_range_of(view, following.previous.isoformat(), date(2027, 1, 1), ZoneInfo(zone))
        assert (back.first, back.last) == (span.first, span.last)
        span = following


@pytest.mark.parametrize("asked", ["", "soon", "0001-01-01", "9999-12-31", "2027-13-01"])
def test_what_is_no_date_is_today(asked):
    assert date_range_of("week", asked, date(2027, 3, 24), BERLIN).first == date(2027, 3, 22)


@pytest.mark.parametrize("view", ["day", "week", "month"])
def test_the_first_and_the_last_date_lead_no_further(editor, newsroom, view):
    """What lies beyond is no date of the calendar: a link there would lead to today."""
    first = date_range_of(view, "2000-01-01", date(2027, 3, 24), BERLIN)
    last = date_range_of(view, "2099-12-31", date(2027, 3, 24), BERLIN)
    assert (first.previous, first.next is None, last.previous is None, last.next) == (
        None,
        False,
        False,
        None,
    )
    shown = {
        on: editor.get(f"{at(newsroom, 'calendar')}?view={view}&on={on}").content.decode()
        for on in ("2000-01-01", "2027-03-24", "2099-12-31")
    }
    labels = {
        on: ['aria-label="Previous"' in html, 'aria-label="Next"' in html] for on, html in shown.items()
    }
    assert labels == {"2000-01-01": [False, True], "2027-03-24": [True, True], "2099-12-31": [True, False]}


def test_posts_stand_on_the_day_that_the_clocks_show(editor, newsroom, feed):
    first, second = items(newsroom, 2)
    # One minute before and after midnight of the day with 23 hours.
    promise(first, feed, publish_at=datetime(2027, 3, 28, 21, 59, tzinfo=UTC))
    promise(second, feed, publish_at=datetime(2027, 3, 28, 22, 0, tzinfo=UTC))
    answer = editor.get(f"{at(newsroom, 'calendar')}?view=month&on=2027-03-28")
    days = {cell.day: [card.time for card in cell.cards] for cell in answer.context["board"].days}
    assert days[date(2027, 3, 28)] == ["23:59"]
    assert days[date(2027, 3, 29)] == ["00:00"]
    week = editor.get(f"{at(newsroom, 'calendar')}?on=2027-03-28")
    assert "23 h" in week.content.decode()


# --- What is shown ---------------------------------------------------------------------------------------------------


def publications(workspace, outlet, item, count):
    """So many rows over a month; each of an item of its own would cost the test an hour, so the rule is put aside."""
    rows = []
    for number in range(count):
        copy = GeneratedItem.everywhere.get(pk=item.pk)
        copy.pk, copy.variant_group, copy._state.adding = uuid7(), uuid7(), True
        due = datetime(2027, 4, 1, tzinfo=UTC) + timedelta(minutes=21 * number)
        rows.append(
            (
                copy,
                Publication(
                    workspace=workspace,
                    item=copy,
                    outlet=outlet,
                    platform=outlet.platform,
                    revision=1,
                    due_at=due,
                ),
            )
        )
    GeneratedItem.everywhere.bulk_create([copy for copy, _ in rows], batch_size=500)
    Publication.everywhere.bulk_create([row for _, row in rows], batch_size=500)


@pytest.mark.slow
def test_a_month_with_2000_publications_asks_no_more_than_one_with_10(editor, newsroom, feed):
    (item,) = items(newsroom, 1)
    address = f"{at(newsroom, 'calendar')}?view=month&on=2027-04-15"

    def counted():
        with CaptureQueriesContext(connection) as seen:
            answer = editor.get(address)
        return len(seen), answer

    publications(newsroom, feed, item, 10)
    few, _ = counted()
    few, _ = counted()
    publications(newsroom, feed, item, 1990)
    many, answer = counted()
    assert (answer.status_code, answer.context["board"].total) == (200, 2000)
    assert many == few
    # A cell shows three of some seventy, and says how many there are.
    assert len(answer.content) < 400_000
    assert "All 69" in answer.content.decode() or "All 68" in answer.content.decode()


def test_nothing_of_another_workspace_is_shown(editor, newsroom, feed, charlie):
    theirs = PublishQueue.everywhere.exclude(workspace=newsroom).get().workspace
    workspaces.whitelist(theirs, "operator@example.test")
    WorkspaceDefaults.everywhere.filter(workspace=theirs).update(engines=["Short Post"])
    their_feed = Outlet.everywhere.get(workspace=theirs, platform="feed")
    row = promise(make_items(theirs, title="Secret")[0], their_feed, publish_at=NOW + timedelta(days=1))
    answer = editor.get(at(newsroom, "calendar"))
    assert (answer.context["board"].total, "Secret" in answer.content.decode()) == (0, False)
    assert (
        editor.get(f"{at(newsroom, 'calendar')}?outlet={encode('out', their_feed.pk)}").context["board"].lanes
        == ()
    )
    assert (
        editor.post(at(newsroom, "calendar_move", pub=row.pk), {"at": "2027-04-01T10:00:00Z"}).status_code
        == 404
    )
    plan = WeekPlan.everywhere.create(workspace=theirs, made_by="charlie")
    assert editor.post(at(newsroom, "calendar_undo", pln=plan.pk)).status_code == 404


def test_one_outlet_alone_shows_what_the_cut_of_all_leaves_out(editor, newsroom, feed, monkeypatch):
    monkeypatch.setattr(board, "MAX_PUBLICATIONS_READ", 3)
    stage = make_stage(newsroom)
    made = items(newsroom, 5)
    for number, item in enumerate(made):
        promise(
            item, feed if number < 3 else stage, publish_at=NOW + timedelta(hours=number + 1, minutes=number)
        )
    address = at(newsroom, "calendar")
    everything = editor.get(address).context["board"]
    assert (everything.total, everything.is_cut) == (3, True)
    alone = editor.get(f"{address}?outlet={encode('out', stage.pk)}").context["board"]
    assert (alone.total, alone.is_cut, [lane.outlet for lane in alone.lanes]) == (2, False, [stage])


def test_late_and_failed_say_why(editor, newsroom, feed):
    one, other = items(newsroom, 2)
    failed = promise(one, feed, publish_at=NOW + timedelta(hours=1))
    error = {"code": "rejected", "message": "Too many links."}
    Publication.everywhere.filter(pk=failed.pk).update(status="failed", error=error)
    late = promise(other, feed, publish_at=NOW + timedelta(hours=1))
    Publication.everywhere.filter(pk=late.pk).update(due_at=NOW - timedelta(hours=3))
    workspace_hold.hold_workspace(newsroom, reason="A storm.", by="alice")
    answer = editor.get(at(newsroom, "calendar"))
    assert (answer.context["board"].late, answer.context["board"].failed) == (1, 1)
    assert answer.context["why"] == {
        failed.pk: "Too many links.",
        late.pk: "All publishing of the workspace is on hold: A storm.",
    }
    html = answer.content.decode()
    assert "1 would publish now" in html
    # In the note above the calendar, and next to the post.
    link = f'href="{at(newsroom, "failures")}?kind=publications">View problems</a>'
    assert (html.count(link), html.count(f'class="button small" {link}')) == (2, 1)
    assert "1 post failed or has an unknown outcome." in html
    # Home counts it, so it is counted here too.
    Publication.everywhere.filter(pk=failed.pk).update(status="unknown")
    assert editor.get(at(newsroom, "calendar")).context["board"].failed == 1


def test_a_blackout_and_the_free_slots_are_drawn(editor, newsroom, feed):
    usual = PublishQueue.everywhere.get(workspace=newsroom, is_default=True)
    blackout = {"from": "2027-03-25T12:00", "until": "2027-03-26T00:00", "reason": "Fair"}
    queues.change(usual, {"blackouts": [blackout]}, by="alice")
    (lane,) = editor.get(at(newsroom, "calendar")).context["board"].lanes
    cells = {cell.day.day: cell for cell in lane.cells}
    assert (cells[25].closed, [one.time for one in cells[25].openings]) == (["Fair"], ["09:00"])
    assert (cells[26].closed, [one.time for one in cells[26].openings]) == ([], ["09:00", "12:00", "17:00"])


def test_a_zone_that_was_dropped_and_a_blackout_without_an_end_break_nothing(editor, newsroom, feed):
    items(newsroom, 1)
    given = {"name": "Weekly", "slots": [{"weekday": 4, "time": "08:30"}]}
    row = series.create(newsroom, given, test=False, now=NOW, by="alice")
    usual = PublishQueue.everywhere.filter(workspace=newsroom, is_default=True)
    endless = [{"from": "2027-03-25T12:00", "until": "9999-12-31T23:59", "reason": "Closed"}]
    usual.update(blackouts=endless, timezone="America/New_York")
    pages = [at(newsroom, "calendar"), at(newsroom, "calendar_fill"), at(newsroom, "queues_page")]
    pages.append(at(newsroom, "queue_edit", que=usual.get().pk))
    (lane,) = editor.get(pages[0]).context["board"].lanes
    assert [cell.closed for cell in lane.cells] == [[]] * 3 + [["Closed"]] * 4
    assert [editor.get(page).status_code for page in pages] == [200] * 4
    usual.update(timezone="Europe/Atlantis")
    type(row).everywhere.filter(pk=row.pk).update(timezone="Europe/Atlantis")
    planned = [digests(cell) for cell in editor.get(pages[0]).context["board"].days]
    assert planned == [[]] * 7
    assert [editor.get(page).status_code for page in pages] == [200] * 4


def test_a_series_that_was_ended_makes_nothing_any_more(editor, newsroom, feed):
    given = {"name": "Weekly", "slots": [{"weekday": 4, "time": "08:30"}]}
    row = series.create(newsroom, given, test=False, now=NOW, by="alice")
    planned = [digests(cell) for cell in editor.get(at(newsroom, "calendar")).context["board"].days]
    assert planned == [[]] * 4 + [[("08:30", "Weekly")]] + [[]] * 2
    series.delete(row, now=NOW)
    planned = [digests(cell) for cell in editor.get(at(newsroom, "calendar")).context["board"].days]
    assert planned == [[]] * 7


def test_the_filter_lists_every_outlet_that_is_connected_or_has_posts(editor, newsroom, feed):
    test_channel = Outlet.everywhere.get(workspace=newsroom, is_simulated=True)
    gone = make_stage(newsroom, name="Gone")
    promise(items(newsroom, 1)[0], gone, publish_at=NOW + timedelta(hours=1))
    Outlet.everywhere.filter(pk=gone.pk).update(deleted_at=NOW)

    def listed(**query):
        return {name for _key, name in editor.get(at(newsroom, "calendar"), query).context["outlets"]}

    assert listed() == {feed.name, test_channel.name, "Gone"}
    assert "Gone" in listed(outlet=encode("out", gone.pk), on="2026-01-01")


# --- Filling ---------------------------------------------------------------------------------------------------------


def ticked(answer):
    return [line["value"] for _day, lines in answer.context["days"] for line in lines]


def test_a_week_is_shown_scheduled_and_taken_back(editor, newsroom, feed):
    items(newsroom, 3)
    shown = editor.get(at(newsroom, "calendar_fill"))
    assert Publication.everywhere.count() == 0
    lines = ticked(shown)
    assert len(lines) == 3
    answer = editor.post(at(newsroom, "calendar_fill"), {"entry": lines[:2]})
    assert (answer["Location"], Publication.everywhere.filter(status="scheduled").count()) == (
        f"{at(newsroom, 'calendar')}?view=week&on=2027-03-24",
        2,
    )
    plan = WeekPlan.everywhere.get()
    assert at(newsroom, "calendar_undo", pln=plan.pk) in said(answer)[0]
    taken = editor.post(at(newsroom, "calendar_undo", pln=plan.pk))
    assert said(taken)[-1] == "2 posts unscheduled."
    assert not Publication.everywhere.filter(status="scheduled").exists()


def boxes(answer):
    """By an item's public id whether its line is ticked."""
    found = re.findall(r'name="entry" value="(gen_\w+) [^"]*"( checked)?>', answer.content.decode())
    return {name: bool(is_ticked) for name, is_ticked in found}


def test_what_nobody_has_approved_is_shown_and_not_ticked(editor, newsroom, feed):
    approved, waiting, edited = items(newsroom, 3)
    decisions.approve(approved, by="bob", now=NOW)
    # As words that were edited after their approval.
    GeneratedItem.everywhere.filter(pk=edited.pk).update(
        approved_revision=edited.revision - 1, approved_at=NOW, approved_by="bob"
    )
    shown = editor.get(at(newsroom, "calendar_fill"))
    names = [encode("gen", row.pk) for row in (approved, waiting, edited)]
    assert [boxes(shown)[name] for name in names] == [True, False, False]
    labels = {
        line["item"]: str(line["badge"].label) for _day, lines in shown.context["days"] for line in lines
    }
    assert [labels[row.pk] for row in (approved, waiting, edited)] == [
        "Approved",
        "To review",
        "Edited since approval",
    ]
    assert "2 posts haven't been approved, so they aren't selected." in shown.content.decode()


def test_all_that_is_shown_is_approved_and_scheduled_by_one_button(editor, newsroom, feed):
    approved, waiting = items(newsroom, 2)
    decisions.approve(approved, by="bob", now=NOW)
    html = editor.get(at(newsroom, "calendar_fill")).content.decode()
    assert "Approve and schedule all 2" in html
    # The note about what isn't selected is read before the buttons.
    assert html.index("hasn't been approved") < html.index("Schedule selected")
    # Enter in a checkbox presses the form's first button.
    form = html[html.index('aria-labelledby="plan-head"') :]
    assert 'name="all"' not in re.search(r"<button[^>]*>", form)[0]
    shown = re.findall(r'name="shown" value="([^"]+)"', html)
    editor.post(at(newsroom, "calendar_fill"), {"shown": shown, "all": "yes"})
    assert [(row.status, row.is_approved) for row in map(reread, (approved, waiting))] == [
        ("scheduled", True)
    ] * 2


def test_where_all_is_approved_one_button_schedules_it(editor, newsroom, feed):
    (approved,) = items(newsroom, 1)
    decisions.approve(approved, by="bob", now=NOW)
    html = editor.get(at(newsroom, "calendar_fill")).content.decode()
    assert ("Schedule selected" in html, "Approve and schedule all" in html) == (True, False)


def test_items_with_one_reason_stand_below_it_once(editor, newsroom, feed):
    made = items(newsroom, 5)
    Outlet.everywhere.filter(pk=feed.pk).update(gap_minutes=7 * 24 * 60)
    shown = editor.get(at(newsroom, "calendar_fill"))
    ((why, rows),) = shown.context["left"]
    assert (
        why
        == "Workspace feed: its other slots are less than 168 hours from another post, the gap that it keeps."
    )
    assert (len(rows), len(made)) == (4, 5)
    assert shown.content.decode().count("the gap that it keeps") == 1


def test_what_was_asked_for_stays_where_nothing_is_ticked(editor, newsroom, feed):
    answer = editor.post(f"{at(newsroom, 'calendar_fill')}?days=14&a_day=2", {})
    assert answer["Location"] == f"{at(newsroom, 'calendar_fill')}?days=14&a_day=2"


def test_what_changed_meanwhile_is_told(editor, newsroom, feed):
    one, other = items(newsroom, 2)
    lines = ticked(editor.get(at(newsroom, "calendar_fill")))
    GeneratedItem.everywhere.filter(pk=one.pk).update(version=99)
    answer = editor.post(at(newsroom, "calendar_fill"), {"entry": lines})
    assert "1 changed and wasn't scheduled" in said(answer)[0]
    assert reread(other).status == "scheduled"


@pytest.mark.parametrize("entry", [[], ["nonsense"], ["gen_x 1 out_x soon"]])
def test_nothing_ticked_schedules_nothing(editor, newsroom, entry):
    answer = editor.post(at(newsroom, "calendar_fill"), {"entry": entry})
    assert said(answer) == ["Choose at least one post."]


def test_a_double_click_schedules_once(editor, newsroom, feed):
    items(newsroom, 1)
    lines = ticked(editor.get(at(newsroom, "calendar_fill")))
    for _click in range(2):
        editor.post(at(newsroom, "calendar_fill"), {"entry": lines, "once": "one"})
    assert WeekPlan.everywhere.count() == 1


# --- Moving ----------------------------------------------------------------------------------------------------------


def test_a_form_moves_it_on_the_workspaces_clocks(editor, newsroom, feed):
    row = promise(items(newsroom, 1)[0], feed, publish_at=NOW + timedelta(days=1))
    fields = {"local_time": "2027-03-29T10:30", "version": str(row.version)}
    answer = editor.post(at(newsroom, "calendar_move", pub=row.pk), fields)
    moved = reread(row)
    assert answer["Location"] == f"{at(newsroom, 'calendar')}?view=week&on=2027-03-29"
    assert (moved.due_at, moved.local_time, moved.zone) == (
        datetime(2027, 3, 29, 8, 30, tzinfo=UTC),
        "2027-03-29T10:30:00",
        "Europe/Berlin",
    )


def undo_in(answer):
    """The address and the note of the undo that the message offers; none where it offers none."""
    found = re.search(r'action="([^"]+)".*name="undo" value="([^"]+)"', said(answer)[-1])
    return found and found.groups()


def test_a_move_is_taken_back_to_the_letter(editor, newsroom, feed):
    row = promise(items(newsroom, 1)[0], feed, publish_at=NOW + timedelta(days=1, minutes=7))
    before = publish.take_snapshot(row.item)
    fields = {"at": "2027-03-29T07:00:00+00:00", "version": str(row.version)}
    moved = editor.post(at(newsroom, "calendar_move", pub=row.pk), fields, headers={"X-Calendar": "1"})
    address, note = undo_in(moved)
    assert publish.take_snapshot(row.item) != before
    back = editor.post(address, {"undo": note})
    assert said(back)[-1] == "Moved back to 13:07, 25 March."
    assert back["Location"] == f"{at(newsroom, 'calendar')}?view=week&on=2027-03-25"
    assert publish.take_snapshot(row.item) == before
    again = editor.post(address, {"undo": note})
    assert said(again)[-1] == "Changed since it was moved, so it stays where it is."


def test_what_changed_after_a_move_stays(editor, newsroom, feed):
    one, other = (
        promise(item, feed, publish_at=NOW + timedelta(days=day))
        for day, item in enumerate(items(newsroom, 2), start=1)
    )
    address = at(newsroom, "calendar_move", pub=one.pk)
    fields = {"local_time": "2027-03-29T10:30", "version": str(one.version)}
    undo, note = undo_in(editor.post(address, fields))
    editor.post(address, {"local_time": "2027-03-30T10:30", "version": str(reread(one).version)})
    for where, what, why in (
        (undo, note, "Changed since it was moved, so it stays where it is."),
        (undo, f"{note}x", "This can't be undone any more."),
        (at(newsroom, "calendar_move_back", pub=other.pk), note, "This can't be undone any more."),
    ):
        assert said(editor.post(where, {"undo": what}))[-1] == why
    assert reread(one).due_at == datetime(2027, 3, 30, 8, 30, tzinfo=UTC)
    assert reread(other).due_at == NOW + timedelta(days=2)


def test_a_time_that_has_passed_does_not_come_back(editor, newsroom, feed):
    row = promise(items(newsroom, 1)[0], feed, publish_at=NOW + timedelta(hours=1))
    address = at(newsroom, "calendar_move", pub=row.pk)
    fields = {"local_time": "2027-03-29T10:30", "version": str(row.version)}
    undo, note = undo_in(editor.post(address, fields))
    with time_machine.travel(NOW + timedelta(hours=2), tick=False):
        assert said(editor.post(undo, {"undo": note}))[-1] == "Its former time has passed."
    # What is late has no undo: it would be late again.
    Publication.everywhere.filter(pk=row.pk).update(due_at=NOW - timedelta(hours=1))
    fields = {"local_time": "2027-03-30T10:30", "version": str(reread(row).version)}
    moved = editor.post(address, fields)
    assert (said(moved)[-1], undo_in(moved)) == ("Moved to 10:30, 30 March.", None)


def test_a_day_stands_in_order_of_time(editor, newsroom, feed):
    """Posts, free slots and digests by one clock, in every view."""
    promise(items(newsroom, 1)[0], feed, publish_at=datetime(2027, 3, 26, 9, 30, tzinfo=UTC))
    series.create(newsroom, {"name": "Noon", "slots": [{"weekday": 4, "time": "11:00"}]}, test=False, now=NOW)
    week = editor.get(at(newsroom, "calendar"), {"on": "2027-03-26"}).content.decode()
    cell = re.search(rf'<td data-day="2027-03-26" data-lane="{feed.pk}".*?</td>', week, re.DOTALL)[0]
    assert re.findall(r">(\d\d:\d\d)<", cell) == ["09:00", "10:30", "12:00", "17:00"]
    for view in ("month", "day"):
        html = editor.get(at(newsroom, "calendar"), {"view": view, "on": "2027-03-26"}).content.decode()
        agenda = html[html.index("Friday, 26 March</h3>") :]
        day = (
            re.search(r'<td data-day="2027-03-26".*?</td>', html, re.DOTALL)[0] if view == "month" else agenda
        )
        # A day alone shows its free slots too.
        times = ["10:30", "11:00"] if view == "month" else ["09:00", "10:30", "11:00", "12:00", "17:00"]
        assert re.findall(r"<time[^>]*>(\d\d:\d\d)<", day)[: len(times)] == times, view


def test_a_slot_stays_a_slot(editor, newsroom, feed):
    row = promise(items(newsroom, 1)[0], feed, publish_at=NOW + timedelta(days=1, minutes=7))
    fields = {"at": "2027-03-29T07:00:00+00:00", "version": str(row.version)}
    answer = editor.post(at(newsroom, "calendar_move", pub=row.pk), fields, headers={"X-Calendar": "1"})
    moved = reread(row)
    assert (answer.status_code, moved.local_time, moved.queue.is_default) == (
        204,
        "2027-03-29T09:00:00",
        True,
    )


def test_slots_around_its_time_are_offered(editor, newsroom, feed):
    """09:00, 12:00 and 17:00 of working days; one of them is taken, and summer time begins over the week-end."""
    one, other = items(newsroom, 2)
    row = promise(one, feed, publish_at=datetime(2027, 3, 26, 11, tzinfo=UTC))
    promise(other, feed, publish_at=datetime(2027, 3, 26, 16, tzinfo=UTC))
    (sooner, later) = editor.get(at(newsroom, "calendar_move", pub=row.pk)).context["slots"]

    def shown(moments):
        return [f"{moment:%d %H}" for moment in moments]

    assert (sooner[0], shown(sooner[1])) == ("Sooner", ["24 16", "25 08", "25 11"])
    assert (later[0], shown(later[1])) == ("Later", ["29 07", "29 10", "29 15"])
    Publication.everywhere.filter(pk=row.pk).update(due_at=NOW - timedelta(hours=3))
    ((name, moments),) = editor.get(at(newsroom, "calendar_move", pub=row.pk)).context["slots"]
    assert (name, shown(moments)) == ("Later", ["24 16", "25 08", "25 11"])


@pytest.mark.parametrize(
    ("when", "why"),
    [
        ("2027-03-24T11:00:00Z", "Choose a time from now on"),
        ("2028-03-29T11:00:00Z", "at most 366 days ahead"),
        ("2027-03-25T12:30:00Z", "closer to another post than the outlet's gap allows"),
        ("2027-03-25T12:00:00Z", "Another post is scheduled there"),
        ("2027-03-30T12:00:00Z", "its queue has no slots then"),
        ("soon", "Enter a date and time."),
    ],
)
def test_a_refused_move_says_why_and_changes_nothing(editor, newsroom, feed, when, why):
    one, other = items(newsroom, 2)
    promise(other, feed, publish_at=datetime(2027, 3, 25, 12, tzinfo=UTC))
    row = promise(one, feed, publish_at=NOW + timedelta(days=3))
    Outlet.everywhere.filter(pk=feed.pk).update(gap_minutes=60)
    usual = PublishQueue.everywhere.get(workspace=newsroom, is_default=True)
    queues.change(
        usual, {"blackouts": [{"from": "2027-03-30T00:00", "until": "2027-03-31T00:00"}]}, by="alice"
    )
    fields = {"at": when, "version": str(row.version)}
    address = at(newsroom, "calendar_move", pub=row.pk)
    answer = editor.post(address, fields, headers={"X-Calendar": "1"})
    assert (answer.status_code, why in answer.content.decode()) == (409, True)
    page = editor.post(address, fields)
    assert page.status_code == 200
    assert why.replace("'", "&#x27;") in page.content.decode()
    assert Publication.everywhere.get(pk=row.pk).version == row.version


def test_an_older_version_is_refused(editor, newsroom, feed):
    stage = make_stage(newsroom)
    row = promise(items(newsroom, 1)[0], feed, stage, publish_at=NOW + timedelta(days=3))
    fields = {"at": "2027-03-29T07:00:00Z", "version": str(row.version - 1)}
    answer = editor.post(at(newsroom, "calendar_move", pub=row.pk), fields, headers={"X-Calendar": "1"})
    assert (
        answer.status_code,
        "Changed since you opened it. Reload to continue." in answer.content.decode(),
    ) == (409, True)
    assert reread(row).due_at == row.due_at


@pytest.mark.parametrize("version", [None, "", "one", "-1"])
def test_whoever_names_no_version_moves_nothing(editor, newsroom, feed, version):
    row = promise(items(newsroom, 1)[0], feed, publish_at=NOW + timedelta(days=3))
    fields = {"at": "2027-03-29T07:00:00Z"} | ({} if version is None else {"version": version})
    answer = editor.post(at(newsroom, "calendar_move", pub=row.pk), fields, headers={"X-Calendar": "1"})
    assert (answer.status_code, "Reload the page, then move it again." in answer.content.decode()) == (
        409,
        True,
    )
    assert reread(row).due_at == row.due_at


@pytest.mark.parametrize("requires_approval", [False, True])
def test_moving_what_is_held_approves_nothing(editor, newsroom, feed, requires_approval):
    item = items(newsroom, 1)[0]
    decisions.approve(item, by="vera", now=NOW)
    type(newsroom).everywhere.filter(pk=newsroom.pk).update(requires_approval=requires_approval)
    row = promise(reread(item), feed, publish_at=NOW + timedelta(days=3))
    decisions.edit(reread(item), {"body": "Words that nobody has seen."}, by="carl", now=NOW)
    before = GeneratedItem.everywhere.values("held", "approved_by", "approved_revision", "revision")
    held = before.get(pk=item.pk)
    assert (held["held"], held["approved_by"]) == ("approval_stale", "vera")
    fields = {"at": "2027-03-29T07:00:00Z", "version": str(reread(row).version)}
    answer = editor.post(at(newsroom, "calendar_move", pub=row.pk), fields, headers={"X-Calendar": "1"})
    assert (answer.status_code, reread(row).due_at) == (204, datetime(2027, 3, 29, 7, tzinfo=UTC))
    assert before.get(pk=item.pk) == held
    assert reread(item).publish_at == datetime(2027, 3, 29, 7, tzinfo=UTC)
    assert "Needs approval." in said(answer)[-1]


def test_what_went_out_is_not_moved(editor, newsroom, feed):
    row = promise(items(newsroom, 1)[0], feed, publish_at=NOW + timedelta(days=3))
    Publication.everywhere.filter(pk=row.pk).update(status="published", published_at=NOW)
    address = at(newsroom, "calendar_move", pub=row.pk)
    fields = {"at": "2027-03-29T07:00:00Z", "version": str(row.version)}
    answer = editor.post(address, fields, headers={"X-Calendar": "1"})
    assert (answer.status_code, answer.content.decode()) == (
        409,
        "It is published; it can no longer be moved.",
    )
    assert (
        "This post is no longer scheduled." in editor.get(address).content.decode()
        or "isn't scheduled any more" in editor.get(address).content.decode()
    )


def test_a_viewer_looks_and_is_offered_nothing(vera, as_person, newsroom, feed, editor):
    row = promise(items(newsroom, 1)[0], feed, publish_at=NOW + timedelta(days=1))
    text = as_person(vera).get(at(newsroom, "calendar")).content.decode()
    assert [
        "News 0" in text,
        at(newsroom, "calendar_move", pub=row.pk) in text,
        at(newsroom, "calendar_fill") in text,
    ] == [True, False, False]


@pytest.mark.parametrize("view", ["day", "week", "month"])
def test_each_view_has_a_button_that_moves_a_post(editor, newsroom, feed, vera, as_person, view):
    (one,) = items(newsroom, 1)
    row = promise(one, feed, publish_at=NOW + timedelta(days=1))
    address = f"{at(newsroom, 'calendar')}?view={view}&on=2027-03-25"
    move = f'href="{at(newsroom, "calendar_move", pub=row.pk)}"'
    # In its grid, and in the agenda that a phone shows; a day has the agenda alone.
    assert editor.get(address).content.decode().count(move) == (1 if view == "day" else 2)
    assert move not in as_person(vera).get(address).content.decode()


# --- A free slot -----------------------------------------------------------------------------------------------------

SLOT = datetime(2027, 3, 25, 8, 0, tzinfo=UTC)  # 09:00 on the next day.


def slot_address(workspace, outlet, moment="2027-03-25T08:00:00Z"):
    return f"{at(workspace, 'calendar_slot')}?outlet={encode('out', outlet.pk)}&at={moment}"


def chosen(item):
    return {"item": encode("gen", item.pk), "version": str(item.version)}


def test_a_free_slot_offers_what_is_ready_for_its_outlet(editor, newsroom, feed):
    plain, approved, held, scheduled = items(newsroom, 4)
    decisions.approve(approved, by="alice", now=NOW)
    GeneratedItem.everywhere.filter(pk=held.pk).update(held="source_changed")
    promise(scheduled, feed, publish_at=NOW + timedelta(days=3))
    week = editor.get(at(newsroom, "calendar")).content.decode()
    assert (
        slot_address(newsroom, feed).replace("&", "&amp;").replace("08:00:00Z", "08%3A00%3A00.000Z") in week
    )
    answer = editor.get(slot_address(newsroom, feed))
    assert [one.item for one in answer.context["offered"]] == [approved, plain]
    # A picture's caption is no letter.
    letters = Outlet.everywhere.create(workspace=newsroom, platform="email_newsletter", name="Letter")
    assert "No item for this outlet" in editor.get(slot_address(newsroom, letters)).content.decode()


def test_an_item_is_put_into_a_free_slot_and_taken_back(editor, newsroom, feed):
    (item,) = items(newsroom, 1)
    answer = editor.post(slot_address(newsroom, feed), chosen(item), follow=True)
    row = Publication.everywhere.get(item=item)
    assert (row.status, row.outlet, row.due_at) == ("scheduled", feed, SLOT)
    assert answer.redirect_chain[0][0].endswith("?view=week&on=2027-03-25")
    html = answer.content.decode()
    assert re.search(r"Scheduled for Workspace feed on \d+ \w{3}, \d\d:\d\d\.", html)
    assert "Undo" in html
    assert "2027-03-25T08%3A00" not in html


def test_a_slot_says_what_nobody_has_approved(editor, newsroom, feed):
    approved, waiting = items(newsroom, 2)
    decisions.approve(approved, by="bob", now=NOW)
    html = editor.get(slot_address(newsroom, feed)).content.decode()
    assert "Some of these haven't been approved. Scheduling one approves it." in html
    assert re.findall(r'aria-label="((?:Approve and s|S)chedule [^"]*)"', html) == [
        f"Schedule {approved.title}",
        f"Approve and schedule {waiting.title}",
    ]
    decisions.approve(waiting, by="bob", now=NOW)
    assert "haven't been approved" not in editor.get(slot_address(newsroom, feed)).content.decode()


def test_a_slot_takes_no_item_that_has_changed_meanwhile(editor, newsroom, feed):
    (item,) = items(newsroom, 1)
    fields = chosen(item)
    decisions.edit(item, {"title": "Another title"}, by="alice", now=NOW)
    answer = editor.post(slot_address(newsroom, feed), fields)
    assert "Changed since you opened it" in answer.content.decode()
    assert not Publication.everywhere.exists()


def test_a_slot_that_has_passed_says_so(editor, newsroom, feed):
    (item,) = items(newsroom, 1)
    answer = editor.post(slot_address(newsroom, feed, "2027-03-23T08:00:00Z"), chosen(item))
    assert answer.status_code == 200
    assert "This slot has passed." in answer.content.decode()
    assert not Publication.everywhere.exists()


@pytest.mark.parametrize("change", ["outlet", "moment", "item"])
def test_what_is_no_slot_of_the_workspace_is_not_there(editor, newsroom, feed, charlie, change):
    elsewhere = Outlet.everywhere.filter(platform="feed").exclude(workspace=newsroom).get()
    addresses = {
        "outlet": slot_address(newsroom, elsewhere),
        "moment": slot_address(newsroom, feed, "soon"),
        "item": slot_address(newsroom, feed),
    }
    (item,) = items(newsroom, 1)
    fields = {"item": encode("gen", uuid7())} if change == "item" else chosen(item)
    assert editor.post(addresses[change], fields).status_code == 404
    assert not Publication.everywhere.exists()
