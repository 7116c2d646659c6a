"""The OpenAPI document doesn't drift: `UPDATE_OPENAPI=1` writes the kept one anew."""

from __future__ import annotations

import builtins
import collections.abc
import json
import keyword
import os
import re
import typing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from django.conf import settings

from config.api_docs.document import resolve, schemas_in
from config.api_docs.views import build_openapi, build_strict_openapi
from config.core.api.jsonio import dump
from config.core.errors import CODES
from config.core.ids import uuid7
from pipeline import events
from pipeline.resources import SOURCE_TYPES
from tests.documents.flow import PUBLIC_URL
from tests.documents.tables import routes
from tests.documents.text import DOCS, EXAMPLES
from webhooks.endpoints import TEST_EVENT

if TYPE_CHECKING:
    from collections.abc import Iterator

KEPT = Path(__file__).with_name("openapi.json")
METHODS = ("get", "post", "patch", "delete", "put")


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    """Without what differs between installations."""
    document = build_openapi()
    [server] = document["servers"]
    written: dict[str, Any] = json.loads(dump(document).replace(server["url"].encode(), PUBLIC_URL.encode()))
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
            names = {resolve(made, parameter)["name"] for parameter in operation.get("parameters", ())}
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
    operation = made["webhooks"][event_type]["post"]
    example = json.loads((EXAMPLES / f"event-{event_type}.json").read_text())
    assert _example(made, operation, operation["requestBody"]["content"]["application/json"]) == example
    assert example["type"] == event_type
    assert complaints_about(made, example) == []
    # And the schema is one: without any of its members it isn't met.
    for name in ("id", "timestamp", "workspace", "data"):
        assert complaints_about(made, {key: it for key, it in example.items() if key != name}), name
    for name in example["data"]:
        without = {key: it for key, it in example["data"].items() if key != name}
        assert complaints_about(made, {**example, "data": without}), name


def _example(made: dict[str, Any], operation: dict[str, Any], content: dict[str, Any]) -> Any:
    """The one example of a body: in the document, or where that says it is."""
    if "examples" in content:
        [reference] = content["examples"].values()
        return resolve(made, reference)["value"]
    return json.loads(
        (DOCS / operation["externalDocs"]["url"].removeprefix(f"{PUBLIC_URL}/docs/")).read_text()
    )


WITHOUT_EXAMPLE = {
    "generated_storyboard_retrieve 200",
    "generated_storyboard_update",
    "publications_settle",
    "series_make 202",
}
"""Bodies of what takes a film, five items of a week, or a post that a person made."""


def test_every_body_has_an_example_which_is_what_its_schema_says(made):
    without = set()
    for _, _, operation in _operations(made):
        bodies = {operation["operationId"]: operation.get("requestBody", {})}
        bodies |= {
            f"{operation['operationId']} {status}": answer
            for status, answer in operation["responses"].items()
            if status.startswith("2")
        }
        for name, body in bodies.items():
            content = body.get("content", {}).get("application/json")
            if content is None:
                continue
            if name in WITHOUT_EXAMPLE:
                assert "examples" not in content
                without.add(name)
                continue
            whole = {**content["schema"], "components": made["components"]}
            problems = list(
                jsonschema.Draft202012Validator(whole).iter_errors(_example(made, operation, content))
            )
            assert [problem.message for problem in problems] == [], name
    assert without == WITHOUT_EXAMPLE


def test_an_event_that_was_cut_meets_its_schema_too(made):
    raw_item = {"id": "raw_x", "version": 1, "title": "T", "metadata": {"long": "x" * 30_000}}
    now = datetime(2026, 11, 20, tzinfo=UTC)
    body = json.loads(events.envelope(uuid7(), "raw.ingested", uuid7(), {"raw_item": raw_item}, now))
    assert body["data"]["raw_item"]["truncated"] == ["metadata"]
    assert complaints_about(made, body) == []


def test_every_webhook_names_its_headers(made):
    for item in made["webhooks"].values():
        names = [resolve(made, one)["name"] for one in item["post"]["parameters"]]
        assert names == ["webhook-id", "webhook-timestamp", "webhook-signature", "X-Request-Id"]


def test_every_operation_says_what_it_does_and_which_scope_it_needs(made):
    tags = {tag["name"] for tag in made["tags"]}
    for method, path, operation in _operations(made):
        assert set(operation["tags"]) <= tags, f"{method} {path}"
        scope = operation.get("x-required-scope")
        sentence = f"Needs the scope `{scope}`." if scope else "Any token may call it."
        text, _, last = operation["description"].rpartition("\n\n")
        assert (bool(text), last) == (True, sentence), f"{method} {path}"
    used = {tag for _, _, operation in _operations(made) for tag in operation["tags"]}
    assert tags == {*used, "webhooks"}


def test_headers_errors_and_shared_parameters_are_written_once(made):
    for method, path, operation in _operations(made):
        for status, answer in operation["responses"].items():
            if status >= "300":
                assert set(answer) == {"$ref"}, f"{method} {path}: {status}"
            else:
                assert all(set(header) == {"$ref"} for header in answer["headers"].values())
    by_status = {error.status for error in CODES.values()}
    for name, answer in made["components"]["responses"].items():
        if name == "Unchanged":
            continue
        codes = [code for code in CODES if f"- `{code}`: " in answer["description"]]
        assert len({CODES[code].status for code in codes}) == 1, name
        by_status -= {CODES[codes[0]].status}
    # Every route has its methods, and no operation promises a fault of ours.
    assert by_status == {405, 406, 500}


def test_document_is_short_enough_to_be_read_whole(made):
    assert len(dump(made)) <= 300_000


# --- What code generators stumble on ---------------------------------------------------------------------------------

WORDS_OF_TYPESCRIPT = {
    *(
        "Array",
        "Blob",
        "Date",
        "Error",
        "Event",
        "File",
        "Function",
        "Map",
        "Node",
        "Number",
        "Object",
        "Partial",
    ),
    *("Pick", "Promise", "Range", "Record", "Request", "Response", "Set", "String", "Symbol", "Text"),
}


def test_no_schema_is_called_like_a_word_of_python_or_typescript(made):
    words = {*dir(builtins), *keyword.kwlist, *typing.__all__, *collections.abc.__all__, *WORDS_OF_TYPESCRIPT}
    assert words & set(made["components"]["schemas"]) == set()


def test_no_schema_is_named_by_a_hash(made):
    assert [
        name for name in made["components"]["schemas"] if re.search(r"[0-9A-F][0-9a-f]{2}Enum$", name)
    ] == []


def test_rules_between_fields_are_words(made):
    for node in schemas_in(made):
        assert not {"not", "dependentRequired", "dependentSchemas", "x-rules"} & set(node), node
        assert len(str(node.get("pattern", ""))) <= 110, node
        for kind in ("anyOf", "oneOf"):
            assert all("required" not in member or "type" in member for member in node.get(kind, ())), node
        assert not [name for name, member in node.get("properties", {}).items() if isinstance(member, bool)]


def test_enums_are_those_that_never_grow(made):
    """Platforms, engines, codes, reasons and types of events are strings: a client takes one that it doesn't know."""
    schemas = made["components"]["schemas"]
    enums = {name for name, schema in schemas.items() if "enum" in schema}
    assert enums <= set(settings.SPECTACULAR_SETTINGS["ENUM_NAME_OVERRIDES"])
    assert schemas["Outlet"]["properties"]["platform"]["type"] == "string"
    assert schemas["Outlet"]["properties"]["platform"]["description"].startswith("One of `bluesky`, ")
    assert "enum" not in schemas["ErrorAnswer"]["properties"]["error"]
    inputs = schemas["RawItemInput"]["properties"]["engines"]["items"]
    assert (inputs["type"], "enum" in inputs) == ("string", False)


def test_each_type_of_source_has_an_input_of_its_own(made):
    union = made["components"]["schemas"]["SourceInput"]
    mapping = union["discriminator"]["mapping"]
    assert (union["discriminator"]["propertyName"], set(mapping)) == ("type", set(SOURCE_TYPES))
    assert [member["$ref"] for member in union["oneOf"]] == list(mapping.values())
    for source_type, reference in mapping.items():
        assert resolve(made, {"$ref": reference})["properties"]["type"]["const"] == source_type


def test_strict_document_has_the_rules_as_json_schema():
    strict = json.loads(dump(build_strict_openapi()))["components"]["schemas"]
    assert "dependentRequired" in strict["PublishInput"]
    assert "oneOf" in strict["MediaInput"]
    assert strict["MediaInput"]["properties"]["url"]["pattern"].startswith("^[hH]")


def test_document_is_of_the_version_that_it_names(made):
    assert made["openapi"].startswith("3.1")
