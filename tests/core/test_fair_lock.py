"""A lock that nobody waits for much longer than those before him in the queue."""

import threading
import time
from contextlib import ExitStack

import pytest

from config.core.database.sqlite.base import PATIENCE_SECONDS, FairLock

SECONDS = 20.0


@pytest.fixture
def threads():
    """Call it with what a thread of its own does; ends when all of them have."""
    with ExitStack() as ends:

        def start(act):
            thread = threading.Thread(target=act, daemon=True)
            thread.start()
            ends.callback(thread.join, SECONDS)
            return thread

        yield start


def test_one_at_a_time(threads):
    turns, inside, most = FairLock(), [], []

    def act():
        for _ in range(200):
            with turns.turn(SECONDS):
                inside.append(1)
                most.append(len(inside))
                time.sleep(0)
                inside.pop()

    all_threads = [threads(act) for _ in range(8)]
    for thread in all_threads:
        thread.join(SECONDS)
    assert len(most) == 8 * 200
    assert set(most) == {1}


def test_who_waits_is_not_passed_over_by_who_comes_straight_back(threads):
    turns, ends = FairLock(), threading.Event()
    takings = []

    def comes_straight_back():
        while not ends.is_set():
            with turns.turn(SECONDS):
                takings.append(1)
                time.sleep(0.002)

    for _ in range(4):
        threads(comes_straight_back)
    try:
        for _ in range(5):
            before = len(takings)
            assert turns.acquire(SECONDS)
            took = len(takings) - before
            turns.release()
            # Nobody is handed it who came later, once patience is at its end; four were before us at most.
            assert took <= PATIENCE_SECONDS / 0.002 + 5
    finally:
        ends.set()


def test_first_come_first_served(threads):
    turns, order = FairLock(), []
    assert turns.acquire(SECONDS)

    def waits(number):
        with turns.turn(SECONDS):
            order.append(number)

    for number in range(6):
        threads(lambda number=number: waits(number))
        while len(turns._waiting) <= number:
            time.sleep(0.001)
    time.sleep(PATIENCE_SECONDS)
    turns.release()
    until = time.monotonic() + SECONDS
    while len(order) < 6 and time.monotonic() < until:
        time.sleep(0.001)
    assert order == list(range(6))


def test_who_has_waited_long_enough_goes_without(threads):
    turns = FairLock()
    assert turns.acquire(SECONDS)
    assert not turns.acquire(0.01)
    with turns.turn(0.01):
        # Without it, and it isn't given back twice.
        pass
    assert not turns.acquire(0.01)
    turns.release()
    assert turns.acquire(0.01)
    assert not turns._waiting


def test_who_gave_up_is_not_handed_anything(threads):
    turns, got = FairLock(), threading.Event()
    assert turns.acquire(SECONDS)
    assert not turns.acquire(0.01)

    def waits():
        assert turns.acquire(SECONDS)
        got.set()

    threads(waits)
    time.sleep(2 * PATIENCE_SECONDS)
    turns.release()
    assert got.wait(SECONDS)
