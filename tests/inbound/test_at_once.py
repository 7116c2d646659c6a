"""Several tries of one delivery at the same moment, and a replay while the raw item is deleted."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection
from django.utils import timezone

from accounts import workspaces
from pipeline.ingest import collect, erase_raw_item
from pipeline.ingest.inbound_deliveries import receive as taking
from pipeline.ingest.inbound_deliveries import secrets, try_and_replay
from pipeline.models import InboundDelivery, RawItem

pytestmark = pytest.mark.django_db(transaction=True)
TRIES = 4


@pytest.fixture
def source():
    workspace = workspaces.create("Inbound")
    workspaces.whitelist(workspace, actor="operator")
    workspace.refresh_from_db()
    return secrets.register(workspace, collect.SourceSettings(type="webhook")).source


def at_once(acts):
    barrier = Barrier(len(acts))

    def one(act):
        barrier.wait(30)
        try:
            return act()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(acts)) as threads:
        return [done.result(60) for done in [threads.submit(one, act) for act in acts]]


def receive(source, key):
    body = json.dumps({"external_id": "7", "title": "The ferry leaves earlier"}).encode()
    headers = {"content-type": "application/json", **({"idempotency-key": key} if key else {})}
    return taking.receive(source, taking.IncomingDelivery(body, headers), now=timezone.now())


@pytest.mark.parametrize(("key", "rows"), [("k", 1), (None, TRIES)])
def test_tries_at_once_make_one_item(source, key, rows):
    outcomes = [one.outcome for one in at_once([lambda: receive(source, key)] * TRIES)]

    assert sorted(outcomes) == ["duplicate"] * (TRIES - 1) + ["new"]
    assert RawItem.everywhere.count() == 1
    assert InboundDelivery.everywhere.count() == rows
    # Its page says when it last brought something.
    source.refresh_from_db()
    assert source.last_new_at is not None
    if key:
        assert InboundDelivery.everywhere.get().repeats == TRIES - 1


def test_replays_and_the_deletion_of_what_they_meet_dont_block_each_other(source):
    delivery = receive(source, "k").delivery
    raw = RawItem.everywhere.get()

    def replayed():
        try:
            return try_and_replay.replay(delivery, now=timezone.now()).outcome
        except taking.AppError as error:
            return error.detail[0].code

    *outcomes, _ = at_once([replayed] * 3 + [lambda: erase_raw_item.erase(raw, now=timezone.now())])
    assert set(outcomes) <= {"duplicate", "body_gone"}
    row = InboundDelivery.everywhere.get()
    assert row.body is None
    assert RawItem.everywhere.get().deleted_at is not None
