"""What engines make has the form that the API describes: the recorded drafts of every engine against the schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from config.api_docs.document import resolve
from config.api_docs.views import build_openapi
from pipeline import plugins
from pipeline.engines.base import Engine
from pipeline.resources.contents import CONTENTS
from pipeline.text.bucket_traits import BUCKETS, TRAITS

if TYPE_CHECKING:
    from collections.abc import Iterator

# The others hold what a model answered, from which drafts are made.
SAMPLES = [
    path
    for path in sorted((Path(__file__).parent / "samples").glob("*.json"))
    if "drafts" in json.loads(path.read_text())
]


def contents_in(node: Any) -> Iterator[dict[str, Any]]:
    """Every `content` in a sample."""
    if isinstance(node, dict):
        if isinstance(node.get("content"), dict):
            yield node["content"]
        for member in node.values():
            yield from contents_in(member)
    elif isinstance(node, list):
        for member in node:
            yield from contents_in(member)


def closed(document: dict[str, Any]) -> dict[str, Any]:
    """The same document, whose objects have no field that isn't described."""
    for schema in document["components"]["schemas"].values():
        if "properties" in schema:
            schema["additionalProperties"] = False
    return document


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return closed(build_openapi())


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_draft_is_of_the_form_of_its_bucket_and_of_no_other(document, sample):
    kinds = {engine.kind: engine for engine in plugins.every("engines", Engine)}
    bucket = kinds[sample.stem].bucket
    found = list(contents_in(json.loads(sample.read_text())))
    assert found
    for content in found:
        fitting = []
        for name, serializer in CONTENTS.items():
            schema = {"$ref": f"#/components/schemas/{serializer.__name__}"}
            whole = {**schema, "components": document["components"]}
            if jsonschema.Draft202012Validator(whole).is_valid(content):
                fitting.append(name)
        assert fitting == [bucket]


def test_every_engine_has_a_sample():
    assert {path.stem for path in SAMPLES} == {engine.kind for engine in plugins.every("engines", Engine)}


def test_every_bucket_has_a_form_with_all_its_fields(document):
    assert set(CONTENTS) == set(BUCKETS)
    for bucket, serializer in CONTENTS.items():
        schema = document["components"]["schemas"][serializer.__name__]
        assert set(schema["properties"]) == set(TRAITS[bucket].content)
    union = document["components"]["schemas"]["Content"]["anyOf"]
    assert [resolve(document, form) for form in union[:-1]] == [
        document["components"]["schemas"][serializer.__name__] for serializer in CONTENTS.values()
    ]
