"""GET /workspace."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from accounts import workspaces
from tests.contracts.conftest import normal

LIMITS = {
    "unlimited": False,
    "requests_at_once": 120,
    "requests_per_minute": 60,
    "credits_per_month": 1000,
    "active_sources": 20,
    "poll_interval_minutes": 15,
}
SCOPES = [
    "sources:read", "sources:write", "raw:read", "raw:write", "raw:delete", "generated:read",
    "generated:write", "generated:approve", "generated:publish", "analytics:read",
]  # fmt: skip


def test_workspace_tells_of_itself_its_limits_and_the_token(alice):
    answer = alice.api.get("/workspace")
    assert (answer.status_code, normal(answer.json())) == (
        200,
        {
            "id": "ws_*",
            "name": "Alice's newsroom",
            "timezone": "Europe/Berlin",
            "plan": "Plan of Alice's newsroom",
            "whitelisted_at": "<moment>",
            "limits": LIMITS,
            "token": {"id": "tok_*", "scopes": SCOPES, "expires_at": None, "test": False},
        },
    )
    assert answer.json()["id"] == alice.workspace.public_id


def test_workspace_tells_of_a_narrow_test_token(alice):
    narrow = alice.client(
        scopes=("raw:write",), is_test=True, expires_at=datetime.now(UTC) + timedelta(days=1)
    )
    token = narrow.read("/workspace")["token"]
    assert normal(token) == {"id": "tok_*", "scopes": ["raw:write"], "expires_at": "<moment>", "test": True}


def test_workspace_without_limits_names_none(alice):
    workspaces.lift_limits(alice.workspace, "operator")
    assert alice.api.read("/workspace")["limits"] == {
        **LIMITS,
        "unlimited": True,
        "requests_at_once": None,
        "requests_per_minute": None,
        "credits_per_month": None,
    }


def test_workspace_has_a_tag(alice):
    first = alice.api.get("/workspace")
    again = alice.api.get("/workspace", headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content, again["ETag"]) == (304, b"", first["ETag"])
