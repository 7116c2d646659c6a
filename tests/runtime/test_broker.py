"""Wakes and messages on their way: few messages for many wakes, and nobody waits for a broker that is away."""

from __future__ import annotations

from types import SimpleNamespace
from uuid import uuid4

import pytest
from django.conf import settings

from config import celery
from config.core import work_leases

NOBODY = "redis://127.0.0.1:1/0"
pytestmark = pytest.mark.both_databases


@pytest.fixture
def sent(monkeypatch):
    """What would have been handed to Celery."""
    messages = []
    monkeypatch.setattr(
        celery.app, "send_task", lambda name, *given, **options: messages.append((name, given, options))
    )
    return messages


@pytest.fixture
def broker(sent):
    if not settings.REDIS_URL:
        pytest.skip("needs Redis")
    broker = celery.RedisBroker(settings.REDIS_URL)
    broker._redis.delete("dispatch:wake", "dispatch")
    yield broker
    broker._redis.delete("dispatch:wake", "dispatch")


def test_a_message_names_row_token_and_workspace_in_the_job_s_queue(sent):
    job = SimpleNamespace(name="publish.send_publication", queue="publish")
    row, workspace = uuid4(), uuid4()
    celery.InProcessBroker().send(job, work_leases.QueuedTask(row, 7, owner=workspace))
    ((name, given, options),) = sent
    assert (name, given) == (job.name, ((str(row), 7, None), {"workspace": str(workspace)}))
    # By the worker's clock: one that is a minute ahead must not lose what it is sent.
    assert (options["queue"], options["expires"] >= 60, options["retry"]) == ("publish", True, False)


def test_a_burst_of_wakes_is_one_message(broker, sent):
    for _ in range(50):
        broker.wake()
    assert len(sent) == 1
    broker.rearm_wake()
    broker.wake()
    assert len(sent) == 2


def test_wakes_don_t_pile_up_where_nobody_takes_them(broker, sent):
    broker._redis.lpush("dispatch", *["message"] * celery.MAX_WAITING_WAKES)
    broker.wake()
    assert sent == []


def test_a_wake_in_process_is_one_message_too(sent):
    broker = celery.InProcessBroker()
    for _ in range(50):
        broker.wake()
    assert len(sent) == 1
    broker.rearm_wake()
    broker.wake()
    assert len(sent) == 2


def test_a_broker_that_is_away_is_asked_once_a_second_and_told_once(sent, monkeypatch, caplog):
    broker = celery.RedisBroker(NOBODY)
    asked = []
    ask = broker._redis.pipeline
    monkeypatch.setattr(broker._redis, "pipeline", lambda **options: (asked.append(1), ask(**options))[1])
    for _ in range(20):
        broker.wake()
    assert (len(asked), sent) == (1, [])
    broker._retry_at = 0.0
    broker.wake()
    broker.rearm_wake()
    assert broker.count_waiting(["publish"]) == {}
    assert sum("broker_away" in str(record.msg) for record in caplog.records) == 1


def test_one_client_is_made_for_all_messages_of_a_connection(broker):
    with celery.app.connection_for_write() as connection:
        channel = connection.default_channel
        with channel.conn_or_acquire() as first, channel.conn_or_acquire() as second:
            assert first is second
            assert first.ping()
        channel._disconnect_pools()
        with channel.conn_or_acquire() as anew:
            assert anew is not first
            assert anew.ping()
