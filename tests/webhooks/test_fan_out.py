"""Which endpoints an event goes to."""

from __future__ import annotations

import pytest

from pipeline import events
from pipeline.models import Event
from tests.webhooks.factories import make_delivery, make_endpoint, make_event, make_workspace
from webhooks.fan_out import write_deliveries
from webhooks.models import Delivery
from webhooks.tasks import fan_out

pytestmark = pytest.mark.django_db


def pairs() -> set[tuple[object, object]]:
    return set(Delivery.everywhere.values_list("endpoint_id", "event_id"))


def test_defaults_get_the_four_and_no_other():
    endpoint = make_endpoint()
    made = {
        name: make_event(endpoint.workspace_id, name) for name in [*events.TYPES, "made.up", "webhook.test"]
    }
    write_deliveries(list(made.values()))
    four = ["raw.ingested", "generated.ready", "published.success", "published.failed"]
    assert pairs() == {(endpoint.pk, made[name].pk) for name in four}


def test_chosen_types_replace_the_defaults():
    endpoint = make_endpoint(events=["source.failing", "raw.ingested"])
    made = {name: make_event(endpoint.workspace_id, name) for name in events.TYPES}
    write_deliveries(list(made.values()))
    assert pairs() == {(endpoint.pk, made[name].pk) for name in ("source.failing", "raw.ingested")}


def test_every_event_means_those_that_are_added_later_too():
    endpoint = make_endpoint(events=["*"])
    made = [make_event(endpoint.workspace_id, name) for name in [*events.TYPES, "made.up"]]
    write_deliveries(made)
    assert pairs() == {(endpoint.pk, event.pk) for event in made}


def test_test_and_live_never_mix_and_workspaces_neither():
    workspace = make_workspace()
    live, test = make_endpoint(workspace), make_endpoint(workspace, test=True)
    make_endpoint()
    live_event, test_event = make_event(workspace), make_event(workspace, test=True)
    write_deliveries([live_event, test_event])
    assert pairs() == {(live.pk, live_event.pk), (test.pk, test_event.pk)}


def test_events_of_several_workspaces_are_written_together_and_each_goes_to_its_own():
    first, second = make_endpoint(), make_endpoint()
    mine = [make_event(first.workspace_id, "raw.ingested") for _ in range(2)]
    theirs = make_event(second.workspace_id, "raw.ingested")
    assert fan_out() == 3
    assert fan_out() == 0
    assert pairs() == {*((first.pk, event.pk) for event in mine), (second.pk, theirs.pk)}
    places = Event.everywhere.order_by("position").values_list("workspace_id", "position")
    assert sorted(places) == sorted(
        [(first.workspace_id, 1), (first.workspace_id, 2), (second.workspace_id, 1)]
    )


def test_removed_endpoints_get_nothing():
    endpoint = make_endpoint(deleted_at="2027-01-01T00:00:00Z")
    write_deliveries([make_event(endpoint.workspace_id)])
    assert pairs() == set()


@pytest.mark.parametrize(
    ("changes", "status", "waits"),
    [
        ({}, "pending", True),
        ({"status": "degraded"}, "pending", True),
        ({"status": "disabled"}, "held", False),
        ({"is_on": False}, "held", False),
    ],
)
def test_held_where_the_endpoint_takes_nothing(changes, status, waits):
    endpoint = make_endpoint(**changes)
    event = make_event(endpoint.workspace_id, request_id="req_12345678")
    write_deliveries([event])
    delivery = Delivery.everywhere.get()
    assert (delivery.status, delivery.wake_at is not None) == (status, waits)
    assert delivery.due_at == delivery.created_at
    assert (delivery.request_id, delivery.workspace_id) == ("req_12345678", endpoint.workspace_id)


def test_an_event_that_comes_twice_is_one_delivery():
    endpoint = make_endpoint()
    event = make_event(endpoint.workspace_id)
    first = make_delivery(endpoint, event, status="delivered")
    write_deliveries([event])
    assert list(Delivery.everywhere.values_list("pk", "status")) == [(first.pk, "delivered")]


def test_dispatch_marks_and_nudges(woken, django_capture_on_commit_callbacks):
    endpoint = make_endpoint()
    event = make_event(endpoint.workspace_id)
    with django_capture_on_commit_callbacks(execute=True):
        assert fan_out() == 1
    assert woken == ["wake"]
    assert fan_out() == 0
    assert pairs() == {(endpoint.pk, event.pk)}
    assert Event.everywhere.get().dispatched_at is not None


class Killed(BaseException):
    """As far as the code can tell, the end of the process."""


@pytest.mark.parametrize("point", ["fan_out.claimed", "fan_out.written"])
def test_killed_dispatch_writes_nothing_and_the_next_writes_all(monkeypatch, point):
    endpoint = make_endpoint()
    event = make_event(endpoint.workspace_id)

    def die(name):
        if name == point:
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(events, "crash_point", die)
        with pytest.raises(Killed):
            fan_out()
    assert pairs() == set()
    assert Event.everywhere.get().dispatched_at is None
    assert fan_out() == 1
    assert pairs() == {(endpoint.pk, event.pk)}
