"""What people do with endpoints."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from standardwebhooks import Webhook

from accounts.models import AuditEntry
from config.core import states, task_runner
from config.core.errors import Conflict, Invalid
from config.core.ids import encode
from pipeline.models import Event
from tests.pipeline.steps import reread
from tests.webhooks.factories import (
    NOON,
    claimed,
    make_delivery,
    make_endpoint,
    make_event,
    make_sent,
    make_workspace,
)
from webhooks import endpoints
from webhooks.models import Delivery, DeliveryAttempt, Endpoint
from webhooks.results import record_result

pytestmark = pytest.mark.django_db


def audited() -> list[tuple[str, str, str]]:
    return list(AuditEntry.everywhere.order_by("created_at").values_list("action", "actor", "subject"))


def work() -> int:
    return task_runner.work_all_due("webhooks.deliver_to_endpoint", "webhooks.probe_endpoint")


# --- Add -------------------------------------------------------------------------------------------------------------


def test_add_makes_an_active_endpoint_and_shows_the_secret_once():
    workspace = make_workspace()
    added = endpoints.add(
        workspace,
        "https://example.com/hook",
        events=["raw.failed", "raw.ingested", "raw.failed"],
        test=True,
        description="CRM",
        actor="alice@example.com",
    )
    endpoint = Endpoint.everywhere.get()
    assert added.endpoint.pk == endpoint.pk
    assert (endpoint.workspace_id, endpoint.url, endpoint.test) == (
        workspace.pk,
        "https://example.com/hook",
        True,
    )
    assert (endpoint.events, endpoint.description) == (["raw.failed", "raw.ingested"], "CRM")
    assert (endpoint.secret, endpoint.status, endpoint.is_on) == (added.secret, "active", True)
    assert audited() == [("endpoint.added", "alice@example.com", encode("whe", endpoint.pk))]
    assert added.secret not in json.dumps(AuditEntry.everywhere.get().details)


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("", "invalid"),
        ("example.com/hook", "invalid"),
        ("ftp://example.com/", "invalid"),
        ("https://", "invalid"),
        ("https://exa mple.com/", "invalid"),
        ("https://example.com/\n", "invalid"),
        ("https://example.com:port/", "invalid"),
        ("https://example.com:99999/", "invalid"),
        ("https://[::1/", "invalid"),
        ("javascript:alert(1)", "invalid"),
        ("http://example.com/", "https_required"),
        ("https://user:word@example.com/", "has_credentials"),
        ("https://example.com/" + "a" * 2029, "too_long"),
    ],
)
def test_add_refuses_an_address(settings, url, code):
    settings.WEBHOOKS_ALLOW_HTTP = False
    with pytest.raises(Invalid) as refused:
        endpoints.add(make_workspace(), url, actor="alice")
    assert [(one.field, one.code) for one in refused.value.detail] == [("url", code)]
    assert Endpoint.everywhere.count() == 0


@pytest.mark.parametrize(
    "url", ["https://example.com", "https://example.com:8443/a?b=c", "https://[2001:db8::1]/x"]
)
def test_add_takes_an_address(settings, url):
    settings.WEBHOOKS_ALLOW_HTTP = False
    assert endpoints.add(make_workspace(), url, actor="alice").endpoint.url == url


def test_add_takes_http_where_it_is_allowed(settings):
    settings.WEBHOOKS_ALLOW_HTTP = True
    assert endpoints.add(make_workspace(), "http://127.0.0.1:1/", actor="alice").endpoint.events == []


def test_add_names_every_unknown_event_and_a_long_description():
    with pytest.raises(Invalid) as refused:
        endpoints.add(
            make_workspace(),
            "https://example.com/",
            events=["raw.ingested", "raw.injested", "webhook.test"],
            description="x" * 201,
            actor="alice",
        )
    assert [(one.field, one.code) for one in refused.value.detail] == [
        ("events[1]", "unknown_event"),
        ("events[2]", "unknown_event"),
        ("description", "too_long"),
    ]


def test_add_takes_every_event_alone():
    assert endpoints.add(
        make_workspace(), "https://example.com/", events=["*"], actor="a"
    ).endpoint.events == ["*"]
    with pytest.raises(Invalid) as refused:
        endpoints.add(make_workspace(), "https://example.com/", events=["*", "raw.failed"], actor="a")
    assert [(one.field, one.code) for one in refused.value.detail] == [("events[0]", "unknown_event")]


def test_add_tries_the_address_it_is_given(receiver):
    added = endpoints.add(make_workspace(), f"{receiver.url}/in", is_tried=True, actor="alice")
    assert work() == 1
    [got] = receiver.received
    assert Webhook(added.secret).verify(got.body, got.headers)["type"] == "webhook.test"
    assert reread(added.test).status == "delivered"


@pytest.mark.parametrize(
    "url", ["http://10.0.0.1/", "http://169.254.169.254/", "http://[fd00::1]:8080/", "http://example.com:0/"]
)
def test_add_refuses_to_try_where_no_call_may_go(url):
    with pytest.raises(Invalid) as refused:
        endpoints.add(make_workspace(), url, is_tried=True, actor="alice")
    assert [(one.field, one.code) for one in refused.value.detail] == [("url", "address_refused")]
    assert (Endpoint.everywhere.count(), Event.everywhere.count(), audited()) == (0, 0, [])


def test_add_keeps_an_address_where_nothing_listens_yet():
    added = endpoints.add(make_workspace(), "http://127.0.0.1:9/", is_tried=True, actor="alice")
    assert work() == 1
    assert (reread(added.test).status, reread(added.test).attempt_count) == ("pending", 1)


# --- Change ----------------------------------------------------------------------------------------------------------


def test_change_of_the_address_takes_what_waits_along(receiver):
    endpoint = make_endpoint(url="http://127.0.0.1:9/old", status="degraded", failures=6, failing_since=NOON)
    waiting = make_delivery(endpoint)
    sent = endpoints.change(endpoint, url=f"{receiver.url}/new", events=["*"], description="x", actor="alice")
    assert work() == 2
    assert (reread(waiting).status, reread(sent).status) == ("delivered", "delivered")
    assert [got.path for got in receiver.received] == ["/new", "/new"]
    assert set(DeliveryAttempt.everywhere.values_list("url", flat=True)) == {f"{receiver.url}/new"}
    after = reread(endpoint)
    assert (after.status, after.failures, after.events, after.description) == ("active", 0, ["*"], "x")
    entry = AuditEntry.everywhere.get(action="endpoint.changed")
    assert (entry.actor, entry.details) == (
        "alice",
        {"url": f"{receiver.url}/new", "was": "http://127.0.0.1:9/old", "events": ["*"], "rate": 20},
    )


def test_change_of_anything_else_leaves_the_health_alone():
    endpoint = make_endpoint(status="degraded", failures=6, failing_since=NOON)
    assert endpoints.change(endpoint, url=endpoint.url, events=[], description="", actor="alice") is None
    after = reread(endpoint)
    assert (after.status, after.failures, after.failing_since) == ("degraded", 6, NOON)
    assert Delivery.everywhere.count() == 0


def test_change_refuses_what_add_refuses():
    endpoint = make_endpoint()
    with pytest.raises(Invalid) as refused:
        endpoints.change(endpoint, url="nowhere", events=["x"], description="y" * 201, actor="alice")
    assert [one.field for one in refused.value.detail] == ["url", "events[0]", "description"]
    assert (reread(endpoint).url, audited()) == (endpoint.url, [])


# --- Secrets ---------------------------------------------------------------------------------------------------------


def test_rotate_keeps_the_old_secret_for_the_overlap():
    endpoint = make_endpoint(secret="whsec_b2xk")
    secret = endpoints.rotate_secret(endpoint, timedelta(days=7), actor="alice", now=NOON)
    after = reread(endpoint)
    assert (after.secret, after.previous_secret) == (secret, "whsec_b2xk")
    assert after.previous_secret_until == NOON + timedelta(days=7)
    assert audited() == [("endpoint.secret_rotated", "alice", encode("whe", endpoint.pk))]


def test_rotate_default_is_a_day_and_nought_ends_the_old_one_at_once():
    endpoint = make_endpoint()
    endpoints.rotate_secret(endpoint, actor="alice", now=NOON)
    assert reread(endpoint).previous_secret_until == NOON + timedelta(hours=24)
    endpoints.rotate_secret(endpoint, timedelta(0), actor="alice", now=NOON)
    assert (reread(endpoint).previous_secret, reread(endpoint).previous_secret_until) == (None, None)


@pytest.mark.parametrize("overlap", [timedelta(seconds=-1), timedelta(days=7, seconds=1)])
def test_rotate_refuses_another_overlap(overlap):
    endpoint = make_endpoint()
    with pytest.raises(Invalid):
        endpoints.rotate_secret(endpoint, overlap, actor="alice")
    assert reread(endpoint).secret == endpoint.secret


def test_secrets_are_sealed_in_the_database():
    from django.db import connection

    endpoint = make_endpoint(previous_secret="whsec_b2xk")
    with connection.cursor() as cursor:
        cursor.execute("SELECT secret, previous_secret FROM endpoint")
        stored = cursor.fetchone()
    assert endpoint.secret not in stored[0]
    assert "whsec_" not in stored[0] + stored[1]


# --- On, off, removed ------------------------------------------------------------------------------------------------


def test_off_holds_and_on_releases_with_a_fresh_schedule(receiver):
    endpoint = make_endpoint(url=f"{receiver.url}/in", status="degraded", failures=7, failing_since=NOON)
    endpoints.switch_off(endpoint, actor="alice")
    rows = [make_delivery(endpoint) for _ in range(3)]
    assert work() == 3
    assert {reread(row).status for row in rows} == {"held"}
    assert work() == 0
    assert endpoints.switch_on(endpoint, actor="alice") == 3
    after = reread(endpoint)
    assert (after.is_on, after.status, after.failures, after.failing_since) == (True, "active", 0, None)
    assert work() == 3
    assert {reread(row).status for row in rows} == {"delivered"}
    assert len(receiver.received) == 3
    assert [action for action, *_ in audited()] == ["endpoint.switched_off", "endpoint.switched_on"]


@pytest.mark.parametrize("status", ["active", "degraded", "disabled"])
def test_on_is_active_from_every_status(status):
    endpoint = make_endpoint(status=status, is_on=False, failures=3)
    endpoints.switch_on(endpoint, actor="alice")
    assert (reread(endpoint).status, reread(endpoint).is_on, reread(endpoint).failures) == ("active", True, 0)


def test_on_without_release_leaves_what_is_held(receiver):
    endpoint = make_endpoint(url=f"{receiver.url}/in", status="disabled")
    held = make_delivery(endpoint, status="held", wake_at=None)
    other = make_delivery(make_endpoint(endpoint.workspace), status="held", wake_at=None)
    assert endpoints.switch_on(endpoint, actor="alice", release=False) == 0
    assert work() == 0
    assert endpoints.switch_on(endpoint, actor="alice") == 1
    assert work() == 1
    assert (reread(held).status, reread(other).status) == ("delivered", "held")


def test_gone_then_on_again(receiver):
    receiver.answers["/in"] = 410
    endpoint = make_endpoint(url=f"{receiver.url}/in")
    delivery = make_delivery(endpoint)
    assert work() == 1
    assert (reread(endpoint).status, reread(delivery).status) == ("disabled", "held")
    receiver.answers["/in"] = 200
    endpoints.switch_on(endpoint, actor="alice")
    assert work() == 1
    assert (reread(endpoint).status, reread(delivery).status) == ("active", "delivered")
    assert list(DeliveryAttempt.everywhere.order_by("number").values_list("number", "status_code")) == [
        (1, 410),
        (2, 200),
    ]


def test_remove_erases_the_secrets_and_ends_what_waits(receiver):
    endpoint = make_endpoint(
        url=f"{receiver.url}/in", previous_secret="whsec_b2xk", previous_secret_until=NOON
    )
    waiting = make_delivery(endpoint, wake_at=NOON + timedelta(days=9999))
    held = make_delivery(endpoint, status="held", wake_at=None)
    done = make_delivery(endpoint, status="delivered", wake_at=None)
    endpoints.remove(endpoint, actor="alice")
    assert work() == 2
    assert [reread(row).status for row in (waiting, held, done)] == ["failed", "failed", "delivered"]
    after = reread(endpoint)
    assert (after.secret, after.previous_secret, after.is_on) == ("", None, False)
    assert after.deleted_at is not None
    assert receiver.received == []


def test_nothing_more_can_be_done_with_a_removed_endpoint():
    endpoint = make_endpoint()
    delivery = make_delivery(endpoint, status="failed", wake_at=None)
    endpoints.remove(endpoint, actor="alice")
    for act in (
        lambda: endpoints.remove(endpoint, actor="alice"),
        lambda: endpoints.switch_on(endpoint, actor="alice"),
        lambda: endpoints.switch_off(endpoint, actor="alice"),
        lambda: endpoints.rotate_secret(endpoint, actor="alice"),
        lambda: endpoints.change(endpoint, url=endpoint.url, events=[], description="", actor="alice"),
        lambda: endpoints.send_test(endpoint, actor="alice"),
        lambda: endpoints.resend(delivery, actor="alice"),
    ):
        with pytest.raises(Conflict):
            act()
    assert [action for action, *_ in audited()] == ["endpoint.removed"]


# --- Send again ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["failed", "delivered", "held"])
def test_resend_sends_now(receiver, status):
    endpoint = make_endpoint(url=f"{receiver.url}/in")
    delivery = make_delivery(endpoint, status=status, wake_at=None, attempt_count=10)
    endpoints.resend(delivery, actor="alice")
    assert work() == 1
    assert (reread(delivery).status, reread(delivery).attempt_count) == ("delivered", 11)
    assert DeliveryAttempt.everywhere.get().number == 11
    assert audited() == [("delivery.resent", "alice", encode("whe", endpoint.pk))]


def test_resend_of_a_waiting_one_sends_now_and_overtakes_the_hand_that_has_it():
    delivery = claimed(make_delivery(make_endpoint()))
    token = delivery.lease_token
    endpoints.resend(reread(delivery), actor="alice")
    assert (reread(delivery).lease_token, reread(delivery).attempts) == (token + 1, 0)
    with pytest.raises(states.Overtaken):
        record_result(delivery, make_sent(500))
    assert DeliveryAttempt.everywhere.count() == 0


def test_resend_begins_the_schedule_anew():
    delivery = make_delivery(make_endpoint(), due_at=NOON, status="pending")
    for hour in range(10):
        at = NOON + timedelta(hours=hour)
        record_result(claimed(delivery), make_sent(500, started_at=at))
    assert reread(delivery).status == "failed"
    later = NOON + timedelta(hours=11)
    endpoints.resend(reread(delivery), actor="alice", now=later)
    record_result(claimed(delivery), make_sent(500, started_at=later))
    after = reread(delivery)
    assert (after.status, after.attempt_count) == ("pending", 11)
    assert timedelta(seconds=5) <= after.wake_at - later <= timedelta(seconds=7)


def test_resend_refuses_what_cannot_be_sent():
    endpoint = make_endpoint(is_on=False)
    with pytest.raises(Conflict, match="Switch the endpoint on first"):
        endpoints.resend(make_delivery(endpoint, status="held"), actor="alice")
    endpoint = make_endpoint()
    expired = make_delivery(endpoint, make_event(endpoint.workspace_id, body=None), status="failed")
    with pytest.raises(Conflict, match="kept 30 days"):
        endpoints.resend(expired, actor="alice")
    stale = make_delivery(endpoint, status="failed")
    Delivery.everywhere.filter(pk=stale.pk).update(status="pending")
    with pytest.raises(states.Overtaken):
        endpoints.resend(stale, actor="alice")
    assert audited() == []


def test_send_test_reaches_this_endpoint_alone(receiver):
    workspace = make_workspace()
    endpoint = make_endpoint(workspace, url=f"{receiver.url}/in", events=["raw.failed"])
    make_endpoint(workspace, url=f"{receiver.url}/other")
    delivery = endpoints.send_test(endpoint, actor="alice")
    assert task_runner.work_all_due("webhooks.fan_out", "webhooks.deliver_to_endpoint") == 1
    [got] = receiver.received
    sent = Webhook(endpoint.secret).verify(got.body, got.headers)
    assert (got.path, sent["type"]) == ("/in", "webhook.test")
    assert sent["data"]["endpoint"] == encode("whe", endpoint.pk)
    assert (reread(delivery).status, Event.everywhere.get().position) == ("delivered", None)


def test_send_test_refuses_an_endpoint_that_is_off():
    with pytest.raises(Conflict, match="Switch the endpoint on first"):
        endpoints.send_test(make_endpoint(status="disabled"), actor="alice")
    assert Event.everywhere.count() == 0
