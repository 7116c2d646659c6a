"""The OpenAPI document doesn't drift: `UPDATE_OPENAPI=1` writes the kept one anew."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from config.documents import document
from config.ground.jsonio import dump
from pipeline import events
from tests.documents.tables import routes

if TYPE_CHECKING:
    from collections.abc import Iterator

KEPT = Path(__file__).with_name("openapi.json")
METHODS = ("get", "post", "patch", "delete", "put")


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    """Without what differs between installations."""
    written: dict[str, Any] = json.loads(dump(document()))
    written.pop("servers", None)
    return written


def _operations(made: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in made["paths"].items():
        for method in METHODS:
            if method in item:
                yield method.upper(), path, item[method]


def test_document_is_the_kept_one(made):
    if os.environ.get("UPDATE_OPENAPI") == "1":
        KEPT.write_text(json.dumps(made, ensure_ascii=False, indent=1, sort_keys=True) + "\n")
    kept = json.loads(KEPT.read_text())
    assert made["paths"] == kept["paths"]
    assert made == kept


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
    assert set(made["webhooks"]) == set(events.TYPES)


def test_document_is_of_the_version_that_it_names(made):
    assert made["openapi"].startswith("3.1")
