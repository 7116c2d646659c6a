"""In a browser: an item is let come back, changed and stopped, each with its undo, and stands in the list."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from pipeline.models import Outlet, Recurrence, RecurrenceTurn, Source
from pipeline.schedule import recurring, series
from tests.browser.people import follow, go_to, log_in, look_over
from tests.pipeline.steps import make_items, promise, reread, send

pytestmark = [pytest.mark.django_db(transaction=True)]


@pytest.fixture
def newsroom(newsroom, settings, tmp_path):
    settings.DATA_DIR = tmp_path
    return newsroom


def _published(workspace, **changes):
    item = make_items(workspace, **changes)[0]
    send(promise(item, Outlet.everywhere.get(workspace=workspace, platform="simulated")))
    return reread(item)


def test_an_item_is_let_come_back_and_changed(open_window, newsroom):
    _published(newsroom)
    page = open_window()
    log_in(page, newsroom.alice)
    go_to(page, "Calendar", "Recurring")
    page.get_by_text("No repeating items").wait_for()
    look_over(page, "recurring-none")
    follow(page, page.get_by_role("link", name="View published items"))
    follow(page, page.get_by_role("link", name="Tram line approved"))
    look_over(page, "recurring-offered")
    page.get_by_role("link", name="Repeat this post").click()
    page.get_by_label("Repeat every (days)").fill("14")
    look_over(page, "recurring-form")
    page.get_by_role("dialog").get_by_role("button", name="Repeat this post").click()
    page.get_by_text("Repeats every 14 days.").wait_for()
    page.get_by_role("link", name="Edit schedule").click()
    page.get_by_label("Repeat every (days)").fill("30")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Repeats every 30 days.").wait_for()
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Repeats every 14 days.").wait_for()
    row = Recurrence.everywhere.get()
    assert (row.every_days, row.version) == (14, 3)


def test_it_is_stopped_and_goes_on(open_window, newsroom):
    item = _published(newsroom)
    row = recurring.begin(item, every_days=14, now=timezone.now())
    for day, decision in ((40, "made"), (26, "still_waiting"), (12, "source_paused")):
        RecurrenceTurn.everywhere.create(
            workspace=newsroom,
            recurrence=row,
            due_at=timezone.now() - timedelta(days=day),
            decision=decision,
            message="" if decision == "made" else "Its source is paused, so no new variant was made.",
        )
    page = open_window()
    log_in(page, newsroom.alice)
    page.goto(reverse("item_page", kwargs={"ws": newsroom.pk, "gen": item.pk}))
    look_over(page, "recurring-item")
    page.get_by_role("button", name="Stop repeating").click()
    page.get_by_text("Repeat stopped.").wait_for()
    assert reread(row).status == "stopped"
    look_over(page, "recurring-stopped")
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Next variant on").wait_for()
    assert reread(row).status == "active"


def test_the_list_stands_beside_the_series(open_window, newsroom):
    slots = [{"weekday": 4, "time": "09:00"}]
    series.create(newsroom, {"name": "The week on the coast", "slots": slots}, test=False, now=timezone.now())
    now = timezone.now()
    first = recurring.begin(_published(newsroom), every_days=30, now=now)
    long_title = (
        "A very long title of a story that never grows old about the harbour of Norden and its cranes " * 2
    )
    second = recurring.begin(_published(newsroom, external_id="b", title=long_title), every_days=1, now=now)
    RecurrenceTurn.everywhere.create(workspace=newsroom, recurrence=first, due_at=now, decision="no_credits")
    Source.everywhere.filter(pk=second.item.source_id).update(name="Port authority", status="gone")
    Recurrence.everywhere.filter(pk=second.pk).update(wake_at=now, lease_token=1, attempts=1)
    recurring.run_recurrence(reread(second))
    assert reread(second).status == "stopped"
    page = open_window()
    log_in(page, newsroom.alice)
    go_to(page, "Calendar", "Recurring")
    page.get_by_text("Its source Port authority is gone.").wait_for()
    look_over(page, "recurring-list")
