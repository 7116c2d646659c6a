"""GET /outlets, GET /outlets/:id."""

from __future__ import annotations

from django.utils import timezone

from config.core import ids
from pipeline.models import Outlet
from tests.contracts.conftest import NOT_FOUND, never_existed, normal

BUCKETS = ["video", "image", "text", "blog", "newsletter"]
FEED = {
    "id": "out_*",
    "name": "Workspace feed",
    "platform": "feed",
    "buckets": BUCKETS,
    "status": "ok",
    "last_error": None,
    "limits": {
        "text": {"max": None, "unit": "characters"},
        "buckets": {},
        "per_day": None,
        "gap_minutes": None,
    },
    "account": None,
    "connected_at": None,
    "checked_at": None,
    "expires_at": None,
    "rests_until": None,
    "default": True,
    "simulated": False,
    "feeds": {form: f"http://127.0.0.1:8000/feeds/*.{form}" for form in ("atom", "rss", "json")},
    "version": 1,
    "created_at": "<moment>",
    "updated_at": "<moment>",
}
SIMULATED = {
    **FEED,
    "name": "Test channel",
    "platform": "simulated",
    "limits": {**FEED["limits"], "text": {"max": 5000, "unit": "characters"}},
    "default": False,
    "simulated": True,
    "feeds": None,
}


def test_outlets_of_a_new_workspace(alice):
    answer = alice.api.read("/outlets")
    assert normal(answer) == {"data": [SIMULATED, FEED], "has_more": False, "next_cursor": None}
    assert [one["id"] for one in answer["data"]] == [alice.simulated, alice.feed]


def test_outlet_is_shown_as_in_the_list(alice):
    listed = {one["id"]: one for one in alice.api.read("/outlets")["data"]}
    for outlet_id, shown in listed.items():
        answer = alice.api.get(f"/outlets/{outlet_id}")
        assert (answer.status_code, answer.json()) == (200, shown)
        same = alice.api.get(f"/outlets/{outlet_id}", headers={"If-None-Match": answer["ETag"]})
        assert (same.status_code, same.content) == (304, b"")


def test_credentials_and_settings_are_not_shown(alice):
    row = Outlet.everywhere.get(pk=ids.decode("out", alice.simulated))
    Outlet.everywhere.filter(pk=row.pk).update(config={"script": ["reject"]})
    row.credentials = {"password": "hunter2"}
    row.save(update_fields=["credentials"])
    for path in ("/outlets", f"/outlets/{alice.simulated}"):
        text = alice.api.get(path).content.decode()
        assert "hunter2" not in text
        assert "script" not in text


def test_test_token_sees_the_simulated_outlet_only_and_as_its_default(alice):
    tester = alice.client(is_test=True)
    assert normal(tester.read("/outlets")["data"]) == [{**SIMULATED, "default": True}]
    assert (
        tester.get(f"/outlets/{alice.feed}").status_code,
        tester.read(f"/outlets/{alice.simulated}")["id"],
    ) == (
        404,
        alice.simulated,
    )


def test_deleted_outlet_is_gone(alice):
    Outlet.everywhere.filter(pk=ids.decode("out", alice.simulated)).update(deleted_at=timezone.now())
    assert [one["id"] for one in alice.api.read("/outlets")["data"]] == [alice.feed]
    assert alice.api.get(f"/outlets/{alice.simulated}").json() == NOT_FOUND


def test_outlet_that_never_existed(api):
    answer = api.get(f"/outlets/{never_existed('out')}")
    assert (answer.status_code, answer.json()) == (404, NOT_FOUND)
