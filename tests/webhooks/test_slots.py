"""Slots of an endpoint: exact over processes, and no endpoint waits for another's."""

from __future__ import annotations

import threading
from datetime import timedelta
from itertools import pairwise
from time import monotonic

import pytest
from django.db import close_old_connections
from django.utils import timezone

from config.ground import due, limits
from tests.webhooks.factories import make_delivery, make_endpoint, make_event, make_workspace
from webhooks.deliver import LEASE, slots_of_failing, slots_of_healthy
from webhooks.dispatch import write_deliveries
from webhooks.models import Delivery, Endpoint

HEALTHY = due.Group("endpoint_id", slots_of_healthy)
FAILING = due.Group("endpoint_id", slots_of_failing)


def claim(
    group: due.Group | None = HEALTHY, *, limit: int = 100, per_workspace: int = 100, **more
) -> list[Delivery]:
    return due.claim(Delivery, limit=limit, per_workspace=per_workspace, lease=LEASE, group=group, **more)


def of(rows: list[Delivery], endpoint: Endpoint) -> int:
    return sum(row.endpoint_id == endpoint.pk for row in rows)


@pytest.mark.django_db
def test_four_of_one_endpoint_and_no_more_until_one_is_given_back():
    endpoint = make_endpoint()
    for _ in range(6):
        make_delivery(endpoint)
    rows = claim()
    assert len(rows) == 4
    assert claim() == []
    assert rows[0].sleep_until(timezone.now() + timedelta(seconds=30), attempts=0)
    assert [row.pk not in {one.pk for one in rows} for row in claim()] == [True]


@pytest.mark.django_db
def test_lease_that_ran_out_frees_its_slot():
    endpoint = make_endpoint()
    for _ in range(5):
        make_delivery(endpoint)
    assert len(claim()) == 4
    later = due.database_now() + LEASE + timedelta(seconds=1)
    assert len(claim(now=later)) == 4


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("changes", "healthy", "failing"),
    [
        ({}, 4, 0),
        ({"failures": 1}, 0, 1),
        ({"status": "degraded", "failures": 5}, 0, 1),
        ({"status": "degraded"}, 0, 1),
        ({"status": "disabled"}, 0, 1),
        ({"is_on": False}, 0, 1),
        ({"deleted_at": "2027-01-01T00:00:00Z"}, 0, 1),
    ],
)
def test_one_slot_while_it_fails(changes, healthy, failing):
    endpoint = make_endpoint(**changes)
    for _ in range(6):
        make_delivery(endpoint)
    assert (len(claim(HEALTHY)), len(claim(FAILING))) == (healthy, failing)


@pytest.mark.django_db
def test_oldest_first_within_an_endpoint():
    endpoint = make_endpoint()
    now = due.database_now()
    rows = [make_delivery(endpoint, wake_at=now - timedelta(seconds=ago)) for ago in (3, 9, 5)]
    assert [claim(limit=1)[0].pk for _ in range(3)] == [rows[1].pk, rows[2].pk, rows[0].pk]


@pytest.mark.django_db
def test_busy_endpoint_leaves_the_others_their_turn():
    workspace = make_workspace()
    flooded, quiet, foreign = make_endpoint(workspace), make_endpoint(workspace), make_endpoint()
    for _ in range(50):
        make_delivery(flooded)
    make_delivery(quiet)
    make_delivery(foreign)
    rows = [row for _ in range(6) for row in claim(limit=1)]
    assert (of(rows, flooded), of(rows, quiet), of(rows, foreign)) == (4, 1, 1)


@pytest.mark.django_db
def test_workspace_with_many_endpoints_is_held_to_its_share():
    workspace = make_workspace()
    for _ in range(5):
        endpoint = make_endpoint(workspace)
        for _ in range(4):
            make_delivery(endpoint)
    assert len(claim(per_workspace=9)) == 9
    assert claim(per_workspace=9, busy={workspace.pk: 9}) == []
    assert len(claim(per_workspace=9, busy={workspace.pk: 7})) == 2


@pytest.mark.django_db
def test_limit_goes_round_the_workspaces():
    crowded = make_workspace()
    for _ in range(4):
        endpoint = make_endpoint(crowded)
        for _ in range(4):
            make_delivery(endpoint)
    lonely = make_endpoint()
    make_delivery(lonely)
    assert of(claim(limit=2), lonely) == 1


@pytest.mark.django_db
def test_claim_without_group_is_as_before():
    endpoint = make_endpoint(failures=9)
    for _ in range(6):
        make_delivery(endpoint)
    rows = claim(None, per_workspace=5)
    assert len(rows) == 5
    assert {(row.lease_token, row.attempts) for row in rows} == {(1, 1)}
    assert len({row.pk for row in rows}) == 5


@pytest.mark.django_db
def test_nothing_due_and_no_limit():
    endpoint = make_endpoint()
    make_delivery(endpoint, wake_at=timezone.now() + timedelta(hours=1))
    assert claim() == []
    assert claim(limit=0) == []


@pytest.mark.django_db
def test_taken_meanwhile_picks_again(monkeypatch):
    endpoint = make_endpoint()
    for _ in range(6):
        make_delivery(endpoint)
    assert len(claim(limit=3)) == 3
    real, counts = due._in_hand, []

    def stale_at_first(*args):
        counts.append(real(*args))
        # The first count, without the lock, saw none in hand; the one under the lock sees the truth.
        return counts[-1] - counts[-1] if len(counts) == 1 else counts[-1]

    monkeypatch.setattr(due, "_in_hand", stale_at_first)
    assert len(claim(limit=4)) == 1


@pytest.mark.django_db
def test_full_meanwhile_ends_empty_handed(monkeypatch):
    endpoint = make_endpoint()
    for _ in range(6):
        make_delivery(endpoint)
    assert len(claim()) == 4
    real, calls = due._in_hand, []

    def stale_without_lock(*args):
        calls.append(1)
        return due.Counter() if len(calls) % 2 else real(*args)

    monkeypatch.setattr(due, "_in_hand", stale_without_lock)
    assert claim() == []
    assert len(calls) == 2 * due.CLAIM_TRIES


@pytest.mark.django_db(transaction=True)
def test_slots_are_exact_however_many_claim_at_once():
    """Straight at `claim()`, past the lock within one process: as many processes would."""
    endpoints = [make_endpoint() for _ in range(3)]
    for endpoint in endpoints:
        for _ in range(20):
            make_delivery(endpoint)
    start, rows, lock = threading.Barrier(8), [], threading.Lock()

    def work():
        start.wait()
        for _ in range(6):
            got = claim(limit=2)
            with lock:
                rows.extend(got)
        close_old_connections()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [of(rows, endpoint) for endpoint in endpoints] == [4, 4, 4]
    assert len({row.pk for row in rows}) == 12


# --- With real sockets -----------------------------------------------------------------------------------------------


def send_one(endpoint: Endpoint) -> float:
    """Dispatch one event to the endpoint's workspace, as the dispatcher would; the moment of it."""
    event = make_event(endpoint.workspace_id)
    started = monotonic()
    write_deliveries(endpoint.workspace_id, [event])
    return started


@pytest.mark.django_db(transaction=True)
def test_hanging_endpoint_delays_no_other(receiver, at_work):
    receiver.answers["/hangs"] = receiver.hang
    workspace = make_workspace()
    hanging = make_endpoint(workspace, url=f"{receiver.url}/hangs")
    write_deliveries(workspace.pk, [make_event(workspace) for _ in range(100)])
    at_work()
    receiver.wait_for("/hangs", 4)
    threading.Event().wait(1.5)
    sibling = make_endpoint(workspace, url=f"{receiver.url}/sibling", events=["generated.ready"])
    event = make_event(workspace, "generated.ready")
    Endpoint.everywhere.filter(pk=hanging.pk).update(events=["raw.ingested"])
    started = monotonic()
    write_deliveries(workspace.pk, [event])
    foreign = make_endpoint(url=f"{receiver.url}/foreign")
    foreign_started = send_one(foreign)
    waits = (
        receiver.wait_for("/sibling") - started,
        receiver.wait_for("/foreign") - foreign_started,
    )
    # Behind those that hang it would be 15 s.
    assert max(waits) < 12
    assert sibling.pk != foreign.pk
    assert receiver.open_most["/hangs"] == 4
    assert len(receiver.at("/hangs")) == 4


@pytest.mark.django_db(transaction=True)
def test_many_dead_endpoints_delay_no_healthy_one(receiver, at_work):
    receiver.answers["/hangs"] = receiver.hang
    workspace = make_workspace()
    for _ in range(12):
        dead = make_endpoint(
            workspace,
            url=f"{receiver.url}/hangs",
            status="degraded",
            failures=6,
            failing_since=timezone.now(),
            events=["raw.ingested"],
        )
        for _ in range(3):
            make_delivery(dead)
    at_work()
    receiver.wait_for("/hangs", 3)
    sibling = make_endpoint(workspace, url=f"{receiver.url}/sibling", events=["generated.ready"])
    started = monotonic()
    write_deliveries(workspace.pk, [make_event(workspace, "generated.ready")])
    foreign = make_endpoint(url=f"{receiver.url}/foreign")
    foreign_started = send_one(foreign)
    waits = (
        receiver.wait_for("/sibling") - started,
        receiver.wait_for("/foreign") - foreign_started,
    )
    # Behind those that hang it would be 15 s.
    assert max(waits) < 12
    assert sibling.pk != foreign.pk
    # The lane of the failing has four hands, and three of them at most for one workspace.
    assert receiver.open_most["/hangs"] == 3


@pytest.mark.django_db(transaction=True)
def test_hanging_endpoint_is_soon_probed_one_at_a_time(monkeypatch, receiver, at_work):
    monkeypatch.setattr(limits, "WEBHOOK_TIMEOUT_SECONDS", 1)
    receiver.answers["/hangs"] = receiver.hang
    endpoint = make_endpoint(url=f"{receiver.url}/hangs")
    write_deliveries(endpoint.workspace_id, [make_event(endpoint.workspace_id) for _ in range(20)])
    started = monotonic()
    at_work()
    receiver.wait_for("/hangs", 7)
    moments = [one.at - started for one in receiver.at("/hangs")]
    # Four at once, and from the first failure on one after the other.
    assert moments[3] - moments[0] < 1
    gaps = [later - earlier for earlier, later in pairwise(moments[4:7])]
    assert all(gap > 0.9 for gap in gaps)
    endpoint.refresh_from_db()
    assert endpoint.status == "degraded"


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_hundred_events_of_a_working_endpoint_go_through(receiver, at_work):
    endpoint = make_endpoint(url=f"{receiver.url}/in")
    write_deliveries(endpoint.workspace_id, [make_event(endpoint.workspace_id) for _ in range(100)])
    at_work()
    receiver.wait_for("/in", 100, seconds=30)
    until = monotonic() + 30
    while Delivery.everywhere.filter(status="pending").exists() and monotonic() < until:
        threading.Event().wait(0.05)
    assert Delivery.everywhere.filter(status="delivered").count() == 100
    assert len(receiver.at("/in")) == 100
    assert receiver.open_most["/in"] <= 4
