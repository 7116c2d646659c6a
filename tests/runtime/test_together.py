"""What several threads write together: everything once, nobody waits for another's write, nothing stays behind."""

from __future__ import annotations

import threading

from config.ground.together import Together


def test_alone_it_is_written_at_once():
    written = []
    Together(written.append, most=10, gather=lambda: 0.0).add("a")
    assert written == [["a"]]


def test_who_comes_during_a_write_goes_on_and_is_written_next():
    begun, go, written = threading.Event(), threading.Event(), []

    def write(things):
        written.append(list(things))
        begun.set()
        go.wait(20)

    together = Together(write, most=2, gather=lambda: 0.0)
    first = threading.Thread(target=together.add, args=(0,))
    first.start()
    assert begun.wait(20)
    # Each returns although the first write is still going on.
    for number in range(1, 6):
        together.add(number)
    assert written == [[0]]
    go.set()
    first.join(20)
    assert written == [[0], [1, 2], [3, 4], [5]]


def test_gathering_ends_when_enough_are_there():
    written, gathering = [], threading.Event()

    def gather():
        gathering.set()
        return 30.0

    together = Together(written.append, most=3, gather=gather)
    first = threading.Thread(target=together.add, args=(0,))
    first.start()
    assert gathering.wait(20)
    together.add(1)
    together.add(2)
    first.join(10)
    assert [sorted(things) for things in written] == [[0, 1, 2]]


def test_nothing_is_lost_or_written_twice_however_many_add():
    written, lock = [], threading.Lock()

    def write(things):
        assert lock.acquire(blocking=False), "Two wrote at once."
        written.extend(things)
        lock.release()

    together = Together(write, most=4, gather=lambda: 0.0)
    threads = [
        threading.Thread(target=lambda start=start: [together.add(start + number) for number in range(200)])
        for start in range(0, 1600, 200)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(written) == list(range(1600))


def test_a_write_that_breaks_leaves_the_next_one_its_turn():
    written = []

    def write(things):
        if "bad" in things:
            raise ValueError
        written.extend(things)

    together = Together(write, most=1, gather=lambda: 0.0)
    try:
        together.add("bad")
    except ValueError:
        together.add("good")
    assert written == ["good"]
