"""Sources in a browser: an address is pasted, looked at, saved, and its log read; wide and narrow, light and dark."""

from __future__ import annotations

import re

import pytest

from config.core import task_runner
from config.core.ids import encode
from pipeline.models import Outlet, RawItem, Source, SourceEntry
from tests.browser.people import follow, go_to, log_in, look_over
from tests.pages.test_sources import feed
from tests.pipeline import steps
from tests.pipeline.personas.lanes import make_topics
from tests.pipeline.steps import OTHER_TEXT, push_raw

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("loopback"),
]


@pytest.mark.parametrize("phone", [False, True])
def test_from_an_address_to_a_log(open_window, newsroom, httpserver, phone):
    page_html = '<html><head><link rel="alternate" type="application/rss+xml" href="/feed.xml" title="Trams"></head></html>'
    httpserver.expect_request("/feed.xml").respond_with_data(
        feed(range(7, 0, -1)), content_type="application/rss+xml"
    )
    httpserver.expect_request("/").respond_with_data(page_html, content_type="text/html")
    page = open_window(phone=phone)
    log_in(page, newsroom.alice)
    go_to(page, "Sources")
    look_over(page, "sources-empty")
    follow(page, page.get_by_role("main").get_by_role("link", name="Add a source"))
    look_over(page, "source-add")
    page.get_by_label("Address").fill(httpserver.url_for("/"))
    page.get_by_role("button", name="Check").click()
    # What it is, and what would come, before anything is saved.
    page.get_by_label("A feed of this page: Trams").wait_for()
    page.get_by_text("Imports 5 entries · 15 credits").wait_for()
    assert Source.everywhere.filter(is_push=False).count() == 0
    look_over(page, "source-choose")
    page.get_by_role("checkbox", name=re.compile("^Short Post")).check()
    page.get_by_label("Number of entries").fill("2")
    page.get_by_role("button", name="Preview").click()
    page.get_by_text("Imports 2 entries · 2 credits").wait_for()
    page.get_by_role("button", name="Save source").click()
    page.get_by_role("heading", name="Tram news", level=1).or_(
        page.get_by_role("heading", level=1)
    ).first.wait_for()
    source = Source.everywhere.get(is_push=False)
    page.wait_for_url(lambda url: "/sources/src_" in url)
    look_over(page, "source-new")
    task_runner.work_all_due("ingest.poll_source")
    page.reload()
    page.get_by_text("Active").wait_for()
    assert page.get_by_role("row").count() == 8
    look_over(page, "source-log")
    # One that was there before is taken in after all.
    kept = SourceEntry.everywhere.get(source=source, title="Tram line 3 approved")
    page.get_by_role("button", name="Generate Tram line 3 approved anyway").click()
    page.get_by_text("Generating. Updates automatically.").wait_for()
    assert RawItem.everywhere.get(pk=kept.raw_item_id).status == "queued"
    # Paused, resumed, deleted, and there again.
    page.goto(f"/w/{page.url.split('/w/')[1].split('/')[0]}/sources/")
    look_over(page, "sources")
    page.get_by_role("main").get_by_role("link", name=source.name).click()
    page.get_by_role("button", name="Pause").click()
    page.get_by_text("Paused until you resume it.").wait_for()
    page.get_by_role("button", name="Resume").click()
    follow(page, page.get_by_role("link", name="Settings", exact=True).locator("visible=true").last)
    look_over(page, "source-settings")
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("restored.").wait_for()
    source.refresh_from_db()
    assert (source.deleted_at, source.status) == (None, "active")


def test_it_works_without_a_script(open_window, newsroom, httpserver):
    httpserver.expect_request("/feed.xml").respond_with_data(
        feed(range(3, 0, -1)), content_type="application/rss+xml"
    )
    page = open_window(scripts=False)
    log_in(page, newsroom.alice)
    go_to(page, "Sources")
    page.get_by_role("main").get_by_role("link", name="Add a source").click()
    page.get_by_label("Address").fill(httpserver.url_for("/feed.xml"))
    page.get_by_role("button", name="Check").click()
    page.get_by_role("button", name="Save source").click()
    page.wait_for_url(lambda url: "/sources/src_" in url)
    assert Source.everywhere.get(is_push=False).config == {"url": httpserver.url_for("/feed.xml")}


@pytest.mark.parametrize("phone", [False, True])
def test_a_lane_without_a_source_document(open_window, newsroom, phone):
    page = open_window(phone=phone)
    log_in(page, newsroom.alice)
    go_to(page, "Sources")
    follow(page, page.get_by_role("main").get_by_role("link", name="Add a source"))
    follow(page, page.get_by_role("link", name="Post from topics"))
    page.get_by_text("0 topics available").wait_for()
    look_over(page, "lane-add-empty")
    make_topics(newsroom, notes="Rye bread keeps for nine days in its crust.")
    page.reload()
    page.get_by_text("8 topics available").wait_for()
    page.get_by_label("Name").fill("Bread")
    page.get_by_label("Selected topics").check()
    page.get_by_text("Choose topics").click()
    for letter in "ABC":
        page.get_by_label(f"Topic {letter}").check()
    for day in ("Saturday", "Sunday"):
        page.get_by_label(day).uncheck()
    page.get_by_role("textbox", name="Times").fill("9:30")
    page.get_by_role("checkbox", name=re.compile("^Short Post")).check()
    page.get_by_role("button", name="Preview").click()
    page.get_by_text("Monday to Friday at 09:30").wait_for()
    page.get_by_text("1 credit per slot · 5 credits per week").wait_for()
    page.get_by_text("3 topics available").wait_for()
    assert Source.everywhere.filter(is_push=False).count() == 0
    look_over(page, "lane-add")
    page.get_by_role("button", name="Save source").click()
    page.wait_for_url(lambda url: "/sources/src_" in url)
    page.get_by_role("button", name="Run now").click()
    page.get_by_text("Choosing a topic.").wait_for()
    task_runner.work_all_due("ingest.fill_brand_slot")
    page.reload()
    page.get_by_text("Generating").wait_for()
    task_runner.work_all_due("generate.run_item")
    page.reload()
    page.get_by_text("Last topic").wait_for()
    assert page.get_by_role("row").count() == 3
    look_over(page, "lane")
    follow(page, page.get_by_role("link", name="Settings", exact=True).locator("visible=true").last)
    look_over(page, "lane-settings")
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Bread restored.").wait_for()
    source = Source.everywhere.get(is_push=False)
    assert (source.deleted_at, source.status, len(source.config["pool"])) == (None, "active", 3)


@pytest.mark.parametrize("phone", [False, True])
def test_a_published_item_whose_source_changed(open_window, newsroom, phone):
    raw = push_raw(newsroom, title="Tram line approved", external_id="tram", url="").raw_item
    steps.run_generations(raw)
    feed = Outlet.everywhere.get(workspace=newsroom, platform="feed")
    for item in steps.items_of(raw):
        steps.send(steps.promise(item, feed))
    push_raw(newsroom, title="Tram line refused", external_id="tram", url="", body=OTHER_TEXT)
    page = open_window(phone=phone)
    log_in(page, newsroom.alice)
    page.get_by_role("heading", name="Source changed after publishing").wait_for()
    page.get_by_text("Source edited after publishing.").first.wait_for()
    look_over(page, "flagged-home")
    page.goto(f"{page.url.split('#')[0].rstrip('/')}/new/{encode('raw', raw.pk)}")
    page.get_by_text("Source edited after publishing.").first.wait_for()
    look_over(page, "flagged-made")
