"""The way in, as somebody walks it who has never seen the product."""

from __future__ import annotations

import re

import pytest
from django.core import mail

from accounts.models import User, WhitelistRequest, Workspace

pytestmark = pytest.mark.django_db(transaction=True)
PASSWORD = "a long enough phrase 9"


def code_of_last_mail() -> str:
    found = re.search(r"^([A-Z0-9]{3,8}(?:-[A-Z0-9]{3,8})?)$", mail.outbox[-1].body, re.MULTILINE)
    assert found, mail.outbox[-1].body
    return found[1]


def sign_up(page, email="alice@example.test"):
    page.goto("/")
    page.get_by_role("link", name="Create an account").click()
    page.get_by_label("Email").fill(email)
    page.get_by_label("Your name").fill("Alice Example")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Create the account").click()
    page.get_by_text("It expires in 15 minutes.").wait_for()
    page.get_by_label("Code").fill(code_of_last_mail())
    page.get_by_role("button", name="Confirm").click()


def test_sign_up_verify_workspace_and_ask_for_access(page):
    sign_up(page)
    page.get_by_label("Name").fill("Alice's newsroom")
    page.get_by_label("Time zone").select_option("Europe/Berlin")
    page.get_by_role("button", name="Create the workspace").click()
    page.get_by_role("heading", name="Get started").wait_for()
    page.get_by_role("link", name="Calendar", exact=True).first.click()
    page.get_by_role("note").get_by_role("link", name="Request access").click()
    page.get_by_label("Intended use").fill("Ferry news for my site")
    page.get_by_role("button", name="Send request").click()
    page.get_by_text("Your request is pending.").wait_for()

    assert User.objects.get().name == "Alice Example"
    workspace = Workspace.everywhere.get()
    assert (workspace.name, workspace.timezone) == ("Alice's newsroom", "Europe/Berlin")
    assert WhitelistRequest.everywhere.get().message == "Ferry news for my site"
    assert mail.outbox[-1].to == ["operator@localhost"]
