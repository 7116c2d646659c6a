"""One thread of a process claims for all hands of a kind that shares its claims."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from uuid import uuid4

import pytest

from config.ground import hands

HANDS = 3
WORKSPACE = uuid4()


def until(is_so, seconds=20):
    ends = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < ends
        time.sleep(0.005)


class Table:
    """Rows that are due, and what was claimed of them."""

    def __init__(self, count):
        self.due = deque(
            SimpleNamespace(pk=number, workspace_id=WORKSPACE, attempts=1, sleep_until=self.back)
            for number in range(count)
        )
        self.claims = []
        self.returned = 0

    def claim(self, _model, *, limit, **_options):
        taken = [self.due.popleft() for _ in range(min(limit, len(self.due)))]
        self.claims.append(len(taken))
        return taken

    def back(self, *_given, **_changes):
        self.returned += 1


class Work:
    def __init__(self):
        self.done, self.now, self.most = [], 0, 0
        self.go = threading.Event()
        self.lock = threading.Lock()

    def __call__(self, row):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        self.go.wait(20)
        with self.lock:
            self.now -= 1
            self.done.append(row.pk)


@pytest.fixture
def kind(monkeypatch):
    work = Work()
    kind = hands.Kind(
        "kept",
        model=None,
        work=work,
        give_up=None,
        lease=timedelta(seconds=1),
        side_by_side=HANDS,
        per_workspace=HANDS,
        batch=HANDS,
        own_threads=True,
        shares_claims=True,
    )
    monkeypatch.setitem(hands._kinds, "kept", kind)
    monkeypatch.setattr(hands, "KEEPER_STAYS_SECONDS", 0.2)
    monkeypatch.setattr(hands, "KEEPER_PAUSE_SECONDS", 0.01)
    yield kind
    work.go.set()
    hands.rest(5)
    hands._resting.clear()


@pytest.fixture
def table(monkeypatch):
    table = Table(40)
    monkeypatch.setattr(hands.due, "claim", table.claim)
    monkeypatch.setattr(hands.due, "database_now", lambda: None)
    return table


def ended():
    return "kept" not in hands._keepers and hands._looking["kept"] == 0 and not hands._own_threads


def test_every_row_is_worked_once_by_no_more_hands_than_there_are(kind, table):
    hands.serve("kept")
    until(lambda: kind.work.now == HANDS)
    # However often it is asked for, there is one keeper.
    for _ in range(10):
        hands.serve("kept")
    kind.work.go.set()
    until(ended)
    assert sorted(kind.work.done) == list(range(40))
    assert kind.work.most == HANDS
    assert sum(hands._in_hand["kept"].values()) == 0


def test_what_is_claimed_beyond_the_hands_stays_little(kind, table):
    hands.serve("kept")
    until(lambda: kind.work.now == HANDS)
    time.sleep(0.1)
    assert sum(table.claims) == HANDS + 1


def test_quick_hands_have_as_much_claimed_ahead_as_they_work_in_a_moment(kind, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(hands.time, "monotonic", lambda: clock[0])
    ahead = hands.Ahead(kind)
    clock[0] += 0.5
    assert ahead.rows() == max(1, HANDS // 4)
    hands._worked["kept"] += 200
    clock[0] += 0.5
    assert ahead.rows() == round(400 * hands.SHELF_SECONDS)
    # Their last moment counts, not what was before: who hangs now holds back little.
    clock[0] += 0.5
    assert ahead.rows() == max(1, HANDS // 4)


def test_nothing_is_claimed_while_the_shelf_lasts(kind, table):
    claimed = []
    kind = replace(kind, batch=100)
    hands._shelves["kept"] = deque()
    for _ in range(3):
        before = len(table.claims)
        hands._fill_shelf(kind, 30)
        claimed.append(len(table.claims) - before)
    # Hands have begun what they can; more than half of what is ahead lies there still.
    assert claimed == [1, 0, 0]
    kind.work.go.set()
    until(lambda: len(kind.work.done) == HANDS + 30)


def test_a_keeper_leaves_when_nothing_is_due_and_the_next_ask_brings_another(kind, table):
    table.due.clear()
    hands.serve("kept")
    until(ended)
    assert table.claims == [0]
    table.due.extend(Table(1).due)
    kind.work.go.set()
    hands.serve("kept")
    until(ended)
    assert kind.work.done == [0]


def test_an_ask_that_comes_while_the_keeper_leaves_is_heard(kind, table, monkeypatch):
    table.due.clear()
    leaves, asked = hands._leaves, []

    def late(kind, woken):
        if not asked:
            asked.append(hands._wake_keeper(kind))
            table.due.extend(Table(1).due)
        return leaves(kind, woken)

    monkeypatch.setattr(hands, "_leaves", late)
    kind.work.go.set()
    hands.serve("kept")
    until(ended)
    assert (asked, kind.work.done) == ([True], [0])


def test_rest_gives_back_what_no_hand_has_begun(kind, table):
    hands.serve("kept")
    until(lambda: kind.work.now == HANDS and sum(table.claims) == HANDS + 1)
    assert hands.rest(0.05) is False
    assert table.returned == 1
    kind.work.go.set()
    assert hands.rest(5) is True
    assert len(kind.work.done) == HANDS
    assert sum(hands._in_hand["kept"].values()) == 0


def test_a_database_that_is_away_ends_the_keeper_and_no_more(kind, table, monkeypatch):
    def away(*_given, **_options):
        message = "away"
        raise RuntimeError(message)

    monkeypatch.setattr(hands.due, "claim", away)
    hands.serve("kept")
    until(ended)
    monkeypatch.setattr(hands.due, "claim", table.claim)
    kind.work.go.set()
    hands.serve("kept")
    until(ended)
    assert len(kind.work.done) == 40
