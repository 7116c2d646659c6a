"""Words that were typed in the review queue and not saved: nothing takes them away unasked."""

from __future__ import annotations

import pytest

from config.core.ids import encode
from pipeline.models import GeneratedItem
from pipeline.review import bulk_review
from tests.browser.test_review import card_of, open_queue, seed, story, until
from tests.pipeline.steps import reread

__all__ = ["seed"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("posts"),
]


@pytest.fixture
def two(seed, stage):
    """The story on top, and the one below it."""
    return story(seed, stage, "Above")[0], seed


def asked_by(page, *, answers):
    """What the page asks, and gets one of the answers for each."""
    seen = []

    def answer(dialog):
        seen.append(dialog.type)
        (dialog.accept if answers.pop(0) else dialog.dismiss)()

    page.on("dialog", answer)
    return seen


def typed_in(page):
    return page.locator("[data-edit-form]").get_by_label("Title").input_value()


def write(page, words):
    page.locator("[data-edit-form]").get_by_label("Title").fill(words)


def other_story(page, item):
    return page.locator(f"[data-list] [data-open='{encode('gen', item.pk)}']")


def slow(page, path):
    """Requests for a path wait until the function that comes back is called."""
    held, is_open = [], []

    def take(route):
        if is_open:
            route.continue_()
        else:
            held.append(route)

    page.route(path, take)

    def go_on():
        is_open.append(True)
        for one in held:
            one.continue_()

    def until_asked():
        while not held:
            page.wait_for_timeout(20)

    return until_asked, go_on


def test_who_has_typed_is_asked_before_it_goes(open_window, newsroom, two):
    above, below = two
    page = open_window()
    open_queue(page, newsroom)
    card_of(page, above)
    asked = asked_by(page, answers=[False, False, False, True])
    page.keyboard.press("e")
    write(page, "Mine")
    other_story(page, below).click()
    page.get_by_role("link", name="Cancel").click()
    page.evaluate("location.reload()")
    page.wait_for_timeout(300)
    assert (asked, typed_in(page)) == (["confirm", "confirm", "beforeunload"], "Mine")
    page.get_by_role("link", name="Cancel").click()
    card_of(page, above)
    assert asked.count("confirm") == 3
    # Where nothing was typed, and after it was saved, nobody is asked.
    page.keyboard.press("e")
    page.locator("[data-edit-form]").wait_for()
    other_story(page, below).click()
    card_of(page, below)
    page.keyboard.press("e")
    write(page, "Mine")
    page.keyboard.press("Control+Enter")
    card_of(page, below)
    assert (reread(below).title, len(asked)) == ("Mine", 4)


def test_a_slow_answer_replaces_no_form(open_window, newsroom, two):
    above, below = two
    page = open_window()
    # Another story is asked for, and its card is slow to come.
    until_asked, go_on = slow(page, f"**/review/{encode('gen', below.pk)}*")
    open_queue(page, newsroom)
    card_of(page, above)
    other_story(page, below).click()
    until_asked()
    page.keyboard.press("e")
    write(page, "Mine")
    go_on()
    page.wait_for_timeout(500)
    assert typed_in(page) == "Mine"


def test_a_decision_that_stays_replaces_no_form(open_window, newsroom, seed, stage):
    item = story(seed, stage, "Above", variants=2)[1]
    page = open_window()
    open_queue(page, newsroom)
    card_of(page, item)
    until_asked, go_on = slow(page, "**/review/decide")
    page.keyboard.press("v")
    until_asked()
    page.keyboard.press("e")
    write(page, "Mine")
    go_on()
    page.get_by_text("Variant chosen.").locator("visible=true").first.wait_for()
    page.wait_for_timeout(300)
    assert typed_in(page) == "Mine"


def test_what_was_too_much_for_one_decision_stays_chosen(open_window, newsroom, two, monkeypatch):
    monkeypatch.setattr(bulk_review, "AT_ONCE", 1)
    above, below = two
    page = open_window()
    open_queue(page, newsroom)
    card_of(page, above)
    boxes = page.locator("[data-list] input[name=items]")
    for box in boxes.all():
        box.check()
    page.locator("#bulk").get_by_role("button", name="Approve").click()
    until(page, lambda: reread(above).approved_at is not None)
    page.get_by_text("are decided on at once").locator("visible=true").first.wait_for()
    assert [box.is_checked() for box in boxes.all()] == [False, True]
    assert GeneratedItem.everywhere.get(pk=below.pk).approved_at is None
    page.locator("#bulk").get_by_role("button", name="Approve").click()
    until(page, lambda: reread(below).approved_at is not None)
