"""A batch of which nobody knows whether it arrived: looked for, sent once, and nobody else's touched."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from config.core import work_queue
from pipeline import limits
from pipeline.generate.model import client as model_client
from pipeline.generate.model.metered_client import CALL_LEASE
from pipeline.models import BatchedCall, ModelBatch
from tests.pipeline.generate.batches.steps import (
    HALF,
    OTHER,
    booked,
    lost,
    meanwhile,
    overtake,
    pushed,
    runs,
    work_batches,
    work_runs,
)
from tests.pipeline.steps import NOON, reread
from tests.writers.batches_server import errored
from tests.writers.messages_server import error


def test_batch_whose_answer_was_lost_is_found_and_not_sent_again(workspace, model_server, source, clock):
    pushed(workspace, source)
    work_runs()
    model_server.batches.loses_answers = 1
    work_batches(clock, after=limits.BATCH_GATHER)
    assert ModelBatch.everywhere.get().status == "sending"

    work_batches(clock, after=limits.BATCH_POLL)

    batch = ModelBatch.everywhere.get()
    assert (batch.status, batch.vendor_id, batch.is_found) == ("sent", "msgbatch_1", True)
    model_server.batches.end()
    work_batches(clock, after=limits.BATCH_POLL)
    assert [len(one.requests) for one in model_server.batches.made] == [1]
    assert booked() == [("brief", "batch", "answered", HALF)]


def test_batch_that_never_arrived_is_sent_again_as_it_was(workspace, model_server, source, clock):
    pushed(workspace, source)
    work_runs()
    model_server.refuses_batches = error(529, "overloaded_error")
    work_batches(clock, after=limits.BATCH_GATHER)
    call = BatchedCall.everywhere.get()
    model_server.refuses_batches = None

    work_batches(clock, after=limits.BATCH_POLL)

    assert [[one["custom_id"] for one in batch.requests] for batch in model_server.batches.made] == [
        [call.pk.hex]
    ]
    assert ModelBatch.everywhere.get().status == "sent"


def test_somebody_elses_batch_of_the_same_size_is_not_taken_for_ours(workspace, model_server, source, clock):
    pushed(workspace, source)
    work_runs()
    model_server.refuses_batches = error(529, "overloaded_error")
    work_batches(clock, after=limits.BATCH_GATHER)
    model_server.refuses_batches = None
    [theirs] = [{"custom_id": "theirs", "params": {"model": "x", "messages": []}}]
    model_server.batches.handle("POST", "/v1/messages/batches", {"requests": [theirs]})
    work_batches(clock, after=limits.BATCH_POLL)
    assert ModelBatch.everywhere.get().is_found

    model_server.batches._answer = lambda _one: errored("invalid_request_error")
    model_server.batches.end()
    model_server.batches._answer = model_server._result_of
    work_batches(clock, after=limits.BATCH_POLL)
    work_batches(clock)

    batch = ModelBatch.everywhere.get()
    assert (batch.status, batch.vendor_id, batch.not_ours) == ("sent", "msgbatch_2", ["msgbatch_1"])
    model_server.batches.end()
    work_batches(clock, after=limits.BATCH_POLL)
    assert booked() == [("brief", "batch", "answered", HALF)]


def test_lost_batch_is_sent_again_although_it_fills_the_cap_itself(workspace, model_server, source, clock):
    pushed(workspace, source)
    work_runs()
    workspace.model_cap_micro_usd = BatchedCall.everywhere.get().most_micro_usd
    workspace.save()
    model_server.refuses_batches = error(529, "overloaded_error")
    work_batches(clock, after=limits.BATCH_GATHER)
    model_server.refuses_batches = None

    work_batches(clock, after=limits.BATCH_POLL)

    assert len(model_server.batches.made) == 1


@pytest.mark.django_db(transaction=True)
def test_batch_that_another_hand_has_taken_meanwhile_is_not_sent(workspace, model_server, source, clock):
    pushed(workspace, source)
    lost(clock, model_server)
    meanwhile(model_server, overtake, method="GET")

    work_batches(clock, after=limits.BATCH_POLL)

    assert model_server.batches.made == []
    assert [method for method, _ in model_server.batches.calls] == ["GET"]


def test_lease_is_renewed_before_every_call_to_the_service(
    workspace, model_server, source, clock, monkeypatch
):
    pushed(workspace, source)
    told = []
    send = model_client.AccountClient._load_sdk

    def ready(client):
        batch = ModelBatch.everywhere.get()
        told.append(batch.wake_at - work_queue.database_now())
        ModelBatch.everywhere.update(wake_at=timezone.now())
        return send(client)

    monkeypatch.setattr(model_client.AccountClient, "_load_sdk", ready)
    lost(clock, model_server)
    work_batches(clock, after=limits.BATCH_POLL)
    ModelBatch.everywhere.update(wake_at=timezone.now() + limits.BATCH_POLL)
    model_server.batches.end()
    work_batches(clock, after=limits.BATCH_POLL)

    # Sent; looked up and sent again; asked after and read.
    whole = CALL_LEASE
    assert [whole - timedelta(seconds=20) < one <= whole for one in told] == [True] * 5


def test_batch_that_may_be_somebody_elses_is_not_cancelled(workspace, model_server, source, clock):
    pushed(workspace, source)
    lost(clock, model_server)
    [theirs] = [{"custom_id": "theirs", "params": {"model": "x", "messages": []}}]
    model_server.batches.handle("POST", "/v1/messages/batches", {"requests": [theirs]})
    work_batches(clock, after=limits.BATCH_POLL)
    assert ModelBatch.everywhere.get().is_found
    clock.move_to(NOON + timedelta(hours=4))
    work_runs()

    work_batches(clock, after=limits.BATCH_POLL)

    assert [one.is_cancelled for one in model_server.batches.made] == [False]
    assert not ModelBatch.everywhere.get().is_cancelled


def test_two_lost_batches_of_one_size_are_each_sent_once(workspace, model_server, source, clock):
    """Under the operator's key any workspace's batch is in the list."""
    pushed(workspace, source)
    work_runs()
    model_server.batches.loses_answers = 2
    work_batches(clock, after=limits.BATCH_GATHER)
    first = ModelBatch.everywhere.get()
    ModelBatch.everywhere.update(wake_at=timezone.now() + timedelta(hours=1))
    pushed(workspace, source, external_id="b", title="b", body=f"b {OTHER}")
    work_runs()
    work_batches(clock, after=limits.BATCH_GATHER)
    second = ModelBatch.everywhere.exclude(pk=first.pk).get()

    # The second looks first: what it sees may be the first one's.
    work_batches(clock, after=limits.BATCH_POLL)
    assert (reread(second).status, reread(second).vendor_id) == ("sending", "")
    ModelBatch.everywhere.update(wake_at=timezone.now())
    for _ in range(2):
        work_batches(clock, after=limits.BATCH_POLL)

    assert [reread(one).vendor_id for one in (first, second)] == ["msgbatch_1", "msgbatch_2"]
    model_server.batches.end()
    work_batches(clock, after=limits.BATCH_POLL)
    assert booked() == [("brief", "batch", "answered", HALF)] * 2
    assert len(model_server.batches.made) == 2


def test_found_batch_that_another_one_proves_to_be_its_own_is_looked_for_again(
    workspace, model_server, source, clock
):
    pushed(workspace, source)
    lost(clock, model_server)
    work_batches(clock, after=limits.BATCH_POLL)
    batch = ModelBatch.everywhere.get()
    other = ModelBatch.everywhere.create(
        workspace=workspace,
        is_own_key=False,
        status="sent",
        vendor_id=batch.vendor_id,
        due_at=NOON,
        wake_at=NOON + timedelta(days=1),
    )
    ModelBatch.everywhere.filter(pk=batch.pk).update(is_found=True)

    work_batches(clock, after=limits.BATCH_POLL)

    assert (reread(batch).status, reread(batch).not_ours) == ("sending", [other.vendor_id])


def test_what_is_sent_again_leaves_out_who_has_asked_by_himself(workspace, model_server, source, clock):
    for name in ("a", "b"):
        pushed(workspace, source, external_id=name, title=name, body=f"{name} {OTHER}")
    lost(clock, model_server)
    late, wanted = BatchedCall.everywhere.order_by("pk")
    BatchedCall.everywhere.filter(pk=late.pk).update(is_late=True)

    model_server.batches.loses_answers = 1
    work_batches(clock, after=limits.BATCH_POLL)

    assert [[one["custom_id"] for one in batch.requests] for batch in model_server.batches.made] == [
        [wanted.pk.hex]
    ]
    batch = ModelBatch.everywhere.get()
    assert (batch.size, batch.sizes, reread(late).outcome) == (1, [2], "unsent")
    # Its size is what is looked for.
    work_batches(clock, after=limits.BATCH_POLL)
    assert ModelBatch.everywhere.get().vendor_id == "msgbatch_1"
    assert len(model_server.batches.made) == 1


def test_earlier_sending_that_is_in_the_list_later_is_taken_and_booked_whole(
    workspace, model_server, source, clock
):
    for name in ("a", "b"):
        pushed(workspace, source, external_id=name, title=name, body=f"{name} {OTHER}")
    work_runs()
    model_server.batches.loses_answers = 1
    work_batches(clock, after=limits.BATCH_GATHER)
    hidden = model_server.batches.made[:]
    model_server.batches.made.clear()
    late = BatchedCall.everywhere.order_by("pk").first()
    BatchedCall.everywhere.filter(pk=late.pk).update(is_late=True)
    handle = model_server.batches.handle
    model_server.batches.handle = lambda method, *rest: (0, "") if method == "POST" else handle(method, *rest)
    work_batches(clock, after=limits.BATCH_POLL)
    assert ModelBatch.everywhere.get().sizes == [2]
    model_server.batches.made.extend(hidden)

    work_batches(clock, after=limits.BATCH_POLL)
    model_server.batches.end()
    work_batches(clock, after=limits.BATCH_POLL)

    assert booked() == [("brief", "batch", "answered", HALF)] * 2
    assert reread(late).reply is None


@pytest.mark.parametrize("is_gone", [True, False], ids=["there is no key", "the key is refused"])
def test_lost_batch_is_looked_for_until_the_key_is_there_again(
    workspace, model_server, source, clock, settings, is_gone
):
    pushed(workspace, source)
    work_runs()
    model_server.batches.loses_answers = 1
    work_batches(clock, after=limits.BATCH_GATHER)
    key, settings.ANTHROPIC_API_KEY = settings.ANTHROPIC_API_KEY, "" if is_gone else "another"
    model_server.refuses_batches = error(401, "authentication_error")
    work_batches(clock, after=limits.BATCH_POLL)
    assert ModelBatch.everywhere.get().status == "sending"
    settings.ANTHROPIC_API_KEY, model_server.refuses_batches = key, None

    work_batches(clock, after=limits.BATCH_POLL)
    model_server.batches.end()
    work_batches(clock, after=limits.BATCH_POLL)

    assert booked() == [("brief", "batch", "answered", HALF)]


def test_lost_batch_is_not_looked_for_for_ever(workspace, model_server, source, clock, settings):
    pushed(workspace, source)
    lost(clock, model_server)
    settings.ANTHROPIC_API_KEY = ""

    work_batches(clock, after=limits.BATCH_PATIENCE)

    assert ModelBatch.everywhere.get().status == "ended"


def test_batch_whose_sending_is_refused_ends(workspace, model_server, source, clock):
    pushed(workspace, source)
    work_runs()
    model_server.refuses_batches = error(401, "authentication_error")

    work_batches(clock, after=limits.BATCH_GATHER)

    batch = ModelBatch.everywhere.get()
    assert (batch.status, batch.error["code"]) == ("ended", "model_key_refused")
    assert all(run.wake_at <= timezone.now() for run in runs())
