"""Sending again what an endpoint missed: what is chosen, in portions, beside what is new."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import AuditEntry
from config.core import states, task_runner, work_queue
from config.core.errors import Conflict, Invalid
from config.core.ids import lowest_id_at, uuid7
from tests import claims
from tests.webhooks.factories import make_delivery, make_endpoint, make_event
from webhooks import endpoints, recovery
from webhooks.models import Delivery, Recovery

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)


def at(endpoint, ago, status="failed", **changes):
    """A delivery whose id is as old as it says; by default one that ended as failed."""
    moment = timezone.now() - ago
    given = {"wake_at": None, "attempt_count": 3, **changes}
    event = given.pop("event", None) or make_event(endpoint.workspace_id)
    # The low half makes ids of one moment differ.
    pk = type(uuid7())(int=lowest_id_at(moment).int | (uuid7().int & (2**62 - 1)))
    row = make_delivery(endpoint, event, pk=pk, created_at=moment, **given)
    Delivery.everywhere.filter(pk=row.pk).update(status=status)
    return row


def statuses(*rows):
    return [Delivery.everywhere.get(pk=row.pk).status for row in rows]


def waking(*rows):
    """Which of them are due now."""
    now = work_queue.database_now()
    found = [Delivery.everywhere.get(pk=row.pk) for row in rows]
    return [row.status == "pending" and row.wake_at is not None and row.wake_at <= now for row in found]


def work():
    return task_runner.work_all_due("webhooks.recover_deliveries")


def test_it_sends_what_has_not_arrived_since_then_and_nothing_else():
    endpoint = make_endpoint()
    later = timezone.now() + timedelta(hours=5)
    missed = [
        at(endpoint, timedelta(hours=23)),
        at(endpoint, timedelta(hours=1), "held"),
        at(endpoint, timedelta(hours=1), "pending", wake_at=later),
    ]
    others = [
        at(endpoint, timedelta(hours=25)),
        at(endpoint, timedelta(hours=1), "delivered"),
        at(endpoint, timedelta(hours=1), event=make_event(endpoint.workspace_id, body=None)),
        at(make_endpoint(endpoint.workspace), timedelta(hours=1)),
        # It has not had its first try yet.
        at(endpoint, timedelta(minutes=1), "pending", wake_at=later, attempt_count=0),
    ]
    made = recovery.start(endpoint, timezone.now() - DAY, actor="alice")
    assert waking(*missed) == [False, False, False]
    work()
    assert waking(*missed) == [True, True, True]
    assert waking(*others) == [False] * 5
    assert statuses(*others) == ["failed", "delivered", "failed", "failed", "pending"]
    made.refresh_from_db()
    assert (made.status, made.total, made.sent, made.wake_at) == ("done", 3, 3, None)
    assert made.ended_at is not None
    assert list(AuditEntry.everywhere.order_by("id").values_list("action", "actor")) == [
        ("endpoint.recovery_started", "alice"),
        ("endpoint.recovered", "alice"),
    ]


def test_everything_is_also_what_was_delivered():
    endpoint = make_endpoint()
    rows = [at(endpoint, timedelta(hours=1), status) for status in ("delivered", "failed", "held")]
    recovery.start(endpoint, timezone.now() - DAY, is_everything=True, actor="alice")
    work()
    assert waking(*rows) == [True, True, True]


def test_its_schedule_begins_anew():
    endpoint = make_endpoint()
    row = at(endpoint, timedelta(hours=1), attempt_count=10)
    recovery.start(endpoint, timezone.now() - DAY, actor="alice")
    before = timezone.now() - timedelta(seconds=5)
    work()
    row.refresh_from_db()
    assert row.due_at > before
    assert (row.attempts, row.attempt_count) == (0, 10)


def test_what_happens_meanwhile_is_none_of_it():
    endpoint = make_endpoint()
    recovery.start(endpoint, timezone.now() - DAY, actor="alice")
    row = make_delivery(endpoint, wake_at=None, attempt_count=3)
    Delivery.everywhere.filter(pk=row.pk).update(status="failed")
    work()
    assert statuses(row) == ["failed"]


def test_one_at_a_time_and_the_next_after_its_end():
    endpoint = make_endpoint()
    recovery.start(endpoint, timezone.now() - DAY, actor="alice")
    with pytest.raises(Conflict) as refused:
        recovery.start(endpoint, timezone.now() - DAY, actor="alice")
    assert refused.value.detail[0].code == "recovery_running"
    work()
    recovery.start(endpoint, timezone.now() - DAY, actor="alice")
    assert Recovery.everywhere.count() == 2


def test_a_time_to_come_and_a_closed_endpoint_are_refused():
    endpoint = make_endpoint()
    with pytest.raises(Invalid):
        recovery.start(endpoint, timezone.now() + timedelta(minutes=1), actor="alice")
    endpoints.switch_off(endpoint, actor="alice")
    with pytest.raises(Conflict):
        recovery.start(endpoint, timezone.now() - DAY, actor="alice")
    endpoints.remove(endpoint, actor="alice")
    with pytest.raises(Conflict):
        recovery.start(endpoint, timezone.now() - DAY, actor="alice")
    assert Recovery.everywhere.count() == 0


def test_a_time_before_everything_is_as_far_back_as_contents_are_kept():
    made = recovery.start(make_endpoint(), timezone.now() - timedelta(days=5000), actor="alice")
    assert timedelta(days=29) < timezone.now() - made.since < timedelta(days=31)


def test_what_is_new_waits_for_a_few_of_it_only(monkeypatch):
    monkeypatch.setattr(recovery, "PORTION_ROWS", 4)
    # Six are what it takes in two seconds.
    endpoint = make_endpoint(rate=3)
    rows = [at(endpoint, timedelta(hours=1)) for _ in range(15)]
    made = recovery.start(endpoint, timezone.now() - DAY, actor="alice")
    work()
    made.refresh_from_db()
    assert (made.status, made.total, made.sent, sum(waking(*rows))) == ("running", 15, 6, 6)
    assert made.wake_at is not None
    assert made.attempts == 0
    # They are sent, and there is room again.
    for _ in range(2):
        sent = Delivery.everywhere.filter(endpoint=endpoint, status="pending")
        sent.update(status="delivered", wake_at=None)
        Recovery.everywhere.update(wake_at=work_queue.database_now())
        work()
    made.refresh_from_db()
    assert (made.status, made.sent) == ("done", 15)


def test_what_is_on_its_way_is_left_alone():
    endpoint = make_endpoint()
    in_hand = at(endpoint, timedelta(hours=1), "pending", attempts=1, lease_token=7)
    Delivery.everywhere.filter(pk=in_hand.pk).update(
        wake_at=work_queue.database_now() + timedelta(seconds=50)
    )
    made = recovery.start(endpoint, timezone.now() - DAY, actor="alice")
    work()
    in_hand.refresh_from_db()
    made.refresh_from_db()
    assert (in_hand.lease_token, made.sent, made.status) == (7, 0, "done")


def test_it_waits_while_the_endpoint_is_off_and_goes_on():
    endpoint = make_endpoint()
    row = at(endpoint, timedelta(hours=1))
    made = recovery.start(endpoint, timezone.now() - DAY, actor="alice")
    endpoints.switch_off(endpoint, actor="alice")
    work()
    made.refresh_from_db()
    assert (made.status, statuses(row)) == ("running", ["failed"])
    # It costs nothing meanwhile: being switched on is what wakes it.
    assert made.wake_at - timezone.now() > timedelta(hours=23)
    endpoints.switch_on(endpoint, actor="alice")
    work()
    assert waking(row) == [True]


def test_it_ends_when_the_endpoint_is_removed_that_it_waits_for():
    endpoint = make_endpoint()
    made = recovery.start(endpoint, timezone.now() - DAY, actor="alice")
    endpoints.switch_off(endpoint, actor="alice")
    work()
    endpoints.remove(endpoint, actor="alice")
    work()
    made.refresh_from_db()
    assert made.status == "stopped"


def test_it_ends_with_its_endpoint():
    endpoint = make_endpoint()
    row = at(endpoint, timedelta(hours=1))
    made = recovery.start(endpoint, timezone.now() - DAY, actor="alice")
    endpoints.remove(endpoint, actor="alice")
    work()
    made.refresh_from_db()
    assert (made.status, statuses(row)) == ("stopped", ["failed"])


def test_stopped_it_puts_nothing_more_in_line():
    endpoint = make_endpoint()
    row = at(endpoint, timedelta(hours=1))
    made = recovery.start(endpoint, timezone.now() - DAY, actor="alice")
    recovery.stop(made, actor="bob")
    work()
    assert (made.status, statuses(row)) == ("stopped", ["failed"])
    with pytest.raises(states.MoveRefused):
        recovery.stop(made, actor="bob")


def test_a_hand_that_was_overtaken_writes_nothing():
    endpoint = make_endpoint()
    row = at(endpoint, timedelta(hours=1))
    made = recovery.start(endpoint, timezone.now() - DAY, actor="alice")
    [held] = claims.begun(Recovery, limit=1, per_workspace=1, lease=recovery.LEASE)
    recovery.stop(made, actor="alice")
    recovery.run_recovery(held)
    assert statuses(row) == ["failed"]
    assert Recovery.everywhere.get().sent == 0


def test_a_crash_loop_ends_visibly():
    made = recovery.start(make_endpoint(), timezone.now() - DAY, actor="alice")
    Recovery.everywhere.update(attempts=20)
    work()
    made.refresh_from_db()
    assert (made.status, made.wake_at) == ("stopped", None)


def test_old_ones_are_forgotten_unless_they_run():
    endpoint = make_endpoint()
    old = timezone.now() - timedelta(days=91)
    given = {
        "workspace": endpoint.workspace,
        "endpoint": endpoint,
        "since": old,
        "until": uuid7(),
        "cursor": uuid7(),
    }
    for status in ("done", "running"):
        row = Recovery(pk=type(uuid7())(int=lowest_id_at(old).int + len(status)), **given)
        row.status = status
        row.save(force_insert=True)
    assert recovery.forget(timezone.now()) == 1
    assert [row.status for row in Recovery.everywhere.all()] == ["running"]


def test_a_delivery_that_a_hand_claimed_meanwhile_stays_in_its_hand():
    endpoint = make_endpoint()
    row = at(endpoint, timedelta(hours=1), "pending", wake_at=timezone.now() + DAY)
    read = Delivery.everywhere.get(pk=row.pk)
    # Its time has come between the look and the write.
    Delivery.everywhere.filter(pk=row.pk).update(wake_at=work_queue.database_now())
    [held] = claims.begun(Delivery, limit=1, per_workspace=1, lease=timedelta(seconds=60))
    assert recovery._requeue(read, work_queue.database_now()) is False
    assert held.under_lease().exists()
    assert statuses(row) == ["pending"]
    assert not any(waking(row))


@pytest.mark.parametrize(
    ("changes", "most"), [({"rate": 5}, 10), ({"rate": 100}, 200), ({"rate": 100, "failures": 1}, 2)]
)
def test_no_more_is_in_line_than_its_endpoint_takes_in_two_seconds(changes, most):
    endpoint = make_endpoint(**changes)
    rows = [at(endpoint, timedelta(hours=1)) for _ in range(min(most, 12) + 5)]
    recovery.start(endpoint, timezone.now() - DAY, actor="alice")
    work()
    assert sum(waking(*rows)) == min(most, len(rows))
