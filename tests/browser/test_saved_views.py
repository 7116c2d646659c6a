"""Saved views in a browser: a filter gets a name, is found again, renamed, deleted and taken back."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from pipeline.workspace import saved_views
from tests.browser.people import follow, go_to, log_in, look_over
from tests.pipeline.steps import make_items

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("posts"),
]


@pytest.mark.parametrize(("phone", "scripts"), [(False, True), (True, True), (False, False)])
def test_a_filter_gets_a_name(open_window, newsroom, phone, scripts):
    make_items(newsroom, title="Tram line approved")
    for name in (
        "Failed last",
        "Harbour board, everything that is ready to be published",
        "Videos",
        "Letters",
    ):
        saved_views.create(newsroom, name, {"q": name, "status": "failed"})
    page = open_window(phone=phone, scripts=scripts)
    page.set_default_timeout(15_000)
    log_in(page, newsroom.alice)
    go_to(page, "Content")
    if phone:
        page.locator("summary", has_text="Search and filter").click()
    page.get_by_label("Status").select_option("to_review")
    follow(page, page.locator("main form").get_by_role("button", name="Show", exact=True))
    page.locator("summary", has_text="Save view").click()
    if scripts:
        look_over(page, "items-save-view")
    page.get_by_label("Name of the view").fill("Ready to go")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_text("Ready to go saved.").wait_for()
    views = page.get_by_role("navigation", name="Views")
    expect(views.locator("[aria-current]")).to_have_text("Ready to go")
    page.locator("summary", has_text="Rename or delete view").click()
    if scripts:
        look_over(page, "items-view")
    page.get_by_label("Name", exact=True).fill("Ready")
    page.get_by_role("button", name="Rename").click()
    expect(views.locator("[aria-current]")).to_have_text("Ready")
    page.locator("summary", has_text="Rename or delete view").click()
    page.get_by_role("button", name="Delete view").click()
    page.get_by_text("Ready deleted.").wait_for()
    page.get_by_role("button", name="Undo").click()
    expect(views.locator("[aria-current]")).to_have_text("Ready")
    follow(page, views.get_by_role("link", name="All"))
    expect(views.locator("[aria-current]")).to_have_text("All")
