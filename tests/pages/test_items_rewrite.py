"""An item rewritten in place by page: the price before, the progress, the end with its undo, and who may."""

from __future__ import annotations

import pytest

from config.core import task_runner
from config.core.ids import encode
from pipeline.models import GeneratedItem, Generation, Revision
from pipeline.review import decisions
from tests.pages.answers import at, said
from tests.pipeline.generate.test_generate_with_model import written
from tests.pipeline.steps import NOON, balance, reread
from tests.writers.messages_server import MessagesServer, refusal

SHORT = "After six hours of debate the tram line was approved."


@pytest.fixture
def model(settings, anthropic_sdk):
    """Claude, to whom the operator's key leads; the item was made without it."""
    with MessagesServer() as running:
        settings.ANTHROPIC_API_KEY = "key-of-the-operator"
        settings.ANTHROPIC_BASE_URL = running.url
        running.answer = lambda _request: written(SHORT)
        yield running


def address(item, name):
    return at(item.workspace, name, gen=item.pk)


def shown(client, item, name="item_page", **query):
    return client.get(address(item, name), query).content.decode()


def asked(client, item, **given):
    answer = client.post(
        address(item, "item_rewrite"), {"wish": "shorter", "version": reread(item).version, **given}
    )
    assert answer.status_code == 302, answer.content.decode()
    return answer


def work():
    assert task_runner.work_all_due("generate.rewrite_item")


def test_the_price_is_shown_then_the_progress_then_the_words_with_their_undo(editor, item, model):
    page = shown(editor, item)
    assert f'href="{address(item, "item_rewrite")}" data-dialog' in page
    form = shown(editor, item, "item_rewrite")
    assert ["Costs 1 credit." in form, "Shorter" in form, "Plainer" in form] == [True] * 3
    before = balance(item.workspace)
    assert asked(editor, item)["Location"] == address(item, "item_page")
    page = shown(editor, item)
    assert ['hx-trigger="every 2s"' in page, "Rewriting…" in page] == [True, True]
    assert "Cancel rewrite" in shown(editor, item, "item_rewrite")
    work()
    # The part that looks again has the whole page opened.
    part = editor.get(address(item, "item_page"), headers={"HX-Target": "rewriting"})
    assert part.headers["HX-Refresh"] == "true"
    page = shown(editor, item)
    assert [SHORT in page, "Undo rewrite" in page, "Rewriting…" in page] == [True, True, False]
    # Who wrote which words, in the badge and in the history.
    assert ["· edited" in page, "AI: claude" in page, "Without AI" in page] == [False, True, True]
    assert balance(item.workspace) == (before[0] - 1, 0)
    answer = editor.post(address(item, "item_rewrite_undo"), {"version": reread(item).version})
    assert said(answer) == ["Undone. The former text is back."]
    assert (reread(item).body, reread(item).revision) == (item.body, 3)
    assert "Undo rewrite" not in shown(editor, item)


def test_a_double_click_asks_once(editor, item, model):
    asked(editor, item, once="showing")
    asked(editor, item, once="showing")
    assert Generation.everywhere.filter(rewrites=item).count() == 1


def test_instructions_are_told_with_the_wish_and_alone(editor, item, model):
    answer = editor.post(address(item, "item_rewrite"), {"wish": "own", "hint": " ", "version": item.version})
    assert (answer.status_code, "Write what should change." in answer.content.decode()) == (200, True)
    asked(editor, item, wish="plainer", hint="For beginners")
    work()
    assert "readers who don't know the subject. For beginners" in model.requests[-1].raw


def test_it_is_cancelled(editor, item, model):
    before = balance(item.workspace)
    asked(editor, item)
    answer = editor.post(address(item, "item_rewrite_cancel"))
    assert said(answer) == ["Rewrite cancelled. You weren't charged."]
    assert (balance(item.workspace), model.requests, reread(item).revision) == (before, [], 1)
    assert "Not rewritten" not in shown(editor, item)
    assert said(editor.post(address(item, "item_rewrite_cancel"))) == ["No rewrite is under way any more."]


def test_a_failure_is_told_until_something_else_is_done(editor, item, model):
    model.answer = lambda _request: refusal("bio")
    asked(editor, item)
    work()
    for name in ("item_page", "review_card"):
        page = shown(editor, item, name)
        assert ["Not rewritten." in page, "The model declined" in page, "You weren't charged." in page] == [
            True
        ] * 3, name
    decisions.approve(reread(item), by="vera", now=NOON)
    assert "Not rewritten." not in shown(editor, item)


def test_who_looked_at_an_older_version_is_told_and_keeps_what_was_typed(editor, item, model):
    decisions.edit(item, {"title": "Another"}, by="vera", now=NOON)
    given = {"wish": "plainer", "hint": "For beginners", "version": item.version}
    answer = editor.post(address(item, "item_rewrite"), given)
    page = answer.content.decode()
    assert [answer.status_code, "Changed since you opened it." in page, "For beginners" in page] == [
        200,
        True,
        True,
    ]
    assert f'name="version" value="{reread(item).version}"' in page
    assert Generation.everywhere.filter(rewrites=item).count() == 0


def test_of_two_people_the_second_is_told(editor, owner, item, model):
    asked(editor, item)
    given = {"wish": "plainer", "version": item.version}
    page = owner.post(address(item, "item_rewrite"), given).content.decode()
    assert Generation.everywhere.filter(rewrites=item).count() == 1
    assert "Cancel rewrite" in page


def test_the_card_leads_back_to_the_review_with_its_filters(editor, item, model):
    card = shown(editor, item, "review_card", bucket="text")
    assert f"{address(item, 'item_rewrite')}?back=review&amp;query=bucket%3Dtext" in card
    form = shown(editor, item, "item_rewrite", back="review", query="bucket=text")
    assert 'name="query" value="bucket=text"' in form
    answer = asked(editor, item, back="review", query="bucket=text&next=https://evil.example")
    home = f"{at(item.workspace, 'review')}?bucket=text&at={encode('gen', item.pk)}"
    assert answer["Location"] == home
    assert ['id="card-rewriting"' in shown(editor, item, "review_card")] == [True]
    part = editor.get(address(item, "item_page"), headers={"HX-Target": "card-rewriting"})
    assert "Rewriting…" in part.content.decode()
    work()
    # What is typed on the card must stay: the part alone says that it has ended.
    part = editor.get(address(item, "item_page"), headers={"HX-Target": "card-rewriting"})
    assert ["HX-Refresh" in part.headers, "hx-trigger" in part.content.decode()] == [False, False]
    assert "The rewrite has ended." in part.content.decode()
    assert "Undo rewrite" in shown(editor, item, "review_card")
    given = {"version": reread(item).version, "back": "review", "query": "bucket=text"}
    assert editor.post(address(item, "item_rewrite_undo"), given)["Location"] == home


def test_without_a_model_the_page_says_what_is_needed(editor, owner, item):
    page = shown(editor, item, "item_rewrite")
    assert ["no key for one" in page, "Ask an owner" in page, 'name="wish"' in page] == [True, True, False]
    page = shown(owner, item, "item_rewrite")
    assert [at(item.workspace, "workspace_key") in page, "Ask an owner" in page] == [True, False]
    answer = editor.post(address(item, "item_rewrite"), {"wish": "shorter", "version": item.version})
    assert "no key for one" in answer.content.decode()
    assert Generation.everywhere.filter(rewrites=item).count() == 0


def test_a_film_offers_no_rewrite(editor, item, model):
    GeneratedItem.everywhere.filter(pk=item.pk).update(bucket="video", engine_output="Template Short")
    assert address(item, "item_rewrite") not in shown(editor, item)
    assert "Edit its scenes" in shown(editor, item, "item_rewrite")


def test_a_viewer_sees_it_and_may_do_nothing(editor, as_person, vera, item, model):
    asked(editor, item)
    viewer = as_person(vera)
    page = shown(viewer, item)
    assert ["Rewriting…" in page, "Cancel rewrite" in page] == [True, False]
    for name in ("item_rewrite", "item_rewrite_cancel", "item_rewrite_undo"):
        assert viewer.post(address(item, name), {"wish": "shorter"}).status_code == 403, name
    work()
    page = shown(viewer, item)
    assert ["Rewritten." in page, "Undo rewrite" in page] == [True, False]
    assert Revision.everywhere.filter(item=item).count() == 2


def test_another_workspaces_item_is_none(as_person, charlie, item, model):
    stranger = as_person(charlie)
    for name in ("item_rewrite", "item_rewrite_cancel", "item_rewrite_undo"):
        assert stranger.post(address(item, name), {"wish": "shorter"}).status_code == 404, name
