"""The log of an endpoint: what was sent, what was answered, and sending one again."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.contrib.messages import get_messages
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import AuditEntry
from config.core import limits
from config.core.ids import encode, uuid7
from tests.pages.answers import at
from tests.pipeline.steps import reread
from tests.webhooks.factories import claimed, make_delivery, make_endpoint, make_event, make_sent
from webhooks.models import Delivery, DeliveryAttempt
from webhooks.results import record_result


def listed(owner, endpoint, query=""):
    """The ids on the page, in its order."""
    shown = owner.get(at(endpoint.workspace, "webhook", whe=endpoint.pk) + query)
    assert shown.status_code == 200
    return re.findall(r'id="d([0-9a-f]{32})"', shown.content.decode())


def hexes(*deliveries):
    return [delivery.pk.hex for delivery in deliveries]


def tried(delivery, status_code=500, **changes):
    record_result(claimed(delivery), make_sent(status_code, started_at=timezone.now(), **changes))
    return delivery


# --- The list --------------------------------------------------------------------------------------------------------


def test_the_newest_comes_first_and_only_this_endpoint_s(owner, newsroom, endpoint):
    own = [make_delivery(endpoint) for _ in range(3)]
    make_delivery(make_endpoint(newsroom))
    assert listed(owner, endpoint) == hexes(*reversed(own))


def test_filters(owner, newsroom, endpoint):
    now = timezone.now()
    failed = make_delivery(endpoint, status="failed", wake_at=None, created_at=now - timedelta(days=3))
    fine = make_delivery(
        endpoint,
        make_event(newsroom, "generated.ready"),
        status="delivered",
        wake_at=None,
        created_at=now - timedelta(hours=3),
    )
    waiting = make_delivery(endpoint, make_event(newsroom, "generated.ready"), created_at=now)
    held = make_delivery(endpoint, status="held", wake_at=None, created_at=now)
    every = hexes(held, waiting, fine, failed)
    assert listed(owner, endpoint, "?outcome=&event=&since=") == every
    assert listed(owner, endpoint, "?outcome=failed") == hexes(failed)
    assert listed(owner, endpoint, "?outcome=pending") == hexes(waiting)
    assert listed(owner, endpoint, "?outcome=held") == hexes(held)
    assert listed(owner, endpoint, "?event=generated.ready") == hexes(waiting, fine)
    assert listed(owner, endpoint, "?event=generated.ready&outcome=delivered") == hexes(fine)
    assert listed(owner, endpoint, "?event=webhook.test") == []
    assert listed(owner, endpoint, "?since=1h") == hexes(held, waiting)
    assert listed(owner, endpoint, "?since=1d") == hexes(held, waiting, fine)
    assert listed(owner, endpoint, "?since=7d") == every


@pytest.mark.parametrize("query", ["?outcome=failde", "?event=raw.injested", "?since=2d"])
def test_a_mistyped_filter_shows_nothing_and_says_so(owner, endpoint, query):
    make_delivery(endpoint)
    shown = owner.get(at(endpoint.workspace, "webhook", whe=endpoint.pk) + query)
    assert listed(owner, endpoint, query) == []
    assert "Unknown filter" in shown.content.decode()


def test_pages_follow_each_other_without_a_gap(owner, endpoint):
    size = limits.PAGE_ROWS_DEFAULT
    own = [make_delivery(endpoint, status="failed", wake_at=None) for _ in range(2 * size)]
    make_delivery(endpoint, status="delivered", wake_at=None)
    page = at(endpoint.workspace, "webhook", whe=endpoint.pk)
    first = owner.get(f"{page}?outcome=failed").content.decode()
    [older] = re.findall(r'href="(\?[^"]*before=[^"]*)"', first)
    older = older.replace("&amp;", "&")
    assert listed(owner, endpoint, "?outcome=failed") + listed(owner, endpoint, older) == hexes(
        *reversed(own)
    )
    second = owner.get(page + older).content.decode()
    # The last one leads no further, and a page further back doesn't ask for itself.
    assert re.findall(r'href="\?[^"]*before=', second) == []
    assert ("hx-get" in first, "hx-get" in second) == (True, False)


@pytest.mark.parametrize("before", ["x", "evt_01mtgcg400e00800000000000y"])
def test_a_broken_place_in_the_log_is_nothing(owner, endpoint, before):
    assert (
        owner.get(at(endpoint.workspace, "webhook", whe=endpoint.pk) + f"?before={before}").status_code == 404
    )


def test_the_log_asks_as_much_for_one_as_for_many(owner, newsroom, endpoint):
    page = at(newsroom, "webhook", whe=endpoint.pk)

    def asked():
        with CaptureQueriesContext(connection) as seen:
            owner.get(page)
        return len(seen)

    tried(make_delivery(endpoint))
    asked()
    one = asked()
    for _ in range(10):
        tried(make_delivery(endpoint))
    assert asked() == one


def test_a_row_says_how_it_went(owner, endpoint):
    tried(make_delivery(endpoint), 503, seconds=1.25)
    shown = " ".join(owner.get(at(endpoint.workspace, "webhook", whe=endpoint.pk)).content.decode().split())
    for part in ("503 Service Unavailable", "1.2 s", "Retrying"):
        assert part in shown


# --- It looks again by itself ----------------------------------------------------------------------------------------


def ask_again(owner, page, shown, part):
    """What the part of a page that was shown asks by itself."""
    found = re.search(rf'id="{part}" hx-get="([^"]+)"', shown.content.decode())
    assert found, "It doesn't ask."
    return owner.get(found[1].replace("&amp;", "&"), headers={"HX-Request": "true", "HX-Target": part})


def test_the_log_answers_itself_only_what_has_changed(owner, endpoint):
    page = at(endpoint.workspace, "webhook", whe=endpoint.pk)
    tried(make_delivery(endpoint), 200)
    shown = owner.get(page)
    same = ask_again(owner, page, shown, "deliveries")
    assert (same.status_code, same.content) == (204, b"")
    fresh = tried(make_delivery(endpoint), 200)
    changed = ask_again(owner, page, shown, "deliveries")
    text = changed.content.decode()
    assert changed.status_code == 200
    assert text.startswith('<div class="" id="deliveries" hx-get=')
    assert fresh.pk.hex in text
    assert "<html" not in text
    assert ask_again(owner, page, changed, "deliveries").status_code == 204


def test_a_delivery_stops_asking_when_it_has_come_to_an_end(owner, endpoint):
    delivery = make_delivery(endpoint)
    page = at(endpoint.workspace, "webhook_delivery", whe=endpoint.pk, dlv=delivery.pk)
    shown = owner.get(page)
    assert ask_again(owner, page, shown, "delivery").status_code == 204
    tried(delivery, 200)
    done = ask_again(owner, page, shown, "delivery")
    assert (done.status_code, "hx-get" in done.content.decode()) == (200, False)


def test_the_outcome_of_a_test_event_alone(owner, endpoint):
    delivery = make_delivery(endpoint)
    page = at(endpoint.workspace, "webhook_outcome", whe=endpoint.pk, dlv=delivery.pk)
    secret = at(endpoint.workspace, "webhook_secret", whe=endpoint.pk) + f"?sent={encode('dlv', delivery.pk)}"
    shown = owner.get(secret)
    assert page in shown.content.decode()
    assert ask_again(owner, page, shown, "outcome").status_code == 204
    tried(delivery, 418, response_body="\n".join(f"line {n}" for n in range(9)), seconds=0.02)
    failed = ask_again(owner, page, shown, "outcome").content.decode()
    assert "Not delivered." in failed
    assert "It answered 418." in failed
    assert "line 5</code>" in failed
    assert "line 6" not in failed
    # A person who opens it by itself sees the whole delivery.
    answer = owner.get(page)
    assert answer["Location"] == at(endpoint.workspace, "webhook_delivery", whe=endpoint.pk, dlv=delivery.pk)


def test_an_event_that_nobody_picks_up_is_said(owner, endpoint):
    long_ago = timezone.now() - timedelta(minutes=2)
    delivery = make_delivery(endpoint, due_at=long_ago, wake_at=long_ago)
    shown = owner.get(at(endpoint.workspace, "webhook_delivery", whe=endpoint.pk, dlv=delivery.pk))
    assert "Delayed. Contact the people who run this service." in shown.content.decode()


# --- One delivery ----------------------------------------------------------------------------------------------------


def test_a_delivery_shows_what_was_sent_and_what_was_answered(owner, newsroom, endpoint):
    event = make_event(newsroom, "generated.ready")
    delivery = make_delivery(endpoint, event)
    tried(
        delivery,
        500,
        url="https://before.example.com/in",
        request_headers={"webhook-id": encode("evt", event.pk), "webhook-signature": "v1,c2ln"},
        response_headers={"content-type": "text/html", "authorization": "[redacted]"},
        response_body="<script>alert(1)</script> whsec_c2VjcmV0c2VjcmV0",
        seconds=0.25,
    )
    tried(delivery, 200, url=endpoint.url, request_headers={"webhook-signature": "v1,YWdhaW4="})
    shown = owner.get(at(newsroom, "webhook_delivery", whe=endpoint.pk, dlv=delivery.pk))
    text = shown.content.decode()
    requests = re.findall(r'aria-label="Request"><code>(.*?)</code>', text, re.DOTALL)
    assert requests == [
        "POST https://crm.example.com/in\nwebhook-signature: v1,YWdhaW4=",
        f"POST https://before.example.com/in\nwebhook-id: {encode('evt', event.pk)}\nwebhook-signature: v1,c2ln",
    ]
    answers = re.findall(r'aria-label="Answer"><code>(.*?)</code>', text, re.DOTALL)
    assert answers == [
        "200 OK",
        (
            "500 Internal Server Error\ncontent-type: text/html\nauthorization: [redacted]\n\n"
            "&lt;script&gt;alert(1)&lt;/script&gt; whsec_[redacted]"
        ),
    ]
    assert "250 ms" in text
    assert shown.context["body"] == bytes(event.body).decode()
    assert "Grüße ✓" in text


def test_what_is_no_longer_kept_is_said(owner, newsroom, endpoint):
    delivery = make_delivery(
        endpoint, make_event(newsroom, body=None), status="failed", wake_at=None, attempt_count=10
    )
    text = owner.get(at(newsroom, "webhook_delivery", whe=endpoint.pk, dlv=delivery.pk)).content.decode()
    assert "Payloads are kept for 30 days." in text
    assert "Attempts are kept for 90 days." in text
    assert "Resend" not in text


def test_a_delivery_asks_as_much_for_one_attempt_as_for_many(owner, newsroom, endpoint):
    delivery = tried(make_delivery(endpoint))
    page = at(newsroom, "webhook_delivery", whe=endpoint.pk, dlv=delivery.pk)

    def asked():
        with CaptureQueriesContext(connection) as seen:
            owner.get(page)
        return len(seen)

    asked()
    one = asked()
    for _ in range(8):
        tried(delivery)
    assert DeliveryAttempt.everywhere.count() == 9
    assert asked() == one


# --- Send again ------------------------------------------------------------------------------------------------------


def test_send_again_sends_one_once(owner, newsroom, endpoint):
    delivery = make_delivery(endpoint, status="failed", wake_at=None)
    other = make_delivery(endpoint, status="failed", wake_at=None)
    page = at(newsroom, "webhook_resend", whe=endpoint.pk, dlv=delivery.pk)
    answer = owner.post(page, {"once": "abc"})
    assert answer["Location"] == at(newsroom, "webhook_delivery", whe=endpoint.pk, dlv=delivery.pk)
    after = reread(delivery)
    assert (after.status, reread(other).status) == ("pending", "failed")
    owner.post(page, {"once": "abc"})
    assert reread(delivery).lease_token == after.lease_token
    assert list(AuditEntry.everywhere.filter(action="delivery.resent").values_list("actor", "details")) == [
        ("alice@example.test", {"delivery": encode("dlv", delivery.pk)})
    ]


def test_send_again_to_a_paused_endpoint_is_refused_in_words(owner, newsroom):
    endpoint = make_endpoint(newsroom, is_on=False)
    delivery = make_delivery(endpoint, status="held", wake_at=None)
    answer = owner.post(at(newsroom, "webhook_resend", whe=endpoint.pk, dlv=delivery.pk))
    assert [str(one) for one in get_messages(answer.wsgi_request)] == [
        "Switch the endpoint on first. Its held events can be sent with it."
    ]
    assert reread(delivery).status == "held"


@pytest.mark.parametrize("name", ["webhook_delivery", "webhook_outcome"])
def test_another_endpoint_s_delivery_is_not_at_this_one_s_address(owner, newsroom, endpoint, name):
    other = make_delivery(make_endpoint(newsroom))
    assert owner.get(at(newsroom, name, whe=endpoint.pk, dlv=other.pk)).status_code == 404
    assert owner.get(at(newsroom, name, whe=other.endpoint_id, dlv=other.pk)).status_code in {200, 302}


def test_an_invented_delivery_is_nothing(owner, newsroom, endpoint):
    assert owner.get(at(newsroom, "webhook_delivery", whe=endpoint.pk, dlv=uuid7())).status_code == 404
    assert Delivery.everywhere.count() == 0
