"""The page of analytics in a browser: charts with gaps, the same as tables without scripts, pictures to take along."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from pipeline.models import Publication
from tests.analytics.factories import (
    make_failed,
    make_measurement,
    make_outlet,
    make_published,
    make_source,
)
from tests.browser.people import log_in, look_over

pytestmark = pytest.mark.django_db(transaction=True)
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def months(newsroom):
    """Two months of four outlets, with a week of which nothing is known."""
    now = datetime.now(UTC)
    sources = [make_source(newsroom, name) for name in ("Harbour office", "City council", "Weather")]
    places = [
        ("mastodon", "Newsroom on Mastodon"),
        ("bluesky", "Bluesky"),
        ("linkedin", "LinkedIn"),
        ("feed", "Workspace feed"),
    ]
    for place, (platform, name) in enumerate(places):
        outlet = make_outlet(newsroom, platform=platform, name=name)
        for days in range(0, 58, 1 + place):
            at = now - timedelta(days=days, hours=2)
            publication = make_published(
                outlet,
                at,
                bucket=("text", "image", "video")[days % 3],
                source=sources[days % 3],
                engine_output=("Short Post", "Quote Graphic", "Template Short")[days % 3],
                due_at=at - timedelta(seconds=days * 2),
                metrics={"views": 40 + days * 3, "likes": days},
            )
            publication.item.title = f"Ferries run every {days + 2} minutes from Monday on"
            publication.item.save(update_fields=["title"])
            if platform != "feed" and not 10 <= days <= 17:
                make_measurement(
                    publication, at + timedelta(hours=1), views=40 + (days * 37) % 90, likes=days % 7
                )
    make_failed(outlet, now - timedelta(days=2))
    return newsroom


def at(workspace, query=""):
    return reverse("analytics_page", kwargs={"ws": workspace.pk}) + query


def test_from_empty_to_charts(page, newsroom):
    log_in(page, newsroom.alice, at(newsroom))
    page.get_by_text("Nothing was published yet").wait_for()
    look_over(page, "analytics-empty")


def test_charts_filters_and_pictures(page, months):
    log_in(page, months.alice, at(months))
    assert Publication.objects.of(months).count() > 100
    page.locator("[data-chart=over-time] canvas").wait_for()
    assert page.locator(".uplot").count() == 3
    # A script draws them, so that the tables wait to be opened.
    page.get_by_text("Table").first.click()
    page.locator("table").first.wait_for()
    page.get_by_text("Table").first.click()
    look_over(page, "analytics")
    with page.expect_download() as taken:
        page.locator("[data-chart-png=by-outlet]").click()
    assert taken.value.suggested_filename == "by-outlet.png"
    assert Path(taken.value.path()).read_bytes().startswith(PNG)
    page.get_by_role("link", name="90 days").click()
    page.wait_for_url("**range=90**")
    # Applied at once, with the range that was chosen.
    page.get_by_label("Outlet", exact=True).select_option("Bluesky")
    page.wait_for_url("**range=90&outlet=out_**")
    page.locator("[data-chart=by-outlet] canvas").wait_for()
    assert page.locator("figure .legend").nth(1).inner_text().split() == ["Bluesky"]
    with page.expect_download() as taken:
        page.get_by_role("link", name="CSV").click()
    rows = Path(taken.value.path()).read_text().splitlines()
    assert all(",bluesky," in row for row in rows[1:])


def test_a_point_says_its_numbers(page, months):
    log_in(page, months.alice, at(months, "?metric=views"))
    plot = page.locator("[data-chart=over-time] .u-over")
    plot.wait_for()
    box = plot.bounding_box()
    # Some days ago: today has only just begun on somebody's clocks.
    plot.hover(position={"x": box["width"] * 0.85, "y": 40})
    reading = page.locator("figure .legend [data-reading]").first
    assert reading.inner_text().replace(",", "").isdigit()
    # In the middle of the week of which nobody knows anything.
    plot.hover(position={"x": box["width"] * (29 - 14) / 29, "y": 40})
    assert reading.inner_text() == "—"


def test_days_and_the_rest_are_set_by_keyboard(page, months):
    log_in(page, months.alice, at(months))
    custom = page.locator("summary", has_text="Custom").first
    custom.press("Enter")
    start = page.get_by_label("From")
    expect(start).to_be_visible()
    look_over(page, "analytics-days")
    start.press("Escape")
    expect(start).to_be_hidden()
    expect(custom).to_be_focused()
    custom.press("Enter")
    days = [datetime.now(UTC).date() - timedelta(days=number) for number in (20, 10)]
    for label, day in zip(("From", "To"), days, strict=True):
        page.get_by_label(label, exact=True).fill(day.isoformat())
    page.get_by_label("To", exact=True).press("Enter")
    page.wait_for_url(f"**start={days[0]}&end={days[1]}")
    rest = page.locator("summary", has_text="Customise")
    rest.press("Enter")
    page.get_by_label("Metric", exact=True).select_option("Likes")
    page.get_by_label("Kind", exact=True).select_option("Text")
    look_over(page, "analytics-customise")
    page.locator("details", has=rest).get_by_role("button", name="Apply").press("Enter")
    page.wait_for_url("**metric=likes**")
    assert f"start={days[0]}&end={days[1]}" in page.url
    expect(rest).to_have_text("Customise 2 set")
    expect(page.get_by_label("Metric", exact=True)).to_be_hidden()
    page.get_by_role("heading", name="Likes by outlet").wait_for()
    rest.press("Enter")
    page.get_by_role("link", name="Reset").press("Enter")
    expect(rest).to_have_text("Customise")


def test_what_worked_is_within_reach_on_a_phone(open_window, months):
    page = open_window(phone=True)
    log_in(page, months.alice, at(months, "?range=90&metric=views"))
    page.locator("[data-chart=over-time] canvas").wait_for()
    for heading in ("Best posts", "Best formats", "Best sources", "Best days"):
        page.get_by_role("heading", name=heading, exact=True).wait_for()
    # What is set stays in the first screen; no list is longer than a few, and the long ones scroll by themselves.
    assert page.locator("summary", has_text="Customise").bounding_box()["y"] < 400
    assert page.get_by_role("heading", name="What worked?").bounding_box()["y"] < 844
    heights = page.locator("main section").evaluate_all("all => all.map(one => one.offsetHeight)")
    assert max(heights) < 3000
    tables = page.locator("main .card").evaluate_all("all => all.map(one => one.offsetHeight)")
    assert max(tables) < 844
    # The outlet's name stays where the numbers are scrolled to.
    table = page.get_by_role("region", name="Table of all outlets and kinds")
    table.evaluate("one => { one.scrollLeft = one.scrollWidth; }")
    assert table.get_by_role("rowheader").first.bounding_box()["x"] < 40
    post = page.locator("table.best-posts a").first
    with page.expect_navigation():
        post.click()
    page.get_by_role("heading", level=1, name="Ferries run every").wait_for()


def test_without_scripts_there_are_tables(open_window, months):
    page = open_window(phone=True, scripts=False)
    log_in(page, months.alice, at(months))
    page.get_by_role("heading", name="Analytics").wait_for()
    assert page.locator(".plot").first.is_hidden()
    assert page.locator("[data-chart-table] table").count() == 3
    assert page.locator("[data-chart-table] table").first.is_visible()
    page.get_by_label("Outlet", exact=True).select_option("Bluesky")
    page.get_by_role("button", name="Show", exact=True).click()
    page.wait_for_url("**outlet=out_**")


def test_what_can_not_be_shown(page, months):
    log_in(page, months.alice, at(months))
    page.goto(f"{page.url}?range=30&interval=hour")
    page.get_by_text("Hourly data covers at most 14 days.").wait_for()
    look_over(page, "analytics-refused")
