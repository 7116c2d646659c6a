"""The kinds that are registered, and hands with their own threads."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from config.ground import hands


def test_kinds():
    there = hands.kinds()
    assert [name for name in there if name.startswith("webhooks.")] == [
        "webhooks.dispatch",
        "webhooks.deliver",
        "webhooks.probe",
        "webhooks.recover",
    ]
    # The claim counts rows in hand by one lease, so both lanes must have the same.
    assert there["webhooks.deliver"].lease == there["webhooks.probe"].lease


@pytest.fixture
def own_kind(monkeypatch):
    kind = hands.Kind(
        "own",
        model=None,
        work=None,
        give_up=None,
        lease=timedelta(seconds=1),
        side_by_side=2,
        own_threads=True,
    )
    monkeypatch.setitem(hands._kinds, "own", kind)
    yield kind
    hands._resting.clear()


def test_serve_works_in_own_threads_and_rest_waits_for_them(monkeypatch, own_kind):
    go, started = threading.Event(), []

    def work(_kind, *, is_first):
        started.append(threading.current_thread().name)
        go.wait(20)
        return 0

    monkeypatch.setattr(hands, "_work_some", work)
    for _ in range(5):
        hands.serve("own")
    while len(started) < 2:
        threading.Event().wait(0.01)
    threading.Event().wait(0.05)
    assert started == ["hand-own"] * 2
    assert hands.rest(0.01) is False
    hands.serve("own")
    go.set()
    assert hands.rest(5) is True
    assert len(started) == 2
    assert hands._own_threads == set()


def test_rest_may_come_while_a_thread_is_about_to_start(monkeypatch, own_kind):
    start, said = threading.Thread.start, []
    rest = threading.Thread(target=lambda: said.append(hands.rest(5)))

    def late(thread):
        if thread.name == "hand-own":
            start(rest)
            threading.Event().wait(0.1)
        start(thread)

    monkeypatch.setattr(hands, "_work_some", lambda _kind, *, is_first: 0)
    monkeypatch.setattr(threading.Thread, "start", late)
    hands.serve("own")
    rest.join(10)
    assert said == [True]


def test_serve_logs_what_fails_in_its_thread(monkeypatch, own_kind):
    def fail(_kind, *, is_first):
        raise ConnectionError("The database is away.")

    monkeypatch.setattr(hands, "_work_some", fail)
    hands.serve("own")
    assert hands.rest(5) is True
    assert hands._looking["own"] == 0


def test_serve_of_another_kind_looks_at_once(monkeypatch):
    looked = []
    monkeypatch.setattr(hands, "look", looked.append)
    hands.serve("webhooks.dispatch")
    assert looked == ["webhooks.dispatch"]
