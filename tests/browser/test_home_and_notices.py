"""The first page and the notices in a real browser: by keyboard, without scripts, in both themes, for every
reader."""

from __future__ import annotations

import pytest
from django.core import mail
from django.db import transaction

from accounts import notices, workspaces
from accounts.models import NoticeChoice, NoticeMessage
from config.admin_site import mail_previews
from config.core import task_runner
from pipeline.ingest import raw_content, store_raw_item
from pipeline.models import Outlet, Source, WorkspaceDefaults
from tests.browser.people import violations
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db(transaction=True)
PASSWORD = "a long enough phrase 9"


@pytest.fixture
def alice(db):
    user = UserFactory(email="alice@example.test", password=PASSWORD, is_staff=True, is_superuser=True)
    user.mark_email_verified()
    return user


@pytest.fixture
def newsroom(alice):
    workspace = workspaces.create("Harbour newsroom", owner=alice, timezone="Europe/Berlin")
    workspaces.whitelist(workspace, "op")
    return workspace


@pytest.fixture
def busy(newsroom):
    defaults = WorkspaceDefaults.everywhere.get(workspace=newsroom)
    for title in ("Ferries every ten minutes", "A tram to the northern depot"):
        body = f"{title}. The city announced it on Tuesday. Work begins in April and employs 40 people."
        content = raw_content.RawContent(title=title, body=body, engines=["Short Post"])
        store_raw_item.push(newsroom, defaults.push_source, content, defaults=defaults)
    task_runner.work_all_due("generate.run_item")
    Outlet.everywhere.filter(workspace=newsroom, platform="simulated").update(
        name="Social", status="needs_reconnect", last_error={"message": "The token was revoked."}
    )
    Source.everywhere.create(
        workspace=newsroom,
        name="Port authority",
        type="rss",
        status="gone",
        last_error={"message": "Gone for good."},
    )
    return newsroom


def log_in(page):
    page.goto("/account/login/")
    page.get_by_label("Email").fill("alice@example.test")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("heading", name="Harbour newsroom").wait_for()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_every_reader_can_use_the_pages(open_window, busy, dark, phone):
    page = open_window(phone=phone, dark=dark)
    log_in(page)
    workspace = f"/w/{busy.public_id}/"
    found = {}
    for path in (workspace, f"{workspace}settings/notices"):
        page.goto(path)
        for more in page.locator("details.more").all():
            more.locator("summary").click()
        found[path] = violations(page, of_colours_only=dark)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
    assert not any(found.values()), found


def test_a_newcomer_sees_what_to_do_and_does_it(page, newsroom):
    log_in(page)
    page.get_by_role("heading", name="Get started").wait_for()
    assert violations(page) == []
    page.get_by_role("link", name="Paste a link or text").click()
    page.get_by_role("button", name="Continue").wait_for()


def test_what_is_wrong_leads_to_what_to_do(page, busy):
    log_in(page)
    page.get_by_text("Social needs reconnecting.").wait_for()
    page.get_by_role("link", name="View", exact=True).click()
    page.wait_for_url(lambda url: url.endswith("/outlets/"))
    page.get_by_text("The token was revoked.").wait_for()
    page.go_back()
    page.get_by_role("link", name="Last week").click()
    assert page.url.endswith("?since=week")
    row = page.locator("#sources tr", has_text="Port authority")
    row.get_by_role("link", name="Port authority").click()
    page.wait_for_url("**/sources/src_*")


def test_choices_by_keyboard_alone(page, newsroom, alice, work_until):
    log_in(page)
    page.goto(f"/w/{newsroom.public_id}/settings/notices")
    slack = page.get_by_label("Slack incoming webhook")
    assert not slack.is_visible()
    # The last of them: two stops further are the ways to be told.
    page.get_by_label("Monthly report").focus()
    page.keyboard.press("End")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.name") == "by_slack"
    page.keyboard.press("Space")
    assert slack.is_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_text("Enter the URL or clear Slack.").wait_for()
    page.get_by_label("Slack", exact=True).uncheck()
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Saved.", exact=True).wait_for()
    assert NoticeChoice.everywhere.get(user=alice).kinds["monthly"] == "off"

    page.get_by_role("button", name="Send test").click()
    page.get_by_text("Test sent by Mail.").wait_for()
    work_until(lambda: NoticeMessage.everywhere.filter(status="sent").exists())
    page.reload()
    page.get_by_role("cell", name="Test notification from Harbour newsroom").wait_for()
    assert [message.to for message in mail.outbox] == [["alice@example.test"]]


def test_it_works_without_scripts(open_window, busy):
    page = open_window(scripts=False)
    log_in(page)
    page.locator("#review td a").first.click()
    page.get_by_role("link", name="Publish").first.wait_for()
    page.goto(f"/w/{busy.public_id}/settings/notices")
    page.get_by_label("A post failed").select_option("daily")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Saved.", exact=True).wait_for()
    assert NoticeChoice.everywhere.get().kinds["post_failed"] == "daily"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_operators_read_every_mail(open_window, newsroom, settings, dark):
    page = open_window(dark=dark)
    log_in(page)
    # The page's examples were made with the address that the service had then.
    settings.PUBLIC_URL = mail_previews._HOME.partition("/w/")[0]
    with transaction.atomic():
        notices.record("quota", workspace_id=newsroom.pk, key="x", title="x", text="x")
    page.goto("/admin/mails/?mail=whitelisted")
    frame = page.frame_locator("iframe")
    frame.get_by_role("heading", name="Access for Harbour newsroom was approved").wait_for()
    colour = frame.locator("a.button").evaluate("link => getComputedStyle(link).backgroundColor")
    assert colour == ("rgb(165, 176, 255)" if dark else "rgb(67, 56, 202)")
    page.get_by_role("link", name="Daily digest").click()
    page.get_by_role("heading", name="2 events from Harbour newsroom").first.wait_for()
