"""The release has one version, and its OpenAPI document is kept."""

from __future__ import annotations

import json
import re
import tomllib

from django.conf import settings

from tests.documents.text import DOCS, ROOT, read


def test_version_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    newest = re.search(r"^## (\d\S+) – \d{4}-\d{2}-\d{2}$", read("CHANGELOG.md"), re.MULTILINE)
    assert newest is not None
    assert {project["version"], newest[1], settings.SPECTACULAR_SETTINGS["VERSION"]} == {settings.VERSION}
    assert settings.USER_AGENT.startswith(f"content-pipeline/{settings.VERSION} (")


def test_openapi_document_of_the_release_is_kept():
    kept = json.loads((DOCS / "openapi" / f"{settings.VERSION}.json").read_text())
    assert kept["info"]["version"] == settings.VERSION


def test_nothing_of_the_release_is_gone():
    """/v1 only adds: operations, parameters, answers, fields and events of the last release are there today."""
    kept = json.loads((DOCS / "openapi" / f"{settings.VERSION}.json").read_text())
    current = json.loads((ROOT / "tests/documents/openapi.json").read_text())
    assert _names_in(kept) - _names_in(current) == set()
    assert len(_names_in(kept)) > 1000


def _names_in(document):
    """Return the path of each thing that a client may name."""
    names = set()
    for area in ("paths", "webhooks"):
        for path, methods in document.get(area, {}).items():
            for method, operation in methods.items():
                if not isinstance(operation, dict):
                    continue
                names.add((path, method))
                names |= {
                    (path, method, each.get("name", each.get("$ref")))
                    for each in operation.get("parameters", [])
                }
                names |= {(path, method, status) for status in operation.get("responses", {})}
    for name, schema in document["components"]["schemas"].items():
        names |= {(name, field) for field in schema.get("properties", {})}
    return names
