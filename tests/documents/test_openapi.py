"""The OpenAPI document doesn't drift: `UPDATE_OPENAPI=1` writes the kept one anew."""

from __future__ import annotations

import json
import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from config.api_docs.views import build_openapi
from config.core.api.jsonio import dump
from config.core.ids import uuid7
from pipeline import events
from tests.documents.tables import routes
from webhooks.endpoints import TEST_EVENT

if TYPE_CHECKING:
    from collections.abc import Iterator

KEPT = Path(__file__).with_name("openapi.json")
METHODS = ("get", "post", "patch", "delete", "put")


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    """Without what differs between installations."""
    written: dict[str, Any] = json.loads(dump(build_openapi()))
    written.pop("servers", None)
    return written


def _operations(made: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in made["paths"].items():
        for method in METHODS:
            if method in item:
                yield method.upper(), path, item[method]


def complaints_about(made: dict[str, Any], body: dict[str, Any]) -> list[str]:
    """What the document's schema of its type has against an event."""
    schema = made["webhooks"][body["type"]]["post"]["requestBody"]["content"]["application/json"]["schema"]
    whole = {**schema, "components": made["components"]}
    return [error.message for error in jsonschema.Draft202012Validator(whole).iter_errors(body)]


def test_document_is_the_kept_one(made):
    if os.environ.get("UPDATE_OPENAPI") == "1":
        KEPT.write_text(json.dumps(made, ensure_ascii=False, indent=1, sort_keys=True) + "\n")
    kept = json.loads(KEPT.read_text())
    assert made["paths"] == kept["paths"], "UPDATE_OPENAPI=1 writes it anew"
    assert made == kept, "UPDATE_OPENAPI=1 writes it anew"


def test_every_route_is_in_the_document(made):
    there = {(method, re.sub(r"\{(\w+)\}", r":\1", path)) for method, path, _ in _operations(made)}
    ours = {(method, address) for method, address, _ in routes() if address != "/v1/openapi.json"}
    assert there == ours


def test_every_operation_documents_its_answers(made):
    for method, path, operation in _operations(made):
        told = operation["responses"]
        assert any(status.startswith("2") for status in told), f"{method} {path}"
        assert {"400", "401", "403", "429", "503"} <= set(told), f"{method} {path}: {sorted(told)}"
        if "{id}" in path:
            assert "404" in told, f"{method} {path}"
        if "requestBody" in operation:
            assert {"413", "415"} <= set(told), f"{method} {path}"
        if method == "POST":
            names = {parameter["name"] for parameter in operation.get("parameters", ())}
            assert "Idempotency-Key" in names, f"{method} {path}"
            assert {"409", "422"} <= set(told), f"{method} {path}: an Idempotency-Key can be in use or reused"


def test_every_operation_has_its_own_name_and_asks_for_a_token(made):
    names = [operation["operationId"] for _, _, operation in _operations(made)]
    assert len(names) == len(set(names))
    for method, path, operation in _operations(made):
        assert operation.get("security", made.get("security")), f"{method} {path}"


def test_every_event_is_in_the_document(made):
    assert set(made["webhooks"]) == {*events.TYPES, TEST_EVENT}


@pytest.mark.parametrize("event_type", [*events.TYPES, TEST_EVENT])
def test_every_event_has_one_example_which_is_what_its_schema_says(made, event_type):
    content = made["webhooks"][event_type]["post"]["requestBody"]["content"]["application/json"]
    example = content["example"]
    assert example["type"] == event_type
    assert complaints_about(made, example) == []
    # And the schema is one: without any of its members it isn't met.
    for name in ("id", "timestamp", "workspace", "data"):
        assert complaints_about(made, {key: it for key, it in example.items() if key != name}), name
    for name in example["data"]:
        without = {key: it for key, it in example["data"].items() if key != name}
        assert complaints_about(made, {**example, "data": without}), name


def test_an_event_that_was_cut_meets_its_schema_too(made):
    raw_item = {"id": "raw_x", "version": 1, "title": "T", "metadata": {"long": "x" * 30_000}}
    now = datetime(2026, 11, 20, tzinfo=UTC)
    body = json.loads(events.envelope(uuid7(), "raw.ingested", uuid7(), {"raw_item": raw_item}, now))
    assert body["data"]["raw_item"]["truncated"] == ["metadata"]
    assert complaints_about(made, body) == []


def test_every_webhook_names_its_three_headers(made):
    for item in made["webhooks"].values():
        names = [one["name"] for one in item["post"]["parameters"]]
        assert names == ["webhook-id", "webhook-timestamp", "webhook-signature"]


def test_document_is_of_the_version_that_it_names(made):
    assert made["openapi"].startswith("3.1")
