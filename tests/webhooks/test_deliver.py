"""What is sent, how answers are judged, what is written."""

from __future__ import annotations

import json
import random
import socket
import threading
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
import structlog
from django.utils import timezone
from standardwebhooks import Webhook

from accounts.models import Notice
from config.core import http_client, task_runner
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
)
from webhooks import deliver as deliver_module
from webhooks import limits, signing
from webhooks.deliver import deliver, give_up
from webhooks.models import Delivery, DeliveryAttempt, Endpoint
from webhooks.results import record_result, update_health

pytestmark = pytest.mark.django_db


class NoJitter(random.Random):
    def uniform(self, a, b):
        return a


# --- What is sent ----------------------------------------------------------------------------------------------------


def test_receiver_gets_the_stored_bytes_under_a_valid_signature(receiver, settings):
    old, new = signing.make_secret(), signing.make_secret()
    endpoint = make_endpoint(
        url=f"{receiver.url}/in?a=1",
        secret=new,
        previous_secret=old,
        previous_secret_until=timezone.now() + timedelta(hours=1),
    )
    delivery = make_delivery(endpoint)
    before = int(timezone.now().timestamp())
    deliver(claimed(delivery))
    [got] = receiver.at("/in?a=1")
    event = delivery.event
    assert got.body == bytes(Event.everywhere.get(pk=event.pk).body)
    assert "✓".encode() in got.body
    assert got.headers["webhook-id"] == encode("evt", event.pk) == json.loads(got.body)["id"]
    assert before <= int(got.headers["webhook-timestamp"]) <= int(timezone.now().timestamp())
    assert got.headers["content-type"] == "application/json"
    assert got.headers["user-agent"] == settings.USER_AGENT
    for secret in (old, new):
        assert Webhook(secret).verify(got.body, got.headers) == json.loads(got.body)


def test_success_is_recorded_whole(receiver):
    receiver.answers["/in"] = (201, {"x-seen": "yes", "set-cookie": "a=b"}, b"fine\x00")
    endpoint = make_endpoint(url=f"{receiver.url}/in")
    delivery = make_delivery(endpoint)
    deliver(claimed(delivery))
    after = reread(delivery)
    assert (after.status, after.wake_at, after.attempts, after.attempt_count) == ("delivered", None, 0, 1)
    assert (after.last_status, after.last_error) == (201, "")
    attempt = DeliveryAttempt.everywhere.get()
    assert (attempt.delivery_id, attempt.workspace_id, attempt.number) == (
        delivery.pk,
        endpoint.workspace_id,
        1,
    )
    assert attempt.url == f"{receiver.url}/in"
    assert (attempt.status_code, attempt.error, attempt.next_attempt_at) == (201, "", None)
    assert attempt.response_body == "fine\ufffd"
    assert attempt.response_headers["x-seen"] == "yes"
    assert "set-cookie" not in attempt.response_headers
    assert sorted(attempt.request_headers) == [
        "content-type",
        "user-agent",
        "webhook-id",
        "webhook-signature",
        "webhook-timestamp",
        "x-request-id",
    ]
    assert attempt.request_headers["x-request-id"] == delivery.request_id
    assert attempt.duration_ms is not None
    assert after.delivered_at == pytest.approx(attempt.started_at, abs=timedelta(seconds=5))
    healthy = reread(endpoint)
    assert (healthy.status, healthy.failures, healthy.last_success_at) == ("active", 0, after.delivered_at)


def test_each_attempt_has_its_own_timestamp_and_the_same_id(receiver):
    receiver.answers["/in"] = 500
    delivery = make_delivery(make_endpoint(url=f"{receiver.url}/in"))
    deliver(claimed(delivery), now=NOON)
    deliver(claimed(delivery), now=NOON + timedelta(minutes=5))
    first, second = receiver.at("/in")
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert int(second.headers["webhook-timestamp"]) - int(first.headers["webhook-timestamp"]) == 300
    assert first.headers["webhook-signature"] != second.headers["webhook-signature"]
    assert list(DeliveryAttempt.everywhere.order_by("number").values_list("number", flat=True)) == [1, 2]


@pytest.mark.parametrize("size", [4096, 4097, 64 * 1024, 300 * 1024])
def test_answer_is_read_up_to_64_kib_and_4_kib_are_kept(receiver, size):
    receiver.answers["/in"] = (200, {}, b"x" * size)
    delivery = make_delivery(make_endpoint(url=f"{receiver.url}/in"))
    deliver(claimed(delivery))
    assert reread(delivery).status == "delivered"
    assert DeliveryAttempt.everywhere.get().response_body == "x" * 4096


def test_call_is_made_within_the_promised_limits(monkeypatch, settings):
    settings.WEBHOOKS_ALLOW_HTTP = False
    asked = {}

    class Spy:
        def request(self, method, url, **options):
            asked.update(options, method=method, url=url)
            raise http_client.ConnectFailed("No.")

    monkeypatch.setattr(deliver_module, "_client", lambda **_: Spy())
    deliver(claimed(make_delivery(make_endpoint())))
    asked.pop("headers")
    asked.pop("body")
    assert asked == {
        "method": "POST",
        "url": "http://127.0.0.1:9/hook",
        "timeout": 15,
        "max_bytes": 65536,
        "max_redirects": 0,
        "truncate": True,
        "https_only": True,
        "keep_alive": True,
    }


# --- How answers are judged ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status_code", "status"),
    [(200, "delivered"), (202, "delivered"), (204, "delivered"), (299, "delivered")]
    + [(code, "pending") for code in (300, 301, 302, 307, 400, 401, 404, 429, 500, 502, 503, 504, 599)]
    + [(410, "held")],
)
def test_every_class_of_status(receiver, status_code, status):
    receiver.answers["/in"] = (status_code, {"location": f"{receiver.url}/elsewhere"}, b"")
    delivery = make_delivery(make_endpoint(url=f"{receiver.url}/in"))
    deliver(claimed(delivery))
    after = reread(delivery)
    assert (after.status, after.last_status, after.attempt_count) == (status, status_code, 1)
    assert receiver.at("/elsewhere") == []
    assert (DeliveryAttempt.everywhere.get().error == "") == (status == "delivered")


def test_retry_is_written_on_the_row_and_on_the_attempt():
    delivery = claimed(make_delivery(make_endpoint()))
    record_result(delivery, make_sent(500), chance=NoJitter())
    expected = NOON + timedelta(seconds=5.75)
    after = reread(delivery)
    assert (after.status, after.wake_at, after.attempts) == ("pending", expected, 0)
    assert DeliveryAttempt.everywhere.get().next_attempt_at == expected


def test_ten_attempts_then_failed():
    endpoint = make_endpoint()
    delivery = make_delivery(endpoint, due_at=NOON)
    at, moments = NOON, []
    for _ in range(10):
        row = claimed(delivery)
        record_result(row, make_sent(500, started_at=at, seconds=0.0), chance=NoJitter())
        moments.append(at)
        at = row.wake_at
    assert at is None
    assert [moment - NOON for moment in moments][-1] == timedelta(hours=75, minutes=35, seconds=5)
    after = reread(delivery)
    assert (after.status, after.wake_at, after.attempt_count) == ("failed", None, 10)
    last = DeliveryAttempt.everywhere.order_by("number").last()
    assert (last.number, last.next_attempt_at) == (10, None)
    assert (reread(endpoint).status, reread(endpoint).failures) == ("degraded", 10)


def test_attempt_counts_where_this_clock_is_behind_the_databases():
    delivery = make_delivery(make_endpoint(), created_at=NOON, due_at=NOON)
    record_result(
        claimed(delivery),
        make_sent(500, started_at=NOON - timedelta(seconds=4), seconds=0.0),
        chance=NoJitter(),
    )
    record_result(claimed(delivery), make_sent(500, started_at=NOON, seconds=0.0), chance=NoJitter())
    assert reread(delivery).wake_at == NOON + timedelta(minutes=5)


def test_failure_without_a_success_before_it_is_recorded_without_a_fault(receiver):
    receiver.answers["/in"] = 500
    endpoint = make_endpoint(url=f"{receiver.url}/in")
    make_delivery(endpoint, wake_at=timezone.now())
    with structlog.testing.capture_logs() as lines:
        deliver_module.deliver_to_endpoint(endpoint.pk)
    assert [line["event"] for line in lines if line["log_level"] != "info"] == []


def test_connection_refused_is_a_failed_attempt_without_status():
    delivery = claimed(make_delivery(make_endpoint(url="http://127.0.0.1:1/")))
    deliver(delivery)
    attempt = DeliveryAttempt.everywhere.get()
    assert (attempt.status_code, attempt.response_body, attempt.response_headers) == (None, "", {})
    assert "127.0.0.1" in attempt.error
    assert reread(delivery).status == "pending"


def test_time_out_waits_a_minute(receiver, monkeypatch):
    monkeypatch.setattr(limits, "WEBHOOK_TIMEOUT_SECONDS", 0.2)
    receiver.answers["/in"] = receiver.hang
    delivery = claimed(make_delivery(make_endpoint(url=f"{receiver.url}/in")))
    deliver(delivery, now=NOON)
    attempt = DeliveryAttempt.everywhere.get()
    assert attempt.status_code is None
    assert timedelta(seconds=60) <= reread(delivery).wake_at - NOON <= timedelta(seconds=74)


@pytest.fixture
def dripping():
    """Call it with what is answered: it comes a byte at a time, soon enough for a limit of each single
    wait."""
    threads = []
    listening = socket.create_server(("127.0.0.1", 0))

    def answer(content):
        connection, _ = listening.accept()
        # The caller gives up first, which is what is tested.
        with connection, suppress(OSError):
            connection.recv(65536)
            for byte in content:
                connection.sendall(bytes([byte]))
                threading.Event().wait(0.02)

    def start(content):
        threads.append(threading.Thread(target=answer, args=(content,)))
        threads[0].start()
        return f"http://127.0.0.1:{listening.getsockname()[1]}/in"

    with listening:
        yield start
        for thread in threads:
            thread.join(30)


@pytest.mark.parametrize(
    "content",
    [
        b"HTTP/1.1 200 OK\r\nx-slow: " + b"a" * 150 + b"\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 150\r\n\r\n" + b"b" * 150,
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + b"1\r\nb\r\n" * 30 + b"0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"b" * 150,
    ],
    ids=["head", "body", "chunks", "until-it-closes"],
)
def test_answer_that_drips_is_broken_off_as_a_whole(dripping, monkeypatch, content):
    monkeypatch.setattr(limits, "WEBHOOK_TIMEOUT_SECONDS", 0.5)
    delivery = claimed(make_delivery(make_endpoint(url=dripping(content))))
    deliver(delivery)
    attempt = DeliveryAttempt.everywhere.get()
    assert attempt.status_code is None
    assert attempt.error == "127.0.0.1 did not answer in full within 0.5 seconds."
    assert reread(delivery).status == "pending"


def test_private_and_loopback_addresses_are_refused_where_they_are_not_allowed(receiver, settings):
    settings.OUTBOUND_ALLOW_LOOPBACK = False
    delivery = claimed(make_delivery(make_endpoint(url=f"{receiver.url}/in")))
    deliver(delivery)
    assert receiver.received == []
    assert (reread(delivery).status, DeliveryAttempt.everywhere.get().status_code) == ("pending", None)


def test_http_is_refused_where_it_is_not_allowed(receiver, settings):
    settings.WEBHOOKS_ALLOW_HTTP = False
    delivery = claimed(make_delivery(make_endpoint(url=f"{receiver.url}/in")))
    deliver(delivery)
    assert receiver.received == []
    assert reread(delivery).last_error == "Only https URLs can be called here."


# --- The endpoint's health -------------------------------------------------------------------------------------------


def fail(endpoint: Endpoint, *, at: datetime, status_code: int = 500) -> Endpoint:
    update_health(reread(endpoint), make_sent(status_code, started_at=at, seconds=0.0))
    return reread(endpoint)


def test_degraded_at_the_fifth_failure_in_a_row():
    endpoint = make_endpoint()
    statuses = [fail(endpoint, at=NOON).status for _ in range(6)]
    assert statuses == ["active"] * 4 + ["degraded"] * 2


@pytest.mark.parametrize(
    ("failures", "days", "status"),
    [
        (9, timedelta(days=5), "disabled"),
        (8, timedelta(days=50), "degraded"),
        (500, timedelta(days=5) - timedelta(microseconds=1), "degraded"),
    ],
)
def test_disabled_after_five_days_and_ten_failures(failures, days, status):
    endpoint = make_endpoint(status="degraded", failures=failures, failing_since=NOON)
    after = fail(endpoint, at=NOON + days)
    assert (after.status, after.failures, after.failing_since) == (status, failures + 1, NOON)


def test_gone_disables_at_once():
    after = fail(make_endpoint(), at=NOON, status_code=410)
    assert (after.status, after.failures) == ("disabled", 1)


def test_people_hear_when_an_endpoint_fails_and_when_it_is_switched_off():
    endpoint = make_endpoint(url="https://hooks.partner.example/in?secret=1")
    for _ in range(7):
        fail(endpoint, at=NOON)
    Endpoint.everywhere.filter(pk=endpoint.pk).update(failures=9)
    for days in (5, 6):
        fail(endpoint, at=NOON + timedelta(days=days))
    rows = Notice.everywhere.filter(workspace=endpoint.workspace, kind="webhook").order_by("id")
    assert [(row.title, row.path) for row in rows] == [
        ("The webhook endpoint at hooks.partner.example/in fails", "settings/webhooks"),
        ("The webhook endpoint at hooks.partner.example/in was switched off", "settings/webhooks"),
    ]
    assert "secret" not in "".join(row.text for row in rows)


def test_success_mends_but_does_not_switch_on():
    for before, expected in (("active", "active"), ("degraded", "active"), ("disabled", "disabled")):
        endpoint = make_endpoint(status=before, failures=7, failing_since=NOON)
        update_health(endpoint, make_sent(200))
        after = reread(endpoint)
        assert (after.status, after.failures, after.failing_since) == (expected, 0, None)
        assert after.last_success_at == NOON + timedelta(seconds=0.75)


def test_failing_since_is_the_first_failure_in_the_row():
    endpoint = make_endpoint()
    fail(endpoint, at=NOON)
    assert fail(endpoint, at=NOON + timedelta(hours=1)).failing_since == NOON


# --- Nothing to send, nobody to send it to ---------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["pending", "held"])
@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"is_on": False}, "held"),
        ({"status": "disabled"}, "held"),
        ({"deleted_at": datetime(2027, 1, 1, tzinfo=UTC)}, "failed"),
    ],
)
def test_endpoint_that_takes_nothing(receiver, status, changes, expected):
    delivery = make_delivery(make_endpoint(url=f"{receiver.url}/in", **changes), status=status)
    deliver(claimed(delivery))
    after = reread(delivery)
    assert (after.status, after.wake_at, after.attempts, after.attempt_count) == (expected, None, 0, 0)
    assert receiver.received == []
    assert DeliveryAttempt.everywhere.count() == 0


def test_held_delivery_that_was_woken_is_sent(receiver):
    delivery = make_delivery(make_endpoint(url=f"{receiver.url}/in"), status="held")
    deliver(claimed(delivery))
    assert reread(delivery).status == "delivered"
    assert len(receiver.received) == 1


def test_expired_event_fails_in_plain_words(receiver):
    endpoint = make_endpoint(url=f"{receiver.url}/in")
    delivery = make_delivery(endpoint, make_event(endpoint.workspace_id, body=None))
    deliver(claimed(delivery))
    after = reread(delivery)
    assert (after.status, after.wake_at) == ("failed", None)
    assert after.last_error == "The event is older than 30 days and its content is no longer kept."
    assert receiver.received == []


@pytest.mark.parametrize("status", ["delivered", "failed"])
def test_ended_delivery_that_is_woken_is_put_back_to_sleep(receiver, status):
    delivery = make_delivery(make_endpoint(url=f"{receiver.url}/in"), status=status)
    deliver(claimed(delivery))
    after = reread(delivery)
    assert (after.status, after.wake_at, after.attempts) == (status, None, 0)
    assert receiver.received == []


@pytest.mark.parametrize(
    ("changes", "status"),
    [({"is_on": False}, "held"), ({"deleted_at": datetime(2027, 1, 1, tzinfo=UTC)}, "failed")],
)
def test_endpoint_switched_off_while_an_attempt_fails(changes, status):
    delivery = claimed(make_delivery(make_endpoint()))
    Endpoint.everywhere.filter(pk=delivery.endpoint_id).update(**changes)
    record_result(delivery, make_sent(500))
    assert (reread(delivery).status, reread(delivery).wake_at) == (status, None)


@pytest.mark.parametrize("status", ["pending", "held"])
def test_give_up_ends_visibly(status):
    delivery = claimed(make_delivery(make_endpoint(), status=status, attempts=10))
    deliver(delivery)
    after = reread(delivery)
    assert (after.status, after.wake_at, after.attempts) == ("failed", None, 0)
    assert after.last_error.startswith("The service stopped several times")


# --- Leases and crashes ----------------------------------------------------------------------------------------------


def test_lost_lease_writes_nothing(receiver):
    receiver.answers["/in"] = 500
    endpoint = make_endpoint(url=f"{receiver.url}/in")
    delivery = make_delivery(endpoint)
    slow = claimed(delivery)
    other = claimed(delivery)
    deliver(slow)
    after = reread(delivery)
    assert len(receiver.received) == 1
    assert (after.status, after.lease_token, after.attempt_count) == ("pending", other.lease_token, 0)
    assert after.wake_at == other.wake_at
    assert DeliveryAttempt.everywhere.count() == 0
    assert (reread(endpoint).failures, reread(endpoint).failing_since) == (0, None)


@pytest.mark.parametrize("changes", [{"is_on": False}, {"deleted_at": NOON}])
def test_lost_lease_writes_nothing_before_sending_either(changes):
    delivery = make_delivery(make_endpoint(**changes))
    slow = claimed(delivery)
    other = claimed(delivery)
    deliver(slow)
    assert (reread(delivery).status, reread(delivery).wake_at) == ("pending", other.wake_at)


class Killed(BaseException):
    """As far as the code can tell, the end of the process."""


@pytest.mark.parametrize(
    ("point", "requests"), [("deliver.claimed", 1), ("deliver.sent", 2), ("deliver.recorded", 1)]
)
def test_killed_is_delivered_at_least_once_and_recorded_once(monkeypatch, receiver, point, requests):
    delivery = make_delivery(make_endpoint(url=f"{receiver.url}/in"))

    def die(name):
        if name == point:
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(deliver_module, "crash_point", die)
        with pytest.raises(Killed):
            task_runner.work_all_due("webhooks.deliver_to_endpoint")
    # Within the lease nobody touches it; afterwards the next hand does.
    assert task_runner.work_all_due("webhooks.deliver_to_endpoint") == 0
    Delivery.everywhere.filter(wake_at__isnull=False).update(wake_at=timezone.now() - timedelta(seconds=1))
    assert task_runner.work_all_due("webhooks.deliver_to_endpoint", "webhooks.probe_endpoint") == (
        0 if point == "deliver.recorded" else 1
    )
    assert len(receiver.received) == requests
    assert {one.headers["webhook-id"] for one in receiver.received} == {encode("evt", delivery.event_id)}
    after = reread(delivery)
    assert (after.status, after.attempt_count, after.attempts) == ("delivered", 1, 0)
    assert list(DeliveryAttempt.everywhere.values_list("number", "status_code")) == [(1, 200)]


def test_claims_without_end_give_up(monkeypatch, receiver):
    delivery = make_delivery(make_endpoint(url=f"{receiver.url}/in"))

    def break_down(*_, **__):
        raise RuntimeError("A bug.")

    monkeypatch.setattr(deliver_module, "send", break_down)
    for _ in range(11):
        assert reread(delivery).status == "pending"
        Delivery.everywhere.update(wake_at=timezone.now() - timedelta(seconds=1))
        assert task_runner.work_all_due("webhooks.deliver_to_endpoint") == 1
    assert reread(delivery).status == "failed"


def test_give_up_without_the_lease_raises():
    from config.core.states import Overtaken

    delivery = make_delivery(make_endpoint())
    slow = claimed(delivery)
    claimed(delivery)
    with pytest.raises(Overtaken):
        give_up(slow)
