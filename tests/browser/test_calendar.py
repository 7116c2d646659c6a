"""The calendar in a browser: a week filled and taken back, a post dragged, moved by key and by form, a refusal said."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from config.core.ids import encode
from pipeline.models import Outlet, Publication, PublishQueue, WeekPlan
from pipeline.review import decisions
from pipeline.schedule import queues, series
from tests.browser.people import follow, go_to, log_in, look_over
from tests.pipeline.steps import make_items, make_stage, promise, reread

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("daily_slots"),
]
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.fixture
def feed(newsroom):
    return Outlet.everywhere.get(workspace=newsroom, platform="feed")


TITLES = (
    "The ferry leaves earlier",
    "Rye keeps for nine days",
    "The harbour buys a seventh crane",
    "Fog delays the morning boats",
    "A new chapter for the lighthouse, told by those who keep it burning through the winter",
)


def items(workspace):
    return [
        make_items(
            workspace,
            title=title,
            body=f"The council heard of {title} on Monday evening. " * 6,
            url=f"https://n.example/{number}",
        )[0]
        for number, title in enumerate(TITLES)
    ]


def next_week():
    """Monday of next week on the clocks of Berlin."""
    today = timezone.now().astimezone(BERLIN).date()
    return today + timedelta(days=7 - today.weekday())


def at(day, hour, minute=0):
    moment = datetime(day.year, day.month, day.day, hour, minute, tzinfo=BERLIN)
    return moment.astimezone(UTC)


def week_of(newsroom, day):
    return f"/w/{encode('ws', newsroom.pk)}/calendar/?view=week&on={day.isoformat()}"


def test_a_week_is_filled_and_taken_back(open_window, newsroom):
    page = open_window()
    log_in(page, newsroom.alice)
    go_to(page, "Calendar")
    look_over(page, "calendar-fresh")
    follow(page, page.get_by_role("link", name="Fill free slots"))
    page.get_by_role("heading", name="Nothing to schedule").wait_for()
    look_over(page, "fill-empty")
    for item in items(newsroom)[:2]:
        decisions.approve(item, by="bob", now=timezone.now())
    page.reload()
    page.get_by_role("heading", name="5 posts").wait_for()
    page.get_by_text("3 posts haven't been approved").wait_for()
    look_over(page, "fill")
    boxes = page.get_by_role("checkbox", name="Schedule ")
    assert [box.is_checked() for box in boxes.all()].count(True) == 2
    page.get_by_role("button", name="Approve and schedule all 5").click()
    page.get_by_text("5 posts scheduled.").wait_for()
    assert Publication.everywhere.filter(status="scheduled").count() == 5
    look_over(page, "calendar-filled")
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("5 posts unscheduled.").wait_for()
    assert not Publication.everywhere.filter(status="scheduled").exists()
    assert WeekPlan.everywhere.get().undone_at is not None


def test_an_item_is_chosen_for_a_free_slot(open_window, newsroom, feed):
    items(newsroom)
    monday = next_week()
    page = open_window()
    log_in(page, newsroom.alice)
    page.goto(week_of(newsroom, monday))
    cell = page.locator(f"td[data-lane='{feed.pk}'][data-day='{monday}']")
    cell.get_by_role("link", name="Free slot at 09:00").click()
    page.get_by_role("heading", name="Choose an item").wait_for()
    look_over(page, "free-slot")
    follow(page, page.get_by_role("button", name=f"Approve and schedule {TITLES[0]}"))
    page.get_by_text("Scheduled for Workspace feed on").wait_for()
    cell.locator(".event", has_text=TITLES[0]).wait_for()
    assert Publication.everywhere.get().due_at == at(monday, 9)
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Undone").wait_for()
    assert not Publication.everywhere.filter(status="scheduled").exists()


def test_a_post_is_dragged_and_a_refused_one_goes_back(open_window, newsroom, feed, complaints):
    complaints.expect("409 (Conflict)")
    first, second, *_rest = items(newsroom)
    monday = next_week()
    row = promise(first, feed, publish_at=at(monday, 11))
    promise(second, feed, publish_at=at(monday + timedelta(days=2), 17, 30))
    page = open_window()
    log_in(page, newsroom.alice)
    page.goto(week_of(newsroom, monday))
    card = page.locator("[data-event]", has_text=TITLES[0]).locator("visible=true")
    lane = f"td[data-lane='{feed.pk}']"
    slot = page.locator(f"{lane}[data-day='{monday + timedelta(days=1)}'] .slot", has_text="17:30")
    card.drag_to(slot)
    page.get_by_text("Moved to 17:30").wait_for()
    moved = reread(row)
    assert (moved.due_at, moved.queue_id is not None) == (at(monday + timedelta(days=1), 17, 30), True)
    # Onto a day where something stands at its time: it stays where it is, and it is said why.
    card.drag_to(
        page.locator(f"{lane}[data-day='{monday + timedelta(days=2)}']"), target_position={"x": 90, "y": 4}
    )
    page.get_by_text("Another post is scheduled there at that time.").wait_for()
    assert reread(row).due_at == moved.due_at
    assert page.locator(
        f"{lane}[data-day='{monday + timedelta(days=1)}'] .event", has_text=TITLES[0]
    ).is_visible()
    # By key, a slot earlier.
    card.get_by_role("link").first.focus()
    page.keyboard.press("Alt+ArrowUp")
    page.get_by_text("Moved to 09:00").wait_for()
    assert reread(row).due_at == at(monday + timedelta(days=1), 9)
    page.keyboard.press("Alt+ArrowLeft")
    page.locator(f"{lane}[data-day='{monday}'] .event").wait_for()
    assert reread(row).due_at == at(monday, 9)
    # Somebody else moves it while this page is open.
    promise(first, feed, publish_at=at(monday, 15))
    page.keyboard.press("Alt+ArrowDown")
    page.get_by_text("Changed since you opened it. Reload to continue.").wait_for()
    assert reread(row).due_at == at(monday, 15)


def test_everything_that_a_calendar_shows(open_window, newsroom, feed):
    stage = make_stage(newsroom, name="Harbour stage")
    monday = next_week()
    made = items(newsroom)
    promise(made[0], feed, stage, publish_at=at(monday, 11))
    failed = promise(made[1], feed, publish_at=at(monday + timedelta(days=1), 10))
    error = {"code": "rejected", "message": "The platform refused it: too many links."}
    Publication.everywhere.filter(pk=failed.pk).update(status="failed", error=error)
    done = promise(made[2], feed, publish_at=at(monday + timedelta(days=2), 10))
    Publication.everywhere.filter(pk=done.pk).update(
        status="published", published_at=at(monday + timedelta(days=2), 10, 1)
    )
    late = promise(made[3], feed, publish_at=at(monday + timedelta(days=3), 12))
    was_due = timezone.now() - timedelta(hours=2)
    Publication.everywhere.filter(pk=late.pk).update(due_at=was_due)
    held = promise(made[4], feed, publish_at=at(monday + timedelta(days=3), 12))
    type(held.item).everywhere.filter(pk=held.item_id).update(held="source_changed")
    friday = monday + timedelta(days=4)
    blackout = {
        "from": f"{friday}T00:00",
        "until": f"{friday + timedelta(days=2)}T00:00",
        "reason": "Harbour fair",
    }
    queues.change(PublishQueue.everywhere.get(workspace=newsroom), {"blackouts": [blackout]}, by="alice")
    given = {"name": "The week by the harbour", "slots": [{"weekday": 3, "time": "08:00"}]}
    series.create(newsroom, given, test=False, now=timezone.now())
    page = open_window()
    log_in(page, newsroom.alice)
    page.goto(week_of(newsroom, monday))
    page.get_by_text("The platform refused it: too many links.").locator("visible=true").wait_for()
    assert page.locator("td.closed").count() == 4
    assert page.get_by_text("Harbour fair").locator("visible=true").count() == 4
    look_over(page, "calendar-week")
    for view in ("Month", "Day"):
        follow(page, page.get_by_role("navigation", name="View").get_by_role("link", name=view))
        look_over(page, f"calendar-{view.lower()}")
    follow(page, page.get_by_role("link", name="Today"))
    if was_due.astimezone(BERLIN).date() < timezone.now().astimezone(BERLIN).date():
        # It is past midnight: what was late two hours ago stands on the day before.
        follow(page, page.get_by_role("link", name="Previous", exact=False).first)
    page.get_by_text("Late", exact=True).locator("visible=true").first.wait_for()
    look_over(page, "calendar-late")


def test_without_a_script_and_on_a_phone_a_form_moves_it(open_window, newsroom, feed):
    row = promise(items(newsroom)[0], feed, publish_at=at(next_week(), 11))
    page = open_window(phone=True)
    log_in(page, newsroom.alice)
    page.goto(week_of(newsroom, next_week()))
    assert not page.locator(".lanes").is_visible()
    page.get_by_role("link", name="Reschedule The ferry").locator("visible=true").click()
    page.get_by_role("heading", name="Free slots").wait_for()
    look_over(page, "calendar-move")
    page.get_by_label("New time").fill(f"{next_week() + timedelta(days=1)}T06:15")
    page.get_by_role("button", name="Reschedule").click()
    page.get_by_text("Moved to 06:15").wait_for()
    assert reread(row).due_at == at(next_week() + timedelta(days=1), 6, 15)
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Moved back to 11:00").wait_for()
    assert reread(row).due_at == at(next_week(), 11)


def test_an_item_of_the_tray_is_dragged_to_a_slot_and_to_a_day(open_window, newsroom, feed, complaints):
    complaints.expect("409 (Conflict)")
    first, second, third, fourth, _fifth = items(newsroom)
    monday = next_week()
    page = open_window()
    log_in(page, newsroom.alice)
    page.goto(week_of(newsroom, monday))
    tray = page.get_by_role("region", name="Unscheduled items")
    card = tray.locator("[data-tray]", has_text=TITLES[0])
    lane = f"td[data-lane='{feed.pk}']"
    card.drag_to(page.locator(f"{lane}[data-day='{monday}'] .slot", has_text="17:30"))
    page.get_by_text("Scheduled for Workspace feed on").wait_for()
    row = Publication.everywhere.get(item=first)
    assert (row.due_at, row.queue_id is not None) == (at(monday, 17, 30), True)
    # The focus follows it, and the tray has it no more.
    assert page.evaluate("document.activeElement.textContent").strip().endswith(TITLES[0])
    assert tray.get_by_text(TITLES[0]).count() == 0
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Undone").wait_for()
    assert reread(row).status == "cancelled"
    tray.get_by_text(TITLES[0]).wait_for()
    # Onto a day: its first free slot.
    page.goto(week_of(newsroom, monday))
    tray.locator("[data-tray]", has_text=TITLES[1]).drag_to(
        page.locator(f"{lane}[data-day='{monday}']"), target_position={"x": 100, "y": 70}
    )
    page.get_by_text("Scheduled for Workspace feed on").wait_for()
    assert Publication.everywhere.get(item=second).due_at == at(monday, 9)
    look_over(page, "calendar-tray")
    # Somebody has taken the slot since this page was opened: it is said, and the item stays.
    promise(third, feed, publish_at=at(monday, 17, 30))
    card.drag_to(page.locator(f"{lane}[data-day='{monday}'] .slot", has_text="17:30"))
    page.get_by_text("Another post is scheduled there at that time.").wait_for()
    assert card.is_visible()
    assert reread(first).status == "ready"
    # In a month a day is one of all outlets of the item.
    page.goto(week_of(newsroom, monday).replace("view=week", "view=month"))
    card.drag_to(page.locator(f"td[data-day='{monday + timedelta(days=2)}']").first)
    page.get_by_text("Scheduled for Workspace feed on").wait_for()
    assert Publication.everywhere.scheduled().get(item=first).due_at == at(monday + timedelta(days=2), 9)
    # A day alone lists its slots.
    page.goto(week_of(newsroom, monday + timedelta(days=3)).replace("view=week", "view=day"))
    tray.locator("[data-tray]", has_text=TITLES[3]).drag_to(
        page.get_by_text("Free slot · Workspace feed").last
    )
    page.get_by_text("Scheduled for Workspace feed on").wait_for()
    assert Publication.everywhere.get(item=fourth).due_at == at(monday + timedelta(days=3), 17, 30)


def test_the_tray_by_key_and_on_a_phone(open_window, newsroom, feed):
    items(newsroom)
    page = open_window()
    log_in(page, newsroom.alice)
    page.goto(week_of(newsroom, next_week()))
    page.get_by_role("link", name=f"Schedule {TITLES[0]}").focus()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Next free slots").wait_for()
    look_over(page, "tray-schedule")
    slot = page.get_by_role("group", name="Workspace feed").get_by_role("button").first
    slot.focus()
    with page.expect_navigation():
        page.keyboard.press("Enter")
    page.get_by_text("Scheduled for Workspace feed on").wait_for()
    row = Publication.everywhere.get()
    assert row.queue_id is not None
    phone = open_window(phone=True)
    log_in(phone, newsroom.alice)
    phone.goto(week_of(newsroom, next_week()))
    tray = phone.get_by_role("region", name="Unscheduled items")
    assert not tray.get_by_role("link", name="Schedule Rye keeps").is_visible()
    tray.locator("summary").click()
    look_over(phone, "calendar-tray-phone")
    tray.get_by_role("link", name="Schedule Rye keeps").click()
    phone.get_by_role("heading", name="Next free slots").wait_for()
    phone.get_by_role("group", name="Workspace feed").get_by_role("button").nth(1).click()
    phone.get_by_text("Scheduled for Workspace feed on").wait_for()
    # From the other side: a day's free slot takes an item.
    day = next_week() + timedelta(days=3)
    phone.goto(week_of(newsroom, day).replace("view=week", "view=day"))
    look_over(phone, "calendar-day-slots")
    phone.get_by_role("link", name="Choose an item for 17:30, Workspace feed").click()
    phone.get_by_role("heading", name="Choose an item").wait_for()
    follow(phone, phone.get_by_role("button", name=f"Approve and schedule {TITLES[2]}"))
    assert Publication.everywhere.filter(due_at=at(day, 17, 30)).count() == 1
