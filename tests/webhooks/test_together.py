"""Successes of several hands are written in one transaction, each as it would be by itself."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from config.ground import hands, tallies
from tests.webhooks.factories import NOON, claimed, make_delivery, make_endpoint, make_sent
from webhooks import deliver as deliver_module
from webhooks import recording
from webhooks.models import Delivery, DeliveryAttempt, Endpoint

pytestmark = pytest.mark.django_db


def told(row):
    """All of it but its own name."""
    left = {"id", "delivery_id", "endpoint_id", "event_id", "workspace_id", "updated_at", "lease_token"}
    return {
        field.attname: getattr(row, field.attname)
        for field in row._meta.concrete_fields
        if field.attname not in left | {"created_at", "due_at", "secret", "request_id"}
    }


def everything(endpoint, *, without=()):
    return [
        [told(row) for row in Delivery.everywhere.filter(endpoint=endpoint).order_by("id")],
        [
            told(row)
            for row in DeliveryAttempt.everywhere.filter(delivery__endpoint=endpoint).order_by("delivery_id")
        ],
        told(Endpoint.everywhere.get(pk=endpoint.pk)),
    ]


@pytest.mark.parametrize(
    "health",
    [
        {},
        {"failures": 3, "failing_since": NOON},
        {"status": "degraded", "failures": 6},
        {"status": "disabled"},
    ],
)
def test_together_leaves_what_each_by_itself_leaves(health):
    apart, joined = make_endpoint(**health), make_endpoint(**health)
    sents = [make_sent(200 + number, seconds=0.5 + number, response_body="Grüße") for number in range(3)]
    for endpoint in (apart, joined):
        done = [(claimed(make_delivery(endpoint)), sent) for sent in sents]
        if endpoint is apart:
            for delivery, sent in done:
                recording.record(delivery, sent)
        else:
            recording.record_successes(done)
    assert everything(joined) == everything(apart)
    assert [row["status"] for row in everything(joined)[0]] == ["delivered"] * 3
    assert everything(joined)[2]["last_success_at"] == NOON + timedelta(seconds=2.5)


def test_statements_do_not_grow_with_the_number():
    counts = []
    for number in (2, 2, 12):
        endpoints = [make_endpoint() for _ in range(2)]
        done = [(claimed(make_delivery(endpoints[n % 2])), make_sent(200)) for n in range(number)]
        with CaptureQueriesContext(
            connection,
        ) as asked:
            recording.record_successes(done)
        counts.append(len(asked))
    assert counts[1] == counts[2] <= 6


def test_one_that_was_overtaken_keeps_nobody_from_being_written():
    endpoint = make_endpoint()
    slow = claimed(make_delivery(endpoint))
    other = claimed(slow)
    done = [(claimed(make_delivery(endpoint)), make_sent(200)) for _ in range(2)]
    tallies.drain()
    recording.record_successes([done[0], (slow, make_sent(200)), done[1]])
    assert Delivery.everywhere.filter(status="delivered").count() == 2
    left = Delivery.everywhere.get(pk=slow.pk)
    assert (left.status, left.lease_token, left.attempt_count) == ("pending", other.lease_token, 0)
    assert DeliveryAttempt.everywhere.filter(delivery=slow).count() == 0
    counted = tallies.drain()
    assert counted["webhook_attempts", "delivered"] == 2
    assert counted["claims_lost", "none"] == 1


def test_one_that_can_not_be_written_keeps_nobody_from_being_written():
    endpoint = make_endpoint()
    good, bad = claimed(make_delivery(endpoint)), claimed(make_delivery(endpoint))
    # PostgreSQL refuses the text, both refuse a number that was used.
    DeliveryAttempt.everywhere.create(workspace_id=bad.workspace_id, delivery=bad, number=1, url="")
    tallies.drain()
    recording.record_successes([(bad, make_sent(200)), (good, make_sent(200))])
    assert Delivery.everywhere.get(pk=good.pk).status == "delivered"
    assert Delivery.everywhere.get(pk=bad.pk).status == "pending"
    assert tallies.drain()["work_failed", "webhooks.deliver"] == 1


# --- What was read for several ---------------------------------------------------------------------------------------


def test_a_claim_reads_endpoints_and_events_for_all_its_rows(receiver):
    endpoint = make_endpoint(url=f"{receiver.url}/in", rate=100)
    for _ in range(4):
        make_delivery(endpoint)
    rows = hands._claim(hands.kinds()["webhooks.deliver"], 4)
    assert len(rows) == 4
    with CaptureQueriesContext(connection) as asked:
        assert [bytes(row.event.body)[:1] for row in rows] == [b"{"] * 4
        assert {row.endpoint.url for row in rows} == {endpoint.url}
    assert len(asked) == 0


@pytest.mark.parametrize(("waited", "requests"), [(0.0, 1), (1.5, 0)])
def test_what_was_read_long_ago_is_read_again(monkeypatch, receiver, waited, requests):
    endpoint = make_endpoint(url=f"{receiver.url}/in")
    delivery = claimed(make_delivery(endpoint))
    deliver_module.read([delivery])
    Endpoint.everywhere.update(is_on=False)
    delivery.read_at -= waited
    deliver_module.deliver(delivery)
    assert len(receiver.received) == requests


def test_a_claim_whose_rows_can_not_be_read_together_is_worked_all_the_same(monkeypatch, receiver):
    make_delivery(make_endpoint(url=f"{receiver.url}/in"))
    kind = hands.kinds()["webhooks.deliver"]

    def fail(_rows):
        raise ConnectionError("The database is away.")

    monkeypatch.setitem(hands._kinds, kind.name, hands.Kind(**{**vars(kind), "read": fail}))
    assert hands.look("webhooks.deliver") == 1
    assert len(receiver.received) == 1
