"""The OpenAPI document of accounts: the answers are what it says, its examples too."""

import jsonschema
import pytest
from drf_spectacular.generators import SchemaGenerator

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.accounts.urls")]
PATHS = ("/v1/workspace", "/v1/usage", "/v1/usage/ledger")


@pytest.fixture(scope="module")
def document():
    from django.urls import clear_url_caches

    clear_url_caches()
    return SchemaGenerator(urlconf="tests.accounts.urls").get_schema(request=None, public=True)


def operation(document, path):
    found = {name.rstrip("/").rstrip("?"): methods for name, methods in document["paths"].items()}
    return found[path]["get"]


def schema_of(document, path, status):
    schema = operation(document, path)["responses"][status]["content"]["application/json"]["schema"]
    return {**schema, "components": document["components"]}


@pytest.mark.parametrize("path", PATHS)
def test_answers_are_as_documented(document, api, path):
    jsonschema.validate(api.get(path).json(), schema_of(document, path, "200"))


@pytest.mark.parametrize("path", PATHS)
def test_errors_are_as_documented(document, api, client, path):
    jsonschema.validate(api.get(f"{path}?x=1").json(), schema_of(document, path, "400"))
    jsonschema.validate(client.get(path).json(), schema_of(document, path, "401"))


@pytest.mark.parametrize("path", PATHS)
def test_examples_are_as_documented(document, path):
    content = operation(document, path)["responses"]["200"]["content"]["application/json"]
    assert len(content["examples"]) == 1
    for example in content["examples"].values():
        jsonschema.validate(example["value"], schema_of(document, path, "200"))


@pytest.mark.parametrize("path", PATHS)
def test_token_is_the_way_in(document, path):
    assert operation(document, path)["security"] == [{"token": []}]
    assert document["components"]["securitySchemes"]["token"] == {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "cpk_live_… or cpk_test_…",
    }


def test_lists_document_their_parameters(document):
    parameters = operation(document, "/v1/usage/ledger")["parameters"]
    assert {one["name"]: one["schema"] for one in parameters} == {
        "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 25},
        "cursor": {"type": "string"},
        "order": {"type": "string", "enum": ["asc", "desc"]},
    }
