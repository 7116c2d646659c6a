"""GET /personas, GET /personas/:id."""

from __future__ import annotations

from pipeline.models import Persona
from tests.contracts.conftest import NOT_FOUND, never_existed, normal

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
