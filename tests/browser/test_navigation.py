"""The navigation in a browser: all of it on a laptop's screen, the account's menu, and the bar at the foot of a phone."""

from __future__ import annotations

import re

import pytest

from tests.browser.people import go_to, log_in, look_over
from tests.pipeline.steps import make_items

pytestmark = pytest.mark.django_db(transaction=True)


def test_it_fits_a_laptop(open_window, newsroom):
    page = open_window()
    page.set_viewport_size({"width": 1280, "height": 720})
    log_in(page, newsroom.alice)
    is_whole = "(() => { const bar = document.querySelector('aside.sidebar'); return bar.scrollHeight <= bar.clientHeight; })()"
    assert page.evaluate(is_whole)
    page.locator("aside .account > summary").click()
    leave = page.locator("aside").get_by_role("button", name="Log out").bounding_box()
    assert 0 <= leave["y"] < leave["y"] + leave["height"] <= 720
    look_over(page, "account-menu")
    page.keyboard.press("Escape")
    go_to(page, "Settings")
    look_over(page, "settings")
    go_to(page, "Members")
    page.get_by_role("heading", name="Members", level=1).wait_for()


def test_the_bar_at_the_foot_covers_nothing(open_window, newsroom):
    make_items(newsroom, title="The ferry leaves earlier")
    page = open_window(phone=True)
    log_in(page, newsroom.alice)
    bar = page.get_by_role("navigation", name="Shortcuts")
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    last = page.locator(".page-foot").bounding_box()
    assert last["y"] + last["height"] <= bar.bounding_box()["y"]
    bar.get_by_role("link", name="Inbox").click()
    page.get_by_role("heading", name="To review").wait_for()
    approve = page.get_by_role("button", name="Approve", exact=True).first.bounding_box()
    assert approve["y"] + approve["height"] <= bar.bounding_box()["y"]


def test_a_decision_counts_everywhere_at_once(open_window, newsroom):
    make_items(newsroom, title="The ferry leaves earlier")
    page = open_window()
    log_in(page, newsroom.alice, f"/w/{newsroom.public_id}/review/")
    before = int(page.locator("aside [data-to-review]").inner_text())
    page.get_by_role("button", name=re.compile("^Approve")).last.click()
    page.wait_for_function(
        "before => +document.querySelector('aside [data-to-review]').textContent < before", arg=before
    )
    now = page.locator("aside [data-to-review]").inner_text()
    page.wait_for_function(
        "now => document.querySelector('[data-waiting]').textContent === now", arg=now, timeout=4_000
    )
