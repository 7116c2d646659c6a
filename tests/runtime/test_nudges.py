"""Nudges: bursts become one message, nothing asked for is dropped, and nobody waits for a broker."""

from __future__ import annotations

import os
import threading
from time import monotonic

import pytest

from config.ground import nudges
from config.ground.nudges import Nudges

pytestmark = pytest.mark.timeout(30)


class Broker:
    def __init__(self):
        self.sent, self.is_away, self.may_answer = [], False, threading.Event()
        self.may_answer.set()

    def send(self, kind):
        self.may_answer.wait(10)
        if self.is_away:
            raise ConnectionError("gone")
        self.sent.append(kind)

    def wait_for(self, count, seconds=20):
        until = monotonic() + seconds
        while len(self.sent) < count and monotonic() < until:
            threading.Event().wait(0.005)
        return list(self.sent)


@pytest.fixture
def broker():
    return Broker()


def test_a_nudge_is_sent(broker):
    Nudges(broker.send, apart=60).ask("a")
    assert broker.wait_for(1) == ["a"]


def test_a_burst_becomes_one_message_and_one_more_after_the_look_has_started(broker):
    nudger = Nudges(broker.send, apart=60)
    for _ in range(100):
        nudger.ask("a")
    assert broker.wait_for(2, seconds=0.3) == ["a"]
    nudger.ask("a")
    nudger.started("a")
    assert broker.wait_for(2) == ["a", "a"]


def test_what_is_asked_between_is_gathered_for_the_least_time(broker):
    nudger = Nudges(broker.send, apart=60, least_apart=0.2)
    began = monotonic()
    nudger.ask("a")
    broker.wait_for(1)
    for _ in range(50):
        nudger.started("a")
        nudger.ask("a")
    assert broker.wait_for(2) == ["a", "a"]
    assert monotonic() - began >= 0.2
    assert broker.wait_for(3, seconds=0.3) == ["a", "a"]


def test_kinds_do_not_wait_for_each_other(broker):
    nudger = Nudges(broker.send, apart=60)
    for kind in ("a", "b", "a", "c", "b"):
        nudger.ask(kind)
    assert sorted(broker.wait_for(3)) == ["a", "b", "c"]


def test_a_look_that_is_never_seen_to_start_holds_the_next_one_up_only_for_a_while(broker):
    nudger = Nudges(broker.send, apart=0.2)
    nudger.ask("a")
    assert broker.wait_for(1) == ["a"]
    asked = monotonic()
    nudger.ask("a")
    assert broker.wait_for(2) == ["a", "a"]
    assert monotonic() - asked >= 0.1


def test_asking_does_not_wait_for_a_broker_that_hangs(broker):
    broker.may_answer.clear()
    nudger = Nudges(broker.send, apart=0.01)
    started = monotonic()
    for _ in range(1000):
        nudger.ask("a")
    assert monotonic() - started < 20
    broker.may_answer.set()
    assert broker.wait_for(1)[0] == "a"


def test_what_was_asked_while_the_broker_was_away_is_sent_when_it_is_back(broker, monkeypatch):
    monkeypatch.setattr(nudges, "PAUSE_SECONDS", 0.05)
    broker.is_away = True
    nudger = Nudges(broker.send, apart=0.01)
    nudger.ask("a")
    nudger.ask("b")
    assert broker.wait_for(1, seconds=0.3) == []
    broker.is_away = False
    assert sorted(set(broker.wait_for(2))) == ["a", "b"]


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_a_forked_process_has_a_sender_of_its_own(broker):
    reading, writing = os.pipe()
    nudger = Nudges(lambda kind: os.write(writing, kind.encode()), apart=60)
    nudger.ask("a")
    assert os.read(reading, 1) == b"a"
    child = os.fork()
    if child == 0:
        nudger.ask("b")
        threading.Event().wait(10)
        os._exit(0)
    try:
        assert os.read(reading, 1) == b"b"
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
