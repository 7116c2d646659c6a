"""The main pages on a phone: none is wider than its screen, and what is set stays within reach."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import expect

from pipeline.models import GeneratedItem
from pipeline.pages.navigation import SETTINGS
from tests.browser.people import log_in, look_over
from tests.browser.test_review import NAMES, story
from tests.pipeline.steps import make_items, promise

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("posts", "daily_slots"),
]
WIDTH = 390
PAGES = (
    "home",
    "review",
    "failures",
    "items_page",
    "calendar",
    "calendar_fill",
    "analytics_page",
    "sources_page",
    "outlets_page",
    "making",
    "settings_page",
    "members",
)


@pytest.fixture
def one_story(newsroom, stage):
    """One story in every format, with variants and a warning; the review shows them side by side."""
    seed = make_items(newsroom)[0]
    GeneratedItem.everywhere.filter(pk=seed.pk).update(deleted_at=seed.created_at)
    title = "The council approved a tram line along the harbour, which nobody had asked for in so many words"
    made = [row for bucket in NAMES for row in story(seed, stage, title, bucket, variants=2)]
    GeneratedItem.everywhere.filter(pk__in=[row.pk for row in made]).update(raw_item=made[0].raw_item_id)
    promise(made[-1], stage, publish_at=timezone.now() + timedelta(hours=1))
    return made


def test_no_page_is_wider_than_a_phone(open_window, newsroom, one_story):
    page = open_window(phone=True)
    log_in(page, newsroom.alice)
    addresses = {name: reverse(name, kwargs={"ws": newsroom.pk}) for name in PAGES}
    addresses["item"] = reverse("item_page", kwargs={"ws": newsroom.pk, "gen": one_story[0].pk})
    widths = {}
    for name, address in addresses.items():
        page.goto(address)
        page.locator("main h1").wait_for()
        widths[name] = page.evaluate("document.documentElement.scrollWidth")
    assert {name: width for name, width in widths.items() if width > WIDTH} == {}


def test_filters_are_folded_until_one_is_set(open_window, newsroom, one_story):
    page = open_window(phone=True)
    log_in(page, newsroom.alice)
    address = reverse("items_page", kwargs={"ws": newsroom.pk})
    summary = page.locator("summary", has_text="Search and filter")
    button = page.locator("main form").get_by_role("button", name="Show", exact=True)
    page.goto(address)
    expect(button).to_be_hidden()
    summary.click()
    expect(button).to_be_visible()
    page.goto(f"{address}?status=ready")
    expect(button).to_be_visible()
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(address)
    expect(button).to_be_visible()
    expect(summary).to_be_hidden()


def test_sections_of_the_settings_are_a_list(open_window, newsroom):
    page = open_window(phone=True)
    log_in(page, newsroom.alice)
    page.goto(reverse("members", kwargs={"ws": newsroom.pk}))
    expect(page.locator(".tabs")).to_be_hidden()
    page.locator(".tab-menu > summary", has_text="Members").click()
    sections = page.locator(".tab-menu").get_by_role("link")
    # The workspace is approved, so that there is no access to ask for.
    assert sections.all_inner_texts() == [str(tab.label) for tab in SETTINGS if tab.page != "access"]
    sections.get_by_text("Webhooks").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Webhooks")
    look_over(page, "settings-sections")
