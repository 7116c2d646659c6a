"""An operator's day in a real browser: every act that the admin offers, and that it holds."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
import requests
from django.contrib import admin
from django.urls import reverse

from accounts import whitelist_requests, workspaces
from accounts.access import tokens
from accounts.models import AuditEntry
from pipeline import publish
from pipeline.models import Outlet, Switch
from tests.browser.people import look_over
from tests.factories import UserFactory
from tests.operations.test_dead_letters import dead_publication, dead_source
from tests.operations.test_overview import call
from tests.pipeline.steps import accepted, make_items, make_stage, reread, to
from tests.webhooks.factories import make_delivery, make_endpoint

pytestmark = [pytest.mark.minutes(1), pytest.mark.usefixtures("own_media")]

EMAIL, PASSWORD = "op@example.test", "correct horse"


@pytest.fixture
def operator(transactional_db):
    made = UserFactory(email=EMAIL, password=PASSWORD, is_staff=True, is_superuser=True)
    made.mark_email_verified()
    return made


@pytest.fixture
def workspace(transactional_db):
    return workspaces.create("Alice's newsroom", owner=UserFactory(email="alice@example.test"))


@pytest.fixture
def api(site, workspace):
    """Asks as the workspace's integration does; gives the status and the answer."""
    secret = tokens.issue(workspace, name="Integration", actor="test").secret

    def ask(path):
        answer = requests.get(f"{site}/v1{path}", headers={"Authorization": f"Bearer {secret}"}, timeout=10)
        return answer.status_code, answer.json()

    return ask


def log_in(page):
    page.goto("/admin/")
    page.get_by_label("Email").fill(EMAIL)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("heading", name="Needs attention").wait_for()


def act_on(page, name, action):
    """Choose the one row with this name in a list and run an action on it."""
    page.get_by_role("row", name=re.compile(name)).get_by_role("checkbox").check()
    page.get_by_label("Action:").select_option(label=action)
    page.get_by_role("button", name="Go").click()


def told(page):
    return page.locator(".messagelist .success").inner_text()


def test_the_operators_day(page, operator, workspace, api, work_until):
    log_in(page)
    assert page.get_by_text("Nothing needs attention.").is_visible()

    # Let a workspace in.
    assert api("/usage")[0] == 403
    whitelist_requests.request_whitelisting(workspace, "We publish for three towns.", "alice@example.test")
    page.reload()
    page.get_by_role("link", name="1 workspace requests access").click()
    page.get_by_text("We publish for three towns.").wait_for()
    page.get_by_role("button", name="Approve access").click()
    assert told(page) == "Access for Alice's newsroom approved. Its owners get a mail."
    assert api("/usage")[0] == 200

    # Give it other credits than its plan does.
    page.get_by_role("link", name="Workspaces", exact=True).first.click()
    page.get_by_role("row", name=re.compile("Alice")).get_by_role("link", name="Open").click()
    overview = page.url
    page.get_by_role("link", name="Change plan, limits and model").click()
    page.get_by_label("Credits per month").fill("4321")
    page.get_by_role("button", name="Save", exact=True).click()
    status, usage = api("/usage")
    assert (status, usage["limit"], usage["available"]) == (200, 4321, 4321)

    # Stop publishing: what falls due meanwhile holds, and goes out when it is resumed.
    page.goto(overview)
    page.get_by_role("link", name="Pause publishing").click()
    page.get_by_label("Reason").fill("The platform asked us to wait.")
    page.get_by_role("button", name="Save", exact=True).click()
    page.goto("/admin/accounts/plan/")
    assert "Publishing is paused: Alice's newsroom." in page.locator("#stopped").inner_text()
    item = make_items(workspace)[0]
    outlet = make_stage(workspace, "ok")
    row = publish.request(item, to(outlet), by="alice")[1][0]
    work_until(lambda: reread(row).wake_at > datetime.now(UTC))
    assert (reread(row).status, reread(row).attempt_count, accepted(workspace)) == ("scheduled", 0, [])
    page.locator("#stopped").get_by_role("link", name="Resume").click()
    act_on(page, "The platform asked us to wait", "Resume")
    assert told(page) == "1 switch resumed."
    assert page.locator("#stopped").count() == 0
    work_until(lambda: reread(row).status == "published")
    assert len(accepted(workspace)) == 1

    # Take up what failed.
    dead = dead_publication(workspace, "reject")
    assert dead.status == "failed"
    Outlet.everywhere.filter(pk=dead.outlet_id).update(config={"script": ["ok"]})
    page.goto(overview)
    page.get_by_role("heading", name=re.compile("Failed or unknown publications: 1")).get_by_role(
        "link", name="Requeue"
    ).click()
    section = page.locator("#publications")
    section.get_by_role("checkbox").check()
    section.get_by_role("button", name="Requeue").click()
    assert told(page) == "1 row requeued."
    work_until(lambda: reread(dead).status == "published")

    # Revoke its tokens.
    page.goto(overview)
    page.get_by_text("Revoke all", exact=True).click()
    page.get_by_role("button", name="Revoke all tokens").click()
    assert told(page) == "1 key was revoked."
    assert api("/usage")[0] == 401

    assert not Switch.everywhere.exists()
    done = AuditEntry.everywhere.filter(actor=EMAIL).order_by("id").values_list("action", flat=True)
    assert list(done) == [
        "workspace.whitelisted",
        "whitelisting.approved",
        "credits.adjusted",
        "workspace.changed",
        "publishing.stopped",
        "publishing.resumed",
        "row.requeued",
        "token.all_revoked",
    ]


def fill(workspace):
    """A row of nearly every kind."""
    workspaces.whitelist(workspace, EMAIL)
    tokens.issue(workspace, name="Integration", actor="test")
    make_items(workspace)
    dead_source(workspace)
    dead_publication(workspace, "reject")
    make_delivery(make_endpoint(workspace), status="failed", wake_at=None, last_error="It answered 500.")
    call(workspace, 1_500_000)
    whitelist_requests.request_whitelisting(
        workspaces.create("Charlie's newsroom"), "We too.", "charlie@example.test"
    )


def pages(workspace):
    yield from (
        "/admin/",
        "/admin/dead/",
        "/admin/password_change/",
        "/docs/reference",
        "/admin/pipeline/switch/add/",
    )
    yield reverse("workspace_overview", args=[workspace.public_id])
    for model in admin.site._registry:
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        yield reverse(f"{name}_changelist")
        row = model._base_manager.first()
        # What is stopped has no page of its own, only the list.
        if row is not None and model is not Switch:
            yield reverse(f"{name}_change", args=[row.pk])
    for name in ("workspace", "plan", "user"):
        yield reverse(f"admin:accounts_{name}_add")


@pytest.mark.parametrize(("phone", "dark"), [(False, False), (True, True)])
def test_every_page_opens_without_a_complaint(open_window, operator, workspace, phone, dark):
    """In the product's name; that the browser has nothing to say against any of them is asserted when the
    window closes."""
    fill(workspace)
    page = open_window(phone=phone, dark=dark)
    log_in(page)
    opened, wide = [], []
    for address in pages(workspace):
        answer = page.goto(address)
        opened.append((address, answer.status))
        assert "Content pipeline" in page.title()
        assert "unsafe-inline" not in answer.headers["content-security-policy"]
        if address == "/docs/reference":
            page.locator("#operations-generated-generated_list").get_by_role("button").first.click()
            page.get_by_role("button", name="Try it out").click()
            page.locator(".highlight-code").first.wait_for()
        elif page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            wide.append(address)
    assert [line for line in opened if line[1] != 200] == []
    # Tables scroll in their own box; the page itself never does so sideways.
    assert wide == []
    assert len(opened) > 40


def test_what_failed_is_found_by_days_and_platform_and_requeued(page, operator, workspace):
    workspaces.whitelist(workspace, EMAIL)
    row = dead_publication(workspace, "reject")
    log_in(page)
    page.get_by_role("link", name="Failed and late").click()
    page.get_by_role("heading", name="Affected workspaces: 1").wait_for()
    page.get_by_label("Platform").select_option("simulated")
    page.get_by_role("button", name="Show").click()
    page.get_by_role("cell", name=row.error["code"]).wait_for()
    look_over(page, "admin-failing")
    page.get_by_role("link", name="Reasons and requeueing").click()
    page.get_by_role("checkbox").check()
    page.get_by_role("button", name="Requeue").click()
    page.get_by_text("1 row requeued.").wait_for()
    assert reread(row).status == "scheduled"
