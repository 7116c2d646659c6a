"""The search for everything in a browser: opened by keys and by its button, without a violation, light and dark, wide and narrow."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from accounts import workspaces
from config.core.ids import encode
from pipeline.models import Source
from tests.browser.people import log_in, look_over, person

pytestmark = pytest.mark.django_db(transaction=True)


def test_search_for_everything(page, db):
    alice = person("alice@example.test", "Alice")
    newsroom = workspaces.create("Newsroom", owner=alice)
    workspaces.whitelist(newsroom, "operator@example.test")
    source = Source.everywhere.create(workspace=newsroom, name="Zeppelin feed", type="webhook")
    log_in(page, alice, f"/w/{encode('ws', newsroom.pk)}/")
    field = page.get_by_role("combobox", name="Search")
    for keys in ("Control+k", "/"):
        page.keyboard.press(keys)
        expect(field).to_be_focused()
        page.keyboard.press("Escape")
        expect(page.locator("dialog[open]")).to_have_count(0)
    page.keyboard.press("Control+k")
    field.fill("p")
    options = page.locator("#found [role=option]")
    expect(options.first).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowDown")
    expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    expect(field).to_have_attribute("aria-activedescendant", options.nth(1).get_attribute("id"))
    expect(field).to_be_focused()
    look_over(page, "search")
    field.fill("no such thing")
    expect(page.get_by_text("Try one word of the title")).to_be_visible()
    look_over(page, "search-empty")
    field.fill("zeppelin")
    expect(options.first).to_contain_text("Zeppelin feed")
    expect(options.first).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/sources/{encode('src', source.pk)}")
    page.set_viewport_size({"width": 390, "height": 844})
    page.get_by_role("link", name="Search", exact=True).click()
    expect(field).to_be_focused()


def test_nothing_typed_is_lost_while_the_search_is_slow(page, db):
    """However long the service takes, the field is there with the key, and each letter is in it."""
    alice = person("alice@example.test", "Alice")
    newsroom = workspaces.create("Newsroom", owner=alice)
    workspaces.whitelist(newsroom, "operator@example.test")
    Source.everywhere.create(workspace=newsroom, name="Clipper feed", type="webhook")
    log_in(page, alice, f"/w/{encode('ws', newsroom.pk)}/")
    held, is_slow = [], True

    def hold(route):
        if is_slow:
            held.append(route)
        else:
            route.continue_()

    page.route("**/search*", hold)
    field = page.get_by_role("combobox", name="Search")
    page.keyboard.press("/")
    # "c" alone would lead to Create.
    page.keyboard.type("clipper")
    expect(field).to_be_focused()
    expect(field).to_have_value("clipper")
    page.keyboard.press("Control+k")
    expect(field).to_have_value("clipper")
    assert held
    is_slow = False
    for route in held:
        route.continue_()
    field.press("Backspace")
    expect(page.locator("#found [role=option]").first).to_contain_text("Clipper feed")
    expect(field).to_be_focused()


def test_a_key_right_after_the_search_was_closed_opens_it_again(page, db):
    """Before the page is drawn again the hidden field still has the focus, and the dialog's `close` is yet to come."""
    alice = person("alice@example.test", "Alice")
    newsroom = workspaces.create("Newsroom", owner=alice)
    log_in(page, alice, f"/w/{encode('ws', newsroom.pk)}/")
    page.keyboard.press("Control+k")
    field = page.get_by_role("combobox", name="Search")
    expect(field).to_be_focused()
    focused = page.evaluate("""() => {
      const field = document.activeElement;
      field.closest("dialog").close();
      const focused = document.activeElement;
      focused.dispatchEvent(new KeyboardEvent("keydown", { key: "/", bubbles: true, cancelable: true }));
      return focused === field;
    }""")
    assert focused
    expect(field).to_be_focused()
    # Two frames later the event of the closing has come, too.
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    expect(field).to_be_focused()


def test_keys_of_every_page(page, db):
    alice = person("alice@example.test", "Alice")
    newsroom = workspaces.create("Newsroom", owner=alice)
    workspaces.whitelist(newsroom, "operator@example.test")
    log_in(page, alice, f"/w/{encode('ws', newsroom.pk)}/sources/")
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(keys).to_contain_text("search everything")
    look_over(page, "keys")
    page.keyboard.press("c")
    expect(keys).to_be_visible()
    page.keyboard.press("Escape")
    expect(keys).to_have_count(0)
    with page.expect_navigation():
        page.keyboard.press("c")
    expect(page.get_by_role("heading", level=1)).to_have_text("Create")
    # Where somebody writes they are letters.
    page.get_by_label("Link or text").press_sequentially("c?")
    expect(page.get_by_label("Link or text")).to_have_value("c?")
