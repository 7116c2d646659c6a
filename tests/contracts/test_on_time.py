"""Queues, the hold, explain and remove, as programs meet them."""

from __future__ import annotations

import pytest

from config.core import ids, task_runner
from config.core.datetimes import format_utc
from pipeline.models import Outlet, Publication, PublishQueue, SimulatedPost
from tests.contracts.conftest import normal, refusal


def _publish(alice, item, body):
    return alice.api.post(f"/generated/{item['id']}/publish", body)


def test_a_fresh_workspace_has_a_queue(alice):
    (queue,) = alice.api.read("/queues")["data"]
    assert normal(queue) == {
        "id": "que_*",
        "name": "Weekdays",
        "timezone": "Europe/Berlin",
        "slots": [{"weekday": day, "time": at} for day in range(5) for at in ("09:00", "12:00", "17:00")],
        "blackouts": [],
        "on_gap": "shift",
        "on_overlap": "first",
        "default": True,
        "paused": False,
        "outlets": ["out_*", "out_*"],
        "version": 1,
        "created_at": "<moment>",
        "updated_at": "<moment>",
    }
    assert sorted(queue["outlets"]) == sorted([alice.feed, alice.simulated])


def test_a_queue_tells_its_next_slots_and_who_takes_them(alice):
    shown = _publish(alice, alice.ready(), {"queue": "next"}).json()
    (publication,) = shown["publications"]
    (queue,) = alice.api.read("/queues")["data"]
    slots = alice.api.read(f"/queues/{queue['id']}")["next_slots"]
    assert [slot["at"] for slot in slots] == sorted(slot["at"] for slot in slots)
    assert len(slots) == 20
    assert slots[0]["taken_by"] == [
        {"outlet": alice.feed, "publication": publication["id"], "generated_item": shown["id"]}
    ]
    assert [slot["taken_by"] for slot in slots[1:]] == [[]] * 19
    assert publication["due_at"] == slots[0]["at"]
    assert publication["scheduled_for"] == {"local_time": slots[0]["local_time"], "timezone": "Europe/Berlin"}


@pytest.mark.parametrize("changes", [{"is_paused": True}, {"slots": []}])
def test_a_queue_that_gives_no_slot_is_a_conflict(alice, changes):
    PublishQueue.everywhere.update(**changes)
    code = "queue_paused" if "is_paused" in changes else "no_slot"
    assert refusal(_publish(alice, alice.ready(), {"queue": "next"})) == (409, "conflict", [("queue", code)])
    assert Publication.everywhere.count() == 0


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"queue": "next", "publish_at": "2099-01-01T00:00:00Z"}, ("queue", "both")),
        ({"queue": "next", "local_time": "2099-01-01T00:00"}, ("queue", "both")),
        ({"queue": "first"}, ("queue", "invalid_choice")),
        ({"late_policy": "publish", "max_lateness_minutes": 5}, ("max_lateness_minutes", "alone")),
    ],
)
def test_bodies_that_contradict_themselves(alice, body, problem):
    assert refusal(_publish(alice, alice.ready(), body)) == (400, "invalid_request", [problem])


def test_a_time_on_a_clock_is_kept_as_it_was_asked_for(alice):
    body = {
        "local_time": "2027-03-28T02:30",
        "timezone": "Europe/Berlin",
        "late_policy": "next_slot",
        "max_lateness_minutes": 30,
    }
    (shown,) = _publish(alice, alice.ready(), body).json()["publications"]
    assert (shown["due_at"], shown["scheduled_for"], shown["late_policy"], shown["max_lateness_minutes"]) == (
        "2027-03-28T01:30:00.000Z",
        {"local_time": "2027-03-28T02:30:00", "timezone": "Europe/Berlin"},
        "next_slot",
        30,
    )


def test_a_pace_is_shown_on_the_publication(alice):
    Outlet.everywhere.filter(pk=ids.decode("out", alice.simulated)).update(gap_minutes=30)
    alice.publish(alice.ready(), {"outlets": [alice.simulated]})
    second = alice.ready(
        url="https://news.example/2", body="The other road is closed for a week from Monday on. " * 5
    )
    shown = alice.publish(second, {"outlets": [alice.simulated]})["publications"][0]
    assert (shown["status"], shown["waits_for"]["code"]) == ("scheduled", "gap")
    (blocker,) = alice.api.read(f"/generated/{second['id']}/explain")["blockers"]
    assert (blocker["code"], blocker["publication"], blocker["outlet"]) == (
        "gap",
        shown["id"],
        alice.simulated,
    )


def test_explain_names_the_call_that_helps(alice):
    item = alice.ready()
    told = alice.api.read(f"/generated/{item['id']}/explain")
    assert told == {
        "generated_item": item["id"],
        "status": "ready",
        "blockers": [
            {
                "code": "not_requested",
                "message": "It isn't scheduled or published yet.",
                "since": item["ready_at"],
                "until": None,
                "outlet": None,
                "publication": None,
                "clears": {"method": "POST", "path": f"/generated/{item['id']}/publish", "body": {}},
            }
        ],
    }
    call = told["blockers"][0]["clears"]
    assert alice.api.post(call["path"], call["body"]).status_code == 202
    assert alice.api.read(f"/generated/{item['id']}/explain")["blockers"] == []
    task_runner.work_all_due("publish.send_publication")
    codes = [one["code"] for one in alice.api.read(f"/generated/{item['id']}/explain")["blockers"]]
    assert codes == ["already_published"]


def test_the_hold_of_a_workspace(alice, charlie):
    nothing = {"held": False, "reason": None, "by": None, "since": None, "scheduled": [], "more": False}
    assert alice.api.read("/hold") == nothing
    assert refusal(alice.api.post("/hold", {"reason": " "})) == (
        400,
        "invalid_request",
        [("reason", "required")],
    )
    told = alice.api.post("/hold", {"reason": "A crisis."}).json()
    actor = alice.api.read("/workspace")["token"]["id"]
    assert (told["held"], told["reason"], told["by"], charlie.api.read("/hold")) == (
        True,
        "A crisis.",
        actor,
        nothing,
    )
    shown = _publish(alice, alice.ready(), {}).json()
    task_runner.work_all_due("publish.send_publication")
    (publication,) = shown["publications"]
    assert alice.api.read(f"/publications/{publication['id']}")["status"] == "scheduled"
    assert alice.api.read("/hold")["scheduled"] == [
        {
            "publication": publication["id"],
            "generated_item": shown["id"],
            "outlet": alice.feed,
            "due_at": publication["due_at"],
            "then": "publishes",
        }
    ]
    (blocker,) = alice.api.read(f"/generated/{shown['id']}/explain")["blockers"]
    assert blocker["clears"] == {"method": "DELETE", "path": "/hold", "body": None}
    assert alice.api.delete("/hold").status_code == 204
    task_runner.work_all_due("publish.send_publication")
    assert alice.api.read(f"/publications/{publication['id']}")["status"] == "published"
    assert refusal(alice.api.delete("/hold"))[:2] == (404, "not_found")


def test_a_post_is_taken_back(alice):
    item = alice.publish(alice.ready(), {"outlets": [alice.simulated]})
    path = f"/publications/{item['publications'][0]['id']}"
    answer = alice.api.post(f"{path}/remove")
    assert (answer.status_code, answer.json()["status"]) == (202, "published")
    task_runner.work_all_due("publish.send_publication")
    assert (alice.api.read(path)["status"], alice.api.read(f"/generated/{item['id']}")["status"]) == (
        "removed",
        "removed",
    )
    assert format_utc(SimulatedPost.everywhere.get().removed_at)
    assert refusal(alice.api.post(f"{path}/remove")) == (409, "conflict", [("status", "not_published")])
