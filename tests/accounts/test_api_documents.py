"""The OpenAPI document of accounts: the answers are what it says."""

import jsonschema
import pytest

from config.api_docs.document import resolve
from config.api_docs.views import build_openapi

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.accounts.urls")]
PATHS = ("/v1/workspace", "/v1/usage", "/v1/usage/ledger")


@pytest.fixture(scope="module")
def document():
    return build_openapi()


def operation(document, path):
    return document["paths"][path]["get"]


def schema_of(document, path, status):
    answer = resolve(document, operation(document, path)["responses"][status])
    return {**answer["content"]["application/json"]["schema"], "components": document["components"]}


@pytest.mark.parametrize("path", PATHS)
def test_answers_are_as_documented(document, api, path):
    jsonschema.validate(api.get(path).json(), schema_of(document, path, "200"))


@pytest.mark.parametrize("path", PATHS)
def test_errors_are_as_documented(document, api, client, path):
    jsonschema.validate(api.get(f"{path}?x=1").json(), schema_of(document, path, "400"))
    jsonschema.validate(client.get(path).json(), schema_of(document, path, "401"))


@pytest.mark.parametrize("path", PATHS)
def test_token_is_the_way_in(document, path):
    assert operation(document, path)["security"] == [{"token": []}]
    assert document["components"]["securitySchemes"]["token"] == {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "cpk_live_… or cpk_test_…",
    }


def test_lists_document_their_parameters(document):
    parameters = [resolve(document, one) for one in operation(document, "/v1/usage/ledger")["parameters"]]
    assert {one["name"]: one["schema"] for one in parameters} == {
        "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 25},
        "cursor": {"type": "string"},
        "order": {"type": "string", "enum": ["asc", "desc"]},
    }
