"""In a browser: a series from its first form to its end and back, and a film's storyboard changed."""

from __future__ import annotations

import pytest
from django.utils import timezone

from pipeline.media import make_film
from pipeline.models import Series
from tests.browser.people import follow, go_to, log_in, look_over
from tests.pipeline.generate.test_videos import GIVEN
from tests.pipeline.steps import make_items, push_raw, reread

pytestmark = [pytest.mark.django_db(transaction=True)]


@pytest.fixture
def newsroom(newsroom, settings, tmp_path, monkeypatch):
    settings.DATA_DIR = tmp_path
    monkeypatch.setattr(make_film, "SHRINK", 2)
    monkeypatch.setattr(make_film, "PRESET", "ultrafast")
    return newsroom


def test_a_storyboard_is_changed_where_it_is_seen(open_window, newsroom):
    item = make_items(newsroom, **GIVEN)[0]
    page = open_window()
    log_in(page, newsroom.alice)
    go_to(page, "Content")
    follow(page, page.get_by_role("link", name=GIVEN["title"]))
    look_over(page, "item-film")
    follow(page, page.get_by_role("link", name="Edit storyboard"))
    look_over(page, "storyboard")
    page.get_by_label("Title", exact=True).fill("word " * 90)
    page.get_by_role("button", name="Save and render").click()
    page.get_by_text("Shorten them.").wait_for()
    look_over(page, "storyboard-refused")
    page.get_by_label("Title", exact=True).fill("Harbour boats go electric")
    page.get_by_label("Place").nth(3).select_option("2")
    page.get_by_role("button", name="Save and render").click()
    page.get_by_text("Saved. Rendering the video (free).").wait_for()
    look_over(page, "item-filming")
    assert (reread(item).status, reread(item).revision) == ("generating", 2)


def test_a_series_from_its_first_form_to_its_end_and_back(open_window, newsroom):
    page = open_window()
    log_in(page, newsroom.alice)
    go_to(page, "Calendar", "Recurring")
    look_over(page, "series-none")
    follow(page, page.get_by_role("link", name="New series"))
    page.get_by_label("Name", exact=True).fill("The week on the coast")
    page.get_by_label("Monday").fill("noon")
    page.get_by_role("button", name="Create series").click()
    page.get_by_text("Enter times such as 09:00, 17:30.").wait_for()
    look_over(page, "series-refused")
    page.get_by_label("Monday").fill("08:30")
    page.get_by_role("button", name="Create series").click()
    page.get_by_text("The week on the coast saved.").wait_for()
    row = Series.everywhere.get()
    for number in range(3):
        body = f"{GIVEN['body']} It is report number {number} of the coast. " * (number + 1)
        push_raw(
            newsroom, title=f"Report {number}: {GIVEN['title']}", body=body, url=f"https://n.example/{number}"
        )
    row.issues.create(
        workspace=newsroom,
        due_at=timezone.now(),
        decision="too_few",
        message="Only 1 of at least 3 items: nothing else came in within 7 days that wasn't told before.",
        found=1,
    )
    page.reload()
    page.get_by_text("Not enough stories").wait_for()
    look_over(page, "series-one")
    page.get_by_role("button", name="Pause").click()
    page.get_by_text("The week on the coast paused.").wait_for()
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("The week on the coast resumed.").wait_for()
    page.get_by_role("button", name="Delete").click()
    page.get_by_text("The week on the coast deleted. Existing items stay.").wait_for()
    assert Series.everywhere.get().deleted_at is not None
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("The week on the coast restored.").wait_for()
    follow(page, page.get_by_role("navigation", name="Path").get_by_role("link", name="Recurring"))
    look_over(page, "series")
