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
