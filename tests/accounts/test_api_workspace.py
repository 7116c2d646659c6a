"""GET /v1/workspace."""

from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from accounts.access import tokens
from accounts.models import Workspace
from config.core.datetimes import format_utc
from tests.factories import TokenFactory, WorkspaceFactory

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.accounts.urls")]


def test_workspace_and_its_token(workspace, token, api, charlies):
    response = api.get("/v1/workspace")
    assert response.status_code == 200
    assert response.json() == {
        "id": workspace.public_id,
        "name": "Alice's newsroom",
        "timezone": "UTC",
        "plan": "Small",
        "whitelisted_at": "2026-01-01T00:00:00.000Z",
        "limits": {
            "unlimited": False,
            "requests_at_once": 120,
            "requests_per_minute": 60,
            "credits_per_month": 1000,
            "active_sources": 20,
            "poll_interval_minutes": 15,
        },
        "token": {
            "id": tokens.public_id(token),
            "scopes": list(tokens.SCOPES),
            "expires_at": None,
            "test": False,
        },
    }


def test_token_tells_its_own_scopes_and_expiry():
    end = datetime.now(UTC) + timedelta(days=1)
    token = TokenFactory(scopes=["raw:write", "sources:read"], is_test=True, expires_at=end)
    response = Client(headers={"Authorization": f"Bearer {token.secret}"}).get("/v1/workspace")
    assert response.json()["token"] == {
        "id": tokens.public_id(token),
        "scopes": ["sources:read", "raw:write"],
        "expires_at": format_utc(end),
        "test": True,
    }


def test_operators_overrides_are_the_limits():
    workspace = WorkspaceFactory(credits_per_month=5, active_sources_most=6, poll_interval_minutes_least=7)
    token = TokenFactory(workspace=workspace)
    response = Client(headers={"Authorization": f"Bearer {token.secret}"}).get("/v1/workspace")
    assert response.json()["limits"] == {
        "unlimited": False,
        "requests_at_once": 120,
        "requests_per_minute": 60,
        "credits_per_month": 5,
        "active_sources": 6,
        "poll_interval_minutes": 7,
    }


def test_unlimited_has_no_numbers_where_nothing_is_limited(workspace, api):
    Workspace.everywhere.filter(pk=workspace.pk).update(is_unlimited=True)
    assert api.get("/v1/workspace").json()["limits"] == {
        "unlimited": True,
        "requests_at_once": None,
        "requests_per_minute": None,
        "credits_per_month": None,
        "active_sources": 20,
        "poll_interval_minutes": 15,
    }


@pytest.mark.parametrize("path", ["workspace", "usage", "usage/ledger"])
def test_trailing_slash_answers_the_same(api, path):
    plain, slashed = api.get(f"/v1/{path}"), api.get(f"/v1/{path}/")
    assert (plain.status_code, slashed.status_code) == (200, 200)
    assert plain.content == slashed.content


@pytest.mark.parametrize("path", ["workspace", "usage", "usage/ledger"])
def test_unknown_parameter_is_refused(api, path):
    response = api.get(f"/v1/{path}?limt=1")
    assert (response.status_code, response.json()["error"]) == (400, "invalid_request")
    assert [(one["field"], one["code"]) for one in response.json()["detail"]] == [
        ("limt", "unknown_parameter")
    ]


@pytest.mark.parametrize("path", ["workspace", "usage", "usage/ledger"])
def test_unchanged_is_304(api, path):
    first = api.get(f"/v1/{path}")
    again = api.get(f"/v1/{path}", headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content, again["ETag"]) == (304, b"", first["ETag"])
    assert "RateLimit" in again


@pytest.mark.parametrize("path", ["workspace", "usage", "usage/ledger"])
def test_only_get_is_there(api, path):
    response = api.post(f"/v1/{path}", {}, content_type="application/json")
    assert (response.status_code, response["Allow"]) == (405, "GET, HEAD")
