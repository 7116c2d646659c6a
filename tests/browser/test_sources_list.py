"""The list of sources in a browser: a switch with its undo, narrowed, and no longer than a phone bears."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from accounts import workspaces
from config.core.clock import utc_now
from config.core.datetimes import format_utc
from pipeline.models import Source
from pipeline.pages.sources import listing
from tests.browser.people import log_in, look_over

pytestmark = [pytest.mark.django_db(transaction=True)]
LONGEST = 3000
"""Pixels of a page of the list on a phone."""


@pytest.fixture
def many_sources(newsroom):
    """Three pages of them, the first with every state and long names."""
    workspaces.lift_limits(newsroom, "operator@example.test")
    now = utc_now()
    error = {
        "code": "http",
        "message": "The server answered 503 Service Unavailable. " * 3,
        "at": format_utc(now),
    }
    states = [
        {},
        {"status": "failing", "last_error": error},
        {"status": "paused"},
        {"status": "gone", "last_error": error},
    ]
    return Source.everywhere.bulk_create(
        Source(
            workspace=newsroom,
            name=f"{n:03} Harbour board: minutes, notices and tenders of the northern quay"
            if n % 2
            else f"{n:03} Trams",
            type="rss",
            config={"url": f"https://site{n}.example/a/rather/long/path/to/the/feed.xml"},
            last_polled_at=now - timedelta(hours=n),
            wake_at=now + timedelta(hours=1),
            **states[n % 4],
        )
        for n in range(listing.ROWS * 2 + 5)
    )


@pytest.mark.parametrize("phone", [False, True])
@pytest.mark.usefixtures("many_sources")
def test_a_source_is_switched_off_and_on_again(open_window, newsroom, phone):
    page = open_window(phone=phone)
    log_in(page, newsroom.alice)
    page.goto(reverse("sources_page", kwargs={"ws": newsroom.pk}))
    look_over(page, "sources-many")
    if phone:
        assert page.locator("table.sources").bounding_box()["height"] < LONGEST
    page.get_by_role("link", name=re.compile("^Next")).click()
    page.wait_for_url("**page=2")
    switch = page.get_by_role("switch").first
    name = switch.get_attribute("aria-label")
    expect(page.get_by_role("switch", name=name)).to_be_checked()
    switch.click()
    expect(page.get_by_role("switch", name=name)).not_to_be_checked()
    page.get_by_text("paused.").wait_for()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("switch", name=name)).to_be_checked()
    assert "page=2" in page.url


@pytest.mark.usefixtures("many_sources")
def test_the_list_is_narrowed_and_switched_without_a_script(open_window, newsroom):
    page = open_window(scripts=False)
    log_in(page, newsroom.alice)
    page.goto(reverse("sources_page", kwargs={"ws": newsroom.pk}))
    page.get_by_role("searchbox", name="Search").fill("004 Trams")
    page.get_by_role("button", name="Show", exact=True).click()
    page.get_by_role("switch", name="004 Trams").click()
    expect(page.get_by_role("switch", name="004 Trams")).not_to_be_checked()
    assert page.get_by_role("switch").count() == 1
