"""Tasks of an endpoint: no more than its slots in all processes together, and no endpoint waits for another's."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from datetime import timedelta
from itertools import pairwise
from time import monotonic

import pytest
from django.db import close_old_connections, connection, transaction
from django.utils import timezone

from config.core import dispatcher, jobs, work_leases, work_queue
from tests.webhooks.factories import make_delivery, make_endpoint, make_event, make_workspace
from webhooks import limits
from webhooks.deliver import take
from webhooks.fan_out import write_deliveries
from webhooks.models import Delivery, Endpoint
from webhooks.tasks import FAILING, HEALTHY


def queue(
    job: jobs.HolderJob = HEALTHY, *, room: int = 100, per_workspace: int = 100
) -> list[work_leases.QueuedTask]:
    """Tasks that the dispatcher would queue with so much room."""
    alone = transaction.atomic() if connection.vendor == "postgresql" else nullcontext()
    with alone:
        work_leases.lock()
        now = work_queue.database_now()
        found = dispatcher._claim_holders(
            job, room, work_leases.read_load(now), now, per_workspace=per_workspace
        )
        if found:
            work_leases.add(job.name, job.queue, found, now=now)
    return found


def of(tasks: list[work_leases.QueuedTask], endpoint: Endpoint) -> int:
    return sum(task.holder == endpoint.pk for task in tasks)


@pytest.mark.django_db
def test_four_lanes_of_one_endpoint_and_no_more_until_one_ends():
    endpoint = make_endpoint()
    for _ in range(16):
        make_delivery(endpoint)
    tasks = queue()
    assert len(tasks) == 4
    assert queue() == []
    work_leases.end(tasks[0].subject, tasks[0].token)
    assert of(queue(), endpoint) == 1


@pytest.mark.django_db
def test_no_more_lanes_than_deliveries_are_due():
    endpoint = make_endpoint()
    make_delivery(endpoint)
    make_delivery(endpoint)
    make_delivery(endpoint, wake_at=timezone.now() + timedelta(hours=1))
    assert len(queue()) == 2
    # Those that are queued will take them.
    assert queue() == []


@pytest.mark.django_db
def test_a_message_that_was_lost_frees_its_lane():
    endpoint = make_endpoint()
    for _ in range(9):
        make_delivery(endpoint)
    assert len(queue()) == 4
    later = timezone.now() + 2 * work_leases.QUEUED
    assert (
        len(dispatcher._claim_holders(HEALTHY, 9, work_leases.read_load(later), later, per_workspace=9)) == 4
    )


@pytest.mark.django_db
def test_what_a_dead_worker_had_counts_no_more():
    endpoint = make_endpoint()
    for _ in range(9):
        make_delivery(endpoint)
    work_leases.start_worker()
    work_leases.note_worker("one", {"webhooks": 16})
    now = work_queue.database_now()
    for task in queue():
        assert work_leases.begin(task.subject, task.token, now=now)
    assert queue() == []
    later = now + work_leases.ALIVE
    assert (
        len(dispatcher._claim_holders(HEALTHY, 9, work_leases.read_load(later), later, per_workspace=9)) == 4
    )


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
def test_one_lane_while_it_fails(changes, healthy, failing):
    endpoint = make_endpoint(**changes)
    for _ in range(6):
        make_delivery(endpoint)
    assert (len(queue(HEALTHY)), len(queue(FAILING))) == (healthy, failing)


@pytest.mark.django_db
def test_lanes_that_still_run_when_it_begins_to_fail_count_as_the_probe():
    endpoint = make_endpoint()
    for _ in range(6):
        make_delivery(endpoint)
    tasks = queue()
    Endpoint.everywhere.update(failures=1)
    assert queue(FAILING) == []
    for task in tasks:
        work_leases.end(task.subject, task.token)
    assert len(queue(FAILING)) == 1


@pytest.mark.django_db
def test_oldest_first_within_an_endpoint():
    endpoint = make_endpoint()
    now = work_queue.database_now()
    rows = [make_delivery(endpoint, wake_at=now - timedelta(seconds=ago)) for ago in (3, 9, 5)]
    assert [take(endpoint.pk, limit=1)[0].pk for _ in range(3)] == [rows[1].pk, rows[2].pk, rows[0].pk]
    assert take(endpoint.pk, limit=1) == []


@pytest.mark.django_db
def test_busy_endpoint_leaves_the_others_their_turn():
    workspace = make_workspace()
    flooded, quiet, foreign = make_endpoint(workspace), make_endpoint(workspace), make_endpoint()
    for _ in range(50):
        make_delivery(flooded)
    make_delivery(quiet)
    make_delivery(foreign)
    tasks = [task for _ in range(6) for task in queue(room=1)]
    assert (of(tasks, flooded), of(tasks, quiet), of(tasks, foreign)) == (4, 1, 1)


@pytest.mark.django_db
def test_workspace_with_many_endpoints_is_held_to_its_share():
    workspace = make_workspace()
    for _ in range(5):
        endpoint = make_endpoint(workspace)
        for _ in range(4):
            make_delivery(endpoint)
    assert len(queue(per_workspace=7)) == 7
    assert queue(per_workspace=7) == []
    assert len(queue(per_workspace=9)) == 2


@pytest.mark.django_db
def test_limit_goes_round_the_workspaces():
    crowded = make_workspace()
    for _ in range(4):
        endpoint = make_endpoint(crowded)
        for _ in range(4):
            make_delivery(endpoint)
    lonely = make_endpoint()
    make_delivery(lonely)
    assert of(queue(room=2), lonely) == 1


@pytest.mark.django_db(transaction=True)
def test_lanes_are_exact_however_many_dispatchers_there_are():
    endpoints = [make_endpoint() for _ in range(3)]
    for endpoint in endpoints:
        for _ in range(20):
            make_delivery(endpoint)
    start, tasks, lock = threading.Barrier(8), [], threading.Lock()

    def work():
        start.wait()
        for _ in range(6):
            # On SQLite there is one process, in which the dispatcher's own lock counts.
            with dispatcher.claim_lock:
                got = queue(room=2)
            with lock:
                tasks.extend(got)
        close_old_connections()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [of(tasks, endpoint) for endpoint in endpoints] == [4, 4, 4]
    assert len({task.subject for task in tasks}) == 12


# --- With real sockets -----------------------------------------------------------------------------------------------


def send_one(endpoint: Endpoint) -> float:
    """Dispatch one event to the endpoint's workspace, as the dispatcher would; the moment of it."""
    event = make_event(endpoint.workspace_id)
    started = monotonic()
    write_deliveries([event])
    return started


@pytest.mark.django_db(transaction=True)
def test_hanging_endpoint_delays_no_other(receiver, at_work):
    receiver.answers["/hangs"] = receiver.hang
    workspace = make_workspace()
    hanging = make_endpoint(workspace, url=f"{receiver.url}/hangs")
    write_deliveries([make_event(workspace) for _ in range(100)])
    at_work()
    receiver.wait_for("/hangs", 4)
    threading.Event().wait(1.5)
    sibling = make_endpoint(workspace, url=f"{receiver.url}/sibling", events=["generated.ready"])
    event = make_event(workspace, "generated.ready")
    Endpoint.everywhere.filter(pk=hanging.pk).update(events=["raw.ingested"])
    started = monotonic()
    write_deliveries([event])
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
    write_deliveries([make_event(workspace, "generated.ready")])
    foreign = make_endpoint(url=f"{receiver.url}/foreign")
    foreign_started = send_one(foreign)
    waits = (
        receiver.wait_for("/sibling") - started,
        receiver.wait_for("/foreign") - foreign_started,
    )
    # Behind those that hang it would be 15 s.
    assert max(waits) < 12
    assert sibling.pk != foreign.pk
    # Those that fail have four slots, and three of them at most for one workspace.
    assert receiver.open_most["/hangs"] == 3


@pytest.mark.django_db(transaction=True)
def test_hanging_endpoint_is_soon_probed_one_at_a_time(monkeypatch, receiver, at_work):
    monkeypatch.setattr(limits, "WEBHOOK_TIMEOUT_SECONDS", 1)
    receiver.answers["/hangs"] = receiver.hang
    endpoint = make_endpoint(url=f"{receiver.url}/hangs")
    write_deliveries([make_event(endpoint.workspace_id) for _ in range(20)])
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
    write_deliveries([make_event(endpoint.workspace_id) for _ in range(100)])
    at_work()
    receiver.wait_for("/in", 100, seconds=30)
    until = monotonic() + 30
    while Delivery.everywhere.filter(status="pending").exists() and monotonic() < until:
        threading.Event().wait(0.05)
    assert Delivery.everywhere.filter(status="delivered").count() == 100
    assert len(receiver.at("/in")) == 100
    assert receiver.open_most["/in"] <= 4
