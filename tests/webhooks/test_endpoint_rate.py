"""The rate of an endpoint: exact over processes, and no reason for another one to wait."""

from __future__ import annotations

import math
import multiprocessing
import threading
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from time import monotonic, sleep

import pytest
from django.db import close_old_connections, connections

from config.core import dispatcher, work_leases, work_queue
from config.core.errors import Invalid
from config.operations import unfinished_restore
from tests.webhooks.factories import make_delivery, make_endpoint, make_event, make_workspace
from webhooks import deliver, endpoint_rate, endpoints, limits
from webhooks.fan_out import write_deliveries
from webhooks.models import Delivery, Endpoint, EndpointPace
from webhooks.tasks import HEALTHY

RATE = endpoint_rate.EndpointRate()


@pytest.fixture(autouse=True)
def the_rate_alone(monkeypatch):
    """What is taken counts as sent at once."""
    monkeypatch.setattr(deliver, "PACE", RATE)


def claim(limit=1000):
    """As the tasks of each endpoint take them."""
    return [
        row
        for pk in Endpoint.everywhere.values_list("pk", flat=True)
        for row in deliver.take(pk, limit=limit)
    ]


@pytest.fixture
def clock(monkeypatch):
    """The clock of the rate, in milliseconds."""
    now = {"at": 1_000_000}
    monkeypatch.setattr(endpoint_rate, "_now_milliseconds", lambda: now["at"])
    return now


def filled(rate, count=50, **changes):
    endpoint = make_endpoint(rate=rate, **changes)
    for _ in range(count):
        make_delivery(endpoint)
    return endpoint


@pytest.mark.django_db
def test_no_second_wherever_it_begins_has_more_than_the_rate(clock):
    filled(5, 40)
    moments = []
    for at in range(0, 3000, 130):
        clock["at"] = 1_000_000 + at
        moments += [at] * len(claim())
    # As many as may be: five in each second.
    assert len(moments) == 15
    assert max(sum(start <= at < start + 1000 for at in moments) for start in range(3000)) == 5


@pytest.mark.django_db
def test_first_of_a_second_counts_until_the_whole_second_is_over(clock):
    filled(2)
    assert len(claim()) == 2
    clock["at"] += 1000
    assert claim() == []
    clock["at"] += 1
    assert len(claim()) == 2


@pytest.mark.django_db
def test_what_was_not_there_to_be_claimed_is_not_counted(clock):
    endpoint = filled(3, 1)
    assert len(claim()) == 1
    for _ in range(5):
        make_delivery(endpoint)
    assert len(claim()) == 2
    assert EndpointPace.everywhere.get().recent == [[1_000_000, 1], [1_000_000, 2]]


@pytest.mark.django_db
def test_a_probe_counts_too(clock):
    endpoint = filled(1)
    assert len(claim()) == 1
    endpoint.failures = 1
    endpoint.save()
    assert claim() == []
    clock["at"] += 1001
    assert len(claim()) == 1


@pytest.mark.django_db
def test_what_may_begin_a_little_later_counts_so_much_longer(clock, monkeypatch):
    monkeypatch.setattr(deliver, "PACE", endpoint_rate.EndpointRate(lasts=0.1))
    filled(2)
    assert len(claim()) == 2
    clock["at"] += 1100
    assert claim() == []
    clock["at"] += 1
    assert len(claim()) == 2


@pytest.mark.django_db
def test_endpoint_that_has_had_its_turns_takes_nobody_s_place(clock):
    workspace = make_workspace()
    flooded = filled(2, workspace=workspace)
    assert len(claim()) == 2
    sibling = make_endpoint(workspace)
    make_delivery(sibling)
    now = work_queue.database_now()
    tasks = dispatcher._claim_holders(
        replace(HEALTHY, pace=RATE), 1, work_leases.read_load(now), now, per_workspace=9
    )
    assert [task.holder for task in tasks] == [sibling.pk]
    assert flooded.pk != sibling.pk


@pytest.mark.django_db
def test_log_of_the_last_second_stays_short(clock):
    filled(2, 60)
    for _ in range(20):
        clock["at"] += 501
        claim()
    assert len(EndpointPace.everywhere.get().recent) <= 3


@pytest.mark.django_db
@pytest.mark.parametrize("rate", [0, -1, 101])
def test_other_rates_are_refused(rate):
    with pytest.raises(Invalid) as caught:
        endpoints.add(make_workspace(), "http://127.0.0.1:9/hook", rate=rate, actor="alice")
    assert [(detail.field, detail.code) for detail in caught.value.detail] == [("rate", "out_of_range")]


@pytest.mark.django_db(transaction=True)
def test_rate_is_exact_however_many_threads_claim():
    endpoint = filled(10, 60)
    moments, lock, began = [], threading.Lock(), monotonic()
    until = began + 2.2

    def work():
        while monotonic() < until:
            got = claim(limit=4)
            at = monotonic()
            with lock:
                moments.extend([at] * len(got))
            sleep(0.005)
        close_old_connections()

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recent = EndpointPace.everywhere.get(endpoint=endpoint).recent
    assert sum(count for _, count in recent) <= 10
    # A burst of ten for each second begun, and never one more.
    assert 11 <= len(moments) <= 10 * math.ceil(monotonic() - began)


def _claim_for(seconds, told):
    """In a process of its own: the database's clock of each claim."""
    connections.close_all()
    until = monotonic() + seconds
    while monotonic() < until:
        before = endpoint_rate._now_milliseconds()
        got = claim(limit=3)
        after = endpoint_rate._now_milliseconds()
        if got:
            told.put((before, after, [str(row.pk) for row in got]))
        sleep(0.002)
    connections.close_all()
    told.put(None)


@pytest.mark.both_databases
@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_rate_is_exact_over_processes():
    filled(20, 200)
    # The threads that open a pool's connections don't live on in a forked process.
    unfinished_restore.refuse_to_start(before_fork=True)
    connections.close_all()
    context = multiprocessing.get_context("fork")
    told = context.Queue()
    workers = [context.Process(target=_claim_for, args=(4.0, told)) for _ in range(4)]
    for worker in workers:
        worker.start()
    seen, ended = [], 0
    while ended < len(workers):
        one = told.get(timeout=60)
        if one is None:
            ended += 1
        else:
            seen.append(one)
    for worker in workers:
        worker.join()
    # Four seconds of twenty, and each row once.
    claimed = [pk for _, _, pks in seen for pk in pks]
    assert len(set(claimed)) == len(claimed)
    assert 80 <= len(claimed) <= 100
    # A claim happened between the two moments: within 999 ms of its latest possible start no more than the
    # rate ended.
    for _, end, _ in seen:
        within = sum(len(pks) for before, after, pks in seen if before >= end and after <= end + 999)
        assert within <= 20


# --- With real sockets -----------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_receiver_sees_the_rate_and_everything(receiver, at_work):
    endpoint = make_endpoint(url=f"{receiver.url}/in", rate=10)
    write_deliveries([make_event(endpoint.workspace_id) for _ in range(35)])
    at_work()
    receiver.wait_for("/in", 35, seconds=30)
    moments = sorted(one.at for one in receiver.at("/in"))
    # 35 at ten a second: the last ones come in the fourth second.
    assert moments[-1] - moments[0] > 2.5
    assert all(later >= earlier for earlier, later in pairwise(moments))
    assert Counter(one.headers["webhook-id"] for one in receiver.at("/in")).most_common(1)[0][1] == 1


@pytest.mark.postgres_if_there
@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_thousand_events_for_one_that_hangs_hold_up_nobody(monkeypatch, receiver, at_work):
    """How soon the others' come is measured by `python -m benchmarks webhooks`."""
    monkeypatch.setattr(limits, "WEBHOOK_TIMEOUT_SECONDS", 55)
    receiver.answers["/hangs"] = lambda: 500 if receiver.let_go.wait(55) else 504
    workspace = make_workspace()
    make_endpoint(workspace, url=f"{receiver.url}/hangs", events=["raw.ingested"])
    write_deliveries([make_event(workspace) for _ in range(1000)])
    others = [
        make_endpoint(workspace, url=f"{receiver.url}/sibling", events=["generated.ready"]),
        make_endpoint(url=f"{receiver.url}/foreign", events=["generated.ready"]),
    ]
    at_work()
    receiver.wait_for("/hangs", limits.WEBHOOK_SLOTS)
    for number in range(100):
        endpoint = others[number % 2]
        write_deliveries([make_event(endpoint.workspace_id, "generated.ready")])
    for path in ("/sibling", "/foreign"):
        receiver.wait_for(path, 50, seconds=50)
    # All of them came while each attempt at the one that hangs was still under way, and those held its slots
    # alone.
    assert len(receiver.at("/hangs")) == receiver.open_now["/hangs"] == limits.WEBHOOK_SLOTS
    assert Delivery.everywhere.filter(event__type="raw.ingested").exclude(status="pending").count() == 0
