"""On SQLite the threads of a process queue for the one write lock."""

import threading
import time

import pytest
from django.db import connection, transaction

from accounts import workspaces
from accounts.models import Workspace
from config.ground.sqlite import base
from config.ground.turns import PATIENCE_SECONDS

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db(transaction=True)]

SECONDS = 20.0
BUSY_SECONDS = 0.01


@pytest.fixture
def alices():
    return workspaces.create("Alice's newsroom", actor="test")


@pytest.fixture
def turns():
    return connection._turns


def is_free(turns):
    if not turns.take(0):
        return False
    turns.give_back()
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
    assert turns.take(SECONDS)
    try:
        assert Workspace.everywhere.get(pk=alices.pk).name
    finally:
        turns.give_back()


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


def test_a_turn_that_is_never_given_back_stops_nobody(alices, turns, monkeypatch):
    monkeypatch.setattr(base.DatabaseWrapper, "_patience", 0.05)
    assert turns.take(SECONDS)
    try:
        with transaction.atomic():
            rename(alices, "All the same")
        assert not is_free(turns)
    finally:
        turns.give_back()
    assert Workspace.everywhere.get(pk=alices.pk).name == "All the same"


def test_a_transaction_that_does_not_begin_gives_its_turn_back(turns, monkeypatch):
    def fail(self):
        raise ZeroDivisionError

    monkeypatch.setattr(base.base.DatabaseWrapper, "_start_transaction_under_autocommit", fail)
    with pytest.raises(ZeroDivisionError):
        connection._start_transaction_under_autocommit()
    assert is_free(turns)
