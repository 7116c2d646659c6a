"""Outlets in a browser: an account is connected, looked at, lost, connected again, and disconnected."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from django.utils import timezone

from config.core import task_runner
from pipeline.models import OAuthApp, Outlet, Publication
from pipeline.outlets import oauth_connect
from pipeline.publish import steps as publish_steps
from tests.browser.people import follow, go_to, log_in, look_over
from tests.factories import OutletFactory
from tests.pipeline.mailing.conftest import make_letter, subscribe
from tests.pipeline.steps import claimed, make_items, promise
from tests.platforms import letterbox

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("posts"),
]


@pytest.fixture
def wall(httpserver, loopback):
    with letterbox.registered():
        yield letterbox.Wall(httpserver)


@pytest.mark.parametrize("phone", [False, True])
def test_from_a_log_in_to_its_end(open_window, newsroom, wall, phone):
    page = open_window(phone=phone)
    log_in(page, newsroom.alice)
    go_to(page, "Outlets")
    look_over(page, "outlets-empty")
    follow(page, page.get_by_role("main").get_by_role("link", name="Connect an outlet"))
    look_over(page, "outlet-add")
    follow(page, page.get_by_role("link", name="Letterbox"))
    look_over(page, "outlet-connect")
    page.get_by_label("Server").fill(wall.url)
    page.get_by_label("Access token").fill("wrong-token")
    page.get_by_role("button", name="Connect").click()
    page.get_by_text("[secret] is not good here").wait_for()
    assert page.get_by_label("Access token").input_value() == ""
    look_over(page, "outlet-connect-refused")
    page.get_by_label("Access token").fill("token-1")
    page.get_by_role("button", name="Connect").click()
    page.get_by_text("Corner box connected.").wait_for()
    outlet = Outlet.everywhere.get(platform="letterbox")
    page.get_by_role("button", name="Use by default").click()
    page.get_by_text("Corner box is now used by default.").wait_for()
    # One is promised, one refused, and the log-in is lost.
    items = [make_items(newsroom, title=f"Tram {one}", url=f"https://n.example/{one}")[0] for one in "abc"]
    promise(items[0], outlet, publish_at=timezone.now() + timedelta(days=1))
    wall.failing = (422, "Too rude for {token}")
    publish_steps.advance_publication(claimed(promise(items[1], outlet)))
    wall.failing = None
    wall.good = set()
    Outlet.everywhere.filter(pk=outlet.pk).update(wake_at=timezone.now())
    task_runner.work_all_due("publish.check_outlet")
    page.reload()
    page.get_by_text("Reconnect needed").first.wait_for()
    page.get_by_text("Too rude for [secret]").wait_for()
    look_over(page, "outlet-lost")
    follow(page, page.get_by_role("link", name="Reconnect").first)
    look_over(page, "outlet-reconnect")
    wall.good = {"token-7"}
    page.get_by_label("Access token").fill("token-7")
    page.get_by_role("button", name="Connect").click()
    page.get_by_text("Waiting posts resume.").wait_for()
    look_over(page, "outlet")
    # Off and back on by the message itself.
    page.get_by_role("button", name="Switch off").click()
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Corner box switched on.").wait_for()
    follow(page, page.get_by_role("link", name="Settings", exact=True).locator("visible=true").last)
    look_over(page, "outlet-settings")
    page.get_by_label("Posts per 24 hours (maximum)").fill("3")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("At most 3 posts per 24 hours").wait_for()
    go_to(page, "Outlets")
    look_over(page, "outlets")
    page.goto(
        page.url
        + page.get_by_role("link", name="Corner box").get_attribute("href").split("/outlets/")[1]
        + "/edit"
    )
    page.get_by_role("link", name="Disconnect").click()
    page.get_by_text("1 scheduled publication will be cancelled.").wait_for()
    look_over(page, "outlet-disconnect")
    page.get_by_role("button", name="Disconnect").click()
    page.get_by_text("Corner box disconnected.").wait_for()
    outlet.refresh_from_db()
    assert (outlet.credentials, outlet.status) == (None, "ok")
    assert list(Publication.everywhere.order_by("id").values_list("status", flat=True)) == [
        "cancelled",
        "failed",
    ]


def test_it_works_without_a_script(open_window, newsroom, wall):
    page = open_window(scripts=False)
    log_in(page, newsroom.alice)
    go_to(page, "Outlets")
    page.get_by_role("main").get_by_role("link", name="Connect an outlet").click()
    page.get_by_role("link", name="Letterbox").click()
    page.get_by_label("Server").fill(wall.url)
    page.get_by_label("Access token").fill("token-1")
    page.get_by_role("button", name="Connect").click()
    page.wait_for_url(lambda url: "/outlets/out_" in url)
    page.get_by_role("link", name="Settings", exact=True).locator("visible=true").last.click()
    page.get_by_role("link", name="Disconnect").click()
    page.get_by_role("button", name="Disconnect").click()
    page.wait_for_url(lambda url: url.endswith("/outlets/"))
    outlet = Outlet.everywhere.get(platform="letterbox")
    assert outlet.deleted_at is not None
    assert outlet.credentials is None


def test_a_newsletters_page_leads_to_its_list_and_shows_the_record_to_publish(open_window, newsroom):
    letter = make_letter(newsroom, 25)
    subscribe(letter, "ann", "bob")
    record = f'letter._domainkey.harbour.example TXT "v=DKIM1; k=rsa; p={"MIIBIjANBg" * 39}"'
    Outlet.everywhere.filter(pk=letter.pk).update(
        profile={"notes": [f"Publish this DNS record: {record}"]}, connected_at=timezone.now()
    )
    page = open_window()
    log_in(page, newsroom.alice)
    go_to(page, "Outlets")
    follow(page, page.get_by_role("link", name="Harbour letter"))
    page.get_by_text("2 subscribers").wait_for()
    page.get_by_role("button", name="Copy record name").click()
    page.get_by_text("Copied").first.wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == "letter._domainkey.harbour.example"
    look_over(page, "outlet-newsletter")
    follow(page, page.get_by_role("link", name="View subscribers"))
    page.get_by_text("ann@readers.example").wait_for()
    look_over(page, "subscribers")


@pytest.mark.parametrize(
    ("error", "onward", "there"),
    [
        ("access_denied", "Try again", "Connect LinkedIn"),
        ("invalid_scope", "View outlets", "Outlets"),
    ],
)
def test_a_log_in_that_failed_says_what_to_do(open_window, complaints, newsroom, error, onward, there):
    complaints.expect("409 (Conflict)")
    app = OAuthApp(platform="linkedin", client_id="client-1")
    oauth_connect.register(app, secret="secret-1", by="operator@example.test", now=timezone.now())
    page = open_window()
    log_in(page, newsroom.alice)
    begun = oauth_connect.begin(newsroom, "linkedin", user=newsroom.alice, outlet=None, now=timezone.now())
    state = parse_qs(urlsplit(begun).query)["state"][0]
    page.goto(f"/outlets/connect/linkedin/callback?error={error}&state={state}")
    page.get_by_role("heading", name="LinkedIn was not connected").wait_for()
    look_over(page, f"outlet-oauth-{error}")
    follow(page, page.get_by_role("link", name=onward))
    page.get_by_role("heading", name=there, level=1).wait_for()


@pytest.mark.parametrize("phone", [False, True])
def test_a_row_shows_the_platform_its_state_and_the_act_that_mends_it(open_window, newsroom, phone):
    now = timezone.now()
    error = {
        "code": "token",
        "message": "The token was revoked at the platform.",
        "at": "2026-11-01T00:00:00.000Z",
    }
    own = {"connected_at": now, "profile": {"handle": "@harbour@social.example"}}
    for kind, state in (
        ("mastodon", {"is_default": True}),
        ("bluesky", {"status": "needs_reconnect", "last_error": error}),
        ("linkedin", {"expires_at": now + timedelta(days=3), "expiry_told_at": now}),
        ("wordpress", {"status": "disabled"}),
        ("youtube", {"rests_until": now + timedelta(hours=2)}),
        ("telegram", {}),
    ):
        OutletFactory(workspace=newsroom, name=f"Harbour desk on {kind}", platform=kind, **own, **state)
    item = make_items(newsroom, title="The council approved a tram line along the harbour")[0]
    Publication.everywhere.create(
        workspace=newsroom,
        item=item,
        outlet=Outlet.everywhere.get(platform="mastodon"),
        platform="mastodon",
        revision=1,
        status="published",
        published_at=now,
    )
    page = open_window(phone=phone)
    log_in(page, newsroom.alice)
    go_to(page, "Outlets")
    look_over(page, "outlets-many")
    page.get_by_role("link", name="Reconnect Harbour desk on bluesky").wait_for()
    assert page.get_by_role("link", name="Reconnect").count() == 2
    page.get_by_role("button", name="Switch on Harbour desk on wordpress").click()
    page.get_by_text("Harbour desk on wordpress switched on.").wait_for()
    assert page.url.endswith("/outlets/")
    # In a link's name the mark says nothing.
    follow(page, page.get_by_role("link", name="Harbour desk on mastodon", exact=True))
