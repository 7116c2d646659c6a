"""Forms as people treat them: sent after the session has ended, gone back to, left open for too long."""

from __future__ import annotations

import pytest
from django.contrib.sessions.models import Session

from accounts.models import Workspace
from tests.browser.people import go_to
from tests.browser.test_account import log_in
from tests.browser.test_sign_up import PASSWORD

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("newsroom")]


@pytest.fixture
def at_settings(page, alice):
    log_in(page)
    page.goto("/settings/workspace")
    page.get_by_label("Name").wait_for()
    return page


def test_what_was_typed_outlives_the_session(at_settings):
    page = at_settings
    page.get_by_label("Name").fill("Harbour newsroom")
    Session.objects.all().delete()
    page.get_by_role("button", name="Save").first.click()
    page.get_by_label("Email").fill("alice@example.test")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.get_by_text("Your changes are kept").wait_for()
    assert page.get_by_label("Name").input_value() == "Harbour newsroom"
    assert Workspace.everywhere.get().name == "Newsroom"
    page.get_by_role("button", name="Save").first.click()
    page.get_by_text("Saved").first.wait_for()
    assert Workspace.everywhere.get().name == "Harbour newsroom"


def test_the_back_button_leads_to_the_form_as_it_was_sent(at_settings):
    page = at_settings
    page.get_by_label("Name").fill("   ")
    page.get_by_role("button", name="Save").first.click()
    page.wait_for_load_state()
    page.get_by_label("Name").fill("Harbour newsroom")
    go_to(page, "Members")
    page.get_by_role("heading", name="Members", level=1).wait_for()
    page.go_back()
    page.get_by_label("Name").wait_for()
    # It can be sent from there.
    page.get_by_label("Name").fill("Harbour newsroom")
    page.get_by_role("button", name="Save").first.click()
    page.get_by_text("Saved").first.wait_for()
    assert Workspace.everywhere.get().name == "Harbour newsroom"


def test_a_form_whose_cookie_is_gone_says_what_to_do(at_settings, complaints):
    complaints.expect("403 (Forbidden)")
    page = at_settings
    page.get_by_label("Name").fill("Harbour newsroom")
    page.context.clear_cookies(name="csrftoken")
    page.get_by_role("button", name="Save").first.click()
    page.get_by_role("heading", name="This form has expired").wait_for()
    assert Workspace.everywhere.get().name == "Newsroom"
    page.get_by_role("link", name="Reload the page").click()
    page.get_by_label("Name").wait_for()
