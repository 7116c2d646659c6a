"""The outbox: beside its change or not at all, without gaps, and never too large."""

from __future__ import annotations

import json
import threading

import pytest
from django.db import connection, transaction

from config.core.api.jsonio import dump
from config.core.ids import encode, uuid7
from pipeline import events
from pipeline.limits import EVENT_BYTES
from pipeline.models import Event, EventPosition
from tests.pipeline import steps
from tests.pipeline.steps import NOON


def note(workspace, number=0, **changes):
    with transaction.atomic():
        given = {"test": False, "data": {"raw_item": {"id": f"raw_{number}"}}, "now": NOON, **changes}
        return events.record("raw.ingested", workspace_id=workspace.pk, **given)


def places(workspace):
    return list(
        Event.everywhere.filter(workspace=workspace).order_by("position").values_list("position", flat=True)
    )


def dispatch_all(*, limit=200):
    given = []
    while events.dispatch_batch(given.extend, limit=limit, now=NOON):
        pass
    return given


# --- Recording -------------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_record_refuses_outside_a_transaction(workspace):
    with pytest.raises(events.OutsideTransaction):
        events.record("raw.ingested", workspace_id=workspace.pk, test=False, data={})
    assert Event.everywhere.count() == 0


@pytest.mark.django_db(transaction=True)
def test_record_is_gone_with_its_change(workspace, woken):
    def undone():
        with transaction.atomic():
            note(workspace)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        undone()
    assert (Event.everywhere.count(), woken) == (0, [])
    note(workspace)
    assert (Event.everywhere.count(), woken) == (1, ["wake"])


def test_record_refuses_a_type_that_nobody_promised(workspace):
    with pytest.raises(LookupError):
        events.record("raw.eaten", workspace_id=workspace.pk, test=False, data={})


def test_record_stores_the_bytes_that_are_signed(workspace):
    event = note(workspace, request="req_12345678")
    assert json.loads(bytes(Event.everywhere.get().body)) == {
        "id": encode("evt", event.pk),
        "type": "raw.ingested",
        "timestamp": "2027-03-01T12:00:00.000Z",
        "workspace": workspace.public_id,
        "data": {"raw_item": {"id": "raw_0"}},
    }
    assert steps.state(event, "request_id", "created_at", "position", "dispatched_at", "counted_at") == {
        "request_id": "req_12345678",
        "created_at": NOON,
        "position": None,
        "dispatched_at": None,
        "counted_at": None,
    }


def shown(workspace, data):
    return json.loads(events.envelope(uuid7(), "generated.ready", workspace.pk, data, NOON))["data"]


def test_envelope_that_fits_is_left_alone(workspace):
    data = {"generated_item": {"id": "gen_1", "body": "x" * 15_000, "content": {"parts": ["y"]}}}
    assert shown(workspace, data) == data


@pytest.mark.parametrize(
    ("item", "cut"),
    [
        ({"body": "x" * 30_000}, ["body"]),
        ({"body": "x" * 12_000, "content": {"parts": ["x" * 12_000]}}, ["body"]),
        ({"body": "x" * 30_000, "content": {"parts": ["x" * 30_000]}}, ["body", "content"]),
        ({"body": "ü" * 11_000}, ["body"]),
        ({"metadata": {"a": "x" * 30_000}}, ["metadata"]),
        # Nothing that is long by nature: the longest goes first, and only as many as it takes.
        ({"media": [{"url": "x" * 2000}] * 20, "title": "t"}, ["media"]),
        (
            {"media": ["x" * 2000] * 8, "publications": [{"error": "x" * 1000}] * 20, "excerpt": "e"},
            ["publications"],
        ),
        ({"media": ["x" * 2000] * 11, "publications": ["x" * 2000] * 12}, ["publications", "media"]),
    ],
)
def test_envelope_over_the_limit_names_what_was_cut_and_stays_under(workspace, item, cut):
    whole = {"id": "gen_1", "status": "ready", "version": 3, "title": "t", **item}
    body = events.envelope(uuid7(), "generated.ready", workspace.pk, {"generated_item": whole}, NOON)
    assert len(body) <= EVENT_BYTES
    left = json.loads(body)["data"]["generated_item"]
    assert left == {**{key: value for key, value in whole.items() if key not in cut}, "truncated": cut}


def test_envelope_of_the_longest_failure_stays_under(workspace):
    long = {"code": "refused", "message": "x" * 30_000}
    data = {
        "generated_item": {
            "id": "gen_1",
            "body": "x" * 9_000,
            "publications": [{"id": "pub_1", "error": long}],
        },
        "publication": {"id": "pub_1", "status": "failed", "error": long},
        "error": long,
        "will_retry": False,
    }
    body = events.envelope(uuid7(), "published.failed", workspace.pk, data, NOON)
    assert len(body) <= EVENT_BYTES
    left = json.loads(body)["data"]
    assert (
        left["publication"]["id"],
        left["publication"]["status"],
        left["error"]["code"],
        left["will_retry"],
    ) == (
        "pub_1",
        "failed",
        "refused",
        False,
    )


def test_envelope_of_a_real_item_with_the_longest_words_stays_under(workspace):
    item = steps.make_items(workspace, metadata={"a": "x" * 15_000}, author="y" * 200)[0]
    assert item.status == "ready"
    assert max(len(bytes(body)) for body in Event.everywhere.values_list("body", flat=True)) <= EVENT_BYTES
    assert len(dump({"a": "x"})) == 9


# --- Dispatching -----------------------------------------------------------------------------------------------------


def test_dispatch_gives_places_without_gaps_to_each_workspace(workspace, charlies):
    mine = [note(workspace, number) for number in range(5)]
    his = [note(charlies, number) for number in range(3)]
    given = dispatch_all(limit=2)
    assert {event.pk for event in given} == {event.pk for event in (*mine, *his)}
    assert (places(workspace), places(charlies)) == ([1, 2, 3, 4, 5], [1, 2, 3])
    assert [event.pk for event in Event.everywhere.filter(workspace=workspace).order_by("position")] == [
        event.pk for event in mine
    ]
    assert list(EventPosition.everywhere.order_by("last").values_list("last", flat=True)) == [3, 5]
    assert set(Event.everywhere.values_list("dispatched_at", flat=True)) == {NOON}
    assert events.dispatch_batch(lambda _: None) == 0


def test_dispatch_that_fails_gives_nothing_away(workspace):
    note(workspace)

    def fail(_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), transaction.atomic():
        events.dispatch_batch(fail)
    assert (places(workspace), Event.everywhere.get().dispatched_at) == ([None], None)
    assert [event.position for event in dispatch_all()] == [1]


@pytest.mark.django_db(transaction=True)
def test_dispatchers_at_once_give_no_place_twice_and_leave_none_out(workspace, charlies, together):
    for number in range(20):
        note(workspace, number)
        note(charlies, number)
    given, lock = [], threading.Lock()

    def write(batch):
        with lock:
            given.extend(event.pk for event in batch)

    def dispatch():
        done = 0
        while count := events.dispatch_batch(write, limit=3):
            done += count
        return done

    results = together(*[dispatch] * 4)
    assert [one for one in results if isinstance(one, Exception)] == []
    assert (places(workspace), places(charlies)) == (list(range(1, 21)), list(range(1, 21)))
    assert sorted(given) == sorted(Event.everywhere.values_list("pk", flat=True))


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(
    connection.vendor == "sqlite", reason="SQLite has one writer: no transaction is overtaken."
)
def test_event_of_a_slow_transaction_is_not_skipped(workspace):
    recorded, go_on = threading.Event(), threading.Event()
    slow = []

    def take_long():
        try:
            with transaction.atomic():
                slow.append(note(workspace, 1).pk)
                recorded.set()
                go_on.wait(10)
        finally:
            connection.close()

    thread = threading.Thread(target=take_long)
    thread.start()
    assert recorded.wait(10)
    quick = note(workspace, 2).pk
    assert slow[0] < quick
    assert [event.pk for event in dispatch_all()] == [quick]
    counted = []
    events.count_batch(lambda batch: counted.extend(event.pk for event in batch))
    go_on.set()
    thread.join()
    assert [(event.pk, event.position) for event in dispatch_all()] == [(slow[0], 2)]
    assert events.count_batch(counted.extend) == 1
    assert places(workspace) == [1, 2]


# --- Counting --------------------------------------------------------------------------------------------------------


def test_count_marks_each_once_and_hands_on_what_was_published(workspace, stage):
    steps.send(steps.promise(steps.make_items(workspace)[0], stage))
    seen = []
    assert events.count_batch(lambda batch: seen.extend(event.type for event in batch), now=NOON) == 3
    assert seen == ["published.success"]
    assert set(Event.everywhere.values_list("counted_at", flat=True)) == {NOON}
    assert events.count_batch(seen.extend) == 0


def test_count_that_fails_marks_nothing(workspace):
    note(workspace)

    def fail(_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), transaction.atomic():
        events.count_batch(fail)
    assert Event.everywhere.get().counted_at is None


@pytest.mark.django_db(transaction=True)
def test_counters_at_once_count_each_event_once(workspace, together):
    for number in range(30):
        with transaction.atomic():
            events.record("published.success", workspace_id=workspace.pk, test=False, data={"n": number})
    seen, lock = [], threading.Lock()

    def write(batch):
        with lock:
            seen.extend(event.pk for event in batch)

    def count():
        while events.count_batch(write, limit=4):
            pass

    assert together(*[count] * 4) == [None] * 4
    assert sorted(seen) == sorted(Event.everywhere.values_list("pk", flat=True))
    assert Event.everywhere.filter(counted_at=None).count() == 0
