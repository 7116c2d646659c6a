"""Keys in a real browser: made, copied, tried, watched, rotated, revoked and taken back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import requests
import time_machine
from django.urls import reverse

from accounts.access import tokens
from accounts.models import ApiToken
from tests.browser.people import PASSWORD, look_over, violations
from tests.browser.terminal import run
from tests.factories import TokenFactory

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def at(newsroom):
    def address(name, token=None):
        more = {} if token is None else {"token_id": token.pk}
        return reverse(name, kwargs={"ws": newsroom.pk, **more})

    return address


def log_in(page, where):
    page.goto(where)
    page.get_by_label("Email").fill("alice@example.test")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(f"**{where}")


def test_make_try_watch_revoke_and_undo(page, at, newsroom):
    log_in(page, at("keys"))
    page.get_by_role("link", name="Create key").click()
    page.get_by_label("Name").fill("Website")
    page.get_by_label("Full access").check()
    page.get_by_role("button", name="Create key").click()
    page.get_by_role("button", name="Copy key").click()
    page.get_by_text("Copied").first.wait_for()
    secret = page.evaluate("navigator.clipboard.readText()")
    assert secret == page.locator("#secret").inner_text()
    lines = [page.locator(f"#{name}").inner_text() for name in ("line-workspace", "line-raw")]
    assert all(secret in line for line in lines)

    page.get_by_role("link", name="Done").click()
    page.get_by_text("No requests in the last 24 hours").wait_for()
    answer = run(lines[0])
    assert (answer.status_code, answer.json()["id"]) == (200, newsroom.public_id)
    page.get_by_role("row", name="GET /v1/workspace").wait_for()
    assert run(lines[1]).status_code == 202
    page.get_by_role("row", name="POST /v1/raw").wait_for()
    assert page.get_by_role("row").nth(1).inner_text().split()[:3] == ["POST", "/v1/raw", "202"]
    # The line without the key in it, as a terminal that holds the key would run it.
    assert run(page.locator("#line-workspace").inner_text().replace("$API_KEY", secret)).status_code == 200

    page.get_by_role("link", name="Revoke", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Revoke the key").click()
    page.get_by_text("Website was revoked.").wait_for()
    assert run(lines[0]).status_code == 401
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Website works again.").wait_for()
    assert run(lines[0]).status_code == 200


def test_back_and_reload_show_the_key_no_more(page, at):
    log_in(page, at("key_create"))
    page.get_by_label("Name").fill("Website")
    page.get_by_role("button", name="Create key").click()
    secret = page.locator("#secret").inner_text()
    page.reload()
    page.get_by_role("heading", name="This key was already shown").wait_for()
    page.get_by_role("link", name="All keys").click()
    page.get_by_role("heading", name="API keys").wait_for()
    page.go_back()
    page.get_by_role("heading", name="This key was already shown").wait_for()
    assert secret not in page.content()


def test_a_double_click_without_scripts_makes_one_key_and_shows_it(open_window, at):
    page = open_window(scripts=False)
    log_in(page, at("key_create"))
    page.get_by_label("Name").fill("Website")
    page.get_by_role("button", name="Create key").dblclick()
    page.get_by_role("heading", name="Copy your key").wait_for()
    token = ApiToken.everywhere.get()
    assert page.locator("#secret").inner_text().endswith(token.last_four)


def test_everything_works_without_scripts(open_window, at):
    page = open_window(scripts=False)
    log_in(page, at("keys"))
    page.get_by_role("link", name="Create key").click()
    page.get_by_label("Name").fill("Website")
    page.get_by_label("Custom").check()
    page.get_by_label("raw:write").check()
    page.get_by_role("button", name="Create key").click()
    assert ApiToken.everywhere.get().scopes == ["raw:write"]
    page.get_by_role("link", name="All keys").click()
    page.get_by_role("link", name="Rotate Website").click()
    page.get_by_label("Revoke now").check()
    page.get_by_role("button", name="Create new key").click()
    page.get_by_role("heading", name="Copy your key").wait_for()
    page.get_by_role("link", name="All keys").click()
    page.get_by_role("link", name="Revoke Website").click()
    page.get_by_role("button", name="Revoke the key").click()
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Website works again.").wait_for()
    page.get_by_role("link", name="Show 1 expired or revoked key").click()
    page.get_by_text("Expired", exact=True).wait_for()


def test_an_old_log_in_types_its_password_and_finds_the_key_made(page, at):
    log_in(page, at("key_create"))
    page.get_by_label("Name").fill("Website")
    page.get_by_label("Read only").check()
    with time_machine.travel(datetime.now(UTC) + timedelta(minutes=16)):
        page.get_by_role("button", name="Create key").click()
        page.get_by_role("heading", name="Confirm your password").wait_for()
        look_over(page, "reauthenticate")
        assert ApiToken.everywhere.count() == 0
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Continue").click()
        page.get_by_role("heading", name="Copy your key").wait_for()
    token = ApiToken.everywhere.get()
    assert (token.name, token.scopes) == ("Website", list(tokens.PRESETS["read-only"]))
    assert run(page.locator("#line-workspace").inner_text()).status_code == 200


def test_the_keyboard_alone_makes_and_revokes_a_key(page, at):
    log_in(page, at("key_create"))
    assert page.evaluate("document.activeElement.name") == "name"
    page.keyboard.type("Website")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Copy your key").wait_for()
    token = ApiToken.everywhere.get()
    assert (token.name, token.scopes) == ("Website", ["raw:write"])
    page.goto(at("keys"))
    page.get_by_role("link", name="Revoke Website").focus()
    page.keyboard.press("Enter")
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.textContent") == "Revoke"
    page.keyboard.press("Enter")
    page.get_by_role("dialog").get_by_role("button", name="Revoke the key").focus()
    page.keyboard.press("Enter")
    page.get_by_text("Website was revoked.").wait_for()
    token.refresh_from_db()
    assert token.revoked_at is not None


def test_a_session_that_ends_while_the_page_watches_leads_to_the_log_in_and_back(page, at, newsroom):
    token = TokenFactory(workspace=newsroom, name="Import")
    log_in(page, at("key", token))
    page.context.clear_cookies(name="sessionid")
    page.get_by_role("heading", name="Log in").wait_for()
    log_in(page, at("key", token))
    page.get_by_role("heading", name="Import").wait_for()


def test_pages_can_be_read_by_everybody(page, at, newsroom, alice):
    now = datetime.now(UTC)
    log_in(page, at("keys"))
    look_over(page, "keys-empty")
    TokenFactory(
        workspace=newsroom, name="Zapier", created_by=alice, scopes=["raw:read", "raw:write", "sources:read"]
    )
    TokenFactory(workspace=newsroom, name="Newsletter", is_test=True, expires_at=now + timedelta(days=3))
    old = TokenFactory(workspace=newsroom, name="Website import", created_by=alice)
    new = tokens.rotate(old, by=alice).token
    tokens.revoke(TokenFactory(workspace=newsroom, name="Old bridge", created_by=alice), alice)
    for address in ("/v1/workspace", "/v1/sources?limit=5", "/v1/nothing"):
        requests.get(
            page.url.split("/w/")[0] + address, headers={"Authorization": f"Bearer {old.secret}"}, timeout=10
        )
    for name, token in (
        ("keys", None),
        ("key_create", None),
        ("key", old),
        ("key_rotate", new),
        ("key_revoke", old),
        ("key_revoke_all", None),
        ("key_secret", old),
    ):
        page.goto(at(name, token))
        look_over(page, f"of-{name}")
    page.goto(at("keys") + "?ended=1")
    look_over(page, "keys-ended")
    page.goto(at("key_create"))
    page.get_by_label("Name").fill("Website")
    page.get_by_label("Custom").check()
    page.get_by_role("button", name="Create key").click()
    page.get_by_text("Choose at least one permission.").wait_for()
    look_over(page, "key_create-wrong")
    page.get_by_label("raw:write").check()
    page.get_by_role("button", name="Create key").click()
    page.get_by_role("heading", name="Copy your key").wait_for()
    look_over(page, "key_secret-shown")
    page.goto(at("keys"))
    page.get_by_role("link", name="Revoke Website", exact=True).click()
    page.get_by_role("dialog").wait_for()
    look_over(page, "key_revoke-dialog")
    page.get_by_role("dialog").get_by_role("button", name="Revoke the key").click()
    page.get_by_text("Website was revoked.").wait_for()
    assert violations(page) == []
