"""An item rewritten in place in a browser: from its page and from its review card, with the progress and the undo."""

from __future__ import annotations

import pytest

from config.core import task_runner
from config.core.ids import encode
from pipeline.models import GeneratedItem
from tests.browser.people import log_in, look_over
from tests.browser.test_items import made, open_item
from tests.pipeline.generate.test_generate_with_model import written
from tests.pipeline.steps import make_stage, promise, reread, send
from tests.writers.messages_server import MessagesServer, refusal

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("posts"),
]
SHORT = "After six hours of debate the tram line was approved."


@pytest.fixture
def item(newsroom):
    return made(newsroom)


@pytest.fixture
def model(item, settings, anthropic_sdk):
    """Claude answers from here on; the item was made without it."""
    with MessagesServer() as running:
        settings.ANTHROPIC_API_KEY = "key-of-the-operator"
        settings.ANTHROPIC_BASE_URL = running.url
        running.answer = lambda _request: written(SHORT)
        yield running


def work():
    assert task_runner.work_all_due("generate.rewrite_item")


def test_on_its_own_page_it_is_rewritten_watched_and_taken_back(open_window, newsroom, item, model):
    page = open_window()
    open_item(page, newsroom, item, is_in=False)
    page.get_by_role("link", name="Rewrite", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("Costs 1 credit.").wait_for()
    look_over(page, "item-rewrite")
    dialog.get_by_label("Plainer").check()
    dialog.get_by_role("textbox", name="Instructions").fill("For beginners")
    dialog.get_by_role("button", name="Rewrite").click()
    page.get_by_text("Rewriting…").wait_for()
    look_over(page, "item-rewriting")
    work()
    page.get_by_text("Rewritten.").wait_for()
    page.get_by_text(SHORT).first.wait_for()
    look_over(page, "item-rewritten")
    page.get_by_role("button", name="Undo rewrite").click()
    page.get_by_text("The former text is back.").wait_for()
    assert (reread(item).body, reread(item).revision) == (item.body, 3)


def test_a_page_that_is_loaded_again_waits_for_the_dialog(open_window, newsroom, item, model):
    row = promise(item, make_stage(newsroom))
    page = open_window()
    open_item(page, newsroom, item, is_in=False)
    page.get_by_text("Publishing to Stage.").wait_for()
    page.get_by_role("link", name="Rewrite", exact=True).click()
    instructions = page.get_by_role("dialog").get_by_role("textbox", name="Instructions")
    instructions.fill("For beginners")
    with page.expect_response(lambda answer: answer.headers.get("hx-refresh") == "true"):
        send(row)
    # It asks again, and the words are still there.
    page.wait_for_event("response", lambda answer: answer.headers.get("hx-refresh") == "true")
    assert instructions.input_value() == "For beginners"
    page.keyboard.press("Escape")
    page.get_by_role("link", name="View post").wait_for()


def test_on_its_card_a_cancel_a_failure_and_the_words_keep_what_is_typed(open_window, newsroom, item, model):
    page = open_window()
    log_in(page, newsroom.alice, f"/w/{encode('ws', newsroom.pk)}/review/")

    def rewrite():
        page.get_by_text("More", exact=True).click()
        page.get_by_role("link", name="Rewrite", exact=True).click()
        page.get_by_role("dialog").get_by_role("button", name="Rewrite").click()
        page.get_by_text("Rewriting…").wait_for()

    rewrite()
    page.get_by_role("link", name="Cancel rewrite").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel rewrite").click()
    page.get_by_text("Rewrite cancelled.").wait_for()
    model.answer = lambda _request: refusal("bio")
    rewrite()
    look_over(page, "card-rewriting")
    page.locator("[data-panel=reject] > summary").click()
    reason = page.get_by_label("Other reason")
    reason.fill("Too dull")
    work()
    page.get_by_text("Not rewritten.").wait_for()
    assert reason.input_value() == "Too dull"
    reason.fill("")
    model.answer = lambda _request: written(SHORT)
    rewrite()
    work()
    # The card's own news bring the new words; what is typed elsewhere on it stays.
    page.get_by_role("button", name="Undo rewrite").wait_for()
    look_over(page, "card-rewritten")
    page.get_by_role("button", name="Undo rewrite").click()
    page.get_by_text("The former text is back.").wait_for()
    assert (GeneratedItem.everywhere.count(), reread(item).revision) == (1, 3)


def test_without_a_model_it_says_what_is_needed(open_window, newsroom, item):
    page = open_window()
    open_item(page, newsroom, item, is_in=False)
    page.get_by_role("link", name="Rewrite", exact=True).click()
    page.get_by_role("dialog").get_by_text("no key for one").wait_for()
    look_over(page, "item-rewrite-without-a-model")
    page.get_by_role("dialog").get_by_role("link", name="Add a model key").click()
    page.wait_for_url("**/key*")
