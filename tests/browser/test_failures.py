"""Failed and late in a browser: some are ticked and tried again, taken back, given a time; the list looks again by itself."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from pipeline.models import GeneratedItem, Outlet, Publication, Source
from pipeline.publish import workspace_hold
from tests.browser.people import go_to, log_in, look_over
from tests.pipeline.steps import make_items, make_stage, promise, reread, send

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("daily_slots"),
]
TITLES = (
    "The ferry leaves earlier",
    "Rye keeps for nine days",
    "The harbour buys a seventh crane",
    "A new chapter for the lighthouse, told by those who keep it burning through the winter",
)


def refused(workspace, number):
    title = TITLES[number]
    (item,) = make_items(
        workspace,
        title=title,
        body=f"The council heard of {title} on Monday evening. " * 6,
        url=f"https://n.example/{number}",
    )
    outlet = make_stage(workspace, "reject", name=f"Stage {number + 1}")
    row = send(promise(item, outlet))
    assert row.status == "failed"
    return row


def overdue(workspace, number):
    title = TITLES[number]
    (item,) = make_items(
        workspace,
        title=title,
        body=f"The council heard of {title} on Monday evening. " * 6,
        url=f"https://n.example/{number}",
    )
    outlet = make_stage(workspace, name=f"Stage {number + 1}")
    row = promise(item, outlet, publish_at=timezone.now() + timedelta(hours=2))
    due_at = timezone.now() - timedelta(hours=3)
    Publication.everywhere.filter(pk=row.pk).update(due_at=due_at, wake_at=None)
    return reread(row)


def statuses(*rows):
    return [reread(row).status for row in rows]


def tick(page, title):
    page.get_by_role("checkbox", name=re.compile(f"Select {title}")).check()


def test_some_are_tried_again_and_taken_back(open_window, newsroom):
    page = open_window()
    log_in(page, newsroom.alice)
    go_to(page, "Inbox", "Problems")
    page.get_by_role("heading", name="No problems").wait_for()
    look_over(page, "failures-empty")
    first, second, third = (refused(newsroom, number) for number in range(3))
    late = overdue(newsroom, 3)
    # It looks again by itself.
    page.get_by_role("heading", name="Publishing failed").wait_for()
    tick(page, TITLES[0])
    tick(page, TITLES[1])
    page.locator("#clear").get_by_text("2 selected").wait_for()
    look_over(page, "failures-ticked")
    page.locator("#clear").get_by_role("button", name="Retry").click()
    page.get_by_text("Retrying 2.").wait_for()
    assert statuses(first, second, third) == ["scheduled", "scheduled", "failed"]
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Undone.").wait_for()
    assert statuses(first, second, third) == ["failed", "failed", "failed"]
    # One by its own button, and one by the form that the calendar has.
    row = page.get_by_role("listitem").filter(has_text=TITLES[2])
    row.get_by_role("button", name="Dismiss").click()
    page.get_by_text("Dismissed. It won't be published there.").wait_for()
    assert statuses(third) == ["cancelled"]
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Undone.").wait_for()
    page.get_by_role("listitem").filter(has_text=TITLES[3][:30]).get_by_role(
        "link", name="Reschedule"
    ).click()
    page.get_by_role("heading", name="Reschedule").wait_for()
    page.locator("#dialog").get_by_role("button", name=re.compile("09:00|17:30")).first.click()
    page.get_by_text(re.compile("Moved to")).wait_for()
    assert reread(late).due_at > timezone.now()


def test_what_is_ticked_stays_ticked_while_others_act(open_window, newsroom):
    first, second = (refused(newsroom, number) for number in range(2))
    page = open_window()
    log_in(page, newsroom.alice)
    go_to(page, "Inbox", "Problems")
    tick(page, TITLES[0])
    tick(page, TITLES[1])
    # Somebody else changes one of them: it isn't ticked any more, because nobody has looked at it.
    Publication.everywhere.filter(pk=second.pk).update(version=second.version + 1)
    page.locator("#clear").get_by_text("1 selected").wait_for()
    page.locator("#clear").get_by_label("New time").fill("2001-01-01T10:00")
    page.locator("#clear").get_by_role("button", name="Reschedule").click()
    page.get_by_text("This time is in the past.").wait_for()
    tick(page, TITLES[0])
    # What was typed is still there.
    assert page.locator("#clear").get_by_label("New time").input_value() == "2001-01-01T10:00"
    page.locator("#clear").get_by_role("button", name="Next free slots").click()
    page.get_by_text("Scheduled for the next free slot.").wait_for()
    assert statuses(first, second) == ["scheduled", "failed"]


@pytest.mark.parametrize("scripts", [True, False])
def test_all_kinds_are_readable_and_it_works_without_scripts(open_window, newsroom, scripts):
    row = refused(newsroom, 0)
    overdue(newsroom, 3)
    workspace_hold.hold_workspace(newsroom, reason="A storm.", by="alice@example.test")
    error = {"code": "x", "message": "The writer gave up after three tries: the source says too little."}
    broken = make_items(
        newsroom,
        title="Fog",
        body="The fog on the river stays until noon today. " * 20,
        url="https://n.example/fog",
    )[0]
    GeneratedItem.everywhere.filter(pk=broken.pk).update(status="failed", error=error)
    Source.everywhere.create(
        workspace=newsroom, name="Harbour news", type="rss", status="gone", failing_since=timezone.now(),
        last_error={"message": "It answered 410 Gone: the feed was taken down."},
    )  # fmt: skip
    Outlet.everywhere.create(
        workspace=newsroom, platform="mastodon", name="Our server", status="needs_reconnect",
        last_error={"message": "The log-in was revoked at the server."},
    )  # fmt: skip
    page = open_window(scripts=scripts)
    log_in(page, newsroom.alice)
    go_to(page, "Inbox", "Problems")
    if scripts:
        look_over(page, "failures-all")
    tick(page, TITLES[0])
    page.locator("#clear").get_by_role("button", name="Retry").click()
    page.get_by_text("the post waits. All publishing of the workspace is on hold: A storm.").wait_for()
    assert statuses(row) == ["scheduled"]
