"""/topics: the pool of the brand lane."""

from __future__ import annotations

import pytest

from pipeline.models import Source, Topic
from tests.contracts.conftest import NOT_FOUND, never_existed, normal

GIVEN = {
    "title": "Why rye needs time",
    "notes": "Rye rests for 20 hours.",
    "angles": ["myth", "how-to"],
    "evidence": [{"url": "https://rye.example/study", "text": "It keeps for nine days."}],
    "weight": 3,
    "cooldown_days": 7,
    "max_per_month": 2,
    "season": {"from": "09-15", "to": "02-29"},
}
SHOWN = {
    "id": "top_*",
    **GIVEN,
    "is_active": True,
    "persona": None,
    "source": None,
    "last_used_at": None,
    "test": False,
    "version": 1,
    "created_at": "<moment>",
    "updated_at": "<moment>",
}
BARE = {
    **SHOWN,
    "title": "Rye",
    "notes": "",
    "angles": [],
    "evidence": [],
    "weight": 1,
    "cooldown_days": 14,
    "max_per_month": None,
    "season": None,
}


def faults(answer):
    assert answer.status_code == 400
    return [(one["field"], one["code"]) for one in answer.json()["detail"]]


def test_topic_is_made_and_read(api):
    answer = api.post("/topics", GIVEN)
    assert (answer.status_code, normal(answer.json())) == (201, SHOWN)
    again = api.get(answer["Location"].removeprefix("/v1"))
    assert (again.status_code, again.json(), again["ETag"]) == (200, answer.json(), answer["ETag"])
    same = api.get(answer["Location"].removeprefix("/v1"), headers={"If-None-Match": again["ETag"]})
    assert (same.status_code, same.content) == (304, b"")


def test_topic_needs_only_a_title(api):
    answer = api.post("/topics", {"title": "Rye"})
    assert (answer.status_code, normal(answer.json())) == (201, BARE)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"title": " "}, "title"),
        ({"title": 7}, "title"),
        ({"titel": "x"}, "titel"),
        ({"angles": ["x"] * 21}, "angles"),
        ({"evidence": [{}]}, "evidence[0]"),
        ({"evidence": [{"url": "rye"}]}, "evidence[0].url"),
        ({"weight": 0}, "weight"),
        ({"weight": 101}, "weight"),
        ({"cooldown_days": 366}, "cooldown_days"),
        ({"max_per_month": 0}, "max_per_month"),
        ({"season": {"from": "02-30", "to": "03-01"}}, "season.from"),
        ({"season": {"from": "02-01"}}, "season.to"),
        ({"is_active": "yes"}, "is_active"),
        ({"persona": "per_x"}, "persona"),
        ({"persona": never_existed("per")}, "persona"),
    ],
)
def test_what_cannot_be_is_named(api, changes, field):
    assert [name for name, _ in faults(api.post("/topics", {**GIVEN, **changes}))] == [field]
    assert Topic.everywhere.count() == 0


def test_topic_changes_by_what_is_named(api):
    made = api.post("/topics", GIVEN).json()
    path = f"/topics/{made['id']}"
    answer = api.call("PATCH", path, {"season": None, "is_active": False})
    assert (answer.status_code, normal(answer.json())) == (
        200,
        {**SHOWN, "season": None, "is_active": False, "version": 2},
    )
    stale = api.call("PATCH", path, {"weight": 9}, headers={"If-Match": '"1"'})
    assert stale.status_code == 412
    fresh = api.call("PATCH", path, {"weight": 9}, headers={"If-Match": answer["ETag"]})
    assert (fresh.status_code, fresh.json()["weight"], fresh.json()["version"]) == (200, 9, 3)


def test_deleted_topic_is_gone(api):
    made = api.post("/topics", GIVEN).json()
    answer = api.call("DELETE", f"/topics/{made['id']}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert api.get(f"/topics/{made['id']}").json() == NOT_FOUND
    assert api.read("/topics")["data"] == []


def test_list_is_filtered(alice):
    api = alice.api
    everybody = api.post("/topics", {"title": "Rye"}).json()
    own = api.post("/topics", {"title": "Wheat", "persona": alice.persona}).json()
    off = api.post("/topics", {"title": "Spelt", "is_active": False}).json()

    def ids(query):
        return [one["id"] for one in api.read(f"/topics?{query}")["data"]]

    assert ids("") == [off["id"], own["id"], everybody["id"]]
    assert ids("order=asc&is_active=true") == [everybody["id"], own["id"]]
    assert ids(f"persona={alice.persona}") == [own["id"]]
    assert api.get("/topics?active=true").status_code == 400


RYE = {"title": "Rye", "notes": "A rye loaf keeps for nine days in its crust."}


def test_topic_of_a_source_s_own_list_is_that_list_s(alice):
    api = alice.api
    made = api.post("/sources", {"type": "brand", "config": {"topics": [RYE]}}).json()
    source = Source.everywhere.get(type="brand")
    row = Topic.everywhere.create(workspace=alice.workspace, source=source, title="Rye")
    (shown,) = api.read(f"/topics?source={made['id']}")["data"]
    assert (shown["title"], shown["source"]) == ("Rye", made["id"])
    path = f"/topics/{shown['id']}"
    assert api.call("PATCH", path, {"weight": 4}).json()["weight"] == 4
    for answer in (
        api.call("PATCH", path, {"title": "Spelt"}),
        api.call("PATCH", path, {"notes": "Spelt is older than wheat."}),
        api.call("DELETE", path),
    ):
        assert (answer.status_code, answer.json()["detail"][0]["code"]) == (409, "of_a_source")
    assert Topic.everywhere.get(pk=row.pk).deleted_at is None


def test_live_and_test_topics_are_apart(alice):
    tester = alice.client(is_test=True)
    live = alice.api.post("/topics", {"title": "Live"}).json()
    tried = tester.post("/topics", {"title": "Tried"}).json()
    assert tried["test"] is True
    assert [one["id"] for one in alice.api.read("/topics")["data"]] == [live["id"]]
    assert [one["id"] for one in tester.read("/topics")["data"]] == [tried["id"]]
