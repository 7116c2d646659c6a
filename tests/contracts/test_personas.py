"""GET|POST /personas, GET|PATCH|DELETE /personas/:id."""

from __future__ import annotations

from config.core import task_runner
from pipeline.models import Persona, PersonaVersion
from tests.contracts.conftest import NOT_FOUND, never_existed, normal, refusal

STARTING = {
    "id": "per_*",
    "name": "Alice's newsroom",
    "handle": None,
    "language": "en",
    "sections": {
        "who_you_are": "For people who follow this workspace's subjects.",
        "voice": "Plain and friendly. Short sentences. No superlatives. One idea in each item.",
        "banned_words": [],
        "required_structures": [],
        "reference_posts": [],
    },
    "approved_lines": [],
    "links": [],
    "brand": {},
    "default": True,
    "version": 1,
    "created_at": "<moment>",
    "updated_at": "<moment>",
}


def test_personas_of_a_new_workspace(alice):
    answer = alice.api.read("/personas")
    assert normal(answer) == {"data": [STARTING], "has_more": False, "next_cursor": None}
    assert answer["data"][0]["id"] == alice.persona


def test_persona_is_shown_as_in_the_list(alice):
    Persona.everywhere.create(
        workspace=alice.workspace, name="Second", handle="second", links=["https://example.test"]
    )
    listed = alice.api.read("/personas")["data"]
    assert [(one["name"], one["handle"], one["default"]) for one in listed] == [
        ("Second", "second", False),
        ("Alice's newsroom", None, True),
    ]
    for shown in listed:
        answer = alice.api.get(f"/personas/{shown['id']}")
        assert (answer.status_code, answer.json()) == (200, shown)
        same = alice.api.get(f"/personas/{shown['id']}", headers={"If-None-Match": answer["ETag"]})
        assert (same.status_code, same.content) == (304, b"")


def test_persona_that_never_existed(api):
    answer = api.get(f"/personas/{never_existed('per')}")
    assert (answer.status_code, answer.json()) == (404, NOT_FOUND)


LINES = ["We bake with spelt from the valley.", "The oven is lit at four in the morning."]


def test_persona_is_made_changed_and_deleted_by_api(alice, charlie):
    given = {
        "name": "The bakery",
        "handle": "@bakery",
        "language": "de-CH",
        "links": ["https://bakery.example/"],
        "brand": {"primary": "#1f4e5f", "voice_rate": "150"},
        "sections": {
            "who_you_are": "Ada bakes rye bread in Leeds.",
            "banned_words": ["delve"],
            "required_structures": [{"kind": "max_hashtags", "most": 1}],
        },
        "approved_lines": LINES,
    }
    answer = alice.api.post("/personas", given)
    made = answer.json()
    assert (answer.status_code, answer["Location"]) == (201, f"/v1/personas/{made['id']}")
    assert normal(made) == {
        **STARTING,
        **given,
        "sections": {"voice": "", "reference_posts": [], **given["sections"]},
        "default": False,
    }
    path = f"/personas/{made['id']}"
    changed = alice.api.call("PATCH", path, {"sections": {"voice": "Dry."}, "handle": None})
    assert changed.status_code == 200
    assert changed.json()["sections"] == {**made["sections"], "voice": "Dry."}
    assert (changed.json()["handle"], changed.json()["version"]) == (None, 2)
    assert PersonaVersion.everywhere.filter(persona__name="The bakery").count() == 2
    stale = alice.api.call("PATCH", path, {"name": "X"}, headers={"If-Match": answer["ETag"]})
    assert stale.status_code == 412
    assert charlie.api.call("PATCH", path, {"name": "X"}).status_code == 404
    assert alice.api.call("DELETE", path).status_code == 204
    assert alice.api.get(path).status_code == 404
    in_use = alice.api.call("DELETE", f"/personas/{alice.persona}")
    assert refusal(in_use) == (409, "conflict", [(None, "in_use")])


def test_faults_of_a_persona_are_named_where_they_stand(api):
    for given, field, code in (
        ({}, "name", "required"),
        ({"name": "A", "handle": "a b"}, "handle", "pattern"),
        ({"name": "A", "brand": {"primary": "red"}}, "brand.primary", "pattern"),
        ({"name": "A", "sections": {"required_structures": [{"kind": "rhyme"}]}}, *STRUCTURE),
        ({"name": "A", "sections": {"mood": "dry"}}, "sections.mood", "unknown_field"),
        ({"name": "A", "lines": []}, "lines", "unknown_field"),
        ({"name": "A", "links": ["bakery"]}, "links[0]", "invalid_address"),
    ):
        assert refusal(api.post("/personas", given)) == (400, "invalid_request", [(field, code)])
    assert Persona.everywhere.filter(name="A").count() == 0


STRUCTURE = ("sections.required_structures[0].kind", "invalid")


def test_test_key_changes_no_persona(alice):
    tester = alice.client(is_test=True)
    for answer in (
        tester.post("/personas", {"name": "A"}),
        tester.call("PATCH", f"/personas/{alice.persona}", {"name": "A"}),
        tester.call("DELETE", f"/personas/{alice.persona}"),
    ):
        assert refusal(answer) == (409, "conflict", [(None, "live_only")])
    assert not Persona.everywhere.filter(name="A").exists()


def test_lines_that_the_api_gives_a_persona_are_what_a_lane_says(alice):
    assert alice.api.post("/sources", {"type": "brand", "config": {"topics": ["Bread"]}}).status_code == 409
    alice.api.call("PATCH", f"/personas/{alice.persona}", {"approved_lines": LINES})
    lane = alice.api.post("/sources", {"type": "brand", "config": {"topics": ["Bread"]}})
    assert lane.status_code == 201
    task_runner.work_all_due("ingest.fill_brand_slot")
    task_runner.work_all_due("generate.run_item")
    made = alice.api.read(f"/generated?source={lane.json()['id']}&status=ready")["data"]
    assert made
    assert {one["body"] for one in made} <= set(LINES)
