"""The release has one version, and its OpenAPI document is kept."""

from __future__ import annotations

import copy
import json
import re
import tomllib
from typing import TYPE_CHECKING, Final

import pytest
from django.conf import settings

from config.api_docs.views import build_openapi
from config.core.api.jsonio import dump
from tests.documents.drift import removals
from tests.documents.text import DOCS, ROOT, read

if TYPE_CHECKING:
    from collections.abc import Mapping


def test_version_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    newest = re.search(r"^## (\d\S+) – \d{4}-\d{2}-\d{2}$", read("CHANGELOG.md"), re.MULTILINE)
    assert newest is not None
    assert {project["version"], newest[1], settings.SPECTACULAR_SETTINGS["VERSION"]} == {settings.VERSION}
    assert settings.USER_AGENT.startswith(f"content-pipeline/{settings.VERSION} (")


def test_openapi_document_of_the_release_is_kept():
    kept = json.loads((DOCS / "openapi" / f"{settings.VERSION}.json").read_text())
    assert kept["info"]["version"] == settings.VERSION


REMOVED: Final[Mapping[str, str]] = {
    "GET /v1/analytics answers 200 text/csv": "It is answered as before, and described in words: of two forms of one "
    "answer, code generators make a type that fits neither.",
}
"""What the document of the last release has and today's hasn't, each with the reason."""


def _kept_document():
    return json.loads((DOCS / "openapi" / f"{settings.VERSION}.json").read_text())


def test_nothing_of_the_release_is_gone():
    """/v1 only adds: what a client of the last release may name is there today."""
    assert sorted(removals(_kept_document(), json.loads(dump(build_openapi())))) == sorted(REMOVED)


def _without_field(document):
    del document["components"]["schemas"]["Source"]["properties"]["name"]


def _without_operation(document):
    del document["paths"]["/v1/hold"]["delete"]


def _without_parameter(document):
    operation = document["paths"]["/v1/sources"]["get"]
    operation["parameters"] = [each for each in operation["parameters"] if each.get("name") != "status"]


def _without_value(document):
    document["components"]["schemas"]["LatePolicy"]["enum"].remove("hold")


def _with_required_field(document):
    document["components"]["schemas"]["PublishInput"]["required"] = ["outlets"]


def _without_event_field(document):
    del document["components"]["schemas"]["SourceFailingEvent"]["properties"]["workspace"]


@pytest.mark.parametrize(
    ("break_document", "line"),
    [
        (_without_field, "GET /v1/sources/{id} answers 200 .name"),
        (_without_operation, "DELETE /v1/hold"),
        (_without_parameter, "GET /v1/sources parameter status"),
        (_without_value, "POST /v1/generated/{id}/publish takes .late_policy=hold"),
        (_with_required_field, "POST /v1/generated/{id}/publish takes .outlets is required"),
        (_without_event_field, "POST source.failing sends .workspace"),
    ],
)
def test_removal_is_found(break_document, line):
    current = json.loads(dump(build_openapi()))
    broken = copy.deepcopy(current)
    break_document(broken)
    found = list(removals(current, broken))
    assert line in found
    assert list(removals(current, current)) == []
