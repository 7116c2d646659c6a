"""Webhooks as an owner sets them up: add, test, secret, log, send again, rotate, pause, delete."""

from __future__ import annotations

import os
import re
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone
from standardwebhooks import Webhook
from werkzeug import Response

from tests.browser.people import PASSWORD, go_to, log_in, look_over, violations
from tests.webhooks.factories import make_delivery
from webhooks import endpoints
from webhooks.models import Delivery, DeliveryAttempt, Endpoint, Recovery

pytestmark = pytest.mark.django_db(transaction=True)


def delivered(count):
    return lambda: Delivery.everywhere.filter(status="delivered").count() == count


def test_from_the_first_endpoint_to_its_end(page, newsroom, alice, httpserver, work_until):
    httpserver.expect_request("/hook").respond_with_data("Thank you", status=202)
    address = httpserver.url_for("/hook")
    log_in(page, alice)
    go_to(page, "Settings", "Webhooks")
    page.get_by_role("main").get_by_role("link", name="Add an endpoint").click()

    # A private address is refused in words, beside the field, with everything else still there.
    page.get_by_label("URL").fill("http://10.0.0.1/hook")
    page.get_by_label("Description").fill("CRM bridge")
    page.get_by_label("Selected events").check()
    # It begins with the usual four.
    page.get_by_label("published.success").uncheck()
    page.get_by_label("published.failed").uncheck()
    page.get_by_role("button", name="Add and send test").click()
    page.get_by_text("10.0.0.1 leads to 10.0.0.1, which is not a public internet address.").wait_for()
    assert page.get_by_label("Description").input_value() == "CRM bridge"
    page.get_by_label("URL").fill(address)
    page.get_by_role("button", name="Add and send test").click()

    # The page shows that the test is under way, then what the receiver said.
    page.get_by_text("Sending a signed webhook.test").wait_for()
    work_until(delivered(1))
    page.get_by_text("It works.").wait_for()
    page.get_by_text("202 Accepted in").wait_for()
    assert page.locator("#outcome pre").inner_text() == "Thank you"
    secret = page.locator("#secret").inner_text()
    endpoint = Endpoint.everywhere.get()
    assert (endpoint.url, endpoint.events, endpoint.description, endpoint.secret) == (
        address,
        ["raw.ingested", "generated.ready"],
        "CRM bridge",
        secret,
    )
    [(request, _response)] = httpserver.log
    assert Webhook(secret).verify(request.data, dict(request.headers))["type"] == "webhook.test"
    page.get_by_role("button", name="Copy").click()
    assert page.evaluate("navigator.clipboard.readText()") == secret
    # Once.
    page.reload()
    page.get_by_text("The secret was already shown.").wait_for()
    assert secret not in page.content()

    # The log has it.
    page.get_by_role("link", name="View endpoint").click()
    page.get_by_role("link", name="webhook.test").click()
    request_sent = page.locator("#attempt-1 pre").first.inner_text()
    assert request_sent.splitlines()[0] == f"POST {address}"
    assert re.search(r"^webhook-signature: v1,", request_sent, re.MULTILINE)
    page.get_by_text("202 Accepted").first.wait_for()

    # Again.
    page.get_by_role("button", name="Resend").click()
    page.get_by_text("Resending.").wait_for()
    work_until(delivered(1))
    page.locator("#attempt-2").wait_for()
    assert DeliveryAttempt.everywhere.count() == 2

    # A new secret in a dialog; both sign.
    page.get_by_role("link", name="CRM bridge").click()
    page.get_by_role("main").get_by_role("link", name="Settings", exact=True).click()
    page.get_by_role("link", name="Rotate secret").click()
    page.get_by_role("dialog").get_by_role("button", name="Rotate secret").click()
    newer = page.locator("#secret").inner_text()
    assert newer != secret
    page.get_by_role("link", name="View endpoint").click()
    page.get_by_role("button", name="Send test event").click()
    work_until(delivered(2))
    page.get_by_text("202 Accepted").first.wait_for()
    last = httpserver.log[-1][0]
    for one in (secret, newer):
        assert Webhook(one).verify(last.data, dict(last.headers))["type"] == "webhook.test"

    # Paused, undone, paused.
    page.get_by_role("link", name="CRM bridge").click()
    page.get_by_role("main").get_by_role("link", name="Settings", exact=True).click()
    page.get_by_role("button", name="Pause").click()
    page.get_by_text("Paused.", exact=True).wait_for()
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Switched on.").wait_for()
    assert Endpoint.everywhere.get().is_on is True

    # Deleted, after a question that can be left.
    page.get_by_role("main").get_by_role("link", name="Settings", exact=True).click()
    page.get_by_role("link", name="Delete").click()
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    page.get_by_text("CRM bridge deleted.").wait_for()
    page.get_by_text("No endpoints yet").wait_for()
    assert Endpoint.everywhere.get().deleted_at is not None


def test_what_went_wrong_is_said_and_can_be_changed_or_kept(page, newsroom, alice, httpserver, work_until):
    httpserver.expect_request("/wrong").respond_with_data("No such hook\n" * 9, status=404)
    log_in(page, alice)
    go_to(page, "Settings", "Webhooks")
    page.get_by_role("main").get_by_role("link", name="Add an endpoint").click()
    page.get_by_label("URL").fill(httpserver.url_for("/wrong"))
    page.get_by_role("button", name="Add and send test").click()
    page.get_by_text("Sending a signed webhook.test").wait_for()
    work_until(lambda: DeliveryAttempt.everywhere.count() == 1)
    page.get_by_text("Not delivered.").wait_for()
    page.get_by_text("The endpoint answered 404.").wait_for()
    page.get_by_text("Next attempt:").wait_for()
    assert page.locator("#outcome pre").inner_text() == "\n".join(["No such hook"] * 6)
    page.get_by_role("link", name="Edit").click()
    httpserver.expect_request("/right").respond_with_data("", status=204)
    page.get_by_role("textbox", name="URL").fill(httpserver.url_for("/right"))
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Test event sent to the new URL.").wait_for()
    work_until(delivered(2))
    page.get_by_text("204 No Content").first.wait_for()


def test_the_log_refreshes_and_filters_by_itself(page, newsroom, alice, httpserver, work_until):
    httpserver.expect_request("/hook").respond_with_handler(lambda _: Response("", 500))
    endpoint = endpoints.add(newsroom, httpserver.url_for("/hook"), actor="alice").endpoint
    log_in(page, alice)
    page.goto(reverse("webhook", kwargs={"ws": newsroom.pk, "whe": endpoint.pk}))
    page.get_by_text("No deliveries yet").wait_for()
    endpoints.send_test(endpoint, actor="alice")
    work_until(lambda: DeliveryAttempt.everywhere.count() >= 1)
    page.get_by_text("500 Internal Server Error").wait_for()
    page.get_by_label("Outcome").select_option("delivered")
    page.get_by_role("button", name="Show").click()
    page.get_by_text("No matches").wait_for()
    page.get_by_role("link", name="Show all").click()
    page.get_by_text("500 Internal Server Error").wait_for()


def test_a_log_that_was_left_open_leads_to_the_log_in_when_the_session_ends(page, newsroom, alice):
    endpoint = endpoints.add(newsroom, "https://example.com/hook", actor="alice").endpoint
    log_in(page, alice)
    address = reverse("webhook", kwargs={"ws": newsroom.pk, "whe": endpoint.pk})
    page.goto(address)
    page.get_by_text("No deliveries yet").wait_for()
    page.context.clear_cookies(name="sessionid")
    page.get_by_role("heading", name="Log in").wait_for()
    page.get_by_label("Email").fill(alice.email)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in", exact=True).click()
    page.get_by_text("No deliveries yet").wait_for()
    assert page.url.endswith(address)


def test_without_scripts(open_window, newsroom, alice, httpserver, work_until):
    httpserver.expect_request("/hook").respond_with_data("ok")
    page = open_window(scripts=False, phone=True)
    log_in(page, alice)
    page.goto(reverse("webhook_add", kwargs={"ws": newsroom.pk}))
    page.get_by_label("URL").fill(httpserver.url_for("/hook"))
    page.get_by_role("button", name="Add and send test").click()
    assert page.locator("#secret").inner_text() == Endpoint.everywhere.get().secret
    work_until(delivered(1))
    page.get_by_role("link", name="Refresh").click()
    page.get_by_text("200 OK").first.wait_for()
    page.get_by_role("link", name="localhost").click()
    page.get_by_role("link", name="Receiver code").click()
    page.get_by_role("link", name="Go", exact=True).click()
    page.get_by_text("receiver.go").first.wait_for()
    page.get_by_role("main").get_by_role("link", name="Settings", exact=True).click()
    page.get_by_role("link", name="Delete").click()
    page.get_by_role("button", name="Delete").click()
    page.get_by_text("No endpoints yet").wait_for()


def test_with_the_keyboard_alone(page, newsroom, alice, httpserver, work_until):
    httpserver.expect_request("/hook").respond_with_data("ok")
    log_in(page, alice)
    page.goto(reverse("webhook_add", kwargs={"ws": newsroom.pk}))
    page.get_by_label("URL").focus()
    page.keyboard.type(httpserver.url_for("/hook"))
    page.keyboard.press("Tab")
    page.keyboard.type("CRM")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.get_by_text("Sending a signed webhook.test").wait_for()
    assert (Endpoint.everywhere.get().description, Endpoint.everywhere.get().events) == ("CRM", ["*"])
    page.goto(reverse("webhook_edit", kwargs={"ws": newsroom.pk, "whe": Endpoint.everywhere.get().pk}))
    link = page.get_by_role("link", name="Delete")
    link.focus()
    page.keyboard.press("Enter")
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("Escape")
    assert link.evaluate("element => element === document.activeElement")


def test_nothing_hinders_a_reader(page, newsroom, alice, httpserver, work_until):
    httpserver.expect_request("/hook").respond_with_data('{"error": "no such hook"}', status=404)
    endpoint = endpoints.add(
        newsroom, httpserver.url_for("/hook"), events=["*"], description="CRM", actor="alice"
    ).endpoint
    delivery = endpoints.send_test(endpoint, actor="alice")
    work_until(lambda: DeliveryAttempt.everywhere.count() >= 1)
    paused = endpoints.add(newsroom, "https://example.com/hook", actor="alice").endpoint
    endpoints.switch_off(paused, actor="alice")
    ws, whe = newsroom.pk, endpoint.pk
    pages = [
        reverse("webhooks", kwargs={"ws": ws}),
        reverse("webhook_add", kwargs={"ws": ws}),
        *(
            reverse(name, kwargs={"ws": ws, "whe": whe})
            for name in (
                "webhook",
                "webhook_edit",
                "webhook_secret",
                "webhook_rotate",
                "webhook_delete",
                "webhook_receiver",
            )
        ),
        reverse("webhook", kwargs={"ws": ws, "whe": paused.pk}),
        reverse("webhook_resume", kwargs={"ws": ws, "whe": paused.pk}),
        reverse("webhook_delivery", kwargs={"ws": ws, "whe": whe, "dlv": delivery.pk}),
        reverse("webhook_secret", kwargs={"ws": ws, "whe": whe}) + f"?sent={delivery_id(delivery)}",
    ]
    log_in(page, alice)
    for number, address in enumerate(pages):
        page.goto(address)
        look_over(page, f"webhook-page-{number}")


def delivery_id(delivery):
    from config.core.ids import encode

    return encode("dlv", delivery.pk)


def look(page, name):
    """No obstacle for a reader, nothing wider than the screen; `SCREENSHOTS` names a folder for pictures."""
    assert violations(page) == [], name
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), name
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


@pytest.mark.parametrize(("phone", "dark"), [(False, False), (True, True)], ids=["desktop", "phone"])
def test_a_receiver_fails_is_mended_and_gets_what_it_missed(
    open_window, newsroom, alice, httpserver, work_until, phone, dark
):
    """Add, test, fail, degrade, fix, recover; looked at with axe at each step."""
    status = {"is": 500}
    httpserver.expect_request("/hook").respond_with_handler(lambda _: Response("Out of order", status["is"]))
    page = open_window(phone=phone, dark=dark)
    size = "phone" if phone else "desktop"
    log_in(page, alice)
    page.goto(reverse("webhook_add", kwargs={"ws": newsroom.pk}))
    page.get_by_label("URL").fill(httpserver.url_for("/hook"))
    page.get_by_label("Description").fill("CRM bridge")
    page.get_by_label("Maximum requests per second").fill("50")
    look(page, f"add-{size}")
    page.get_by_role("button", name="Add and send test").click()
    work_until(lambda: DeliveryAttempt.everywhere.count() == 1)
    page.get_by_text("Not delivered.").wait_for()
    look(page, f"failed-test-{size}")
    endpoint = Endpoint.everywhere.get()
    assert endpoint.rate == 50

    # Six events fail, and it is called one event at a time.
    for _ in range(6):
        make_delivery(endpoint)
    work_until(lambda: DeliveryAttempt.everywhere.count() >= 7)
    address = reverse("webhook", kwargs={"ws": newsroom.pk, "whe": endpoint.pk})
    page.goto(address)
    page.get_by_text("Sending one event at a time until it recovers.").wait_for()
    assert Endpoint.everywhere.get().status == "degraded"
    look(page, f"degraded-{size}")

    # It works again; what it missed is sent, long before each event's own next try.
    status["is"] = 200
    Delivery.everywhere.update(wake_at=timezone.now() + timedelta(hours=1))
    page.get_by_role("link", name="Recover", exact=True).click()
    page.get_by_role("dialog").get_by_label("Since").wait_for()
    look(page, f"recover-{size}")
    page.get_by_role("dialog").get_by_role("button", name="Resend events").click()
    page.get_by_text("Finding missed events.").wait_for()
    look(page, f"recovering-{size}")
    # Somebody wants to know whether it can be stopped, and lets it go on.
    page.get_by_role("link", name="Stop repeating").click()
    page.get_by_role("dialog").get_by_role("link", name="Resume").click()
    work_until(
        lambda: (
            not Delivery.everywhere.exclude(status="delivered").exists()
            and not Recovery.everywhere.filter(status="running").exists()
        )
    )
    assert Recovery.everywhere.get().sent == 7
    page.get_by_text("7 events were resent.").wait_for()
    assert Endpoint.everywhere.get().status == "active"
    page.goto(address)
    page.get_by_text("200 OK").first.wait_for()
    look(page, f"recovered-{size}")
    page.get_by_role("main").get_by_role("link", name="Settings", exact=True).click()
    assert page.get_by_label("Maximum requests per second").input_value() == "50"
    look(page, f"settings-{size}")
