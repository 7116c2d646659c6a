"""/recurrences: items that come back by themselves."""

from __future__ import annotations

import pytest

from config.core import task_runner
from pipeline.models import GeneratedItem, Recurrence, Source
from tests.contracts.conftest import NOT_FOUND, never_existed


def details(answer):
    return [(one["field"], one["code"]) for one in answer.json()["detail"]]


def test_an_item_is_let_come_back_and_read(alice):
    item = alice.ready()["id"]
    answer = alice.api.post("/recurrences", {"generated_item": item, "every_days": 30, "time": "18:30"})
    made = answer.json()
    assert (answer.status_code, answer["Location"]) == (201, f"/v1/recurrences/{made['id']}")
    assert (made["generated_item"], made["status"], made["stopped"], made["time"]) == (
        item,
        "active",
        None,
        "18:30",
    )
    assert made["next_at"].endswith(":30:00.000Z")
    assert alice.api.read("/recurrences")["data"] == [made]
    assert alice.api.read(f"/recurrences?generated_item={item}")["data"] == [made]
    assert alice.api.read(f"/recurrences?generated_item={alice.ready()['id']}")["data"] == []
    assert alice.api.read(f"/recurrences/{made['id']}") == {**made, "turns": []}
    again = alice.api.post("/recurrences", {"generated_item": item, "every_days": 7})
    assert (again.status_code, details(again)) == (409, [("generated_item", "already_recurring")])


def test_it_is_changed_stopped_and_goes_on(alice):
    made = alice.recurrence()
    path = f"/recurrences/{made['id']}"
    read = alice.api.get(path)
    changed = alice.api.patch(path, {"every_days": 7}, headers={"If-Match": read["ETag"]})
    assert (changed.status_code, changed.json()["every_days"], changed.json()["version"]) == (200, 7, 2)
    stale = alice.api.patch(path, {"every_days": 8}, headers={"If-Match": read["ETag"]})
    assert stale.status_code == 412
    stopped = alice.api.patch(path, {"status": "stopped"}).json()
    assert (stopped["status"], stopped["next_at"], stopped["stopped"]["code"]) == (
        "stopped",
        None,
        "by_person",
    )
    assert stopped["stopped"]["by"]
    assert alice.api.patch(path, {"status": "stopped"}).json() == stopped
    refused = alice.api.patch(path, {"every_days": 9})
    assert (refused.status_code, details(refused)) == (409, [("status", "stopped")])
    going = alice.api.patch(path, {"status": "active", "every_days": 9}).json()
    assert (going["status"], going["stopped"], going["every_days"]) == ("active", None, 9)
    assert going["next_at"]


def test_its_times_are_told(alice):
    made = alice.recurrence()
    GeneratedItem.everywhere.update(status="published")
    Recurrence.everywhere.update(wake_at="2020-01-03T09:00:00Z", due_at="2020-01-03T09:00:00Z")
    task_runner.work_all_due("publish.repeat_item")
    shown = alice.api.read(f"/recurrences/{made['id']}")
    (turn,) = shown["turns"]
    assert (turn["due_at"], turn["decision"], turn["message"]) == ("2020-01-03T09:00:00.000Z", "made", None)
    returned = alice.api.read(f"/generated/{turn['generated_item']}")
    assert returned["provenance"]["parent"] == made["generated_item"]
    assert shown["version"] == made["version"]


def test_one_that_stopped_itself_says_why(alice):
    made = alice.recurrence()
    Source.everywhere.update(status="gone")
    Recurrence.everywhere.update(wake_at="2020-01-03T09:00:00Z")
    task_runner.work_all_due("publish.repeat_item")
    shown = alice.api.read(f"/recurrences/{made['id']}")
    assert (shown["status"], shown["stopped"]["code"], shown["stopped"]["by"]) == (
        "stopped",
        "source_gone",
        None,
    )
    assert "is gone" in shown["stopped"]["message"]
    refused = alice.api.patch(f"/recurrences/{made['id']}", {"status": "active"})
    assert (refused.status_code, details(refused)) == (409, [("generated_item", "source_gone")])


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"every_days": 0}, [("every_days", "min_value")]),
        ({"every_days": 367}, [("every_days", "max_value")]),
        ({"every_days": "7"}, [("every_days", "invalid")]),
        ({"time": "24:00"}, [("time", "pattern")]),
        ({"time": "9:00"}, [("time", "pattern")]),
        ({"hint": "More"}, [("hint", "unknown_field")]),
    ],
)
def test_what_can_not_be_is_refused(alice, changes, expected):
    given = {"generated_item": alice.ready()["id"], "every_days": 30, **changes}
    answer = alice.api.post("/recurrences", given)
    assert (answer.status_code, details(answer)) == (400, expected)


def test_nobody_elses_item_comes_back(alice, charlie):
    theirs = charlie.ready()["id"]
    for item in (theirs, never_existed("gen")):
        answer = alice.api.post("/recurrences", {"generated_item": item, "every_days": 30})
        assert (answer.status_code, details(answer)) == (400, [("generated_item", "unknown_item")])
    key = charlie.recurrence()["id"]
    assert alice.api.get(f"/recurrences/{key}").json() == NOT_FOUND
    assert alice.api.patch(f"/recurrences/{key}", {"status": "stopped"}).json() == NOT_FOUND
    assert Recurrence.everywhere.get().status == "active"
