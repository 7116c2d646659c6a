"""What every request passes: whitelist, rate, scope; and what each refusal says."""

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import Client
from rest_framework.request import Request
from rest_framework.test import APIRequestFactory
from rest_framework.views import APIView

from accounts import workspaces
from accounts.access import permissions, workspace_rate_limit
from accounts.access.authentication import Unauthenticated
from accounts.models import RateBucket, Workspace
from tests.factories import TokenFactory, WorkspaceFactory

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.accounts.urls")]
RATE_HEADERS = (
    "RateLimit-Policy",
    "RateLimit",
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
)


def client_of(token):
    return Client(headers={"Authorization": f"Bearer {token.secret}"})


def refusal(code, message):
    return {"error": code, "detail": [{"field": None, "code": code, "message": message}]}


def test_workspace_that_is_not_whitelisted_is_told_whom_to_ask(settings):
    settings.OPERATOR_CONTACT = "beta@example.test"
    response = client_of(TokenFactory(workspace__whitelisted_at=None)).get("/v1/things")
    assert response.status_code == 403
    assert response.json() == refusal(
        "workspace_not_whitelisted",
        "This workspace isn't approved for the API: an owner can request access under Settings, Access, "
        "or write to beta@example.test.",
    )
    assert [name for name in RATE_HEADERS if name in response] == []
    assert RateBucket.everywhere.count() == 0


def test_delisting_takes_effect_on_the_next_request(workspace, api):
    assert api.get("/v1/things").status_code == 200
    workspaces.delist(workspace, "operator")
    assert api.get("/v1/things").status_code == 403
    workspaces.whitelist(workspace, "operator")
    assert api.get("/v1/things").status_code == 200


def test_answers_carry_the_rate(api, monkeypatch):
    monkeypatch.setattr(workspace_rate_limit.time, "time", lambda: 1_790_000_000.0)
    api.get("/v1/things")
    response = api.get("/v1/things")
    assert {name: response[name] for name in RATE_HEADERS} == {
        "RateLimit-Policy": '"workspace";q=120;w=120',
        "RateLimit": '"workspace";r=118;t=2',
        "X-RateLimit-Limit": "120",
        "X-RateLimit-Remaining": "118",
        "X-RateLimit-Reset": "1790000000",
    }
    assert "Retry-After" not in response


def exhaust(workspace):
    import time

    RateBucket.everywhere.update_or_create(
        workspace=workspace,
        defaults={"arrival_micros": time.time_ns() // 1000 + workspace_rate_limit.WINDOW + 1_500_000},
    )


def test_empty_allowance_is_429(workspace, api):
    exhaust(workspace)
    response = api.get("/v1/things")
    assert response.status_code == 429
    assert response.json() == refusal(
        "rate_limited",
        "This workspace may send 120 requests at once and one a second after that; wait 3 s.",
    )
    assert response["Retry-After"] == "3"
    assert response["RateLimit"] == '"workspace";r=0;t=122'
    assert response["X-RateLimit-Remaining"] == "0"


def test_allowance_is_the_workspaces_not_the_tokens(workspace, charlies, api):
    exhaust(workspace)
    assert client_of(TokenFactory(workspace=workspace, is_test=True)).get("/v1/things").status_code == 429
    assert client_of(TokenFactory(workspace=charlies)).get("/v1/things").status_code == 200


def test_unlimited_workspace_has_no_allowance_and_sane_headers(workspace, api):
    Workspace.everywhere.filter(pk=workspace.pk).update(is_unlimited=True)
    exhaust(workspace)
    response = api.get("/v1/things")
    assert (response.status_code, response["RateLimit"]) == (200, '"workspace";r=120;t=0')


def test_missing_scope_is_named():
    client = client_of(TokenFactory(scopes=["raw:read"]))
    assert client.get("/v1/things").status_code == 200
    response = client.post("/v1/things", {}, content_type="application/json")
    assert response.status_code == 403
    assert response.json() == refusal(
        "insufficient_scope",
        "This needs the scope raw:write, which the token lacks; use or make a token that has it.",
    )
    assert response["RateLimit"] == '"workspace";r=118;t=2'


def test_action_without_a_scope_takes_any_token():
    client = client_of(TokenFactory(scopes=["analytics:read"]))
    assert client.post("/v1/things/preview", {}, content_type="application/json").status_code == 200


@pytest.mark.parametrize("method", ["put", "delete", "patch", "options", "trace"])
def test_method_that_the_route_lacks_is_405_whatever_the_scopes(method):
    client = client_of(TokenFactory(scopes=["analytics:read"]))
    response = getattr(client, method)("/v1/things")
    assert (response.status_code, response.json()["error"]) == (405, "method_not_allowed")
    assert response["Allow"] == "GET, POST, HEAD"
    assert "RateLimit" in response


def test_head_needs_the_scope_of_get():
    assert client_of(TokenFactory(scopes=["raw:read"])).head("/v1/things").status_code == 200
    assert client_of(TokenFactory(scopes=["raw:write"])).head("/v1/things").status_code == 403


def test_checks_come_in_the_contracts_order(workspace, api):
    """Each request fails at everything from one check on; the first that fails answers."""
    lacking = TokenFactory(scopes=["analytics:read"], workspace=WorkspaceFactory(whitelisted_at=None))
    exhaust(lacking.workspace)
    client = client_of(lacking)
    assert Client().put("/v1/things").status_code == 401
    assert client.put("/v1/things").status_code == 403
    assert client.put("/v1/things").json()["error"] == "workspace_not_whitelisted"
    workspaces.whitelist(lacking.workspace, "operator")
    assert client.put("/v1/things").status_code == 429
    RateBucket.everywhere.all().delete()
    assert client.put("/v1/things").status_code == 405
    assert client.get("/v1/things").json()["error"] == "insufficient_scope"


def test_view_that_forgot_its_scopes_answers_nobody(api):
    response = api.get("/v1/forgetful")
    assert (response.status_code, response.json()["error"]) == (500, "internal_error")
    assert "secret" not in response.content.decode()


@pytest.mark.parametrize("scopes", [{}, {"retrieve": None}])
def test_plain_view_without_actions_fails_closed(scopes):
    view = APIView()
    view.scopes = scopes
    with pytest.raises(ImproperlyConfigured, match=r"APIView\.scopes doesn't say what None needs\."):
        permissions.TokenHasScope().has_permission(Request(APIRequestFactory().get("/")), view)


def test_request_of_another_authentication_is_nobodys():
    request = Request(APIRequestFactory().get("/"))
    with pytest.raises(Unauthenticated):
        permissions.caller(request)
    assert permissions.rate_headers(request) == {}
