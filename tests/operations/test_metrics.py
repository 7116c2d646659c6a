"""/metrics: who sees it, and what it says."""

from __future__ import annotations

import multiprocessing
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from unittest import mock

import pytest
from django.db import DatabaseError, InterfaceError, OperationalError, connection

from accounts import workspaces
from config import server, web_start_time
from config.core import counters, jobs, states, task_runner
from config.operations import metric_counters, metrics
from pipeline.models import Source
from tests.documents.text import read, section
from tests.factories import UserFactory
from tests.webhooks.factories import NOON, claimed, make_delivery, make_endpoint, make_event, make_sent
from webhooks import results
from webhooks.models import Delivery

pytestmark = pytest.mark.django_db

LINE = re.compile(r'(?:# (?:HELP|TYPE) .+|[a-z_]+(?:\{[a-z_]+="[a-z_.]+"\})? [0-9.e+-]+)')
"""A line of the text format: a comment, or a metric with at most one label, whose value has nothing to escape."""


@pytest.fixture(autouse=True)
def _ground(settings):
    settings.METRICS_TOKEN = "m" * 32
    settings.REDIS_URL = ""


def ask(client, token="m" * 32):
    return client.get("/metrics", headers={"Authorization": f"Bearer {token}"})


def values(response):
    lines = response.content.decode().splitlines()
    unreadable = [line for line in lines if not LINE.fullmatch(line)]
    assert unreadable == [], "Prometheus can't read these, or they have what `_series` doesn't escape"
    return dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))


@pytest.mark.parametrize("token", ["", "wrong", "m" * 31])
def test_others_are_told_that_it_is_not_there(client, token):
    assert ask(client, token).status_code == 404
    assert client.get("/metrics").status_code == 404


def test_without_the_setting_no_token_opens_it(client, settings):
    settings.METRICS_TOKEN = ""
    assert ask(client, "").status_code == 404
    assert ask(client, "None").status_code == 404


@pytest.mark.parametrize(("is_staff", "status"), [(True, 200), (False, 404)])
def test_staff_who_are_logged_in_see_it(client, is_staff, status):
    client.force_login(UserFactory(email="op@example.test", is_staff=is_staff))
    assert client.get("/metrics").status_code == status


def test_it_says_what_waits_and_what_is_dead(client):
    workspace = workspaces.create("Alice's newsroom")
    long_ago = datetime.now(UTC) - timedelta(seconds=90)
    Source.everywhere.create(workspace=workspace, name="Late", type="rss", wake_at=long_ago)
    gone = Source(workspace=workspace, name="Gone", type="rss")
    gone.status = "gone"
    gone.save(force_insert=True)
    answer = ask(client)
    assert answer["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    told = values(answer)
    assert told['pipeline_due_rows{kind="ingest.poll_source"}'] == "1"
    assert 90 <= float(told['pipeline_oldest_due_seconds{kind="ingest.poll_source"}']) < 120
    assert told['pipeline_dead_rows{kind="sources"}'] == "1"
    assert told['pipeline_late_seconds{kind="publications"}'] == "0.0"
    assert told["pipeline_overdue_publications"] == "0"
    assert (told["pipeline_database_up"], told["pipeline_stopped"]) == ("1", "0")


def test_depth_is_what_waits_for_later_too_and_events_that_nobody_has_read(client):
    workspace = workspaces.create("Alice's newsroom")
    now = datetime.now(UTC)
    for wake_at in (now - timedelta(seconds=5), now + timedelta(hours=5), None):
        Source.everywhere.create(workspace=workspace, name="Feed", type="rss", wake_at=wake_at)
    make_event(workspace, created_at=now - timedelta(seconds=40))
    told = values(ask(client))
    assert told['pipeline_waiting_rows{kind="ingest.poll_source"}'] == "2"
    assert told['pipeline_due_rows{kind="ingest.poll_source"}'] == "1"
    for reader in ("webhooks.fan_out", "analytics.count_events"):
        assert told[f'pipeline_waiting_rows{{kind="{reader}"}}'] == "1"
        assert 40 <= float(told[f'pipeline_oldest_due_seconds{{kind="{reader}"}}']) < 70


def test_every_kind_of_row_has_its_queue_and_its_counters(client):
    told = values(ask(client))
    kinds = jobs.jobs()
    # Lanes of deliveries share their rows; a run's are told apart by its queue.
    rows = {
        (kind.model, *getattr(kind, "where", {}).values())
        for kind in kinds.values()
        if not isinstance(kind, jobs.BatchJob)
    }
    assert sum(name.startswith("pipeline_waiting_rows") for name in told) == len(rows) + 2
    for name in kinds:
        for counter in (
            "attempts",
            "work_failed",
            "given_up",
            "claims_lost",
            "overdue_tasks",
            "work_seconds",
        ):
            assert told[f'pipeline_{counter}_total{{kind="{name}"}}'] == "0.0"


def test_what_hands_did_is_summed_over_processes(client):
    counters.drain()
    kind = jobs.jobs()["webhooks.recover_deliveries"]
    good, faulty, crashing = (SimpleNamespace(pk=n, workspace_id=n, attempts=1) for n in range(3))
    crashing.attempts = kind.max_attempts + 1
    own = replace(kind, work=lambda row: 1 / row.pk, give_up=lambda row: None)
    for row in (good, faulty, crashing):
        task_runner.work_row(own, row)
    # Another process.
    metric_counters.write_counters()
    task_runner.work_row(own, SimpleNamespace(pk=7, workspace_id=7, attempts=1))
    metric_counters.write_counters()
    metric_counters.write_counters()
    told = values(ask(client))
    assert {
        name: told[f'pipeline_{name}_total{{kind="webhooks.recover_deliveries"}}']
        for name in ("attempts", "work_failed", "given_up", "claims_lost")
    } == {"attempts": "4.0", "work_failed": "1.0", "given_up": "1.0", "claims_lost": "0.0"}


def test_a_lost_claim_is_counted_for_its_kind(client):
    counters.drain()
    endpoint = make_endpoint()
    delivery = make_delivery(endpoint)

    def work(row):
        Delivery.everywhere.filter(pk=row.pk).update(lease_token=99)
        with pytest.raises(states.Overtaken):
            states.move(row, "failed", under_lease=True)
        assert row.sleep_until(None) is False

    job = replace(jobs.jobs()["webhooks.recover_deliveries"], work=work)
    with counters.count_for_kind(job.name):
        task_runner.work_row(job, delivery)
    metric_counters.write_counters()
    assert values(ask(client))['pipeline_claims_lost_total{kind="webhooks.recover_deliveries"}'] == "2.0"


def test_attempts_of_webhooks_and_their_first_wait(client):
    counters.drain()
    endpoint = make_endpoint()
    for status in (200, 500):
        # As it is dispatched.
        made = NOON - timedelta(seconds=3)
        delivery = claimed(make_delivery(endpoint, created_at=made, due_at=made))
        results.record_result(delivery, make_sent(status))
    metric_counters.write_counters()
    told = values(ask(client))
    assert told['pipeline_webhook_attempts_total{outcome="delivered"}'] == "1.0"
    assert told['pipeline_webhook_attempts_total{outcome="failed"}'] == "1.0"
    assert told["pipeline_webhook_first_wait_seconds_count"] == "2.0"
    assert float(told["pipeline_webhook_first_wait_seconds_sum"]) == pytest.approx(6)


def test_endpoints_by_state(client):
    for changes in (
        {},
        {"status": "degraded"},
        {"status": "disabled"},
        {"is_on": False},
        {"deleted_at": NOON},
    ):
        make_endpoint(**changes)
    told = values(ask(client))
    states_of = ("active", "degraded", "disabled", "paused")
    assert [told[f'pipeline_webhook_endpoints{{state="{one}"}}'] for one in states_of] == ["1"] * 4


@pytest.mark.parametrize("error", [DatabaseError, InterfaceError])
def test_tallies_wait_while_the_database_is_away(monkeypatch, error):
    counters.drain()
    counters.add("attempts", "webhooks.deliver_to_endpoint", 3)

    class Away:
        vendor = "none"

        def cursor(self):
            raise error("away")

    monkeypatch.setattr(metric_counters, "connection", Away())
    metric_counters.write_counters()
    assert counters.drain() == {("attempts", "webhooks.deliver_to_endpoint"): 3}


def test_every_metric_is_documented(client):
    named = {
        line.split()[2] for line in ask(client).content.decode().splitlines() if line.startswith("# TYPE")
    }
    text = section(read("running.md"), "## Metrics")
    assert {name for name in named if f"`{name}" not in text} == set(), (
        "Say in docs/running.md what they count"
    )


WITHOUT_DATABASE = {
    "pipeline_database_up",
    "pipeline_broker_up",
    "process_start_time_seconds",
    "process_resident_memory_max_bytes",
    "process_threads",
}


@pytest.mark.parametrize("error", [OperationalError, InterfaceError])
def test_a_database_that_is_away_is_told(client, monkeypatch, error):
    monkeypatch.setattr(connection, "cursor", mock.Mock(side_effect=error("away")))
    answer = ask(client)
    monkeypatch.undo()
    told = values(answer)
    assert (answer.status_code, set(told), told["pipeline_database_up"]) == (200, WITHOUT_DATABASE, "0")


def test_a_database_that_goes_away_meanwhile_is_told(client, monkeypatch):
    monkeypatch.setattr(metrics.queue_stats, "dead_counts", mock.Mock(side_effect=OperationalError("away")))
    told = values(ask(client))
    assert (set(told), told["pipeline_database_up"]) == (WITHOUT_DATABASE, "0")


def test_time_in_which_a_delivery_was_held_is_no_wait(client):
    counters.drain()
    let_go = make_delivery(make_endpoint(), created_at=NOON - timedelta(days=2))
    Delivery.everywhere.filter(pk=let_go.pk).update(due_at=NOON - timedelta(seconds=2))
    results.record_result(claimed(Delivery.everywhere.get(pk=let_go.pk)), make_sent(200))
    metric_counters.write_counters()
    assert float(values(ask(client))["pipeline_webhook_first_wait_seconds_sum"]) == pytest.approx(2)


def _tell(asks, told):
    while asks.get(timeout=30):
        told.put(web_start_time.newest())


def test_all_web_processes_say_the_same_start():
    """Two scrapes that two processes answer are no restart; a worker that is forked anew is one."""
    context = multiprocessing.get_context("fork")
    pairs = [(context.Queue(), context.Queue()) for _ in range(2)]
    processes = [context.Process(target=_tell, args=pair) for pair in pairs]

    def ask_all():
        for asks, _ in pairs:
            asks.put(True)
        return {told.get(timeout=30) for _, told in pairs}

    for process in processes:
        server.options(host="127.0.0.1", workers=2)["pre_fork"](None, None)
        process.start()
    (first,) = ask_all()
    assert first == web_start_time.newest()
    server.options(host="127.0.0.1", workers=2)["pre_fork"](None, None)
    (second,) = ask_all()
    assert second > first
    for (asks, _), process in zip(pairs, processes, strict=True):
        asks.put(False)
        process.join(30)
