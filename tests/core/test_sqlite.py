"""On SQLite the threads of a process queue for the one write lock."""

import errno
import os
import threading
import time
from types import SimpleNamespace

import pytest
from django.contrib.auth.models import Group
from django.db import OperationalError, connection, transaction

from accounts.access import workspace_rate_limit
from accounts.models import Workspace
from config.core.database.sqlite import base
from config.core.database.sqlite.base import PATIENCE_SECONDS

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db(transaction=True)]

SECONDS = 20.0
BUSY_SECONDS = 0.01


@pytest.fixture
def turns():
    return connection._write_lock


def is_free(turns):
    if not turns.acquire(0):
        return False
    turns.release()
    return True


@pytest.fixture
def greedy(alices):
    """Four threads write one transaction after the other; what they have written so far."""
    ends, written = threading.Event(), []

    def writes():
        try:
            while not ends.is_set():
                with transaction.atomic():
                    rename(alices, "Busy")
                    time.sleep(BUSY_SECONDS)
                written.append(1)
        finally:
            connection.close()

    threads = [threading.Thread(target=writes) for _ in range(4)]
    for thread in threads:
        thread.start()
    yield written
    ends.set()
    for thread in threads:
        thread.join(SECONDS)


def rename(workspace, name):
    Workspace.everywhere.filter(pk=workspace.pk).update(name=name)


def in_a_transaction(workspace):
    with transaction.atomic():
        rename(workspace, "Other")


def alone(workspace):
    rename(workspace, "Other")


@pytest.mark.parametrize("write", [in_a_transaction, alone])
def test_a_burst_of_transactions_keeps_no_other_away(greedy, alices, write):
    """Left to SQLite's own way of waiting, one of these has waited for hundreds of them in trials."""
    for _ in range(20):
        before = len(greedy)
        write(alices)
        # Until patience is at its end, and the four that were before it.
        assert len(greedy) - before <= PATIENCE_SECONDS / BUSY_SECONDS + 5


def test_reading_waits_for_nobody(alices, turns):
    assert turns.acquire(SECONDS)
    try:
        assert Workspace.everywhere.get(pk=alices.pk).name
    finally:
        turns.release()


def test_every_end_of_a_transaction_gives_the_turn_back(alices, turns):
    with transaction.atomic():
        assert not is_free(turns)
        with transaction.atomic():
            pass
        assert not is_free(turns)
    assert is_free(turns)
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        raise ZeroDivisionError
    assert is_free(turns)
    with transaction.atomic():
        connection.close()
    assert is_free(turns)


def test_no_write_leaves_anything_behind(alices, monkeypatch):
    """What is told at a fork is told for as long as the process lives."""
    alone(alices)
    kept = []
    monkeypatch.setattr(os, "register_at_fork", lambda **named: kept.append(named))
    for _ in range(3):
        in_a_transaction(alices)
        alone(alices)
    assert not kept


# --- The disk --------------------------------------------------------------------------------------------------------


@pytest.fixture
def disk(monkeypatch):
    """How often the journal was brought to the disk so far; `fails` makes it refuse."""

    class Disk(SimpleNamespace):
        def __call__(self, sync):
            if self.fails:
                raise OSError(errno.EIO, "Input/output error")
            self.times += 1
            real(sync)

    real = base.SharedSync._write_out
    made = Disk(times=0, fails=False)
    monkeypatch.setattr(base.SharedSync, "_write_out", lambda self: made(self))  # noqa: PLW0108  a method
    return made


@pytest.mark.parametrize("write", [in_a_transaction, alone])
def test_what_was_written_is_on_the_disk(alices, disk, write):
    before = disk.times
    write(alices)
    assert disk.times == before + 1


def test_a_write_that_gives_rows_back_is_left_to_sqlite(alices, disk):
    """It is committed after its rows were fetched: too late for ours."""

    def mode():
        return connection.connection.execute("PRAGMA synchronous").fetchone()[0]

    normal, full = 1, 2
    alone(alices)
    assert mode() == normal
    Group.objects.create(name="Readers")
    assert mode() == full
    alone(alices)
    assert mode() == normal


def test_what_nobody_needs_after_a_power_cut_waits_for_no_disk(alices, disk):
    alone(alices)
    before = disk.times
    workspace_rate_limit.take_request(alices.pk)
    with transaction.atomic():
        Workspace.everywhere.get(pk=alices.pk)
    assert connection.connection.execute("PRAGMA synchronous").fetchone()[0] == 1
    assert disk.times == before


def test_reading_and_an_empty_transaction_do_not_wait_for_the_disk(alices, disk):
    alone(alices)
    before = disk.times
    with transaction.atomic():
        Workspace.everywhere.get(pk=alices.pk)
    list(Workspace.everywhere.all())
    assert disk.times == before


def test_a_disk_that_fails_is_an_outage_and_the_next_write_tries_again(alices, disk, turns):
    disk.fails = True
    with pytest.raises(OperationalError, match="may not be on the disk"):
        in_a_transaction(alices)
    assert is_free(turns)
    disk.fails = False
    before = disk.times
    in_a_transaction(alices)
    assert disk.times == before + 1


def test_those_who_come_while_it_is_under_way_share_the_next(tmp_path, monkeypatch):
    begun, may_end, times = threading.Event(), threading.Event(), []

    def write_out(_sync):
        times.append(1)
        begun.set()
        assert may_end.wait(SECONDS)

    monkeypatch.setattr(base.SharedSync, "_write_out", write_out)
    shared = base.SharedSync(str(tmp_path / "journal"))
    threads = [threading.Thread(target=shared.sync) for _ in range(9)]
    threads[0].start()
    assert begun.wait(SECONDS)
    for one in threads[1:]:
        one.start()
    until = time.monotonic() + SECONDS
    while len(shared._changing._waiters) < 8 and time.monotonic() < until:
        time.sleep(0.001)
    may_end.set()
    for one in threads:
        one.join(SECONDS)
    assert len(times) == 2


def test_a_turn_that_is_never_given_back_stops_nobody(alices, turns, monkeypatch):
    monkeypatch.setattr(base.DatabaseWrapper, "_lock_timeout", 0.05)
    assert turns.acquire(SECONDS)
    try:
        with transaction.atomic():
            rename(alices, "All the same")
        assert not is_free(turns)
    finally:
        turns.release()
    assert Workspace.everywhere.get(pk=alices.pk).name == "All the same"


def test_a_transaction_that_does_not_begin_gives_its_turn_back(turns, monkeypatch):
    def fail(self):
        raise ZeroDivisionError

    monkeypatch.setattr(base.base.DatabaseWrapper, "_start_transaction_under_autocommit", fail)
    connection.ensure_connection()
    with pytest.raises(ZeroDivisionError):
        connection._start_transaction_under_autocommit()
    assert is_free(turns)
