"""The first journey of somebody who has never seen the product, timed: from the front page to a call of their
own."""

from __future__ import annotations

import time
from contextlib import contextmanager

import pytest
from standardwebhooks import Webhook

from tests.browser.people import go_to
from tests.browser.terminal import run
from tests.browser.test_sign_up import PASSWORD, sign_up
from tests.factories import UserFactory
from webhooks.models import Delivery

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def quick_workspaces():
    """None: who comes first meets what a new workspace really makes."""


class Watch:
    """How long each step took."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, float]] = []

    @contextmanager
    def step(self, name):
        started = time.perf_counter()
        yield
        self.steps.append((name, time.perf_counter() - started))

    def told(self):
        total = sum(seconds for _, seconds in self.steps)
        return ", ".join(f"{name} {seconds:.1f} s" for name, seconds in self.steps) + f"; all {total:.1f} s"


@pytest.fixture
def operator(db):
    user = UserFactory(
        email="operator@example.test", password=PASSWORD, is_staff=True, is_superuser=True, name="Operator"
    )
    user.mark_email_verified()
    return user


def let_in(window):
    """The operator approves what waits in the admin's queue."""
    window.goto("/admin/accounts/whitelistrequest/")
    window.get_by_label("Email").fill("operator@example.test")
    window.get_by_label("Password").fill(PASSWORD)
    window.get_by_role("button", name="Log in").click()
    window.get_by_label("Select this object for an action").first.check()
    window.get_by_label("Action:").select_option(label="Approve")
    window.get_by_role("button", name="Run").or_(window.get_by_role("button", name="Go")).first.click()
    window.locator(".messagelist .success").wait_for()


def test_from_the_front_page_to_a_refused_call(
    page, open_window, operator, httpserver, work_until, record_property
):
    httpserver.expect_request("/hook").respond_with_data("Thank you")
    watch = Watch()
    with watch.step("sign up and confirm"):
        sign_up(page)
        page.get_by_label("Time zone").wait_for()
    with watch.step("workspace"):
        page.get_by_label("Name").fill("Alice's newsroom")
        page.get_by_label("Time zone").select_option("Europe/Berlin")
        page.get_by_role("button", name="Create the workspace").click()
        page.get_by_role("heading", name="Get started").wait_for()
    with watch.step("ask for access"):
        page.get_by_role("button", name="Request access").click()
        page.get_by_text("Your request is pending.").wait_for()
    # A key can be made before; its calls are refused until then.
    with watch.step("key"):
        go_to(page, "Settings", "API keys")
        page.get_by_role("link", name="Create key").click()
        page.get_by_label("Name").fill("Website")
        page.get_by_label("Full access").check()
        page.get_by_role("button", name="Create key").click()
        line = page.locator("#line-workspace").inner_text()
        push = page.locator("#line-raw").inner_text()
    refused = run(line)
    assert (refused.status_code, refused.json()["error"]) == (403, "workspace_not_whitelisted")
    with watch.step("operator lets in"):
        let_in(open_window())
    with watch.step("first call"):
        answer = run(line)
        assert (answer.status_code, answer.json()["name"]) == (200, "Alice's newsroom")
        assert run(push).status_code == 202
    with watch.step("seen in the page"):
        page.get_by_role("link", name="Done").click()
        page.get_by_role("row", name="POST /v1/raw").wait_for()
        assert [row.split()[2] for row in page.get_by_role("row").all_inner_texts()[1:]] == [
            "202",
            "200",
            "403",
        ]

    with watch.step("webhook and its test event"):
        go_to(page, "Settings", "Webhooks")
        page.get_by_role("main").get_by_role("link", name="Add an endpoint").click()
        page.get_by_label("URL").fill(httpserver.url_for("/hook"))
        page.get_by_role("button", name="Add and send test").click()
        page.get_by_text("Sending a signed webhook.test").wait_for()
        work_until(lambda: Delivery.everywhere.filter(status="delivered").exists())
        page.get_by_text("It works.").wait_for()
    # What was pushed before is told as well, and what was made of it.
    webhook = Webhook(page.locator("#secret").inner_text())
    told = {webhook.verify(request.data, dict(request.headers))["type"] for request, _ in httpserver.log}
    assert told == {"webhook.test", "raw.ingested", "generated.ready"}

    with watch.step("revoke"):
        go_to(page, "Settings", "API keys")
        page.get_by_role("link", name="Website").first.click()
        page.get_by_role("link", name="Revoke", exact=True).click()
        page.get_by_role("dialog").get_by_role("button", name="Revoke the key").click()
        page.get_by_text("Website was revoked.").wait_for()
    with watch.step("refused"):
        answer = run(line)
        assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
    record_property("told", watch.told())
