"""/series: digests that are made by themselves."""

from __future__ import annotations

import pytest

from config.core import task_runner
from pipeline.models import Generation, Series
from tests.contracts.conftest import NOT_FOUND, never_existed, normal

GIVEN = {
    "name": "The week by the harbour",
    "timezone": "Europe/London",
    "slots": [{"weekday": 4, "time": "09:00"}],
    "on_gap": "skip",
    "on_overlap": "second",
    "window_days": 14,
    "items_least": 3,
    "items_most": 5,
}
SHOWN = {
    "id": "ser_*",
    **GIVEN,
    "sources": [],
    "persona": None,
    "outlets": [],
    "paused": False,
    "next_at": "<moment>",
    "test": False,
    "version": 1,
    "created_at": "<moment>",
    "updated_at": "<moment>",
}


def faults(answer):
    assert answer.status_code in {400, 422}
    return [(one["field"], one["code"]) for one in answer.json()["detail"]]


def test_series_is_begun_and_read(api):
    answer = api.post("/series", GIVEN)
    assert (answer.status_code, normal(answer.json())) == (201, SHOWN)
    again = api.get(answer["Location"].removeprefix("/v1"))
    shown = again.json()
    assert (len(shown.pop("next_slots")), shown.pop("holds_now"), shown.pop("issues")) == (10, [], [])
    assert shown == answer.json()
    assert api.read("/series")["data"] == [answer.json()]
    same = api.get(answer["Location"].removeprefix("/v1"), headers={"If-None-Match": again["ETag"]})
    assert (same.status_code, same.content) == (304, b"")


def test_series_is_changed_and_ended(alice):
    key = alice.series()["id"]
    answer = alice.api.patch(f"/series/{key}", {"paused": True, "sources": [alice.push_source]})
    assert answer.status_code == 200
    changed = answer.json()
    assert (changed["paused"], changed["next_at"], changed["sources"], changed["version"]) == (
        True,
        None,
        [alice.push_source],
        2,
    )
    stale = alice.api.patch(f"/series/{key}", {"name": "Other"}, headers={"If-Match": '"1"'})
    assert stale.status_code == 412
    read = alice.api.get(f"/series/{key}")
    first = alice.api.patch(f"/series/{key}", {"name": "First"}, headers={"If-Match": read["ETag"]})
    assert first.status_code == 200
    late = alice.api.patch(f"/series/{key}", {"name": "Late"}, headers={"If-Match": read["ETag"]})
    assert late.status_code == 412
    answer = first
    fresh = alice.api.patch(f"/series/{key}", {"name": "Other"}, headers={"If-Match": answer["ETag"]})
    assert (fresh.status_code, fresh.json()["name"]) == (200, "Other")
    assert alice.api.delete(f"/series/{key}").status_code == 204
    assert alice.api.get(f"/series/{key}").json() == NOT_FOUND
    assert Series.everywhere.filter(deleted_at=None).count() == 0


def test_digest_is_made_now_and_found_by_each_of_its_items(alice):
    raws = [one["id"] for one in alice.stories()]
    key = alice.series()["id"]
    assert sorted(alice.api.read(f"/series/{key}")["holds_now"]) == sorted(raws)
    answer = alice.api.post(f"/series/{key}/make")
    assert answer.status_code == 202
    task_runner.work_all_due("generate.run_item")
    item = alice.api.read(f"/generated/{answer.json()['generated_item']}")
    assert (item["status"], item["engine_output"], item["raw_item"]) == ("ready", "Newsletter Digest", None)
    assert sorted(item["raw_items"]) == sorted(raws)
    assert {one["raw_item"] for one in item["claims"]} == set(raws)
    for raw in raws:
        assert item["id"] in alice.api.read(f"/raw/{raw}")["generated"]
        assert item["id"] in [one["id"] for one in alice.api.read(f"/generated?raw_item={raw}")["data"]]
    shown = alice.api.read(f"/series/{key}")
    assert shown["holds_now"] == []
    assert normal(shown["issues"]) == [
        {
            "id": "iss_*",
            "due_at": "<moment>",
            "decision": "made",
            "message": None,
            "found": 3,
            "generated_item": "gen_*",
            "by": "tok_*",
            "created_at": "<moment>",
        }
    ]


def test_too_little_to_tell_is_said(alice):
    key = alice.series()["id"]
    answer = alice.api.post(f"/series/{key}/make")
    assert (answer.status_code, answer.json()["detail"][0]["code"]) == (409, "too_few_items")
    assert answer.json()["detail"][0]["message"].startswith("Only 0 of at least 3 items")
    assert Generation.everywhere.count() == 0


def test_its_time_makes_it(alice):
    alice.stories()
    key = alice.series()["id"]
    Series.everywhere.update(wake_at="2020-01-03T09:00:00Z", due_at="2020-01-03T09:00:00Z")
    task_runner.work_all_due("generate.make_series_issue")
    (issue,) = alice.api.read(f"/series/{key}")["issues"]
    assert (issue["decision"], issue["by"], issue["due_at"]) == ("made", None, "2020-01-03T09:00:00.000Z")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"name": " "}, [("name", "pattern")]),
        ({"slots": []}, [("slots", "min_length")]),
        ({"slots": [{"weekday": 7, "time": "09:00"}]}, [("slots[0].weekday", "max_value")]),
        ({"slots": [{"weekday": 1, "time": "9"}]}, [("slots[0].time", "pattern")]),
        ({"timezone": "Mars/Base"}, [("timezone", "unknown_timezone")]),
        ({"window_days": 32}, [("window_days", "max_value")]),
        ({"items_least": 2}, [("items_least", "min_value")]),
        ({"items_least": 6}, [("items_least", "invalid")]),
        ({"persona": never_existed("per")}, [("persona", "unknown_persona")]),
        ({"sources": [never_existed("src")]}, [("sources[0]", "unknown_source")]),
        ({"outlets": [never_existed("out")]}, [("outlets[0]", "unknown_outlet")]),
        ({"every": "week"}, [("every", "unknown_field")]),
    ],
)
def test_series_that_can_not_be_is_refused(api, changes, expected):
    assert faults(api.post("/series", {**GIVEN, **changes})) == expected
